package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// sticky switches session affinity on.
func sticky() check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
}

// stickyShots is how many connections each of many clients makes at a time. Without affinity, all clients would stay at
// one pod each by chance with a probability far below check.FalseAlarm.
const stickyShots = 4

// crowd is every client address outside of the cluster, by one gateway.
func crowd(gateway string) []candidate.Client {
	clients := make([]candidate.Client, candidate.ClientAddresses)
	for i := range clients {
		clients[i] = candidate.Client{Gateway: gateway, Address: i}
	}
	return clients
}

// fromEach sends from each of the clients to one destination.
func fromEach(clients []candidate.Client, to netip.AddrPort, protocol corev1.Protocol) []check.Case {
	cases := make([]check.Case, len(clients))
	for i, c := range clients {
		cases[i] = check.Case{From: c, To: to, Protocol: protocol}
	}
	return cases
}

// settle sends each case several times until each has one pod of its own, out of the given ones, that always answers.
// It waits until the nodes are settled, and returns which pod each has.
func settle(ctx context.Context, net *check.Network, what string, cases []check.Case, pods ...candidate.Pod) []candidate.PodName {
	ginkgo.GinkgoHelper()
	for i := range cases {
		cases[i].Want, cases[i].Shots = check.AlwaysBySame(pods...), stickyShots
	}
	outcomes := net.Expect(ctx, what, cases...)
	settled(ctx, net, pods[0], hosts(net)...)
	chosen := make([]candidate.PodName, len(cases))
	for i := range cases {
		if len(outcomes[i]) > 0 {
			chosen[i] = outcomes[i][0].Pod
		}
	}
	return chosen
}

// stay demands that each case goes on to be answered by the pod that it has.
func stay(ctx context.Context, net *check.Network, what string, cases []check.Case, chosen []candidate.PodName) {
	ginkgo.GinkgoHelper()
	for i := range cases {
		cases[i].Want, cases[i].Shots = check.AnsweredBy(candidate.Pod{PodName: chosen[i]}), stickyShots
	}
	net.ExpectNow(ctx, what, cases...)
}

