package apischema

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

const (
	externalNameHost = "db.example.com"
	// externalNamePatch makes a Service an alias and changes nothing else.
	externalNamePatch = `{"spec":{"type":"ExternalName","externalName":"` + externalNameHost + `"}}`
)

// externalNamePatchTo makes an alias a Service of another type again; more are further fields of its spec.
func externalNamePatchTo(typ corev1.ServiceType, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"spec":{"type":%q,"externalName":null,"ports":[{"port":80}],"selector":{"app":"a"}%s}}`, typ, more)
}

// externalNameOtherFields are fields that do not apply to an alias, each with a value that another type would take.
var externalNameOtherFields = map[string]func(*corev1.ServiceSpec){
	"externalTrafficPolicy":         func(s *corev1.ServiceSpec) { s.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal },
	"allocateLoadBalancerNodePorts": func(s *corev1.ServiceSpec) { s.AllocateLoadBalancerNodePorts = new(false) },
	"loadBalancerClass":             func(s *corev1.ServiceSpec) { s.LoadBalancerClass = new(typeClass) },
	"healthCheckNodePort":           func(s *corev1.ServiceSpec) { s.HealthCheckNodePort = 31999 },
	"loadBalancerSourceRanges":      func(s *corev1.ServiceSpec) { s.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} },
}

var _ = ginkgo.Describe("externalName", func() {
	check.It(spec.APIExternalNameRequired, "is needed to create an alias", func(ctx context.Context, cp *check.ControlPlane) {
		Expect(cp.Create(ctx, check.Service("a", check.ExternalName("")))).To(check.BeInvalid("spec.externalName"))
		typeNotStored(ctx, cp, "a")
	})

	check.It(spec.APIExternalNameRequired, "is needed to change a Service to an alias", func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a"))
		Expect(cp.MergePatch(ctx, "a", `{"spec":{"type":"ExternalName"}}`)).To(check.BeInvalid("spec.externalName"))
		typeUnchanged(ctx, cp, before)
		clusterIPHeld(ctx, cp, before.Spec.ClusterIP)
	})

	check.It(spec.APIExternalNameRequired, "cannot be taken from an alias", func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a", check.ExternalName(externalNameHost)))
		Expect(cp.MergePatch(ctx, "a", `{"spec":{"externalName":null}}`)).To(check.BeInvalid("spec.externalName"))
		typeUnchanged(ctx, cp, before)
	})

	check.It(spec.APIExternalNameSyntax, "is a lower-case hostname", func(ctx context.Context, cp *check.ControlPlane) {
		longest := strings.Repeat(strings.Repeat("a", 62)+".", 4) + "a" // 253 characters
		for _, host := range []string{externalNameHost, "localhost", "a", "1.example.com", "xn--bcher-kva.example", "a-b.c-d", longest} {
			a := cp.Create(ctx, check.Service(cp.Name("a"), check.ExternalName(host)))
			Expect(a).To(check.BeAccepted(), "externalName %q", host)
			Expect(a.Service.Spec.ExternalName).To(Equal(host))
		}
	})

	check.It(spec.APIExternalNameTrailingDot, "may end in a dot, and keeps it", func(ctx context.Context, cp *check.ControlPlane) {
		a := cp.Create(ctx, check.Service("a", check.ExternalName(externalNameHost+".")))
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.ExternalName).To(Equal(externalNameHost + "."))
		cp.Arrange(ctx, check.Service("b", check.ExternalName(externalNameHost)))
		changed := cp.MergePatch(ctx, "b", `{"spec":{"externalName":"`+externalNameHost+`."}}`)
		Expect(changed).To(check.BeAccepted())
		Expect(changed.Service.Spec.ExternalName).To(Equal(externalNameHost + "."))
	})

	check.It(spec.APIExternalNameSyntax, "is refused if it is no lower-case hostname", func(ctx context.Context, cp *check.ControlPlane) {
		tooLong := strings.Repeat(strings.Repeat("a", 62)+".", 4) + "ab"
		for _, host := range []string{
			"DB.example.com", "db_1.example.com", "*.example.com", "db..example.com", ".example.com", "-db.example.com", "db-.example.com",
			"db.example.com:5432", "http://db.example.com", "db example", "bücher.example", "fd00::1", tooLong,
		} {
			name := cp.Name("a")
			Expect(cp.Create(ctx, check.Service(name, check.ExternalName(host)))).To(check.BeInvalid("spec.externalName"), "externalName %q", host)
			typeNotStored(ctx, cp, name)
		}
	})

	check.It(spec.APIExternalNameSyntax, "is refused by an update if it is no lower-case hostname", func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a", check.ExternalName(externalNameHost)))
		Expect(cp.MergePatch(ctx, "a", `{"spec":{"externalName":"DB.example.com"}}`)).To(check.BeInvalid("spec.externalName"))
		typeUnchanged(ctx, cp, before)
	})

	check.It(spec.APIExternalNameType, "is refused, or said to be ignored, on a new Service of another type", check.Claiming(spec.FeatureWarnings), func(ctx context.Context, cp *check.ControlPlane) {
		for _, option := range []check.ServiceOption{check.OfType(corev1.ServiceTypeClusterIP), check.OfType(corev1.ServiceTypeNodePort)} {
			svc := check.Service(cp.Name("a"), option, func(s *corev1.Service) { s.Spec.ExternalName = externalNameHost })
			externalNameDemandObjection(cp.Create(ctx, svc), svc.Spec.Type)
		}
	})

	check.It(spec.APIExternalNameType, "is refused, or said to be ignored, if it is given to a Service of another type", check.Claiming(spec.FeatureWarnings), func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("a"))
		externalNameDemandObjection(cp.MergePatch(ctx, "a", `{"spec":{"externalName":"`+externalNameHost+`"}}`), corev1.ServiceTypeClusterIP)
	})
})

// externalNameDemandObjection demands that externalName on a Service of another type is not taken in silence.
func externalNameDemandObjection(a check.Response, typ corev1.ServiceType) {
	ginkgo.GinkgoHelper()
	Expect(a).To(Or(check.BeInvalid("spec.externalName"), And(check.BeAccepted(), check.Warn("externalName"))), "type %s", typ)
}

var _ = ginkgo.Describe("an alias", func() {
	for _, field := range slices.Sorted(maps.Keys(externalNameOtherFields)) {
		set := externalNameOtherFields[field]
		check.It(spec.APIExternalNameOtherFields, "cannot be created with "+field, func(ctx context.Context, cp *check.ControlPlane) {
			// kube-apiserver spells the path of the source ranges with a capital letter.
			paths := []string{"spec." + field, "spec." + strings.ToUpper(field[:1]) + field[1:]}
			svc := check.Service("a", check.ExternalName(externalNameHost), func(s *corev1.Service) { set(&s.Spec) })
			Expect(cp.Create(ctx, svc)).To(check.BeInvalid(paths...))
			typeNotStored(ctx, cp, "a")
		})
	}

	for _, c := range []struct {
		what   string
		option func(ip string) check.ServiceOption
	}{
		{"a cluster IP", check.WithClusterIP},
		{"cluster IPs", func(ip string) check.ServiceOption { return check.WithClusterIPs(ip) }},
		{"None", func(string) check.ServiceOption { return check.Headless() }},
	} {
		check.It(spec.APIClusterIPExternalNameRefused, "cannot be created with "+c.what, func(ctx context.Context, cp *check.ControlPlane) {
			ip := clusterIPUnused(ctx, cp, cp.PrimaryFamily())
			svc := check.Service("a", check.ExternalName(externalNameHost), c.option(ip))
			Expect(cp.Create(ctx, svc)).To(check.BeInvalid(clusterIPFields...))
			typeNotStored(ctx, cp, "a")
		})
	}

	check.It(spec.APIIPFamiliesExternalName, "cannot be created with ipFamilies or ipFamilyPolicy", func(ctx context.Context, cp *check.ControlPlane) {
		for field, option := range map[string]check.ServiceOption{
			"spec.ipFamilies":     check.WithFamilies(cp.PrimaryFamily()),
			"spec.ipFamilyPolicy": check.WithPolicy(corev1.IPFamilyPolicySingleStack),
		} {
			svc := check.Service("a", check.ExternalName(externalNameHost), option)
			Expect(cp.Create(ctx, svc)).To(check.BeInvalid(field))
			typeNotStored(ctx, cp, "a")
		}
	})

	check.It(spec.APIClusterIPToExternalName, "cannot be made with a new cluster IP", func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a"))
		ip := clusterIPUnused(ctx, cp, cp.PrimaryFamily())
		patch := fmt.Sprintf(`{"spec":{"type":"ExternalName","externalName":%q,"clusterIP":%q,"clusterIPs":[%q]}}`, externalNameHost, ip, ip)
		Expect(cp.MergePatch(ctx, "a", patch)).To(check.BeInvalid(clusterIPFields...))
		typeUnchanged(ctx, cp, before)
		clusterIPHeld(ctx, cp, before.Spec.ClusterIP)
		clusterIPFree(ctx, cp, ip)
	})

	for _, c := range []struct {
		from   string
		option check.ServiceOption
	}{
		{"type ClusterIP", check.OfType(corev1.ServiceTypeClusterIP)},
		{"a headless Service", check.Headless()},
		{"type NodePort", check.OfType(corev1.ServiceTypeNodePort)},
		{"type LoadBalancer", typeLoadBalancer()},
	} {
		check.It(spec.APIClusterIPToExternalName, "cannot be made of "+c.from+" by an update that names a new clusterIP alone", func(ctx context.Context, cp *check.ControlPlane) {
			before := cp.Arrange(ctx, check.Service("a", c.option))
			ip := clusterIPUnused(ctx, cp, cp.PrimaryFamily())
			changed := check.Service("a", check.ExternalName(externalNameHost), func(s *corev1.Service) {
				s.ResourceVersion, s.Spec.ClusterIP = before.ResourceVersion, ip
			})
			Expect(cp.Update(ctx, changed)).To(check.BeInvalid(clusterIPFields...))
			typeUnchanged(ctx, cp, before)
			clusterIPFree(ctx, cp, ip)
		})
	}

	check.It(spec.APIClusterIPCleared, "loses the cluster IP, which is free again", check.Aside(spec.AllocFreedStaysFree), func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a"))
		object := cp.AddressObject(ctx, before.Spec.ClusterIP)
		Expect(cp.MergePatch(ctx, "a", externalNamePatch)).To(check.BeAccepted())
		after := typeStored(ctx, cp, "a")
		Expect(after.Spec.ClusterIP).To(BeEmpty(), "clusterIP")
		Expect(after.Spec.ClusterIPs).To(BeEmpty(), "clusterIPs")
		clusterIPFreed(ctx, cp, before.Spec.ClusterIP, object)
	})

	check.It(spec.APIClusterIPCleared, "loses the cluster IP that the client sends back", check.Aside(spec.AllocFreedStaysFree), func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("a"))
		ip := svc.Spec.ClusterIP
		object := cp.AddressObject(ctx, ip)
		svc.Spec.Type, svc.Spec.ExternalName = corev1.ServiceTypeExternalName, externalNameHost
		a := cp.Update(ctx, svc)
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.ClusterIP).To(BeEmpty(), "clusterIP")
		Expect(a.Service.Spec.ClusterIPs).To(BeEmpty(), "clusterIPs")
		clusterIPFreed(ctx, cp, ip, object)
	})

	check.It(spec.APIClusterIPCleared, "loses both cluster IPs, which are free again", check.DualStack(), check.Aside(spec.AllocFreedStaysFree), func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a", check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack)))
		Expect(before.Spec.ClusterIPs).To(HaveLen(2))
		var objects []types.UID
		for _, ip := range before.Spec.ClusterIPs {
			objects = append(objects, cp.AddressObject(ctx, ip))
		}
		Expect(cp.MergePatch(ctx, "a", externalNamePatch)).To(check.BeAccepted())
		Expect(typeStored(ctx, cp, "a").Spec.ClusterIPs).To(BeEmpty())
		for i, ip := range before.Spec.ClusterIPs {
			clusterIPFreed(ctx, cp, ip, objects[i])
		}
	})

	check.It(spec.APIIPFamiliesCleared, "loses families and policy", func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("a", check.WithFamilies(cp.PrimaryFamily()), check.WithPolicy(corev1.IPFamilyPolicySingleStack)))
		Expect(cp.MergePatch(ctx, "a", externalNamePatch)).To(check.BeAccepted())
		after := typeStored(ctx, cp, "a")
		Expect(after.Spec.IPFamilies).To(BeEmpty(), "ipFamilies")
		Expect(after.Spec.IPFamilyPolicy).To(BeNil(), "ipFamilyPolicy")
	})

	check.It(spec.APIClusterIPFromExternalName, "can get a cluster IP that the client names", func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("a", check.ExternalName(externalNameHost)))
		var ip string
		var a check.Response
		for range 20 { // other checks choose addresses too
			ip = clusterIPUnused(ctx, cp, cp.PrimaryFamily())
			if a = cp.MergePatch(ctx, "a", externalNamePatchTo(corev1.ServiceTypeClusterIP, `"clusterIP":"`+ip+`"`)); a.Accepted() {
				break
			}
		}
		Expect(a).To(check.BeAccepted())
		Expect(typeStored(ctx, cp, "a").Spec.ClusterIPs).To(Equal([]string{ip}))
	})

	check.It(spec.APIClusterIPFromExternalName, "is assigned a cluster IP if the client names none", func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("a", check.ExternalName(externalNameHost)))
		Expect(cp.MergePatch(ctx, "a", externalNamePatchTo(corev1.ServiceTypeClusterIP, ""))).To(check.BeAccepted())
		after := typeStored(ctx, cp, "a")
		clusterIPDemandAddress(after.Spec.ClusterIP)
	})

	check.It(spec.APIClusterIPFromExternalName, "can become headless", func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("a", check.ExternalName(externalNameHost)))
		Expect(cp.MergePatch(ctx, "a", externalNamePatchTo(corev1.ServiceTypeClusterIP, `"clusterIP":"None"`))).To(check.BeAccepted())
		after := typeStored(ctx, cp, "a")
		Expect(after.Spec.ClusterIP).To(Equal(corev1.ClusterIPNone))
		Expect(after.Spec.ClusterIPs).To(Equal([]string{corev1.ClusterIPNone}))
	})

	check.It(spec.APIClusterIPFromExternalName, "can become dual-stack", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("a", check.ExternalName(externalNameHost)))
		Expect(cp.MergePatch(ctx, "a", externalNamePatchTo(corev1.ServiceTypeClusterIP, `"ipFamilyPolicy":"RequireDualStack"`))).To(check.BeAccepted())
		clusterIPsDemandFamilies(typeStored(ctx, cp, "a"), cp.PrimaryFamily(), cp.OtherFamily())
	})

	check.It(spec.APIClusterIPFromExternalName, "stays one if the cluster IP that the client names is in use", func(ctx context.Context, cp *check.ControlPlane) {
		ip := cp.Arrange(ctx, check.Service("other")).Spec.ClusterIP
		before := cp.Arrange(ctx, check.Service("a", check.ExternalName(externalNameHost)))
		a := cp.MergePatch(ctx, "a", externalNamePatchTo(corev1.ServiceTypeClusterIP, `"clusterIP":"`+ip+`"`))
		Expect(a).To(check.BeInvalid(clusterIPFields...))
		typeUnchanged(ctx, cp, before)
	})
})
