package allocation

import (
	"context"
	"encoding/json"
	"math/big"
	"net/netip"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

const (
	ipAddresses = "/apis/networking.k8s.io/v1/ipaddresses"

	// repaired bounds the repair of what an administrator has broken.
	repaired = 30 * time.Second
	// defaultRestored bounds how long the default ServiceCIDR may be away: kube-apiserver looks every 10 seconds.
	defaultRestored = 30 * time.Second
	// cidrEnds bounds the end of a ServiceCIDR that nothing depends on: kube-controller-manager keeps it ten seconds after its deletion (deletionGracePeriod
	// in servicecidrs_controller.go, v1.37.1).
	cidrEnds = 30 * time.Second
)

var _ = ginkgo.Describe("IPAddress", func() {
	check.It(spec.AllocIPAddressPerClusterIP, "stands for each address of a Service, and goes with it",
		func(ctx context.Context, cp *check.ControlPlane) {
			for _, svc := range []*corev1.Service{cp.Arrange(ctx, check.Service("dynamic")), createOnChosen(ctx, cp, primaryRange(cp))} {
				referTo(ctx, cp, svc, svc.Spec.ClusterIP)
				Expect(cp.Delete(ctx, svc.Name)).To(check.BeAccepted())
				check.Converge(ctx, "end of the IPAddress", reuse, func(g Gomega) {
					g.Expect(cp.Do(ctx, "GET", ipAddresses+"/"+svc.Spec.ClusterIP, "", nil).Code).To(Equal(404))
				})
			}
		})

	check.It(spec.AllocIPAddressPerClusterIP, "stands for both addresses of a dual-stack Service", check.DualStack(),
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, check.Service("dual", check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack)))
			for _, ip := range svc.Spec.ClusterIPs {
				referTo(ctx, cp, svc, ip)
			}
		})

	check.It(spec.AllocIPAddressReserves, "keeps an address from Services as long as it exists", check.Exclusive(), check.OnServiceCIDR(small),
		func(ctx context.Context, cp *check.ControlPlane) {
			reserve(ctx, cp, "10.96.0.4", foreign())
			refuseTaken(ctx, cp, "10.96.0.4")
			for range 4 {
				Expect(cp.Create(ctx, check.Service(cp.Name("dynamic")))).To(check.BeAccepted())
			}
			Expect(cp.Create(ctx, check.Service("late"))).To(check.BeExhausted())
			Expect(cp.Do(ctx, "DELETE", ipAddresses+"/10.96.0.4", "", nil)).To(check.BeAccepted())
			check.Converge(ctx, "use of an address that is no longer reserved", reuse, func(g Gomega) {
				a := cp.Create(ctx, check.Service("late"))
				g.Expect(a).To(check.BeAccepted())
				g.Expect(a.Service.Spec.ClusterIP).To(Equal("10.96.0.4"))
			})
		})

	check.It(spec.AllocIPAddressDuplicateRefused, "cannot be made for an address that a Service has",
		func(ctx context.Context, cp *check.ControlPlane) {
			ip := cp.Arrange(ctx, check.Service("taken")).Spec.ClusterIP
			Expect(cp.Do(ctx, "POST", ipAddresses, "application/json", ipAddress(ip, foreign()))).To(check.BeRefusedWith(409, metav1.StatusReasonAlreadyExists))
		})

	check.It(spec.AllocIPAddressName, "has a canonical address as its name",
		func(ctx context.Context, cp *check.ControlPlane) {
			for _, name := range []string{"a", "10.96.0", "010.0.0.1", "fd00:0::1", "::ffff:10.0.0.1"} {
				a := cp.Do(ctx, "POST", ipAddresses, "application/json", ipAddress(name, foreign()), check.DryRun())
				Expect(a).To(check.BeInvalid("metadata.name"), "name %q", name)
			}
			for _, name := range []string{"192.0.2.10", "2001:db8::10"} {
				a := cp.Do(ctx, "POST", ipAddresses, "application/json", ipAddress(name, foreign()), check.DryRun())
				Expect(a).To(check.BeAccepted(), "name %q", name)
			}
		})

	check.It(spec.AllocIPAddressParent, "refers to a parent, which stays",
		func(ctx context.Context, cp *check.ControlPlane) {
			name := randomAddress(cp, netip.MustParsePrefix("192.0.2.0/24")).String()
			for _, incomplete := range []func(*networkingv1.IPAddress){
				func(ip *networkingv1.IPAddress) { ip.Spec.ParentRef = nil },
				func(ip *networkingv1.IPAddress) { ip.Spec.ParentRef.Name = "" },
				func(ip *networkingv1.IPAddress) { ip.Spec.ParentRef.Resource = "" },
			} {
				a := cp.Do(ctx, "POST", ipAddresses, "application/json", ipAddress(name, foreign(), incomplete), check.DryRun())
				Expect(a).To(check.BeInvalid(), "the body %s", ipAddress(name, foreign(), incomplete))
			}
			reserve(ctx, cp, name, foreign())
			a := cp.Do(ctx, "PATCH", ipAddresses+"/"+name, "application/merge-patch+json", []byte(`{"spec":{"parentRef":{"name":"other"}}}`))
			Expect(a).To(check.BeInvalid())
		})

	check.It(spec.AllocRepairUnused, "is removed when it claims to be that of a Service which does not have it; the address is free then", check.Exclusive(), check.OnServiceCIDR("10.96.0.0/28"),
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, check.Service("web"))
			claimed, reserved := unlike(svc, 3), unlike(svc, 4)
			reserve(ctx, cp, claimed, managedFor(svc, managerOf(ctx, cp, svc)))
			reserve(ctx, cp, reserved, foreign())
			check.Converge(ctx, "end of an IPAddress that no Service has", repaired, func(g Gomega) {
				g.Expect(cp.Do(ctx, "GET", ipAddresses+"/"+claimed, "", nil).Code).To(Equal(404))
			})
			becomesFree(ctx, cp, claimed, "")
			refuseTaken(ctx, cp, reserved)
			referTo(ctx, cp, svc, svc.Spec.ClusterIP)
		})

	check.It(spec.AllocRepairUnused, "is removed a minute after it was made for a Service that does not exist", check.Slow(), check.Timeout(3*time.Minute),
		func(ctx context.Context, cp *check.ControlPlane) {
			ip := freeAddress(ctx, cp)
			manager := managerOf(ctx, cp, cp.Arrange(ctx, check.Service("some")))
			reserve(ctx, cp, ip, managedFor(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: cp.Namespace(), Name: "none"}}, manager))
			check.Converge(ctx, "end of an IPAddress without a Service", 2*time.Minute, func(g Gomega) {
				g.Expect(cp.Do(ctx, "GET", ipAddresses+"/"+ip, "", nil).Code).To(Equal(404))
			})
			becomesFree(ctx, cp, ip, "")
		})

	check.It(spec.AllocRepairMissing, "comes back, when somebody has deleted it, for a Service that has the address", check.Exclusive(), check.OnServiceCIDR(small),
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, check.Service("web"))
			Expect(cp.Do(ctx, "DELETE", ipAddresses+"/"+svc.Spec.ClusterIP, "", nil)).To(check.BeAccepted())
			cp.Restart(ctx)
			check.Converge(ctx, "return of the IPAddress", repaired, func(g Gomega) {
				g.Expect(cp.Do(ctx, "GET", ipAddresses+"/"+svc.Spec.ClusterIP, "", nil)).To(check.BeAccepted())
			})
			referTo(ctx, cp, svc, svc.Spec.ClusterIP)
			refuseTaken(ctx, cp, svc.Spec.ClusterIP)
		})
})

