package apischema

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// typeChangeLoadBalancerFields are what a patch adds to make the load balancer of typeChangeService.
const typeChangeLoadBalancerFields = `"loadBalancerClass":"` + typeClass + `","externalTrafficPolicy":"Local"`

// typeChangeTypes are the four types. A load balancer is one with policy Local, for that has a health check node port.
var typeChangeTypes = []corev1.ServiceType{
	corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName,
}

// typeChangeService is a Service of a type, with everything that the type can hold.
func typeChangeService(name string, typ corev1.ServiceType) *corev1.Service {
	switch typ {
	case corev1.ServiceTypeExternalName:
		return check.Service(name, check.ExternalName(externalNameHost))
	case corev1.ServiceTypeLoadBalancer:
		return check.Service(name, typeLoadBalancer(), typeChangeLocal())
	}
	return check.Service(name, check.OfType(typ))
}

func typeChangeLocal() check.ServiceOption {
	return func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal }
}

// typeChangePatch is a merge patch that changes the type and sets nothing but what the new type requires. more are further
// fields of the spec.
func typeChangePatch(from, to corev1.ServiceType, more string) string {
	if to == corev1.ServiceTypeLoadBalancer && from != to {
		if more != "" {
			more = "," + more
		}
		more = typeChangeLoadBalancerFields + more
	}
	if from == corev1.ServiceTypeExternalName && from != to {
		return externalNamePatchTo(to, more)
	}
	if more != "" {
		more = "," + more
	}
	if to == corev1.ServiceTypeExternalName {
		more = `,"externalName":"` + externalNameHost + `"` + more
	}
	return fmt.Sprintf(`{"spec":{"type":%q%s}}`, to, more)
}

// typeChangeSendBack is the Service as it was read, with another type and what that requires.
func typeChangeSendBack(read *corev1.Service, to corev1.ServiceType) *corev1.Service {
	svc, from := read.DeepCopy(), read.Spec.Type
	svc.Spec.Type = to
	if from == to {
		return svc
	}
	switch to {
	case corev1.ServiceTypeExternalName:
		svc.Spec.ExternalName = externalNameHost
	case corev1.ServiceTypeLoadBalancer:
		typeLoadBalancer()(svc)
		typeChangeLocal()(svc)
	}
	if from == corev1.ServiceTypeExternalName {
		fresh := check.Service(read.Name)
		svc.Spec.ExternalName, svc.Spec.Ports, svc.Spec.Selector = "", fresh.Spec.Ports, fresh.Spec.Selector
	}
	return svc
}

func typeChangeNodePort(svc *corev1.Service) int32 {
	if len(svc.Spec.Ports) == 0 {
		return 0
	}
	return svc.Spec.Ports[0].NodePort
}

// typeChangeClaim asks for a node port on behalf of another Service.
func typeChangeClaim(ctx context.Context, cp *check.ControlPlane, nodePort int32) check.Response {
	ginkgo.GinkgoHelper()
	return cp.Create(ctx, check.Service(cp.Name("claim"), check.OfType(corev1.ServiceTypeNodePort),
		check.WithPorts(corev1.ServicePort{Port: 80, NodePort: nodePort})))
}

// typeChangeNodePortHeld demands that the node port is in use.
func typeChangeNodePortHeld(ctx context.Context, cp *check.ControlPlane, nodePort int32) {
	ginkgo.GinkgoHelper()
	Expect(typeChangeClaim(ctx, cp, nodePort)).NotTo(check.BeAccepted(), "node port %d should be in use", nodePort)
}

// reuse bounds how long another check may have a node port between the look at it and the look at all Services.
const reuse = 5 * time.Second

// typeChangeNodePortFree demands that no Service holds the node port any more: another Service can have it, or one of another
// check has it by now. Such a Service may have gone when all are listed, so a refusal is tried again.
func typeChangeNodePortFree(ctx context.Context, cp *check.ControlPlane, nodePort int32) {
	ginkgo.GinkgoHelper()
	check.Converge(ctx, fmt.Sprintf("reuse of node port %d", nodePort), reuse, func(g Gomega) {
		a := typeChangeClaim(ctx, cp, nodePort)
		if a.Accepted() {
			return
		}
		all, err := cp.Client().CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		check.Must(err)
		g.Expect(slices.ContainsFunc(all.Items, func(svc corev1.Service) bool { return holdsNodePort(&svc, nodePort) })).To(BeTrue(),
			"node port %d is free again, for no Service has it; the answer: %s", nodePort, a)
	})
}

