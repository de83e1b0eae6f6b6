package allocation

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("two API servers on one storage", func() {
	check.It(spec.AllocRecordShared, "refuse addresses that the other one has allocated, and give away those that it has freed", check.Exclusive(), check.OnServiceCIDR(shared),
		check.Aside(spec.AllocFreedStaysFree),
		func(ctx context.Context, first *check.ControlPlane) {
			before := first.Arrange(ctx, check.Service("before"))
			second := first.Another(ctx, nil)
			refuseTaken(ctx, second, before.Spec.ClusterIP)
			for _, s := range []struct{ here, there *check.ControlPlane }{{first, second}, {second, first}} {
				// A free address: that of the other direction may take time to become free, and an allocator without bands gives away any.
				static := s.here.Arrange(ctx, check.Service(s.here.Name("static"), check.WithClusterIP(freeAddress(ctx, s.here))))
				dynamic := s.here.Arrange(ctx, check.Service(s.here.Name("dynamic")))
				for _, svc := range []string{static.Spec.ClusterIP, dynamic.Spec.ClusterIP} {
					refuseTaken(ctx, s.there, svc)
				}
				object := s.here.AddressObject(ctx, static.Spec.ClusterIP)
				Expect(s.there.Delete(ctx, static.Name)).To(check.BeAccepted())
				becomesFree(ctx, s.here, static.Spec.ClusterIP, object)
			}
		})

	check.It(spec.AllocRecordShared, "give an address that clients of both name at a time to one of them", check.Exclusive(), check.OnServiceCIDR(shared),
		func(ctx context.Context, first *check.ControlPlane) {
			servers := []*check.ControlPlane{first, first.Another(ctx, nil)}
			for _, ip := range []string{"10.96.0.6", "10.96.0.7", "10.96.0.8"} {
				answers := make([]check.Response, racers)
				check.Concurrently(racers, func(i int) {
					cp := servers[i%2]
					answers[i] = cp.Create(ctx, check.Service(cp.Name("racer"), check.WithClusterIP(ip)))
				})
				Expect(winners(answers)).To(HaveLen(1), "Services that have %s", ip)
			}
		})

	check.It(spec.AllocRecordShared, "hand out each address once while clients of both fill the range", check.Exclusive(), check.OnServiceCIDR(shared),
		func(ctx context.Context, first *check.ControlPlane) {
			servers := []*check.ControlPlane{first, first.Another(ctx, nil)}
			free := int(check.BandsOf(first.CIDR()).Usable.Int64()) - len(first.AddressesInUse(ctx, first.CIDR()))
			answers := make([]check.Response, free)
			check.Concurrently(free, func(i int) {
				cp := servers[i%2]
				answers[i] = cp.Create(ctx, check.Service(cp.Name("full")))
			})
			owner := map[string]string{}
			for _, svc := range winners(answers) {
				ip := svc.Spec.ClusterIP
				Expect(ip).NotTo(BeEmpty(), "the address of %s", svc.Name)
				Expect(owner[ip]).To(BeEmpty(), "%s belongs to %s and to %s", ip, owner[ip], svc.Name)
				owner[ip] = svc.Name
			}
			check.Record("Services with an address", "%d, of %d that clients of both servers created at a time", len(owner), free)
		})

	check.It(spec.AllocRecordMigrates, "refuse each other's addresses where one keeps a bitmap and the other IPAddress objects, and those from before a restart",
		check.Exclusive(), check.OnServiceCIDR(shared),
		func(ctx context.Context, first *check.ControlPlane) {
			before := first.Arrange(ctx, check.Service("before"))
			second := first.Another(ctx, map[string]bool{"MultiCIDRServiceAllocator": false})
			refuseTaken(ctx, second, before.Spec.ClusterIP)
			static := second.Arrange(ctx, check.Service("static", check.WithClusterIP(freeAddress(ctx, second))))
			dynamic := second.Arrange(ctx, check.Service("dynamic"))
			later := first.Arrange(ctx, check.Service("later"))
			refuseTaken(ctx, second, later.Spec.ClusterIP)
			for _, restarted := range []bool{false, true} {
				if restarted {
					first.Restart(ctx)
				}
				for _, ip := range []string{static.Spec.ClusterIP, dynamic.Spec.ClusterIP} {
					refuseTaken(ctx, first, ip)
				}
			}
		})

	check.It(spec.AllocNodePortRecordShared, "refuse node ports that the other one has allocated", check.NodePorts(fewPorts),
		func(ctx context.Context, first *check.ControlPlane) {
			second := first.Another(ctx, nil)
			for _, s := range []struct{ here, there *check.ControlPlane }{{first, second}, {second, first}} {
				dynamic := s.here.Arrange(ctx, check.Service(s.here.Name("dynamic"), manyPorts(1)))
				port := nodePorts(dynamic)[0]
				Expect(s.there.Create(ctx, check.Service(s.there.Name("duplicate"), onNodePort(port)))).NotTo(check.BeAccepted(), "node port %d is in use", port)
			}
			servers := []*check.ControlPlane{first, second}
			const clients = 16
			answers := make([]check.Response, clients)
			check.Concurrently(clients, func(i int) {
				cp := servers[i%2]
				answers[i] = cp.Create(ctx, check.Service(cp.Name("racer"), manyPorts(2)))
			})
			owner := map[int]string{}
			for _, svc := range winners(answers) {
				for _, port := range nodePorts(svc) {
					Expect(owner[port]).To(BeEmpty(), "node port %d belongs to %s and to %s", port, owner[port], svc.Name)
					owner[port] = svc.Name
				}
			}
		})

	check.It(spec.AllocRepairKeepsUsed, "keep the addresses of Services that are created through one while the other starts", check.Exclusive(), check.OnServiceCIDR("10.96.0.0/16"),
		func(ctx context.Context, first *check.ControlPlane) {
			createMeanwhile(ctx, first, func(ctx context.Context) { first.Another(ctx, nil) })
			services := first.List(ctx)
			owner := map[string]string{}
			for i := range services {
				ip := services[i].Spec.ClusterIP
				Expect(owner[ip]).To(BeEmpty(), "%s belongs to %s and to %s", ip, owner[ip], services[i].Name)
				owner[ip] = services[i].Name
			}
			for ip := range owner {
				refuseTaken(ctx, first, ip)
			}
			check.Record("Services created while the second server started", "%d", len(services))
		})
})

// shared is a range with 61 addresses besides that of the Service "kubernetes".
const shared = "10.96.0.0/26"