// differing counts the places where two lists of the same length differ.
func differing(a, b []candidate.PodName) int {
	n := 0
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// followed waits until the node that is the gateway follows earlier changes to EndpointSlices and Services. It does
// when it serves a Service made after them, whose slice comes later in the same watch.
func followed(ctx context.Context, net *check.Network, gateway int, pod candidate.Pod) {
	ginkgo.GinkgoHelper()
	marker := net.Expose(ctx, exposed(net.Name("marker"), withoutSelector(), onNodePorts()))
	net.CreateSlice(ctx, net.Slice(marker, pod))
	net.Expect(ctx, "an unrelated Service is created",
		check.Case{From: check.Outside(net.Node(gateway)), To: onNode(net, gateway, marker), Want: check.AnsweredBy(pod), Aside: true})
}

// stickyService exposes a sticky Service of type NodePort whose endpoints are the pods, in a hand-made slice that is returned too.
func stickyService(ctx context.Context, net *check.Network, name string, pods ...candidate.Pod) (*corev1.Service, func(pods ...candidate.Pod)) {
	ginkgo.GinkgoHelper()
	svc := net.Expose(ctx, exposed(name, sticky(), withoutSelector(), onNodePorts()))
	slice := net.CreateSlice(ctx, net.Slice(svc, pods...))
	return svc, func(pods ...candidate.Pod) {
		slice.Endpoints = net.Slice(svc, pods...).Endpoints
		slice = net.UpdateSlice(ctx, slice)
	}
}

var _ = ginkgo.Describe("session affinity", func() {
	check.It(spec.ProxyAffinityClientIP, "keeps every kind of client at one pod, through the cluster IP and a node port", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1), net.Node(2))
			near, far := net.ClientPod(ctx, net.Node(0)), net.ClientPod(ctx, net.Node(2))
			svc := net.Expose(ctx, exposed("app", sticky(), onNodePorts()))
			want := check.AlwaysBySame(pods...)
			var cases []check.Case
			for _, from := range []candidate.Client{near, far, check.Host(net.Node(1))} {
				cases = append(cases,
					check.Case{From: from, To: check.ServiceAddress(svc, exposedPort), Want: want},
					check.Case{From: from, To: check.ServiceAddress(svc, exposedPort), Protocol: corev1.ProtocolUDP, Want: want})
			}
			for i := range 3 {
				from := candidate.Client{Gateway: net.Node(i), Address: i}
				cases = append(cases,
					check.Case{From: from, To: onNode(net, i, svc), Want: want},
					check.Case{From: from, To: onNodePort(net, i, svc, 1), Protocol: corev1.ProtocolUDP, Want: want})
			}
			net.Expect(ctx, "the Service is created", cases...)
		})

	check.It(spec.ProxyAffinityClientIP, "holds again where a Service had no endpoints meanwhile", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1), net.Node(2))
			svc, list := stickyService(ctx, net, "app", pods...)
			cases := fromEach(crowd(net.Node(0)), onNode(net, 0, svc), corev1.ProtocolTCP)
			settle(ctx, net, "the Service is created", cases, pods...)
			list()
			net.Expect(ctx, "its endpoints go", check.Case{From: check.Outside(net.Node(0)), To: onNode(net, 0, svc), Want: check.NotBy(pods...)})
			list(pods...)
			chosen := settle(ctx, net, "its endpoints come back", cases, pods...)
			stay(ctx, net, "every client comes again", cases, chosen)
		})

	check.It(spec.ProxyAffinityClientIP, "keeps a client at one pod of each Service that it uses", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			one := net.Backends(ctx, "one", net.Node(0), net.Node(1), net.Node(2))
			two := net.Backends(ctx, "two", net.Node(0), net.Node(1), net.Node(2))
			first := net.Expose(ctx, exposed("one", sticky(), onNodePorts()))
			second := net.Expose(ctx, exposed("two", sticky(), onNodePorts()))
			clients := crowd(net.Node(0))
			toFirst, toSecond := fromEach(clients, onNode(net, 0, first), corev1.ProtocolTCP), fromEach(clients, onNode(net, 0, second), corev1.ProtocolTCP)
			atFirst := settle(ctx, net, "the first Service is created", toFirst, one...)
			atSecond := settle(ctx, net, "the second Service is created", toSecond, two...)
			stay(ctx, net, "every client has used the second Service too", toFirst, atFirst)
			stay(ctx, net, "every client has used the first Service again", toSecond, atSecond)
		})

	check.It(spec.ProxyAffinityClientIP, "keeps a client at one pod for each port of the Service", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1), net.Node(2))
			ports := check.WithPorts(check.Port("a", corev1.ProtocolTCP, 80, check.BackendPort), check.Port("b", corev1.ProtocolTCP, 81, check.BackendPort))
			svc := net.Expose(ctx, check.Service("app", ports, sticky(), onNodePorts()))
			clients := crowd(net.Node(0))
			a := fromEach(clients, onNode(net, 0, svc), corev1.ProtocolTCP)
			b := fromEach(clients, onNodePort(net, 0, svc, 1), corev1.ProtocolTCP)
			atA := settle(ctx, net, "the Service is created", a, pods...)
			// A proxy that deals pods out in turn would give every client its pod again, if they came in the same
			// order.
			slices.Reverse(b)
			atB := settle(ctx, net, "every client has used the first port", b, pods...)
			slices.Reverse(atB)
			stay(ctx, net, "every client has used the second port too", a, atA)
			differ := differing(atA, atB)
			check.Record("clients with different pods on the two ports", "%d of %d", differ, len(clients))
			switch net.Declared(spec.AffinityScope) {
			case "service":
				Expect(differ).To(BeZero(), "clients that have different pods on two ports, where affinity is declared to hold for the whole Service")
			case "port":
				Expect(differ).NotTo(BeZero(), "clients that have different pods on two ports, where affinity is declared to hold for each port by itself")
			}
		})

	check.It(spec.ProxyAffinityClientIP, "outlives changes to other Services and to other parts of the same one", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1), net.Node(2))
			svc := net.Expose(ctx, exposed("app", sticky(), withoutSelector(), onNodePorts()))
			slice := net.CreateSlice(ctx, net.Slice(svc, pods...))
			cases := fromEach(crowd(net.Node(0)), onNode(net, 0, svc), corev1.ProtocolTCP)
			chosen := settle(ctx, net, "the Service is created", cases, pods...)
			net.Change(ctx, svc.Name, `{"metadata":{"labels":{"changed":"yes"},"annotations":{"example.com/changed":"yes"}}}`)
			followed(ctx, net, 0, pods[0])
			stay(ctx, net, "the Service has got a label and another Service has been created", cases, chosen)
			ports, err := json.Marshal(append(slices.Clone(svc.Spec.Ports), check.Port("more", corev1.ProtocolTCP, 81, check.BackendPort)))
			check.Must(err)
			changed := net.Change(ctx, svc.Name, fmt.Sprintf(`{"spec":{"ports":%s}}`, ports))
			slice.Ports = net.Slice(changed, pods...).Ports // the same slice: to join two is another requirement
			net.UpdateSlice(ctx, slice)
			added := onNodePort(net, 0, changed, 2)
			net.Expect(ctx, "the Service gets a further port", check.Case{From: check.Outside(net.Node(0)), To: added, Want: check.AnsweredBy(pods...)})
			stay(ctx, net, "the Service has got a further port", cases, chosen)
		})

	check.It(spec.ProxyAffinityClientIP, "holds under policy Local", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(0), net.Node(0), net.Node(1), net.Node(2))
			local := pods[:3]
			svc := net.Expose(ctx, exposed("app", sticky(), onNodePorts(), internalLocal, externalLocal))
			inside := net.ClientPod(ctx, net.Node(0))
			cases := append(
				fromEach(crowd(net.Node(0)), onNode(net, 0, svc), corev1.ProtocolTCP),
				fromEach([]candidate.Client{inside, inside, check.Host(net.Node(0))}, check.ServiceAddress(svc, exposedPort), corev1.ProtocolTCP)...)
			cases[len(cases)-2].Protocol = corev1.ProtocolUDP
			chosen := settle(ctx, net, "the Service is created", cases, local...)
			stay(ctx, net, "every client has a pod", cases, chosen)
		})

	check.It(spec.ProxyAffinityClientIP, "begins and ends with the field", check.KeepsTimeline(), check.Also(spec.ProxyAffinityNone),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1), net.Node(2))
			client := net.ClientPod(ctx, net.Node(0))
			svc := net.Expose(ctx, exposed("app"))
			both := func(want check.Want) []check.Case {
				return []check.Case{
					{From: client, To: check.ServiceAddress(svc, exposedPort), Want: want},
					{From: client, To: check.ServiceAddress(svc, exposedPort), Protocol: corev1.ProtocolUDP, Want: want},
				}
			}
			check.Deciding(func() {
				net.Expect(ctx, "the Service is created", both(check.AnsweredByEach(pods...))...)
			}, spec.ProxyAffinityNone)
			net.Change(ctx, svc.Name, `{"spec":{"sessionAffinity":"ClientIP"}}`)
			check.Deciding(func() {
				net.Expect(ctx, "sessionAffinity becomes ClientIP", both(check.AlwaysBySame(pods...))...)
			}, spec.ProxyAffinityClientIP)
			net.Change(ctx, svc.Name, `{"spec":{"sessionAffinity":"None"}}`)
			check.Deciding(func() {
				net.Expect(ctx, "sessionAffinity becomes None", both(check.AnsweredByEach(pods...))...)
			}, spec.ProxyAffinityNone)
		})

	check.It(spec.ProxyAffinityNone, "is not there unless asked for", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1), net.Node(2))
			client := net.ClientPod(ctx, net.Node(0))
			none := check.With(func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityNone })
			svc := net.Expose(ctx, exposed("app", onNodePorts(), none))
			each := check.AnsweredByEach(pods...)
			net.Expect(ctx, "the Service is created",
				check.Case{From: client, To: check.ServiceAddress(svc, exposedPort), Want: each},
				check.Case{From: client, To: check.ServiceAddress(svc, exposedPort), Protocol: corev1.ProtocolUDP, Want: each},
				check.Case{From: check.Host(net.Node(1)), To: check.ServiceAddress(svc, exposedPort), Want: each},
				check.Case{From: check.Outside(net.Node(2)), To: onNode(net, 2, svc), Want: each},
				check.Case{From: check.Outside(net.Node(2)), To: onNodePort(net, 2, svc, 1), Protocol: corev1.ProtocolUDP, Want: each})
		})

	check.It(spec.ProxyAffinityClientsIndependent, "leaves clients with different addresses to different pods", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1), net.Node(2))
			svc, _ := stickyService(ctx, net, "app", pods...) // at no time has it fewer endpoints
			for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
				to := onNode(net, 0, svc)
				if protocol == corev1.ProtocolUDP {
					to = onNodePort(net, 0, svc, 1)
				}
				used := map[candidate.PodName]int{}
				for _, pod := range settle(ctx, net, "the Service is created, "+string(protocol), fromEach(crowd(net.Node(0)), to, protocol), pods...) {
					used[pod]++
				}
				check.Record("clients of each pod, "+string(protocol), "%v", used)
				// That 32 clients choose one of three pods alike happens with a probability of 3 * 3^-32.
				Expect(len(used)).To(BeNumerically(">", 1), "pods that %d clients with addresses of their own have, %s", candidate.ClientAddresses, protocol)
			}
		})

	check.It(spec.ProxyAffinityBackendLost, "moves the clients of a pod that is gone, and no others", check.KeepsTimeline(), check.Also(spec.ProxyAffinityClientIP),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1), net.Node(2))
			svc := net.Expose(ctx, exposed("app", sticky(), onNodePorts()))
			loseBackend(ctx, net, svc, pods, "a pod is gone", func(pod candidate.Pod, _ []candidate.Pod) { net.Remove(ctx, pod) })
		})

	check.It(spec.ProxyAffinityBackendLost, "moves the clients of a pod that becomes unready, and no others", check.KeepsTimeline(), check.Also(spec.ProxyAffinityClientIP),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1), net.Node(2))
			svc := net.Expose(ctx, exposed("app", sticky(), onNodePorts()))
			loseBackend(ctx, net, svc, pods, "a pod becomes unready", func(pod candidate.Pod, _ []candidate.Pod) { net.SetReady(ctx, pod, false) })
		})

	check.It(spec.ProxyAffinityBackendLost, "moves the clients of a pod that another Service keeps, and no others", check.KeepsTimeline(), check.Also(spec.ProxyAffinityClientIP),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1), net.Node(2))
			keeper := net.Expose(ctx, exposed("keeper", withoutSelector()))
			net.CreateSlice(ctx, net.Slice(keeper, pods...))
			svc, endpoints := stickyService(ctx, net, "app", pods...)
			loseBackend(ctx, net, svc, pods, "a pod leaves the Service", func(_ candidate.Pod, left []candidate.Pod) { endpoints(left...) })
		})

	check.It(spec.ProxyAffinityBackendAdded, "leaves clients where they are when endpoints are added", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1), net.Node(0), net.Node(1), net.Node(2))
			svc, endpoints := stickyService(ctx, net, "app", pods[:2]...)
			cases := fromEach(crowd(net.Node(0)), onNode(net, 0, svc), corev1.ProtocolTCP)
			chosen := settle(ctx, net, "the Service is created", cases, pods[:2]...)
			endpoints(pods...)
			followed(ctx, net, 0, pods[0])
			stay(ctx, net, "endpoints have been added", cases, chosen)
		})
})