// holdsNodePort reports whether a port of the Service, or its health check, has the node port.
func holdsNodePort(svc *corev1.Service, nodePort int32) bool {
	if svc.Spec.HealthCheckNodePort == nodePort {
		return true
	}
	return svc.Spec.Type != corev1.ServiceTypeExternalName && slices.ContainsFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == nodePort })
}

// typeChangeAccount demands that what both have is the same and still held. What only the old one has is free again,
// and what only the new one has is held. An empty or zero value is one that a Service does not have.
func typeChangeAccount[T comparable](before, after T, what string, held, free func(T)) {
	ginkgo.GinkgoHelper()
	var none T
	switch {
	case before != none && after != none:
		Expect(after).To(Equal(before), "the %s must stay", what)
		held(after)
	case before != none:
		free(before)
	case after != none:
		held(after)
	}
}

// typeChangeDemandFields demands exactly the fields that a type has.
func typeChangeDemandFields(cp *check.ControlPlane, svc *corev1.Service, typ corev1.ServiceType) {
	ginkgo.GinkgoHelper()
	s := &svc.Spec
	lb := typ == corev1.ServiceTypeLoadBalancer
	external := lb || typ == corev1.ServiceTypeNodePort
	addressed := typ != corev1.ServiceTypeExternalName
	Expect(s.Type).To(Equal(typ), "type")
	fields := map[string]struct{ is, should bool }{
		"clusterIP":                     {s.ClusterIP != "", addressed},
		"clusterIPs":                    {len(s.ClusterIPs) > 0, addressed},
		"ipFamilies":                    {len(s.IPFamilies) > 0, addressed},
		"ipFamilyPolicy":                {s.IPFamilyPolicy != nil, addressed},
		"externalTrafficPolicy":         {s.ExternalTrafficPolicy != "", external},
		"allocateLoadBalancerNodePorts": {s.AllocateLoadBalancerNodePorts != nil, lb},
		"loadBalancerClass":             {s.LoadBalancerClass != nil, lb},
	}
	type whether = struct{ is, should bool }
	if cp.Claims(spec.FeatureNodePort) {
		fields["nodePort"] = whether{typeChangeNodePort(svc) != 0, external}
	}
	if cp.Claims(spec.FeatureHealthCheckNodePort) {
		fields["healthCheckNodePort"] = whether{s.HealthCheckNodePort != 0, lb}
	}
	for field, there := range fields {
		Expect(there.is).To(Equal(there.should), "%s is set, of type %s", field, typ)
	}
}

