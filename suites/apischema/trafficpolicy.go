package apischema

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

const (
	trafficCluster = corev1.ServiceExternalTrafficPolicyCluster
	trafficLocal   = corev1.ServiceExternalTrafficPolicyLocal

	trafficExternalPath = "spec.externalTrafficPolicy"
	trafficInternalPath = "spec.internalTrafficPolicy"
)

// trafficCase is a kind of Service.
type trafficCase struct {
	what     string
	option   check.ServiceOption
	versions string // of Kubernetes, where not all have it
}

// sincePolicyOfExternalIPs are the versions in which externalTrafficPolicy applies to external IPs of Services of type ClusterIP.
const sincePolicyOfExternalIPs = ">=1.29"

// casesOf are those that there are in the candidate's version.
func casesOf(cp *check.ControlPlane, all []trafficCase) (cases []trafficCase) {
	for _, c := range all {
		if c.versions == "" || cp.OfVersion(c.versions) {
			cases = append(cases, c)
		}
	}
	return cases
}

// trafficReceivers receive external traffic.
var trafficReceivers = []trafficCase{
	{what: "type NodePort", option: check.OfType(corev1.ServiceTypeNodePort)},
	{what: "type LoadBalancer", option: typeLoadBalancer()},
	{what: "external IPs", option: trafficExternalIPs("192.0.2.10"), versions: sincePolicyOfExternalIPs},
}

// trafficInsiders receive none.
var trafficInsiders = []trafficCase{
	{what: "type ClusterIP", option: check.OfType(corev1.ServiceTypeClusterIP)},
	{what: "headless", option: check.Headless()},
	{what: "type ExternalName", option: check.ExternalName("example.com")},
}

// trafficExternal sets spec.externalTrafficPolicy.
func trafficExternal(policy corev1.ServiceExternalTrafficPolicy) check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = policy })
}

// trafficInternal sets spec.internalTrafficPolicy.
func trafficInternal(policy corev1.ServiceInternalTrafficPolicy) check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Spec.InternalTrafficPolicy = new(policy) })
}

// trafficExternalIPs sets spec.externalIPs.
func trafficExternalIPs(ips ...string) check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Spec.ExternalIPs = ips })
}

var _ = ginkgo.Describe("externalTrafficPolicy", func() {
	check.It(spec.APIExternalTrafficPolicyValues, "may be Cluster or Local", func(ctx context.Context, cp *check.ControlPlane) {
		for _, policy := range []corev1.ServiceExternalTrafficPolicy{trafficCluster, trafficLocal} {
			a := cp.Create(ctx, check.Service(cp.Name("policy"), check.OfType(corev1.ServiceTypeNodePort), trafficExternal(policy)))
			Expect(a).To(check.BeAccepted(), "externalTrafficPolicy %s", policy)
			Expect(a.Service.Spec.ExternalTrafficPolicy).To(Equal(policy))
		}
	})

	check.It(spec.APIExternalTrafficPolicyValues, "may be nothing else", func(ctx context.Context, cp *check.ControlPlane) {
		for _, policy := range []corev1.ServiceExternalTrafficPolicy{"local", "cluster", "Global"} {
			a := cp.Create(ctx, check.Service(cp.Name("policy"), check.OfType(corev1.ServiceTypeNodePort), trafficExternal(policy)))
			Expect(a).To(check.BeInvalid(trafficExternalPath), "externalTrafficPolicy %s", policy)
		}
	})

	check.It(spec.APIExternalTrafficPolicyDefault, "is Cluster where external traffic is received", func(ctx context.Context, cp *check.ControlPlane) {
		for _, c := range casesOf(cp, trafficReceivers) {
			a := cp.Create(ctx, check.Service(cp.Name("policy"), c.option))
			Expect(a).To(check.BeAccepted(), c.what)
			Expect(a.Service.Spec.ExternalTrafficPolicy).To(Equal(trafficCluster), c.what)
		}
	})

	check.It(spec.APIExternalTrafficPolicyExternal, "is refused where none is received", func(ctx context.Context, cp *check.ControlPlane) {
		for _, c := range trafficInsiders {
			for _, policy := range []corev1.ServiceExternalTrafficPolicy{trafficCluster, trafficLocal} {
				a := cp.Create(ctx, check.Service(cp.Name("policy"), c.option, trafficExternal(policy)))
				Expect(a).To(check.BeInvalid(trafficExternalPath), "%s, externalTrafficPolicy %s", c.what, policy)
			}
		}
	})

	check.It(spec.APIExternalTrafficPolicyExternal, "is not defaulted where none is received", func(ctx context.Context, cp *check.ControlPlane) {
		for _, c := range trafficInsiders {
			a := cp.Create(ctx, check.Service(cp.Name("policy"), c.option))
			Expect(a).To(check.BeAccepted(), c.what)
			Expect(a.Service.Spec.ExternalTrafficPolicy).To(BeEmpty(), c.what)
		}
	})

	check.It(spec.APIExternalTrafficPolicyCleared, "is cleared when the type no longer has external traffic", func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("policy", check.OfType(corev1.ServiceTypeNodePort), trafficExternal(trafficLocal)))
		a := cp.MergePatch(ctx, "policy", `{"spec":{"type":"ClusterIP"}}`)
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.ExternalTrafficPolicy).To(BeEmpty())
	})

	check.It(spec.APIExternalTrafficPolicyCleared, "is cleared with the last external IP", check.Versions(sincePolicyOfExternalIPs), func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("policy", trafficExternalIPs("192.0.2.10"), trafficExternal(trafficLocal)))
		a := cp.MergePatch(ctx, "policy", `{"spec":{"externalIPs":null}}`)
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.ExternalTrafficPolicy).To(BeEmpty())
	})
})

