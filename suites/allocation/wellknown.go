package allocation

import (
	"context"
	"encoding/json"
	"math/big"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// dnsService is the DNS Service of the allocation document, with the tenth address of the range.
func dnsService(cp *check.ControlPlane) *corev1.Service {
	return check.Service("kube-dns", check.WithClusterIP(tenthAddress(cp)), check.OfType(corev1.ServiceTypeClusterIP),
		check.WithPorts(check.Port("dns", corev1.ProtocolUDP, 53, 53), check.Port("dns-tcp", corev1.ProtocolTCP, 53, 53)),
		check.With(func(s *corev1.Service) {
			s.Labels = map[string]string{"k8s-app": "kube-dns", "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS"}
			s.Spec.Selector = map[string]string{"k8s-app": "kube-dns"}
		}))
}

func tenthAddress(cp *check.ControlPlane) string {
	return check.AddressPlus(cp.CIDR().Addr(), big.NewInt(10)).String()
}

var _ = ginkgo.Describe("well-known addresses", func() {
	check.It(spec.AllocDNSManifest, "creates the DNS Service on 10.96.0.10 as it is sent", check.Exclusive(), check.OnServiceCIDR("10.96.0.0/16"),
		func(ctx context.Context, cp *check.ControlPlane) {
			sent := dnsService(cp)
			a := cp.Create(ctx, sent)
			Expect(a).To(check.BeAccepted())
			got := a.Service
			Expect(got.Spec.ClusterIP).To(Equal("10.96.0.10"))
			Expect(got.Spec.Ports).To(Equal(sent.Spec.Ports))
			Expect(got.Spec.Selector).To(Equal(sent.Spec.Selector))
			Expect(got.Spec.Type).To(Equal(corev1.ServiceTypeClusterIP))
			Expect(got.Labels).To(Equal(sent.Labels))
		})

	check.It(spec.AllocDNSAddressNotReserved, "lets the DNS Service have the tenth address after as many dynamic Services as the upper band holds", check.Exclusive(),
		check.OnServiceCIDR("10.96.0.0/27"),
		func(ctx context.Context, cp *check.ControlPlane) {
			b := check.BandsOf(cp.CIDR())
			for range b.DynamicCount().Int64() {
				cp.Arrange(ctx, check.Service(cp.Name("earlier")))
			}
			Expect(cp.Create(ctx, dnsService(cp))).To(check.BeAccepted())
		})

	check.It(spec.AllocDNSAddressNotReserved, "lets any Service in any namespace have the tenth address", check.Exclusive(), check.OnServiceCIDR("10.96.0.0/16"),
		func(ctx context.Context, cp *check.ControlPlane) {
			a := cp.Create(ctx, check.Service("web", check.InNamespace(cp.NewNamespace(ctx)), check.WithClusterIP(tenthAddress(cp))))
			Expect(a).To(check.BeAccepted())
			Expect(a.Service.Spec.ClusterIP).To(Equal(tenthAddress(cp)))
		})

	check.It(spec.AllocDNSAddressConflict, "refuses the DNS Service while another Service has its address", check.Exclusive(), check.OnServiceCIDR("10.96.0.0/16"),
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("web", check.InNamespace(cp.NewNamespace(ctx)), check.WithClusterIP(tenthAddress(cp))))
			Expect(cp.Create(ctx, dnsService(cp))).To(check.BeRefused())
			Expect(cp.Get(ctx, "kube-dns").Code).To(Equal(404), "the code of reading the refused Service")
		})

	check.It(spec.AllocDNSAddressDynamic, "hands out the tenth address once the upper band is exhausted, and not before", check.Exclusive(), check.OnServiceCIDR("10.96.0.0/27"),
		func(ctx context.Context, cp *check.ControlPlane) {
			f := fillRange(ctx, cp)
			at := slices.Index(f.all(), netip.MustParseAddr(tenthAddress(cp)))
			Expect(at).NotTo(Equal(-1), "the tenth address was not handed out at all")
			Expect(at).To(BeNumerically(">=", f.freeIn(check.Upper)), "addresses handed out before the tenth one")
		})

	check.It(spec.AllocWellKnownStays, "keeps the address through updates with and without it",
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := createOnChosen(ctx, cp, primaryRange(cp))
			ip := svc.Spec.ClusterIP
			updates := []func(s *corev1.Service){
				func(s *corev1.Service) { s.Labels = map[string]string{"a": "b"} },
				func(s *corev1.Service) { s.Spec.Ports[0].Port = 8080 },
				func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "other"} },
				func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort },
				func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "", nil },
			}
			for i, update := range updates {
				update(svc)
				a := cp.Update(ctx, svc)
				Expect(a).To(check.BeAccepted(), "update %d", i)
				Expect(a.Service.Spec.ClusterIP).To(Equal(ip), "the address after update %d", i)
				svc = a.Service
			}
			refuseTaken(ctx, cp, ip)
		})

	check.It(spec.AllocWellKnownStays, "keeps the address when the manifest is applied again",
		func(ctx context.Context, cp *check.ControlPlane) {
			apply := func(ip string) check.Response {
				manifest, err := json.Marshal(map[string]any{
					"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "applied"},
					"spec": map[string]any{"clusterIP": ip, "ports": []map[string]any{{"port": 80}}},
				})
				check.Must(err)
				return cp.Apply(ctx, "owner", "applied", string(manifest))
			}
			ip, first := onFreeAddress(ctx, cp, apply)
			Expect(first).To(check.BeAccepted())
			Expect(first.Service.Spec.ClusterIP).To(Equal(ip))
			again := apply(ip)
			Expect(again).To(check.BeAccepted())
			Expect(again.Service.Spec.ClusterIP).To(Equal(ip))
			refuseTaken(ctx, cp, ip)
		})
})
