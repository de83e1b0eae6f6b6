package allocation

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("dynamic allocation", func() {
	check.It(spec.AllocClusterIPAssigned, "gives a Service an address that readers see, and none to Services that are headless or an alias",
		func(ctx context.Context, cp *check.ControlPlane) {
			created := cp.Create(ctx, check.Service("a"))
			Expect(created).To(check.BeAccepted())
			ip := created.Service.Spec.ClusterIP
			Expect(clusterIP(created).IsValid()).To(BeTrue(), "the answer to the create has an address: %s", created)
			Expect(created.Service.Spec.ClusterIPs).To(HaveExactElements(ip))
			read := cp.Get(ctx, "a")
			Expect(read).To(check.BeAccepted())
			Expect(read.Service.Spec.ClusterIP).To(Equal(ip), "the address that a reader sees")

			headless := cp.Create(ctx, check.Service("headless", check.Headless()))
			Expect(headless).To(check.BeAccepted())
			Expect(headless.Service.Spec.ClusterIP).To(Equal(corev1.ClusterIPNone))
			alias := cp.Create(ctx, check.Service("alias", check.ExternalName("example.org")))
			Expect(alias).To(check.BeAccepted())
			Expect(alias.Service.Spec.ClusterIP).To(BeEmpty(), "the address of a Service of type ExternalName")
		})

	check.It(spec.AllocDynamicAssigned, "gives an address to type ClusterIP, named or not",
		func(ctx context.Context, cp *check.ControlPlane) {
			for _, t := range []corev1.ServiceType{"", corev1.ServiceTypeClusterIP} {
				a := cp.Create(ctx, check.Service(cp.Name("typed"), check.OfType(t)))
				Expect(a).To(check.BeAccepted(), "type %q", t)
				Expect(clusterIP(a).IsValid()).To(BeTrue(), "a Service of type %q has an address: %s", t, a)
			}
		})

	for _, t := range []corev1.ServiceType{corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer} {
		check.It(spec.AllocDynamicAssigned, fmt.Sprintf("gives an address to type %s", t),
			func(ctx context.Context, cp *check.ControlPlane) {
				a := cp.Create(ctx, check.Service("typed", check.OfType(t)))
				if !a.Accepted() { // that there is the type is another requirement
					check.Abort("a Service of type %s was refused, so that it could be given no address: %s", t, a)
				}
				Expect(clusterIP(a).IsValid()).To(BeTrue(), "a Service of type %s has an address: %s", t, a)
			})
	}

	check.It(spec.AllocDynamicAssigned, "takes an empty clusterIP for none",
		func(ctx context.Context, cp *check.ControlPlane) {
			body := `{"apiVersion":"v1","kind":"Service","metadata":{"name":"empty"},"spec":{"clusterIP":"","selector":{"app":"empty"},"ports":[{"port":80}]}}`
			a := cp.Do(ctx, "POST", cp.Path(""), "application/json", []byte(body))
			Expect(a).To(check.BeAccepted())
			Expect(clusterIP(a).IsValid()).To(BeTrue(), "a Service that was sent with clusterIP \"\" has an address: %s", a)
		})

	check.It(spec.AllocDynamicInRange, "picks addresses of the range",
		func(ctx context.Context, cp *check.ControlPlane) {
			cidr := primaryRange(cp)
			for range 8 {
				addr := clusterIP(cp.Create(ctx, check.Service(cp.Name("dynamic"))))
				Expect(cidr.Contains(addr)).To(BeTrue(), "the address %s lies in %s", addr, cidr)
			}
		})

	check.It(spec.AllocDynamicSkipsStatic, "hands out exactly what is not taken statically", check.Exclusive(), check.OnServiceCIDR("10.96.0.0/27"),
		check.Also(spec.AllocDynamicFree),
		func(ctx context.Context, cp *check.ControlPlane) {
			used := cp.AddressesInUse(ctx, cp.CIDR())
			for _, ip := range []string{"10.96.0.2", "10.96.0.16", "10.96.0.17", "10.96.0.20", "10.96.0.21", "10.96.0.30"} {
				if used[netip.MustParseAddr(ip)] {
					continue
				}
				Expect(cp.Create(ctx, check.Service(cp.Name("static"), check.WithClusterIP(ip)))).To(check.BeAccepted())
			}
			f := fillRange(ctx, cp)
			check.Deciding(f.beFree, spec.AllocDynamicFree)
			check.Deciding(f.beComplete, spec.AllocDynamicSkipsStatic)
		})

	check.It(spec.AllocConcurrentDynamic, "gives 64 clients at a time an address each",
		func(ctx context.Context, cp *check.ControlPlane) {
			answers := make([]check.Response, 64)
			cp.NeedAddresses(ctx, len(answers))
			check.Concurrently(len(answers), func(i int) {
				answers[i] = cp.Create(ctx, check.Service(cp.Name("racer")))
			})
			owner := map[netip.Addr]string{}
			for _, a := range answers {
				Expect(a).To(check.BeAccepted())
				addr := clusterIP(a)
				Expect(owner[addr]).To(BeEmpty(), "%s was given to %s already", addr, owner[addr])
				owner[addr] = a.Service.Name
			}
		})

	check.It(spec.AllocAnyPort, "lets Services of one namespace have the same port",
		func(ctx context.Context, cp *check.ControlPlane) {
			for range 4 {
				Expect(cp.Create(ctx, check.Service(cp.Name("web"), check.WithPorts(check.Port("", corev1.ProtocolTCP, 80, 8080))))).To(check.BeAccepted())
			}
			for _, port := range []int32{1, 22, 443, 65535} {
				Expect(cp.Create(ctx, check.Service(cp.Name("any"), check.WithPorts(check.Port("", corev1.ProtocolTCP, port, 0))))).To(check.BeAccepted(), "port %d", port)
			}
		})
})
