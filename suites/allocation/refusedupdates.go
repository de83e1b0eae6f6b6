package allocation

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// wanted is what an update asks for that has to be allocated: a free address and a free node port. ports are two entries of a Service of type NodePort. The second one
// is named like the first, or has a node port that another Service has.
type wanted struct {
	ip     string
	family corev1.IPFamily // of ip
	port   int32
	ports  string
}

// updated is an update that has something allocated, and what it is made to.
type updated struct {
	what   string
	from   []check.ServiceOption
	fields func(before *corev1.Service, w *wanted) string // of the spec, as JSON without braces
	ip     bool                                           // an address of the primary family is allocated
	second bool                                           // an address of the other family is
	port   bool                                           // a node port is
}

// refusing is a way in which an update comes to nothing.
type refusing struct {
	what     string
	metadata string // of the metadata, as JSON without braces
	fields   string // further ones of the spec
	taken    bool   // the second port names a node port that another Service has
	send     func(ctx context.Context, cp *check.ControlPlane, name, metadata, fields string) check.Response
	stays    bool // it is accepted, and changes nothing
}

// ways are those of a server that refuses before, while or after it allocates.
var ways = []refusing{
	{what: "another allocator has nothing for it", taken: true, send: byMergePatch},
	{what: "a field is invalid", fields: `"sessionAffinity":"Never",`, send: byMergePatch},
	{what: "its resourceVersion is an old one", metadata: `"resourceVersion":"1"`, send: byMergePatch},
	{what: "its UID is another one", metadata: `"uid":"8c1b7e52-0000-4000-8000-000000000000"`, send: byMergePatch},
	{what: "it replaces an old version", metadata: `"resourceVersion":"1"`, send: byReplacement},
	{what: "it replaces the Service, and a field is invalid", fields: `"sessionAffinity":"Never",`, send: byReplacement},
	{what: "it replaces the Service, and another allocator has nothing for it", taken: true, send: byReplacement},
	{what: "it is applied, and others own the fields", send: byApply},
	{what: "it is applied by force, and a field is invalid", fields: `"sessionAffinity":"Never",`, send: byForce},
	{what: "it is applied by force, and another allocator has nothing for it", taken: true, send: byForce},
	{what: "it is a write of the status", send: byStatus, stays: true},
	{what: "it is a dry run", send: byDryRun, stays: true},
	{what: "it is a dry run that another allocator has nothing for", taken: true, send: byDryRun},
}

func body(metadata, fields string) string {
	return fmt.Sprintf(`{"metadata":{%s},"spec":{%s}}`, metadata, strings.TrimSuffix(fields, ","))
}

func byMergePatch(ctx context.Context, cp *check.ControlPlane, name, metadata, fields string) check.Response {
	return cp.MergePatch(ctx, name, body(metadata, fields))
}

func byDryRun(ctx context.Context, cp *check.ControlPlane, name, metadata, fields string) check.Response {
	return cp.MergePatch(ctx, name, body(metadata, fields), check.DryRun())
}

// byReplacement sends the whole Service, with the changes.
func byReplacement(ctx context.Context, cp *check.ControlPlane, name, metadata, fields string) check.Response {
	now := cp.Do(ctx, http.MethodGet, cp.Path(name), "", nil)
	Expect(now).To(check.BeAccepted())
	whole, err := jsonpatch.MergePatch(now.Body, []byte(body(metadata, fields)))
	check.Must(err)
	return cp.Do(ctx, http.MethodPut, cp.Path(name), "application/json", whole)
}

func byStatus(ctx context.Context, cp *check.ControlPlane, name, metadata, fields string) check.Response {
	return cp.PatchStatus(ctx, name, body(metadata, fields))
}

func byForce(ctx context.Context, cp *check.ControlPlane, name, _, fields string) check.Response {
	return cp.Apply(ctx, "another", name, configuration(name, fields), check.Query("force", "true"))
}

func byApply(ctx context.Context, cp *check.ControlPlane, name, _, fields string) check.Response {
	return cp.Apply(ctx, "another", name, configuration(name, fields+fmt.Sprintf(`"selector":{"app":%q}`, "not-"+name)))
}

// configuration is what is applied. It cannot take a field away.
func configuration(name, fields string) string {
	fields = strings.TrimSuffix(strings.ReplaceAll(fields, `"externalName":null,`, ""), ",")
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":%q},"spec":{%s}}`, name, fields)
}

