package proxy

import (
	"context"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// headless is a Service without a virtual address whose one port is that of the backends, for it is not translated.
func headless(name string, options ...check.ServiceOption) *corev1.Service {
	port := check.WithPorts(check.Port("tcp", corev1.ProtocolTCP, check.BackendPort, check.BackendPort))
	return check.Service(name, append([]check.ServiceOption{port, check.Headless()}, options...)...)
}

// resolving demands that the name of a Service resolves to the pods, in the primary family.
func resolving(net *check.Network, svc *corev1.Service, pods ...candidate.Pod) check.Lookup {
	return check.Ask(primaryType(net), nameOf(svc), ofPods(net, pods...))
}

// hosted starts a pod below a headless Service: it has the name <hostname>.<name of the Service>.
func hosted(ctx context.Context, net *check.Network, node int, app, hostname string) candidate.Pod {
	ginkgo.GinkgoHelper()
	return net.Start(ctx, candidate.Pod{Node: net.Node(node), Labels: map[string]string{"app": app}, Hostname: hostname, Subdomain: app})
}

var _ = ginkgo.Describe("the DNS name of a headless Service", func() {
	check.It(spec.ProxyDNSHeadless, "resolves to the addresses of the pods that are ready, and to nothing when none is",
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1), net.Node(1))
			unready := net.Start(ctx, candidate.Pod{Node: net.Node(2), Labels: map[string]string{"app": "app"}, Unready: true})
			svc := net.Expose(ctx, headless("app"))
			net.ExpectRecords(ctx, "the Service is created", resolving(net, svc, pods...))
			net.SetReady(ctx, unready, true)
			net.ExpectRecords(ctx, "a pod becomes ready", resolving(net, svc, append(slices.Clone(pods), unready)...))
			net.SetReady(ctx, pods[0], false)
			net.ExpectRecords(ctx, "a pod becomes unready", resolving(net, svc, pods[1], pods[2], unready))
			net.Terminate(ctx, unready)
			net.ExpectRecords(ctx, "a pod terminates", resolving(net, svc, pods[1:]...))
			net.Remove(ctx, pods[2])
			net.ExpectRecords(ctx, "a pod is deleted", resolving(net, svc, pods[1]))
			net.SetReady(ctx, pods[1], false)
			net.ExpectRecords(ctx, "the last pod becomes unready", check.Ask(primaryType(net), nameOf(svc), check.NoRecords()))
		})

	check.It(spec.ProxyDNSHeadless, "resolves though it was asked for before there was a pod",
		func(ctx context.Context, net *check.Network) {
			svc := net.Expose(ctx, headless("app"))
			net.ExpectRecords(ctx, "there is no pod", check.Ask(primaryType(net), nameOf(svc), check.NoRecords()))
			net.ExpectRecordsWithin(ctx, "a pod comes", missBound, resolving(net, svc, net.Backends(ctx, "app", net.Node(0))...))
		})

	check.It(spec.ProxyDNSHeadlessHostnames, "resolves though it was asked for before there was the pod",
		func(ctx context.Context, net *check.Network) {
			svc := net.Expose(ctx, headless("app"))
			own := "first." + nameOf(svc)
			net.ExpectRecords(ctx, "there is no pod", check.Ask(primaryType(net), own, check.NoRecords()))
			net.ExpectRecordsWithin(ctx, "a pod comes", missBound, check.Ask(primaryType(net), own, ofPods(net, hosted(ctx, net, 0, "app", "first"))))
		})

	check.It(spec.ProxyDNSHeadless, "resolves to the endpoints of all its EndpointSlices, be they made by hand",
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1), net.Node(2))
			svc := net.Expose(ctx, headless("app", withoutSelector()))
			first := net.Slice(svc, pods[0], pods[1])
			no := false
			first.Endpoints[0].Conditions = discoveryv1.EndpointConditions{} // "A nil value should be interpreted as true"
			first.Endpoints[1].Conditions.Ready = &no
			net.CreateSlice(ctx, first)
			second := net.CreateSlice(ctx, net.Slice(svc, pods[2]))
			net.ExpectRecords(ctx, "EndpointSlices are created", resolving(net, svc, pods[0], pods[2]))
			net.DeleteSlice(ctx, second)
			net.ExpectRecords(ctx, "an EndpointSlice is deleted", resolving(net, svc, pods[0]))
		})

	check.It(spec.ProxyDNSSrvPort, "leads to the port of a headless Service by SRV records where its EndpointSlice is made by hand",
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			svc := net.Expose(ctx, headless("app", withoutSelector()))
			net.CreateSlice(ctx, net.Slice(svc, pods...))
			net.ExpectRecords(ctx, "an EndpointSlice is created",
				resolving(net, svc, pods...), check.Ask(candidate.SRV, portOf(svc, "tcp", "tcp"), check.SomeRecords(len(pods))))
		})

	check.It(spec.ProxyDNSSrvPort, "leads to every named port of every endpoint of a headless Service",
		func(ctx context.Context, net *check.Network) {
			hostnames := []string{"web-0", "web-1"}
			check.Concurrently(len(hostnames), func(i int) { hosted(ctx, net, i, "app", hostnames[i]) })
			ports := check.WithPorts(check.Port("web", corev1.ProtocolTCP, check.BackendPort, check.BackendPort),
				check.Port("admin", corev1.ProtocolTCP, 9090, 9090), check.Port("web-udp", corev1.ProtocolUDP, check.BackendPort, check.BackendPort))
			svc := net.Expose(ctx, check.Service("app", check.Headless(), ports))
			leads := func(port, protocol string, number int) check.Lookup {
				var targets []check.Target
				for _, h := range hostnames {
					targets = append(targets, check.Target{Name: h + "." + nameOf(svc), Port: number})
				}
				return check.Ask(candidate.SRV, portOf(svc, port, protocol), check.LeadsTo(targets...))
			}
			net.ExpectRecords(ctx, "the Service is created", leads("web", "tcp", check.BackendPort), leads("admin", "tcp", 9090),
				leads("web-udp", "udp", check.BackendPort), check.Ask(candidate.SRV, portOf(svc, "admin", "udp"), check.NoRecords()))
		})

	check.It(spec.ProxyDNSHeadlessHostnames, "has the hostnames of pods below it, and leads to them by SRV records",
		func(ctx context.Context, net *check.Network) {
			pods := make([]candidate.Pod, 4)
			check.Concurrently(len(pods), func(i int) {
				pods[i] = hosted(ctx, net, i%3, "app", []string{"web-0", "web-1", "web-2", "web-2"}[i])
			})
			svc := net.Expose(ctx, headless("app"))
			below := func(hostname string, pods ...candidate.Pod) check.Lookup {
				return check.Ask(primaryType(net), hostname+"."+nameOf(svc), ofPods(net, pods...))
			}
			leads := func(hostnames ...string) check.Lookup {
				var targets []check.Target
				for _, h := range hostnames {
					targets = append(targets, check.Target{Name: h + "." + nameOf(svc), Port: check.BackendPort})
				}
				return check.Ask(candidate.SRV, portOf(svc, "tcp", "tcp"), check.LeadsTo(targets...))
			}
			gone := func(hostname string) check.Lookup {
				return check.Ask(primaryType(net), hostname+"."+nameOf(svc), check.NoRecords())
			}
			net.ExpectRecords(ctx, "the Service is created", resolving(net, svc, pods...),
				below("web-0", pods[0]), below("web-1", pods[1]), below("web-2", pods[2:]...), leads("web-0", "web-1", "web-2"), gone("web-3"))
			net.SetReady(ctx, pods[1], false)
			net.ExpectRecords(ctx, "a pod becomes unready", below("web-0", pods[0]), gone("web-1"), leads("web-0", "web-2"))
		})

	check.It(spec.ProxyDNSHeadlessHostnames, "leads to pods that have no hostname by names of their own",
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			pods = append(pods, hosted(ctx, net, 2, "app", "web"))
			svc := net.Expose(ctx, headless("app"))
			said := net.ExpectRecords(ctx, "the Service is created",
				check.Ask(candidate.SRV, portOf(svc, "tcp", "tcp"), check.SomeRecords(len(pods))), resolving(net, svc, pods...))
			// "It must be possible to use this to identify a specific endpoint": each name is that of one pod, and no pod is left out.
			var lookups []check.Lookup
			for _, r := range said[0].Records {
				lookups = append(lookups, check.Ask(primaryType(net), r.Target, check.SomeRecords(1)))
			}
			found := map[netip.Addr]bool{}
			for _, answer := range net.ExpectRecords(ctx, "the targets of SRV records are asked for", lookups...) {
				found[answer.Records[0].Address] = true
			}
			for _, p := range pods {
				if a := check.AddressOf(p.Addresses, net.PrimaryFamily()); !found[a] {
					ginkgo.Fail("no target of the SRV records of " + portOf(svc, "tcp", "tcp") + " resolves to " + a.String())
				}
			}
		})

	check.It(spec.ProxyDNSPublishNotReady, "lists pods that are not ready where publishNotReadyAddresses says so",
		func(ctx context.Context, net *check.Network) {
			ready := hosted(ctx, net, 0, "app", "web-0")
			unready := net.Start(ctx, candidate.Pod{
				Node: net.Node(1), Labels: map[string]string{"app": "app"}, Hostname: "web-1", Subdomain: "app", Unready: true,
			})
			svc := net.Expose(ctx, headless("app", check.With(func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true })))
			target := func(hostname string) check.Target {
				return check.Target{Name: hostname + "." + nameOf(svc), Port: check.BackendPort}
			}
			unreadyName := func(want check.RecordsWant) check.Lookup {
				return check.Ask(primaryType(net), "web-1."+nameOf(svc), want)
			}
			leads := func(targets ...check.Target) check.Lookup {
				return check.Ask(candidate.SRV, portOf(svc, "tcp", "tcp"), check.LeadsTo(targets...))
			}
			net.ExpectRecords(ctx, "the Service is created", resolving(net, svc, ready, unready),
				unreadyName(ofPods(net, unready)), leads(target("web-0"), target("web-1")))
			net.Change(ctx, svc.Name, `{"spec":{"publishNotReadyAddresses":false}}`)
			net.ExpectRecords(ctx, "publishNotReadyAddresses becomes false", resolving(net, svc, ready), unreadyName(check.NoRecords()), leads(target("web-0")))
		})
})
