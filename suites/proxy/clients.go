package proxy

import (
	"context"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
)

// backendsAndClients starts backends on the nodes and, at the same time, a pod on each of the first three nodes to send from.
func backendsAndClients(ctx context.Context, net *check.Network, app string, nodes ...string) (pods []candidate.Pod, clients []candidate.Client) {
	ginkgo.GinkgoHelper()
	check.Concurrently(2, func(i int) {
		if i == 0 {
			pods = net.Backends(ctx, app, nodes...)
		} else {
			clients = clientPods(ctx, net)
		}
	})
	if pods == nil || clients == nil { // the goroutine has failed the check
		check.Abort("backends or clients did not start")
	}
	return pods, clients
}

// hosts are the first three nodes themselves.
func hosts(net *check.Network) []candidate.Client {
	return []candidate.Client{check.Host(net.Node(0)), check.Host(net.Node(1)), check.Host(net.Node(2))}
}

// firstChosenPort is the first source port that a check chooses itself: below those that kernels choose and those of node ports.
const firstChosenPort = 27000

// outsiders are clients outside of the cluster, one for each of the first three nodes as its gateway.
func outsiders(net *check.Network) []candidate.Client {
	return []candidate.Client{check.Outside(net.Node(0)), check.Outside(net.Node(1)), check.Outside(net.Node(2))}
}

// arriving is a client whose traffic to the i-th node comes from elsewhere. It is outside of the cluster or, where no
// client is, in the host network of another node, which policies for external traffic may govern or not.
func arriving(net *check.Network, i int) candidate.Client {
	if len(net.Plane().ExternalAddresses()) > 0 {
		return check.Outside(net.Node(i))
	}
	return check.Host(net.Node(2 - i/2)) // the third, or for that the second
}

// eachWay are calls from each of the clients to the address, by TCP and by UDP.
func eachWay(to netip.AddrPort, want check.Want, clients ...candidate.Client) []check.Case {
	var cases []check.Case
	for _, c := range clients {
		cases = append(cases, check.Case{From: c, To: to, Want: want}, check.Case{From: c, To: to, Protocol: corev1.ProtocolUDP, Want: want})
	}
	return cases
}

// toClusterIP are calls from each of the clients to the cluster IP of an exposed Service, by TCP and by UDP.
func toClusterIP(svc *corev1.Service, want check.Want, clients ...candidate.Client) []check.Case {
	return eachWay(check.ServiceAddress(svc, exposedPort), want, clients...)
}

// toNodePorts are calls from each of the clients to the node ports of an exposed Service. They go to each of the first
// three nodes, TCP and UDP in turn.
func toNodePorts(net *check.Network, svc *corev1.Service, want check.Want, clients ...candidate.Client) []check.Case {
	var cases []check.Case
	for k, c := range clients {
		for i := range 3 {
			protocol := inTurn(i + k)
			cases = append(cases, check.Case{From: c, To: onNodePort(net, i, svc, (i+k)%2), Protocol: protocol, Want: want})
		}
	}
	return cases
}

// once limits cases to one shot each: for silence, each shot of which may last as long as a probe waits.
func once(cases []check.Case) []check.Case {
	cases = slices.Clone(cases)
	for i := range cases {
		cases[i].Shots = 1
	}
	return cases
}

// exactlyBy demands that each of the pods answers, and that no other endpoint does, which would be chosen as often as any of n.
func exactlyBy(n int, pods ...candidate.Pod) check.Want {
	want := check.AnsweredByEach(pods...)
	want.Shots = max(want.Shots, onlyBy(n).Shots)
	return want
}

// exposeSelectorless exposes a Service whose endpoints are those of EndpointSlices that the check makes.
func exposeSelectorless(ctx context.Context, net *check.Network, name string, options ...check.ServiceOption) *corev1.Service {
	ginkgo.GinkgoHelper()
	return net.Expose(ctx, exposed(name, append(slices.Clone(options), withoutSelector())...))
}

// settled waits until the sync that brought the Services so far has ended on the nodes of the clients: a Service of a
// later sync is served. kube-proxy in ipvs mode fills its sets of addresses after the virtual servers, in any order. So
// a new Service that was served already may refuse for the rest of that sync (pkg/proxy/ipvs/proxier.go (v1.37.1) lines
// 1168 and 1454). The next demand of a check must not be blamed for that.
func settled(ctx context.Context, net *check.Network, pod candidate.Pod, clients ...candidate.Client) {
	ginkgo.GinkgoHelper()
	net.Expect(ctx, "another Service is created", caughtUp(ctx, net, pod, clients...)...)
}

// caughtUp are cases that hold when the nodes of the clients have followed all changes so far: a Service that is made now is served. A demand
// that something is not served says little beside a proxy that has not come to it yet.
func caughtUp(ctx context.Context, net *check.Network, pod candidate.Pod, clients ...candidate.Client) []check.Case {
	ginkgo.GinkgoHelper()
	defer net.Aside()()
	marker := net.ExposeApart(ctx, func() *corev1.Service { return exposed(net.Name("marker"), withoutSelector()) })
	net.CreateSlice(ctx, net.Slice(marker, pod))
	var cases []check.Case
	for _, c := range clients {
		cases = append(cases, check.Case{From: net.Watcher(ctx, c), To: check.ServiceAddress(marker, exposedPort), Want: check.AnsweredBy(pod), Shots: 1, Aside: true})
	}
	return cases
}
