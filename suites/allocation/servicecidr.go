package allocation

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate/apiclient"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("ServiceCIDR", func() {
	check.It(spec.AllocServiceCIDRDefault, "is there, ready, with the configured ranges",
		func(ctx context.Context, cp *check.ControlPlane) {
			cidr, err := cp.Client().NetworkingV1().ServiceCIDRs().Get(ctx, "kubernetes", metav1.GetOptions{})
			Expect(check.Responded(err)).NotTo(HaveOccurred())
			var want []string
			for _, p := range cp.CIDRs() {
				want = append(want, p.String())
			}
			Expect(cidr.Spec.CIDRs).To(Equal(want))
			Expect(meta.IsStatusConditionTrue(cidr.Status.Conditions, networkingv1.ServiceCIDRConditionReady)).To(BeTrue(), "the condition Ready is true in %v", cidr.Status.Conditions)
		})

	check.It(spec.AllocServiceCIDRDefaultRestored, "comes back when it is deleted", check.Exclusive(), check.OnServiceCIDR(deleted),
		func(ctx context.Context, cp *check.ControlPlane) {
			cidrs := cp.Client().NetworkingV1().ServiceCIDRs()
			old, err := cidrs.Get(ctx, "kubernetes", metav1.GetOptions{})
			check.Must(err)
			removeDefault(ctx, cidrs)
			check.Converge(ctx, "the default ServiceCIDR", defaultRestored, func(g Gomega) {
				cidr, err := cidrs.Get(ctx, "kubernetes", metav1.GetOptions{})
				g.Expect(check.Responded(err)).NotTo(HaveOccurred())
				g.Expect(cidr.Spec.CIDRs).To(Equal(old.Spec.CIDRs))
				g.Expect(cidr.UID).NotTo(Equal(old.UID), "the UID of the new ServiceCIDR")
				a := cp.Create(ctx, check.Service(cp.Name("later")))
				g.Expect(a).To(check.BeAccepted())
			})
		})

	check.It(spec.AllocServiceCIDRDefaultEdited, "does not become what no API server is configured with", check.Exclusive(), check.Needs(spec.ManageServiceCIDRs, spec.SingleStack), check.OnServiceCIDR(deleted),
		func(ctx context.Context, cp *check.ControlPlane) {
			cidrs := cp.Client().NetworkingV1().ServiceCIDRs()
			was, err := cidrs.Get(ctx, "kubernetes", metav1.GetOptions{})
			check.Must(err)
			wider := append(slices.Clone(was.Spec.CIDRs), "fd00:10:97::/112")
			a := cp.Do(ctx, "PATCH", check.ServiceCIDRs+"/kubernetes", "application/merge-patch+json", []byte(fmt.Sprintf(`{"spec":{"cidrs":[%q,%q]}}`, wider[0], wider[1])))
			if a.Accepted() {
				ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { removeDefault(ctx, cidrs) }) // the one that comes in its place is as configured
				check.Converge(ctx, "what becomes of the changed ServiceCIDR", defaultRestored, func(g Gomega) {
					now, err := cidrs.Get(ctx, "kubernetes", metav1.GetOptions{})
					g.Expect(check.Responded(err)).NotTo(HaveOccurred())
					ready := meta.IsStatusConditionTrue(now.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
					g.Expect(ready && !slices.Equal(now.Spec.CIDRs, was.Spec.CIDRs)).To(BeFalse(), "it is ready with the CIDRs %v, and the API server has %v", now.Spec.CIDRs, was.Spec.CIDRs)
				})
			}
			Expect(cp.Create(ctx, check.Service("later"))).To(check.BeAccepted(), "a Service after a change of the default ServiceCIDR")
		})

	check.It(spec.AllocNoRangeNoAddress, "refuses a Service while the only ServiceCIDR is being deleted, but one without an address", check.Exclusive(), check.Needs(spec.ManageServiceCIDRs), check.OnServiceCIDR(deleted),
		check.Also(spec.AllocRefusedCreateLeaksNothing),
		func(ctx context.Context, cp *check.ControlPlane) {
			const hold = "service-conformance/hold"
			cidrs := cp.Client().NetworkingV1().ServiceCIDRs()
			// A finalizer keeps the object, so that no other takes its place.
			held, err := cidrs.Get(ctx, "kubernetes", metav1.GetOptions{})
			check.Must(err)
			held.Finalizers = append(held.Finalizers, hold)
			_, err = cidrs.Update(ctx, held, metav1.UpdateOptions{})
			check.Must(err)
			Expect(check.Responded(cidrs.Delete(ctx, "kubernetes", metav1.DeleteOptions{}))).To(Succeed())
			givenBack := map[netip.Addr]bool{} // whether such an address stays free is a requirement of its own
			check.Deciding(func() {
				check.Converge(ctx, "end of allocation from the range", reuse, func(g Gomega) {
					name := cp.Name("without-range")
					a := cp.Create(ctx, check.Service(name))
					if a.Accepted() {
						givenBack[clusterIP(a)] = true
						g.Expect(cp.Delete(ctx, name)).To(check.BeAccepted())
					}
					g.Expect(a).To(check.BeExhausted())
					g.Expect(cp.Get(ctx, name).Code).To(Equal(404), "the refused Service exists")
				})
				Expect(cp.Create(ctx, check.Service("headless", check.WithClusterIP("None")))).To(check.BeAccepted())
				_, err = cidrs.Patch(ctx, "kubernetes", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
				Expect(check.Responded(err)).To(Or(Not(HaveOccurred()), Satisfy(apierrors.IsNotFound)))
				check.Converge(ctx, "allocation from the default ServiceCIDR that has come back", defaultRestored, func(g Gomega) {
					g.Expect(cp.Create(ctx, check.Service(cp.Name("later")))).To(check.BeAccepted())
				})
			}, spec.AllocNoRangeNoAddress)
			b, used := check.BandsOf(cp.CIDR()), cp.AddressesInUse(ctx, cp.CIDR())
			check.Deciding(func() {
				for addr := b.First; addr.Compare(b.Last) <= 0; addr = addr.Next() {
					if !used[addr] && !givenBack[addr] {
						a := cp.Create(ctx, check.Service(cp.Name("free"), check.WithClusterIP(addr.String())))
						Expect(a).To(check.BeAccepted(), "%s, which no Service has after creates were refused", addr)
					}
				}
			}, spec.AllocRefusedCreateLeaksNothing)
		})

	check.It(spec.AllocServiceCIDRAddsRange, "makes its addresses available to who names them and to dynamic allocation", check.Exclusive(), check.OnServiceCIDR(small),
		func(ctx context.Context, cp *check.ControlPlane) {
			exhaust(ctx, cp)
			Expect(cp.Create(ctx, check.Service("dynamic"))).To(check.BeExhausted())
			second := netip.MustParsePrefix("10.97.0.0/28")
			Expect(cp.Create(ctx, check.Service("static", check.WithClusterIP("10.97.0.7")))).To(check.BeRefused(), "before the range is added")
			cp.AddServiceCIDR(ctx, second.String())
			dynamic := createOnceAdded(ctx, cp, check.Service("dynamic"))
			Expect(clusterIP(dynamic)).To(check.BeInRange(second))
			Expect(cp.Create(ctx, check.Service("static", check.WithClusterIP(otherThan(dynamic, "10.97.0.7", "10.97.0.8"))))).To(check.BeAccepted())
		})

	check.It(spec.AllocServiceCIDROwnBands, "has bands of its own", check.Exclusive(), check.OnServiceCIDR(small), check.Aside(spec.AllocLowerBandAfterUpper),
		func(ctx context.Context, cp *check.ControlPlane) {
			exhaust(ctx, cp)
			second := netip.MustParsePrefix("10.97.0.0/27")
			b := check.BandsOf(second)
			cp.AddServiceCIDR(ctx, second.String())
			Expect(clusterIP(createOnceAdded(ctx, cp, check.Service("first")))).To(check.BeInBand(check.Upper, second), "the first address of the range")
			hand := func(band check.Band, from, to int64) {
				ginkgo.GinkgoHelper()
				for i := from; i < to; i++ {
					a := cp.Create(ctx, check.Service(cp.Name("dynamic")))
					Expect(a).To(check.BeAccepted())
					Expect(clusterIP(a)).To(check.BeInBand(band, second), "address %d of the range", i+1)
				}
			}
			hand(check.Upper, 1, b.DynamicCount().Int64())
			check.Deciding(func() { hand(check.Lower, b.DynamicCount().Int64(), b.Usable.Int64()) }, spec.AllocLowerBandAfterUpper)
			Expect(cp.Create(ctx, check.Service("late"))).To(check.BeExhausted())
		})

	check.It(spec.AllocServiceCIDROverlapUnique, "gives an address of two ranges to one Service only", check.Exclusive(), check.OnServiceCIDR("10.96.0.0/28"),
		check.Aside(spec.AllocLowerBandAfterUpper),
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.AddServiceCIDR(ctx, "10.96.0.0/27")
			a := createOnceAdded(ctx, cp, check.Service("outer", check.WithClusterIP("10.96.0.30")))
			refuseTaken(ctx, cp, a.Service.Spec.ClusterIP)
			inner := cp.Arrange(ctx, check.Service("inner", check.WithClusterIP("10.96.0.9")))
			refuseTaken(ctx, cp, inner.Spec.ClusterIP)
			used := cp.AddressesInUse(ctx, cp.CIDR())
			used[netip.MustParseAddr("10.96.0.30")] = true
			for range 30 - len(used) {
				var addr netip.Addr // that the whole range is handed out is another requirement
				check.Deciding(func() { addr = clusterIP(createOnceAdded(ctx, cp, check.Service(cp.Name("dynamic")))) }, spec.AllocLowerBandAfterUpper)
				Expect(used[addr]).To(BeFalse(), "%s was handed out twice", addr)
				used[addr] = true
			}
			Expect(cp.Create(ctx, check.Service("late"))).To(check.BeExhausted())
		})

	check.It(spec.AllocRangeIPv430, "gives the two addresses of a /30, and no other", check.Exclusive(), check.OnServiceCIDR(small),
		func(ctx context.Context, cp *check.ControlPlane) {
			exhaust(ctx, cp)
			cp.AddServiceCIDR(ctx, "10.97.0.0/30")
			first := createOnceAdded(ctx, cp, check.Service("first"))
			second := cp.Create(ctx, check.Service("second"))
			Expect([]netip.Addr{clusterIP(first), clusterIP(second)}).To(ConsistOf(netip.MustParseAddr("10.97.0.1"), netip.MustParseAddr("10.97.0.2")))
			Expect(cp.Create(ctx, check.Service("third"))).To(check.BeExhausted())
			for _, ip := range []string{"10.97.0.0", "10.97.0.3"} {
				refuseAddress(ctx, cp, netip.MustParseAddr(ip))
			}
		})

	check.It(spec.AllocRangeIPv43132, "has no address to give in a /31 or a /32", check.Exclusive(), check.OnServiceCIDR(small),
		func(ctx context.Context, cp *check.ControlPlane) {
			exhaust(ctx, cp)
			cp.AddServiceCIDR(ctx, "10.97.0.2/31")
			cp.AddServiceCIDR(ctx, "10.97.0.7/32")
			cp.AddServiceCIDR(ctx, "10.97.0.8/30")
			Expect(clusterIP(createOnceAdded(ctx, cp, check.Service("first"))).String()).To(BeElementOf("10.97.0.9", "10.97.0.10"), "an address of the /30 that was added last")
			Expect(clusterIP(cp.Create(ctx, check.Service("second"))).String()).To(BeElementOf("10.97.0.9", "10.97.0.10"))
			Expect(cp.Create(ctx, check.Service("third"))).To(check.BeExhausted())
			for _, ip := range []string{"10.97.0.2", "10.97.0.3", "10.97.0.7"} {
				refuseAddress(ctx, cp, netip.MustParseAddr(ip))
			}
		})

	check.It(spec.AllocRangeIPv6Shorter, "does no harm with an IPv6 range larger than a /64", check.Exclusive(), check.Needs(spec.DualStack), check.OnServiceCIDR("10.96.0.0/29,fd00:10:96::/124"),
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.AddServiceCIDR(ctx, "fd00:20::/60")
			for range 4 {
				a := cp.Create(ctx, check.Service(cp.Name("dynamic"), check.WithFamilies("IPv6")))
				Expect(a).To(check.BeAccepted())
				Expect(netip.MustParsePrefix("fd00:20::/60").Contains(clusterIP(a)) || cp.CIDRs()[1].Contains(clusterIP(a))).To(BeTrue(), "%s lies in one of the ranges", clusterIP(a))
			}
		})

	check.It(spec.AllocServiceCIDRDeletionWaits, "stays while a Service has an address of it, gives no more, and goes with the Service", check.Exclusive(), check.OnServiceCIDR(small),
		func(ctx context.Context, cp *check.ControlPlane) {
			exhaust(ctx, cp)
			name := cp.AddServiceCIDR(ctx, "10.97.0.0/28")
			createOnceAdded(ctx, cp, check.Service("holder"))
			cidrs := cp.Client().NetworkingV1().ServiceCIDRs()
			readyServiceCIDR(ctx, cp, name)
			Expect(check.Responded(cidrs.Delete(ctx, name, metav1.DeleteOptions{}))).To(Succeed())
			check.Converge(ctx, "end of allocation from the range", reuse, func(g Gomega) {
				a := cp.Create(ctx, check.Service(cp.Name("late")))
				if a.Accepted() {
					g.Expect(cp.Delete(ctx, a.Service.Name)).To(check.BeAccepted())
				}
				g.Expect(a).To(check.BeExhausted())
			})
			cidr, err := cidrs.Get(ctx, name, metav1.GetOptions{})
			Expect(check.Responded(err)).NotTo(HaveOccurred(), "the ServiceCIDR that a Service depends on")
			Expect(cidr.DeletionTimestamp).NotTo(BeNil())
			Expect(cp.Delete(ctx, "holder")).To(check.BeAccepted())
			check.Converge(ctx, "end of the ServiceCIDR", cidrEnds, func(g Gomega) {
				g.Expect(cp.Do(ctx, "GET", check.ServiceCIDRs+"/"+name, "", nil).Code).To(Equal(404))
			})
		})

	check.It(spec.AllocServiceCIDRDryRun, "accepts an address of either range, and none", check.Exclusive(), check.OnServiceCIDR(small),
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.AddServiceCIDR(ctx, "10.97.0.0/28")
			createOnceAdded(ctx, cp, check.Service("added", check.WithClusterIP("10.97.0.7")))
			first := freeAddress(ctx, cp)
			for range 30 { // whichever range a server asks, one of the addresses is of the other
				for _, ip := range []string{first, "10.97.0.8", ""} {
					Expect(cp.Create(ctx, check.Service("tried", check.WithClusterIP(ip)), check.DryRun())).To(check.BeAccepted(), "a dry run with cluster IP %q", ip)
				}
			}
			for _, ip := range []string{first, "10.97.0.8"} {
				Expect(cp.Create(ctx, check.Service(cp.Name("made"), check.WithClusterIP(ip)))).To(check.BeAccepted())
			}
		})

	check.It(spec.AllocServiceCIDRDryRun, "accepts a Service without an address while another ServiceCIDR is being deleted", check.Exclusive(),
		check.Needs(spec.ManageServiceCIDRs, spec.ServiceCIDRController), check.OnServiceCIDR(small),
		func(ctx context.Context, cp *check.ControlPlane) {
			name := cp.AddServiceCIDR(ctx, "10.97.0.0/28")
			createOnceAdded(ctx, cp, check.Service("holder", check.WithClusterIP("10.97.0.7")))
			readyServiceCIDR(ctx, cp, name)
			Expect(check.Responded(cp.Client().NetworkingV1().ServiceCIDRs().Delete(ctx, name, metav1.DeleteOptions{}))).To(Succeed())
			check.Converge(ctx, "end of allocation from the range", reuse, func(g Gomega) {
				a := cp.Create(ctx, check.Service(cp.Name("late"), check.WithClusterIP("10.97.0.8")))
				if a.Accepted() {
					g.Expect(cp.Delete(ctx, a.Service.Name)).To(check.BeAccepted())
				}
				g.Expect(a).To(check.BeRefused())
			})
			for range check.TrialsUntil(seldomAsked) {
				Expect(cp.Create(ctx, check.Service("tried"), check.DryRun())).To(check.BeAccepted(), "a dry run without a cluster IP")
			}
			Expect(cp.Create(ctx, check.Service("made"))).To(check.BeAccepted())
		})

	check.It(spec.AllocOutOfRangeKept, "keeps the addresses of its Services from others when it is removed by force and comes back", check.Exclusive(), check.OnServiceCIDR(small),
		func(ctx context.Context, cp *check.ControlPlane) {
			exhaust(ctx, cp)
			second := netip.MustParsePrefix("10.97.0.0/29")
			name := cp.AddServiceCIDR(ctx, second.String())
			static := createOnceAdded(ctx, cp, check.Service("static", check.WithClusterIP("10.97.0.3"))).Service
			dynamic := cp.Arrange(ctx, check.Service("dynamic"))
			cidrs := cp.Client().NetworkingV1().ServiceCIDRs()
			Expect(check.Responded(cidrs.Delete(ctx, name, metav1.DeleteOptions{}))).To(Succeed())
			check.Converge(ctx, "end of the ServiceCIDR without its finalizers", reuse, func(g Gomega) {
				_, err := cidrs.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
				g.Expect(check.Responded(err)).To(Satisfy(apierrors.IsNotFound))
			})
			kept := []*corev1.Service{static, dynamic}
			for _, svc := range kept {
				Expect(cp.MergePatch(ctx, svc.Name, `{"metadata":{"labels":{"range":"gone"}}}`)).To(check.BeAccepted(), "a change of a label of Service %s", svc.Name)
				now := cp.Get(ctx, svc.Name)
				Expect(now).To(check.BeAccepted())
				Expect(now.Service.Spec.ClusterIPs).To(Equal(svc.Spec.ClusterIPs), "the cluster IPs of Service %s, whose range is gone", svc.Name)
			}
			cp.AddServiceCIDR(ctx, second.String())
			used := map[netip.Addr]bool{clusterIP(check.Response{Service: static}): true, clusterIP(check.Response{Service: dynamic}): true}
			for range int(check.BandsOf(second).Usable.Int64()) - len(used) {
				ip := clusterIP(createOnceAdded(ctx, cp, check.Service(cp.Name("later"))))
				Expect(used[ip]).To(BeFalse(), "%s was handed out twice", ip)
				used[ip] = true
			}
			Expect(cp.Create(ctx, check.Service("late"))).To(check.BeExhausted())
			for _, svc := range kept {
				refuseTaken(ctx, cp, svc.Spec.ClusterIP)
			}
		})

	check.It(spec.AllocServiceCIDRValidation, "refuses what is no list of one CIDR, or one of each family, in canonical form",
		func(ctx context.Context, cp *check.ControlPlane) {
			for _, cidrs := range [][]string{
				{}, {""}, {"10.97.0.0"}, {"10.97.0.1/24"}, {"010.97.0.0/24"}, {"FD00::/112"}, {"10.97.0.0/33"},
				{"10.97.0.0/24", "10.98.0.0/24"}, {"10.97.0.0/24", "fd00::/112", "10.98.0.0/24"},
			} {
				a := cp.Do(ctx, "POST", check.ServiceCIDRs, "application/json", check.ServiceCIDR(cp.Namespace(), cidrs...), check.DryRun())
				Expect(a).To(check.BeInvalid(), "CIDRs %q", cidrs)
			}
			for _, cidrs := range [][]string{{"10.97.0.0/24"}, {"fd00::/112"}, {"10.97.0.0/24", "fd00::/112"}} {
				a := cp.Do(ctx, "POST", check.ServiceCIDRs, "application/json", check.ServiceCIDR(cp.Namespace(), cidrs...), check.DryRun())
				Expect(a).To(check.BeAccepted(), "CIDRs %q", cidrs)
			}
		})

	check.It(spec.AllocServiceCIDRImmutable, "lets a range of the other family be added, and nothing be changed", check.Exclusive(), check.OnServiceCIDR(small),
		func(ctx context.Context, cp *check.ControlPlane) {
			name := cp.AddServiceCIDR(ctx, "10.97.0.0/28")
			patch := func(cidrs string) check.Response {
				return cp.Do(ctx, "PATCH", check.ServiceCIDRs+"/"+name, "application/merge-patch+json", []byte(`{"spec":{"cidrs":[`+cidrs+`]}}`))
			}
			for _, cidrs := range []string{`"10.98.0.0/28"`, `"10.98.0.0/28","fd00::/112"`, `"fd00::/112","10.97.0.0/28"`, `"10.97.0.0/28","10.98.0.0/28"`} {
				Expect(patch(cidrs)).To(check.BeInvalid(), "CIDRs %s instead of 10.97.0.0/28", cidrs)
			}
			Expect(patch(`"10.97.0.0/28","fd00::/112"`)).To(check.BeAccepted())
			Expect(patch(`"10.97.0.0/28"`)).To(check.BeInvalid(), "one of two CIDRs is taken away")
		})
})