// The updates that have something allocated.
var (
	fromAlias = updated{
		what: "the address of a Service that was an alias", ip: true, from: []check.ServiceOption{check.ExternalName("example.org")},
		fields: func(_ *corev1.Service, w *wanted) string {
			return fmt.Sprintf(`"type":"NodePort","externalName":null,"clusterIP":%q,"ports":%s,`, w.ip, w.ports)
		},
	}
	secondFamily = updated{
		what: "the address of a second family", second: true,
		from: []check.ServiceOption{check.With(func(s *corev1.Service) { s.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack) })},
		fields: func(before *corev1.Service, w *wanted) string {
			return fmt.Sprintf(`"type":"NodePort","ipFamilyPolicy":"RequireDualStack","clusterIPs":[%q,%q],"ipFamilies":[%q,%q],"ports":%s,`,
				before.Spec.ClusterIP, w.ip, before.Spec.IPFamilies[0], w.family, w.ports)
		},
	}
	portOfNewType = updated{
		what: "the node port of a Service whose type changes", port: true,
		fields: func(_ *corev1.Service, w *wanted) string {
			return fmt.Sprintf(`"type":"NodePort","ports":%s,`, w.ports)
		},
	}
	furtherPort = updated{
		what: "the node port of a port that is added", port: true, from: []check.ServiceOption{check.OfType(corev1.ServiceTypeNodePort)},
		fields: func(_ *corev1.Service, w *wanted) string { return fmt.Sprintf(`"ports":%s,`, w.ports) },
	}
	healthPort = updated{
		what: "the health check node port of a Service that becomes local", port: true,
		fields: func(_ *corev1.Service, w *wanted) string {
			ports := strings.Replace(w.ports, fmt.Sprintf(`"nodePort":%d`, w.port), `"nodePort":0`, 1)
			return fmt.Sprintf(`"type":"LoadBalancer","loadBalancerClass":"service-conformance/none","externalTrafficPolicy":"Local","healthCheckNodePort":%d,"ports":%s,`, w.port, ports)
		},
	}
)

var _ = ginkgo.Describe("updates that come to nothing", func() {
	check.It(spec.AllocRefusedUpdateLeaksNothing, "leave "+fromAlias.what+" free", fromAlias.leavesFree)
	check.It(spec.AllocRefusedUpdateLeaksNothing, "leave "+secondFamily.what+" free", check.DualStack(), secondFamily.leavesFree)
	for _, u := range []updated{portOfNewType, furtherPort} {
		check.It(spec.AllocNodePortRefusedUpdateLeaksNothing, "leave "+u.what+" free", u.leavesFree)
	}
	check.It(spec.AllocNodePortRefusedUpdateLeaksNothing, "leave "+healthPort.what+" free", check.Claiming(spec.FeatureHealthCheckNodePort), healthPort.leavesFree)
})

// wants is what the update asks for: a free address or the free port, and whatever node port its second port names.
func (u updated) wants(ctx context.Context, cp *check.ControlPlane, port, second int32) *wanted {
	w := &wanted{port: port}
	switch {
	case u.ip:
		w.ip, w.family = freeAddress(ctx, cp), cp.PrimaryFamily()
	case u.second:
		w.family = cp.OtherFamily()
		w.ip = freeAddressOf(ctx, cp, cp.CIDROf(w.family))
	}
	first := int32(0)
	if u.port {
		first = port
	}
	w.ports = fmt.Sprintf(`[{"name":"a","port":80,"nodePort":%d},{"name":"b","port":81,"nodePort":%d}]`, first, second)
	return w
}

// next is a Service that asks for the same.
func (w *wanted) next(cp *check.ControlPlane) *corev1.Service {
	if w.ip != "" {
		return check.Service(cp.Name("next"), check.WithClusterIP(w.ip), check.WithFamilies(w.family))
	}
	return check.Service(cp.Name("next"), onNodePort(int(w.port)))
}

// leavesFree demands of each way that the Service stays as it is, and that what was asked for can be had by another one.
func (u updated) leavesFree(ctx context.Context, cp *check.ControlPlane) {
	numbers := cp.FreeNodePorts(ctx, 2)
	cp.Arrange(ctx, check.Service("taken", onNodePort(int(numbers[1]))))
	before := cp.Arrange(ctx, check.Service("updated", u.from...))
	for _, way := range ways {
		second := int32(0)
		if way.taken {
			second = numbers[1]
		}
		w := u.wants(ctx, cp, numbers[0], second)
		a := way.send(ctx, cp, before.Name, way.metadata, way.fields+u.fields(before, w))
		if way.stays {
			Expect(a).To(check.BeAccepted(), way.what)
		} else {
			Expect(a).NotTo(check.BeAccepted(), way.what)
		}
		now := cp.Get(ctx, before.Name)
		Expect(now).To(check.BeAccepted())
		Expect(now.Service.Spec).To(Equal(before.Spec), "the Service after an update of which %s", way.what)
		next := w.next(cp)
		check.Converge(ctx, fmt.Sprintf("what was asked for is free where %s", way.what), named, func(g Gomega) {
			g.Expect(cp.Create(ctx, next)).To(check.BeAccepted(), "%s, where %s", u.what, way.what)
		})
		Expect(cp.Delete(ctx, next.Name)).To(check.BeAccepted())
	}
}