var _ = ginkgo.Describe("a change of the type", func() {
	for _, from := range typeChangeTypes {
		for _, to := range typeChangeTypes {
			text := fmt.Sprintf("from %s to %s assigns, keeps and frees what it should", from, to)
			if from == to {
				text = fmt.Sprintf("from %s to itself keeps everything", from)
			}
			check.It(spec.APITypeChange, text, check.Aside(spec.AllocFreedStaysFree), func(ctx context.Context, cp *check.ControlPlane) {
				before := cp.Arrange(ctx, typeChangeService("a", from))
				typeChangeDemandFields(cp, before, from)
				object := cp.AddressObject(ctx, before.Spec.ClusterIP)
				another := `"publishNotReadyAddresses":true` // so that something is written even if the type stays
				Expect(cp.MergePatch(ctx, "a", typeChangePatch(from, to, another))).To(check.BeAccepted())
				after := typeStored(ctx, cp, "a")
				typeChangeDemandFields(cp, after, to)
				typeChangeAccount(before.Spec.ClusterIP, after.Spec.ClusterIP, "cluster IP", func(ip string) {
					if from != corev1.ServiceTypeExternalName { // the check of api-type-change-holds-cluster-ip tries that often
						clusterIPHeld(ctx, cp, ip)
					}
				}, func(ip string) { clusterIPFreed(ctx, cp, ip, object) })
				held := func(port int32) { typeChangeNodePortHeld(ctx, cp, port) }
				free := func(port int32) { typeChangeNodePortFree(ctx, cp, port) }
				typeChangeAccount(typeChangeNodePort(before), typeChangeNodePort(after), "node port", held, free)
				typeChangeAccount(before.Spec.HealthCheckNodePort, after.Spec.HealthCheckNodePort, "health check node port", held, free)
			})
		}
	}

	for _, c := range []struct {
		text string
		sent func(read *corev1.Service, to corev1.ServiceType) *corev1.Service
	}{
		{"by a client that sends back all it has read", typeChangeSendBack},
		{"by a manifest that names no assigned values", func(read *corev1.Service, to corev1.ServiceType) *corev1.Service {
			return typeChangeService(read.Name, to)
		}},
	} {
		check.It(spec.APITypeChange, "works "+c.text, func(ctx context.Context, cp *check.ControlPlane) {
			for _, from := range typeChangeTypes {
				for _, to := range typeChangeTypes {
					before := cp.Arrange(ctx, typeChangeService(cp.Name("a"), from))
					a := cp.Update(ctx, c.sent(before, to))
					Expect(a).To(check.BeAccepted(), "from %s to %s", from, to)
					typeChangeDemandFields(cp, a.Service, to)
					change := fmt.Sprintf(" from %s to %s", from, to)
					typeChangeAccount(before.Spec.ClusterIP, a.Service.Spec.ClusterIP, "cluster IP"+change, func(string) {}, func(string) {})
					typeChangeAccount(typeChangeNodePort(before), typeChangeNodePort(a.Service), "node port"+change, func(int32) {}, func(int32) {})
				}
			}
		})
	}

	check.It(spec.APITypeChange, "works by a patch that says nothing but the type, for each of two ports", func(ctx context.Context, cp *check.ControlPlane) {
		for _, patch := range []types.PatchType{types.StrategicMergePatchType, types.MergePatchType} {
			for _, to := range []corev1.ServiceType{corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer} {
				name := cp.Name("a")
				cp.Arrange(ctx, check.Service(name, check.WithPorts(check.Port("web", corev1.ProtocolTCP, 80, 8080), check.Port("admin", corev1.ProtocolTCP, 81, 8081))))
				if to == corev1.ServiceTypeLoadBalancer {
					Expect(cp.Patch(ctx, name, patch, `{"spec":{"type":"LoadBalancer","loadBalancerClass":"`+typeClass+`"}}`)).To(check.BeAccepted(), "to %s by %s", to, patch)
				} else {
					Expect(cp.Patch(ctx, name, patch, fmt.Sprintf(`{"spec":{"type":%q}}`, to))).To(check.BeAccepted(), "to %s by %s", to, patch)
				}
				ports := typeStored(ctx, cp, name).Spec.Ports
				Expect(ports).To(HaveLen(2), "to %s by %s", to, patch)
				for _, p := range ports {
					Expect(p.NodePort).NotTo(BeZero(), "the node port of port %s, to %s by %s", p.Name, to, patch)
				}
			}
		}
	})

	check.It(spec.APITypeChangeHoldsClusterIP, "from ExternalName takes the cluster IP for good", func(ctx context.Context, cp *check.ControlPlane) {
		const services = 50 // what can go wrong is a race, which is not lost every time
		ips := make([]string, services)
		for i := range ips { // a Service changes right after it was made: the repair of one that is a second old waits
			name := cp.Name("a")
			cp.Arrange(ctx, check.Service(name, check.ExternalName(externalNameHost)))
			a := cp.MergePatch(ctx, name, externalNamePatchTo(corev1.ServiceTypeClusterIP, ""))
			Expect(a).To(check.BeAccepted())
			ips[i] = a.Service.Spec.ClusterIP
		}
		lost := 0
		for _, ip := range ips {
			if cp.Create(ctx, check.Service(cp.Name("claim"), check.WithClusterIP(ip))).Accepted() {
				lost++
			}
		}
		Expect(lost).To(BeZero(), "of %d addresses, so many could be had by a second Service", services)
	})

	check.It(spec.APITypeChangeKeepsClusterIP, "keeps the cluster IP from ClusterIP to LoadBalancer and back", func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a"))
		was := corev1.ServiceTypeClusterIP
		for _, typ := range []corev1.ServiceType{
			corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort, corev1.ServiceTypeClusterIP,
			corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeClusterIP,
		} {
			a := cp.MergePatch(ctx, "a", typeChangePatch(was, typ, ""))
			Expect(a).To(check.BeAccepted(), "from %s to %s", was, typ)
			Expect(a.Service.Spec.ClusterIP).To(Equal(before.Spec.ClusterIP), "from %s to %s", was, typ)
			was = typ
		}
		clusterIPHeld(ctx, cp, before.Spec.ClusterIP)
	})

	check.It(spec.APITypeChangeKeepsClusterIP, "keeps both cluster IPs", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a", check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack)))
		Expect(before.Spec.ClusterIPs).To(HaveLen(2))
		was := corev1.ServiceTypeClusterIP
		for _, typ := range []corev1.ServiceType{corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeClusterIP} {
			a := cp.MergePatch(ctx, "a", typeChangePatch(was, typ, ""))
			Expect(a).To(check.BeAccepted(), "from %s to %s", was, typ)
			Expect(a.Service.Spec.ClusterIPs).To(Equal(before.Spec.ClusterIPs), "from %s to %s", was, typ)
			Expect(a.Service.Spec.IPFamilies).To(Equal(before.Spec.IPFamilies), "from %s to %s", was, typ)
			was = typ
		}
	})

	check.It(spec.APITypeChangeHeadless, "to an alias clears None, and back gives what is asked for", func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("a", check.Headless()))
		a := cp.MergePatch(ctx, "a", externalNamePatch)
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.ClusterIP).To(BeEmpty(), "clusterIP")
		Expect(a.Service.Spec.ClusterIPs).To(BeEmpty(), "clusterIPs")
		a = cp.MergePatch(ctx, "a", externalNamePatchTo(corev1.ServiceTypeClusterIP, `"clusterIP":"None"`))
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.ClusterIPs).To(Equal([]string{corev1.ClusterIPNone}))
	})
})