// referTo demands that the IPAddress of an address refers to the Service, and says its family and who made it.
func referTo(ctx context.Context, cp *check.ControlPlane, svc *corev1.Service, ip string) {
	ginkgo.GinkgoHelper()
	got, err := cp.Client().NetworkingV1().IPAddresses().Get(ctx, ip, metav1.GetOptions{})
	Expect(check.Responded(err)).NotTo(HaveOccurred(), "the IPAddress of Service %s/%s", svc.Namespace, svc.Name)
	Expect(got.Spec.ParentRef).To(Equal(&networkingv1.ParentReference{Resource: "services", Namespace: svc.Namespace, Name: svc.Name}))
	Expect(got.Labels).To(HaveKeyWithValue(networkingv1.LabelIPAddressFamily, string(familyOf(ip))))
	Expect(got.Labels).To(HaveKeyWithValue(networkingv1.LabelManagedBy, Not(BeEmpty())))
}

// managerOf is who manages the IPAddresses of Services, as their label says. The name is the implementation's own.
func managerOf(ctx context.Context, cp *check.ControlPlane, svc *corev1.Service) string {
	ginkgo.GinkgoHelper()
	got, err := cp.Client().NetworkingV1().IPAddresses().Get(ctx, svc.Spec.ClusterIP, metav1.GetOptions{})
	check.Must(err)
	return got.Labels[networkingv1.LabelManagedBy]
}

// reserve makes an IPAddress until the end of the check.
func reserve(ctx context.Context, cp *check.ControlPlane, name string, shape func(*networkingv1.IPAddress)) {
	ginkgo.GinkgoHelper()
	Expect(cp.Do(ctx, "POST", ipAddresses, "application/json", ipAddress(name, shape))).To(check.BeAccepted())
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { cp.Do(ctx, "DELETE", ipAddresses+"/"+name, "", nil) })
}

// ipAddress is an IPAddress object.
func ipAddress(name string, shapes ...func(*networkingv1.IPAddress)) []byte {
	ip := &networkingv1.IPAddress{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "IPAddress"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
	for _, shape := range shapes {
		shape(ip)
	}
	body, err := json.Marshal(ip)
	check.Must(err)
	return body
}

// foreign makes an IPAddress that of something that is no Service.
func foreign() func(*networkingv1.IPAddress) {
	return func(ip *networkingv1.IPAddress) {
		ip.Spec.ParentRef = &networkingv1.ParentReference{Group: "example.org", Resource: "gateways", Name: "g"}
	}
}

// managedFor makes an IPAddress look like that of a Service, by who manages these.
func managedFor(svc *corev1.Service, manager string) func(*networkingv1.IPAddress) {
	return func(ip *networkingv1.IPAddress) {
		ip.Labels = map[string]string{networkingv1.LabelIPAddressFamily: string(familyOf(ip.Name)), networkingv1.LabelManagedBy: manager}
		ip.Spec.ParentRef = &networkingv1.ParentReference{Resource: "services", Namespace: svc.Namespace, Name: svc.Name}
	}
}

// unlike returns the n-th address of the /28 that the Service lies in, or the one ten further if the Service has that.
func unlike(svc *corev1.Service, n int64) string {
	base := netip.PrefixFrom(netip.MustParseAddr(svc.Spec.ClusterIP), 28).Masked().Addr()
	if ip := check.AddressPlus(base, big.NewInt(n)).String(); ip != svc.Spec.ClusterIP {
		return ip
	}
	return check.AddressPlus(base, big.NewInt(n+10)).String()
}
