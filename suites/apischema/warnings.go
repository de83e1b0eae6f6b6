package apischema

import (
	"context"
	"math/big"
	"strings"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// warningsOf creates a Service shaped by the option in a dry run, and returns the response.
func warningsOf(ctx context.Context, cp *check.ControlPlane, options ...check.ServiceOption) check.Response {
	ginkgo.GinkgoHelper()
	a := cp.Create(ctx, check.Service("warned", options...), check.DryRun())
	Expect(a).To(check.BeAccepted(), "what is warned of is accepted")
	return a
}

// warningsSpec is an option that changes the spec.
func warningsSpec(change func(*corev1.ServiceSpec)) check.ServiceOption {
	return check.With(func(s *corev1.Service) { change(&s.Spec) })
}

var _ = ginkgo.Describe("a warning", func() {
	// not canonical: upper case and leading zeros.
	const sloppyIP, sloppyCIDR = "2001:DB8:0000::1", "2001:DB8:0000::/64"
	externalIPs := warningsSpec(func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"192.0.2.9"} })

	check.It(spec.APIWarningForm, "is a header with code 299 and a quoted text",
		func(ctx context.Context, cp *check.ControlPlane) {
			// Two reasons for a warning: one of them may be what the server does not warn of.
			unheardOf := objectPost(ctx, cp, []byte(validationBodies["spec.unheardOf"]), check.DryRun())
			Expect(unheardOf).To(check.BeAccepted())
			ignored := cp.Create(ctx, check.Service("ignored", warningsSpec(func(s *corev1.ServiceSpec) { s.ExternalName = externalNameHost })), check.DryRun())
			headers := append(unheardOf.Header.Values("Warning"), ignored.Header.Values("Warning")...)
			Expect(headers).NotTo(BeEmpty(), "warnings of a field that nobody knows, or of one that is ignored")
			Expect(headers).To(HaveEach(MatchRegexp(`^299 \S+ ".*"$`)))
		})

	check.It(spec.APIWarningForm, "is not given for a plain Service",
		func(ctx context.Context, cp *check.ControlPlane) {
			a := cp.Create(ctx, check.Service("plain"))
			Expect(a).To(check.BeAccepted())
			Expect(a.Warnings).To(BeEmpty())
			a = cp.MergePatch(ctx, "plain", `{"spec":{"selector":{"app":"other"}}}`)
			Expect(a).To(check.BeAccepted())
			Expect(a.Warnings).To(BeEmpty())
		})

	check.It(spec.APIWarningNotCanonical, "names addresses and CIDRs that are not canonical",
		func(ctx context.Context, cp *check.ControlPlane) {
			for field, option := range map[string]check.ServiceOption{
				"spec.externalIPs[0]": warningsSpec(func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{sloppyIP} }),
				"spec.loadBalancerIP": warningsSpec(func(s *corev1.ServiceSpec) { s.Type, s.LoadBalancerIP = corev1.ServiceTypeLoadBalancer, sloppyIP }),
				"spec.loadBalancerSourceRanges[0]": warningsSpec(func(s *corev1.ServiceSpec) {
					s.Type, s.LoadBalancerSourceRanges = corev1.ServiceTypeLoadBalancer, []string{sloppyCIDR}
				}),
			} {
				Expect(warningsOf(ctx, cp, option)).To(check.Warn(field))
			}
			canonical := warningsSpec(func(s *corev1.ServiceSpec) {
				s.Type, s.LoadBalancerIP, s.LoadBalancerSourceRanges = corev1.ServiceTypeLoadBalancer, "2001:db8::1", []string{"2001:db8::/64"}
			})
			Expect(warningsOf(ctx, cp, canonical).Warnings).To(BeEmpty(), "in canonical form")
		})

	check.It(spec.APIWarningClusterIPNotCanonical, "names virtual addresses that are not canonical", check.DualStack(),
		func(ctx context.Context, cp *check.ControlPlane) {
			cidr := cp.CIDROf(corev1.IPv6Protocol)
			address := check.AddressPlus(cidr.Addr(), big.NewInt(0xabc))
			if !cidr.Contains(address) {
				check.LeaveUnjudged(check.ByAnotherRange, "the range %s has no address that is written in letters of two cases", cidr)
			}
			families := []corev1.IPFamily{corev1.IPv6Protocol}
			in := func(form string) check.ServiceOption {
				return warningsSpec(func(s *corev1.ServiceSpec) { s.IPFamilies, s.ClusterIP, s.ClusterIPs = families, form, []string{form} })
			}
			Expect(warningsOf(ctx, cp, in(strings.ToUpper(address.String())))).To(check.Warn("spec.clusterIPs[0]"))
			Expect(warningsOf(ctx, cp, in(address.String())).Warnings).To(BeEmpty(), "in canonical form")
		})

	check.It(spec.APIWarningExternalIPs, "tells that externalIPs is deprecated",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(warningsOf(ctx, cp, externalIPs)).To(And(check.Warn("externalIPs"), check.Warn("deprecated")))
		})

	check.It(spec.APIWarningExternalNameIgnored, "tells that externalName is ignored",
		func(ctx context.Context, cp *check.ControlPlane) {
			a := warningsOf(ctx, cp, warningsSpec(func(s *corev1.ServiceSpec) { s.ExternalName = "example.com" }))
			Expect(a).To(And(check.Warn("externalName"), check.Warn("ignored")))
			Expect(warningsOf(ctx, cp, check.ExternalName("example.com")).Warnings).To(BeEmpty(), "of type ExternalName")
		})

	check.It(spec.APIWarningExternalIPsIgnored, "tells that externalIPs is ignored",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(warningsOf(ctx, cp, check.ExternalName("example.com"), externalIPs)).To(And(check.Warn("externalIPs"), check.Warn("ignored")))
		})

	check.It(spec.APIWarningHeadlessIgnored, "tells what a headless Service ignores",
		func(ctx context.Context, cp *check.ControlPlane) {
			for field, option := range map[string]check.ServiceOption{
				"sessionaffinity": warningsSpec(func(s *corev1.ServiceSpec) { s.SessionAffinity = corev1.ServiceAffinityClientIP }),
				"externalips":     externalIPs,
				"loadbalancerip":  warningsSpec(func(s *corev1.ServiceSpec) { s.LoadBalancerIP = "192.0.2.9" }),
			} {
				a := warningsOf(ctx, cp, check.Headless(), option)
				// The spelling of the field is not that of the schema everywhere.
				Expect(strings.ToLower(strings.Join(a.Warnings, "\n"))).To(And(ContainSubstring(field), ContainSubstring("ignored")), "%s", field)
			}
			Expect(warningsOf(ctx, cp, check.Headless()).Warnings).To(BeEmpty(), "a plain headless Service")
		})

	check.It(spec.APIWarningPreferClose, "tells that PreferClose is deprecated",
		func(ctx context.Context, cp *check.ControlPlane) {
			distribution := func(value string) check.ServiceOption {
				return warningsSpec(func(s *corev1.ServiceSpec) { s.TrafficDistribution = &value })
			}
			Expect(warningsOf(ctx, cp, distribution("PreferClose"))).To(And(check.Warn("PreferClose"), check.Warn("deprecated")))
		})

	check.It(spec.APIWarningTopologyHints, "tells that the annotation for topology hints is deprecated",
		func(ctx context.Context, cp *check.ControlPlane) {
			a := warningsOf(ctx, cp, check.With(func(s *corev1.Service) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, "service.kubernetes.io/topology-aware-hints", "Auto")
			}))
			Expect(a).To(And(check.Warn("topology-aware-hints"), check.Warn("deprecated")))
		})
})