var _ = ginkgo.Describe("internalTrafficPolicy", func() {
	check.It(spec.APIInternalTrafficPolicyValues, "may be Cluster or Local", func(ctx context.Context, cp *check.ControlPlane) {
		for _, policy := range []corev1.ServiceInternalTrafficPolicy{corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal} {
			a := cp.Create(ctx, check.Service(cp.Name("policy"), trafficInternal(policy)))
			Expect(a).To(check.BeAccepted(), "internalTrafficPolicy %s", policy)
			Expect(a.Service.Spec.InternalTrafficPolicy).To(HaveValue(Equal(policy)))
		}
	})

	check.It(spec.APIInternalTrafficPolicyValues, "may be nothing else", func(ctx context.Context, cp *check.ControlPlane) {
		for _, policy := range []corev1.ServiceInternalTrafficPolicy{"", "local", "Global"} {
			a := cp.Create(ctx, check.Service(cp.Name("policy"), trafficInternal(policy)))
			Expect(a).To(check.BeInvalid(trafficInternalPath), "internalTrafficPolicy %q", policy)
		}
	})

	check.It(spec.APIInternalTrafficPolicyDefault, "is Cluster for every type that has a cluster IP", func(ctx context.Context, cp *check.ControlPlane) {
		for _, o := range []check.ServiceOption{check.OfType(corev1.ServiceTypeClusterIP), check.OfType(corev1.ServiceTypeNodePort), typeLoadBalancer()} {
			svc := check.Service(cp.Name("policy"), o)
			a := cp.Create(ctx, svc)
			Expect(a).To(check.BeAccepted(), "type %s", svc.Spec.Type)
			Expect(a.Service.Spec.InternalTrafficPolicy).To(HaveValue(Equal(corev1.ServiceInternalTrafficPolicyCluster)), "type %s", svc.Spec.Type)
		}
	})

	check.It(spec.APIInternalTrafficPolicyDefault, "is Cluster if it is set to null", func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("policy", trafficInternal(corev1.ServiceInternalTrafficPolicyLocal)))
		a := cp.MergePatch(ctx, "policy", `{"spec":{"internalTrafficPolicy":null}}`)
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.InternalTrafficPolicy).To(HaveValue(Equal(corev1.ServiceInternalTrafficPolicyCluster)))
	})

	check.It(spec.APIInternalTrafficPolicyExternalName, "is not shown for type ExternalName", func(ctx context.Context, cp *check.ControlPlane) {
		a := cp.Create(ctx, check.Service("alias", check.ExternalName("example.com")))
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.InternalTrafficPolicy).To(BeNil(), "of a new Service")
		cp.Arrange(ctx, check.Service("changed"))
		Expect(cp.MergePatch(ctx, "changed", `{"spec":{"type":"ExternalName","externalName":"example.com"}}`)).To(check.BeAccepted())
		Expect(typeStored(ctx, cp, "changed").Spec.InternalTrafficPolicy).To(BeNil(), "after a change of the type")
	})

	check.It(spec.APIInternalTrafficPolicyExternalName, "is not shown by a write of the status after a change to type ExternalName", func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("alias"))
		Expect(cp.MergePatch(ctx, "alias", `{"spec":{"type":"ExternalName","externalName":"example.com"}}`)).To(check.BeAccepted())
		alias := typeStored(ctx, cp, "alias")
		a := cp.PatchStatus(ctx, "alias", `{"metadata":{"labels":{"a":"b"}}}`)
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.InternalTrafficPolicy).To(BeNil(), "after a patch")
		alias.ResourceVersion, alias.Labels = a.Service.ResourceVersion, map[string]string{"a": "c"}
		a = cp.UpdateStatus(ctx, alias)
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.InternalTrafficPolicy).To(BeNil(), "after an update")
	})
})

var _ = ginkgo.Describe("the traffic policies", func() {
	check.It(spec.APITrafficPoliciesIndependent, "do not change each other", func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("policies", check.OfType(corev1.ServiceTypeNodePort), trafficExternal(trafficLocal)))
		Expect(svc.Spec.InternalTrafficPolicy).To(HaveValue(Equal(corev1.ServiceInternalTrafficPolicyCluster)))
		a := cp.MergePatch(ctx, "policies", `{"spec":{"internalTrafficPolicy":"Local","externalTrafficPolicy":"Cluster"}}`)
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.ExternalTrafficPolicy).To(Equal(trafficCluster))
		Expect(a.Service.Spec.InternalTrafficPolicy).To(HaveValue(Equal(corev1.ServiceInternalTrafficPolicyLocal)))
	})
})