// typeChangeConflicts are changes of the type that also change a field which the new type has no use for.
var typeChangeConflicts = []struct {
	field    string // as a refusal names it
	from, to corev1.ServiceType
	change   func(before *corev1.Service) string
}{
	{"spec.clusterIPs", corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, func(*corev1.Service) string { return `"clusterIP":"None","clusterIPs":["None"]` }},
	{"spec.ipFamilyPolicy", corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, func(*corev1.Service) string { return `"ipFamilyPolicy":"PreferDualStack"` }},
	{"spec.ports[0].nodePort", corev1.ServiceTypeNodePort, corev1.ServiceTypeClusterIP, func(before *corev1.Service) string {
		return fmt.Sprintf(`"ports":[{"port":80,"nodePort":%d}]`, typeChangeOtherPort(typeChangeNodePort(before)))
	}},
	{"spec.healthCheckNodePort", corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort, func(before *corev1.Service) string {
		return fmt.Sprintf(`"healthCheckNodePort":%d`, typeChangeOtherPort(before.Spec.HealthCheckNodePort))
	}},
	{"spec.allocateLoadBalancerNodePorts", corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort, func(*corev1.Service) string { return `"allocateLoadBalancerNodePorts":false` }},
	{"spec.loadBalancerClass", corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort, func(*corev1.Service) string { return `"loadBalancerClass":"service-conformance.example/other"` }},
	{"spec.externalTrafficPolicy", corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeClusterIP, func(*corev1.Service) string { return `"externalTrafficPolicy":"Cluster"` }},
}

// typeChangeOtherPort is a node port of the default range that differs from the one given.
func typeChangeOtherPort(port int32) int32 {
	if port > 30000 {
		return port - 1
	}
	return port + 1
}

var _ = ginkgo.Describe("a change of the type together with a field", func() {
	for _, c := range typeChangeConflicts {
		check.It(spec.APIUpdateClearsUnchanged, "is refused: "+c.field, func(ctx context.Context, cp *check.ControlPlane) {
			before := cp.Arrange(ctx, typeChangeService("a", c.from))
			fields := []string{c.field}
			if c.field == "spec.clusterIPs" {
				fields = clusterIPFields
			}
			Expect(cp.MergePatch(ctx, "a", typeChangePatch(c.from, c.to, c.change(before)))).To(check.BeInvalid(fields...))
			typeUnchanged(ctx, cp, before)
			clusterIPHeld(ctx, cp, before.Spec.ClusterIP)
			for _, port := range []int32{typeChangeNodePort(before), before.Spec.HealthCheckNodePort} {
				if port != 0 {
					typeChangeNodePortHeld(ctx, cp, port)
				}
			}
		})
	}
})