// removeDefault deletes the default ServiceCIDR. Where a controller holds it back, for the address of the Service "kubernetes" depends on it, it lets it go.
func removeDefault(ctx context.Context, cidrs apiclient.WithStatus[*networkingv1.ServiceCIDR, *networkingv1.ServiceCIDRList]) {
	ginkgo.GinkgoHelper()
	Expect(check.Responded(cidrs.Delete(ctx, "kubernetes", metav1.DeleteOptions{}))).To(Succeed())
	_, err := cidrs.Patch(ctx, "kubernetes", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	Expect(check.Responded(err)).To(Or(Not(HaveOccurred()), Satisfy(apierrors.IsNotFound)))
}

// seldomAsked is how often a server at least asks the range that it asks less, if it asks any one of two. A map of Go begins at one of eight places.
const seldomAsked = 1.0 / 8

// readyServiceCIDR waits until what is to hold a ServiceCIDR has seen it.
func readyServiceCIDR(ctx context.Context, cp *check.ControlPlane, name string) {
	ginkgo.GinkgoHelper()
	check.Converge(ctx, "readiness of the ServiceCIDR", reuse, func(g Gomega) {
		cidr, err := cp.Client().NetworkingV1().ServiceCIDRs().Get(ctx, name, metav1.GetOptions{})
		g.Expect(check.Responded(err)).NotTo(HaveOccurred())
		g.Expect(meta.IsStatusConditionTrue(cidr.Status.Conditions, networkingv1.ServiceCIDRConditionReady)).To(BeTrue(), "the condition Ready is true in %v", cidr.Status.Conditions)
	})
}

// createOnceAdded creates a Service as soon as a range that was added is in use.
func createOnceAdded(ctx context.Context, cp *check.ControlPlane, svc *corev1.Service) check.Response {
	ginkgo.GinkgoHelper()
	var a check.Response
	check.Converge(ctx, "use of the range that was added", reuse, func(g Gomega) {
		a = cp.Create(ctx, svc)
		g.Expect(a).To(check.BeAccepted())
	})
	return a
}

// otherThan returns the first of the addresses that a Service does not have.
func otherThan(a check.Response, ips ...string) string {
	i := slices.IndexFunc(ips, func(ip string) bool { return ip != clusterIP(a).String() })
	return ips[i]
}