// loseBackend settles clients at the pods of a Service and takes one of these away. It demands that the clients of that
// pod settle at the others; the rest stays.
func loseBackend(ctx context.Context, net *check.Network, svc *corev1.Service, pods []candidate.Pod, what string, lose func(pod candidate.Pod, left []candidate.Pod)) {
	ginkgo.GinkgoHelper()
	clients := crowd(net.Node(0))
	chosen := settle(ctx, net, "the Service is created", fromEach(clients, onNode(net, 0, svc), corev1.ProtocolTCP), pods...)
	// The first pod also serves what tells that nodes are settled: one that is lost to every Service is another.
	lost := chosen[max(slices.IndexFunc(chosen, func(pod candidate.PodName) bool { return pod != pods[0].PodName }), 0)]
	k := slices.IndexFunc(pods, func(pod candidate.Pod) bool { return pod.PodName == lost })
	left := slices.Delete(slices.Clone(pods), k, k+1)
	lose(pods[k], left)
	var movers, stayers []candidate.Client
	var kept []candidate.PodName
	for i, c := range clients {
		if chosen[i] == lost {
			movers = append(movers, c)
		} else {
			stayers, kept = append(stayers, c), append(kept, chosen[i])
		}
	}
	check.Record("clients of the lost pod", "%d of %d", len(movers), len(clients))
	check.Deciding(func() {
		moved := fromEach(movers, onNode(net, 0, svc), corev1.ProtocolTCP)
		to := settle(ctx, net, what, moved, left...)
		stay(ctx, net, "its clients have another pod", moved, to)
	}, spec.ProxyAffinityBackendLost)
	check.Deciding(func() {
		stay(ctx, net, "other clients have lost their pod", fromEach(stayers, onNode(net, 0, svc), corev1.ProtocolTCP), kept)
	}, spec.ProxyAffinityClientIP)
}