// typeChangeSuperfluous are fields of a new Service that do not apply to its type.
var typeChangeSuperfluous = []struct {
	field string
	typ   corev1.ServiceType
	set   func(*corev1.ServiceSpec)
}{
	{"healthCheckNodePort", corev1.ServiceTypeNodePort, func(s *corev1.ServiceSpec) {
		s.ExternalTrafficPolicy, s.HealthCheckNodePort = corev1.ServiceExternalTrafficPolicyLocal, 31999
	}},
	{"healthCheckNodePort", corev1.ServiceTypeClusterIP, func(s *corev1.ServiceSpec) { s.HealthCheckNodePort = 31999 }},
	{"allocateLoadBalancerNodePorts", corev1.ServiceTypeNodePort, func(s *corev1.ServiceSpec) { s.AllocateLoadBalancerNodePorts = new(true) }},
	{"allocateLoadBalancerNodePorts", corev1.ServiceTypeClusterIP, func(s *corev1.ServiceSpec) { s.AllocateLoadBalancerNodePorts = new(false) }},
	{"loadBalancerClass", corev1.ServiceTypeNodePort, func(s *corev1.ServiceSpec) { s.LoadBalancerClass = new(typeClass) }},
	{"loadBalancerClass", corev1.ServiceTypeClusterIP, func(s *corev1.ServiceSpec) { s.LoadBalancerClass = new(typeClass) }},
	{"externalTrafficPolicy", corev1.ServiceTypeClusterIP, func(s *corev1.ServiceSpec) { s.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster }},
}

var _ = ginkgo.Describe("a new Service", func() {
	check.It(spec.APICreateClearsNothing, "is refused with a field that does not apply to its type", func(ctx context.Context, cp *check.ControlPlane) {
		for _, c := range typeChangeSuperfluous {
			name := cp.Name("a")
			svc := check.Service(name, check.OfType(c.typ), func(s *corev1.Service) { c.set(&s.Spec) })
			Expect(cp.Create(ctx, svc)).To(check.BeInvalid("spec."+c.field), "%s, type %s", c.field, c.typ)
			typeNotStored(ctx, cp, name)
		}
	})
})

var _ = ginkgo.Describe("a refused change of the type", func() {
	check.It(spec.APIUpdateRefusedWhole, "keeps nothing that it was about to assign", func(ctx context.Context, cp *check.ControlPlane) {
		taken := typeChangeNodePort(cp.Arrange(ctx, check.Service("other", check.OfType(corev1.ServiceTypeNodePort))))
		before := cp.Arrange(ctx, check.Service("a", check.ExternalName(externalNameHost)))
		ip := clusterIPUnused(ctx, cp, cp.PrimaryFamily())
		patch := fmt.Sprintf(`{"spec":{"type":"NodePort","externalName":null,"clusterIP":%q,"ports":[{"port":80,"nodePort":%d}]}}`, ip, taken)
		Expect(cp.MergePatch(ctx, "a", patch)).To(check.BeInvalid())
		typeUnchanged(ctx, cp, before)
		clusterIPFree(ctx, cp, ip)
	})

	check.It(spec.APIUpdateRefusedWhole, "keeps no node port if something else is wrong", func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a"))
		port := typeChangeUnusedNodePort(ctx, cp)
		patch := fmt.Sprintf(`{"spec":{"type":"NodePort","sessionAffinity":"Bogus","ports":[{"port":80,"nodePort":%d}]}}`, port)
		Expect(cp.MergePatch(ctx, "a", patch)).To(check.BeInvalid())
		typeUnchanged(ctx, cp, before)
		clusterIPHeld(ctx, cp, before.Spec.ClusterIP)
		typeChangeNodePortFree(ctx, cp, port)
	})

	check.It(spec.APIUpdateRefusedWhole, "gives up nothing that the Service holds", func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, typeChangeService("a", corev1.ServiceTypeLoadBalancer))
		patch := fmt.Sprintf(`{"spec":{"type":"ExternalName","externalName":%q,"sessionAffinity":"Bogus"}}`, externalNameHost)
		Expect(cp.MergePatch(ctx, "a", patch)).To(check.BeInvalid())
		typeUnchanged(ctx, cp, before)
		clusterIPHeld(ctx, cp, before.Spec.ClusterIP)
		typeChangeNodePortHeld(ctx, cp, typeChangeNodePort(before))
		if cp.Claims(spec.FeatureHealthCheckNodePort) {
			typeChangeNodePortHeld(ctx, cp, before.Spec.HealthCheckNodePort)
		}
	})
})

// typeChangeUnusedNodePort returns a node port that was free a moment ago.
func typeChangeUnusedNodePort(ctx context.Context, cp *check.ControlPlane) int32 {
	ginkgo.GinkgoHelper()
	name := cp.Name("probe")
	port := typeChangeNodePort(cp.Arrange(ctx, check.Service(name, check.OfType(corev1.ServiceTypeNodePort))))
	Expect(cp.Delete(ctx, name)).To(check.BeAccepted())
	return port
}
