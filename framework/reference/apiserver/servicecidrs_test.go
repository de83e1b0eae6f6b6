package apiserver

import (
	"context"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func serviceCIDR(name string, cidrs ...string) *networkingv1.ServiceCIDR {
	return &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: cidrs}}
}

func TestServiceCIDREnlargesThePool(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	c := clientFor(t, startServer(t, Options{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/30")}}), mediaJSON)
	services, cidrs := c.CoreV1().Services("default"), c.NetworkingV1().ServiceCIDRs()
	_, err := services.Create(ctx, newService("a"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = services.Create(ctx, newService("b"), metav1.CreateOptions{})
	g.Expect(err).To(HaveOccurred(), "the range is full")

	made, err := cidrs.Create(ctx, serviceCIDR("more", "10.97.0.0/28"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(meta.IsStatusConditionTrue(made.Status.Conditions, networkingv1.ServiceCIDRConditionReady)).To(BeTrue())
	b, err := services.Create(ctx, newService("b"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(b.Spec.ClusterIP).To(HavePrefix("10.97.0."))

	g.Expect(cidrs.Delete(ctx, "more", metav1.DeleteOptions{})).To(Succeed())
	leaving, err := cidrs.Get(ctx, "more", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred(), "an address depends on it")
	g.Expect(meta.IsStatusConditionFalse(leaving.Status.Conditions, networkingv1.ServiceCIDRConditionReady)).To(BeTrue())
	_, err = services.Create(ctx, newService("c"), metav1.CreateOptions{})
	g.Expect(err).To(HaveOccurred(), "a range that is leaving gives nothing out")
	g.Expect(services.Delete(ctx, "b", metav1.DeleteOptions{})).To(Succeed())
	_, err = cidrs.Get(ctx, "more", metav1.GetOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
}

func TestServiceCIDRLeavesWhenTheLastAddressChangesHands(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	c := clientFor(t, startServer(t, Options{}), mediaJSON)
	services, cidrs := c.CoreV1().Services("default"), c.NetworkingV1().ServiceCIDRs()
	_, err := cidrs.Create(ctx, serviceCIDR("more", "10.97.0.0/28"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	svc := newService("a")
	svc.Spec.ClusterIP = "10.97.0.5"
	_, err = services.Create(ctx, svc, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cidrs.Delete(ctx, "more", metav1.DeleteOptions{})).To(Succeed())
	_, err = services.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"type":"ExternalName","externalName":"example.com"}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = cidrs.Get(ctx, "more", metav1.GetOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
}

func TestServiceCIDRValidation(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	cidrs := clientFor(t, startServer(t, Options{}), mediaJSON).NetworkingV1().ServiceCIDRs()
	for _, wrong := range [][]string{nil, {"junk"}, {"10.0.0.1/24"}, {"10.0.0.0/8", "10.1.0.0/16"}, {"10.0.0.0/8", "fd00::/112", "10.1.0.0/16"}, {"fd00:0::/112"}, {"10.0.0.0"}} {
		_, err := cidrs.Create(ctx, serviceCIDR("x", wrong...), metav1.CreateOptions{})
		g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v: %v", wrong, err)
	}
	_, err := cidrs.Create(ctx, serviceCIDR("x", "10.97.0.0/28"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	change := func(body string) error {
		_, err := cidrs.Patch(ctx, "x", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	g.Expect(apierrors.IsInvalid(change(`{"spec":{"cidrs":["10.97.0.0/27"]}}`))).To(BeTrue())
	g.Expect(change(`{"spec":{"cidrs":["10.97.0.0/28","fd00:97::/112"]}}`)).To(Succeed())
	g.Expect(apierrors.IsInvalid(change(`{"spec":{"cidrs":["10.97.0.0/28"]}}`))).To(BeTrue())
	big, err := cidrs.Create(ctx, serviceCIDR("big", "fd00::/48"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	big, err = cidrs.Get(ctx, big.Name, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(meta.IsStatusConditionFalse(big.Status.Conditions, networkingv1.ServiceCIDRConditionReady)).To(BeTrue(), "no allocator can be made for it")
}

func TestIPAddressReservesAndFollowsServices(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	s := startServer(t, Options{})
	c := clientFor(t, s, mediaProtobuf)
	services, addresses := c.CoreV1().Services("default"), c.NetworkingV1().IPAddresses()
	byHand := func(name, label string) *networkingv1.IPAddress {
		a := &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IPAddressSpec{
			ParentRef: &networkingv1.ParentReference{Group: "example.com", Resource: "things", Name: "x"},
		}}
		if label != "" {
			a.Labels = map[string]string{networkingv1.LabelManagedBy: label}
		}
		return a
	}
	for _, wrong := range []string{"x", "10.96.0.010", "fd00:0::1", "10.96.0.1/32"} {
		_, err := addresses.Create(ctx, byHand(wrong, ""), metav1.CreateOptions{})
		g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%s: %v", wrong, err)
	}
	_, err := addresses.Create(ctx, byHand("10.96.0.1", ""), metav1.CreateOptions{})
	g.Expect(apierrors.IsAlreadyExists(err)).To(BeTrue(), "%v", err)

	_, err = addresses.Create(ctx, byHand("10.96.0.9", ""), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	svc := newService("a")
	svc.Spec.ClusterIP = "10.96.0.9"
	_, err = services.Create(ctx, svc, metav1.CreateOptions{})
	g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
	g.Expect(s.Restart(ctx)).To(Succeed())
	_, err = services.Get(ctx, "kubernetes", metav1.GetOptions{}) // unlike a POST, tried again on a new connection
	g.Expect(err).NotTo(HaveOccurred())
	_, err = services.Create(ctx, svc, metav1.CreateOptions{})
	g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "a reservation survives a restart: %v", err)
	g.Expect(addresses.Delete(ctx, "10.96.0.9", metav1.DeleteOptions{})).To(Succeed())
	_, err = services.Create(ctx, svc, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(addresses.Delete(ctx, "10.96.0.9", metav1.DeleteOptions{})).To(Succeed())
	repaired, err := addresses.Get(ctx, "10.96.0.9", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred(), "the address of a living Service comes back")
	g.Expect(repaired.Spec.ParentRef).To(Equal(&networkingv1.ParentReference{Resource: "services", Namespace: "default", Name: "a"}))
	g.Expect(repaired.Labels).To(Equal(ipv4Labels))

	orphan := byHand("10.96.0.10", ipAddressManager)
	orphan.Spec.ParentRef = &networkingv1.ParentReference{Resource: "services", Namespace: "default", Name: "gone"}
	_, err = addresses.Create(ctx, orphan, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() bool {
		_, err := addresses.Get(ctx, "10.96.0.10", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, "10s").Should(BeTrue())
	svc.Name, svc.Spec.ClusterIP = "b", "10.96.0.10"
	_, err = services.Create(ctx, svc, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

func TestDualStackAddressesHaveTheirIPAddress(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	c := clientFor(t, startServer(t, Options{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/24"), netip.MustParsePrefix("fd00:10:96::/112")}}), mediaJSON)
	svc := newService("a")
	svc.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
	made, err := c.CoreV1().Services("default").Create(ctx, svc, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(made.Spec.ClusterIPs).To(HaveLen(2))
	list, err := c.NetworkingV1().IPAddresses().List(ctx, metav1.ListOptions{LabelSelector: "ipaddress.kubernetes.io/ip-family=IPv6"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list.Items).To(HaveLen(1))
	g.Expect(list.Items[0].Name).To(Equal(made.Spec.ClusterIPs[1]))
}

func TestOlderVersionsDoNotServeServiceCIDRs(t *testing.T) {
	g := NewWithT(t)
	s := startServer(t, Options{Version: "v1.31.0"})
	_, err := clientFor(t, s, mediaJSON).NetworkingV1().ServiceCIDRs().List(t.Context(), metav1.ListOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	_, body := send(t, s, "GET", "/apis", "", "")
	g.Expect(body).NotTo(ContainSubstring("networking.k8s.io"))
}
