package proxy

import (
	"context"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

const (
	// balancersBound is how long a load balancer may take to come, to follow a change or to go. Clouds take minutes,
	// and no document names a time.
	balancersBound    = 3 * time.Minute
	balancersTimeout  = 15 * time.Minute
	serviceController = "service-controller"
	// shotsForEachNode make a load balancer try every node, whether it takes them in turn or not.
	shotsForEachNode = 4
)

// ofBalancers makes the type LoadBalancer, and leaves the Service to the default implementation. It has one port: not all of them serve several protocols.
func ofBalancers(name string, options ...check.ServiceOption) *corev1.Service {
	port := check.WithPorts(check.Port("tcp", corev1.ProtocolTCP, exposedPort, check.BackendPort))
	return check.Service(name, append([]check.ServiceOption{port, check.OfType(corev1.ServiceTypeLoadBalancer)}, options...)...)
}

// needBalancers skips the check unless somebody is declared to make load balancers.
func needBalancers(net *check.Network) {
	ginkgo.GinkgoHelper()
	switch net.Declared(spec.LoadBalancers) {
	case "":
		check.LeaveUnjudged(check.ByImplementation, "it is judged where load-balancers is declared, to be %s or another-way", serviceController)
	case "none":
		check.DoesNotBind("nobody makes load balancers here (load-balancers)")
	}
}

// eventually demands something of the Service within the bound for load balancers.
func eventually(ctx context.Context, net *check.Network, svc *corev1.Service, what string, demand func(g Gomega, now *corev1.Service)) {
	ginkgo.GinkgoHelper()
	net.Converge(ctx, what, balancersBound, func(g Gomega) {
		a := net.Get(ctx, svc.Name)
		g.Expect(a).To(check.BeAccepted())
		demand(g, a.Service)
	})
}

// balancerOf waits for the load balancer of a Service and returns its addresses: of the ingress points that have one. It shows each Service that has ingress
// points to see. That there is a load balancer decides proxy-loadbalancer-created, and what else it is to decide.
func balancerOf(ctx context.Context, net *check.Network, svc *corev1.Service, see func(now *corev1.Service), deciding ...spec.ID) (addresses []netip.Addr) {
	ginkgo.GinkgoHelper()
	check.Deciding(func() {
		eventually(ctx, net, svc, "a Service of type LoadBalancer is created", func(g Gomega, now *corev1.Service) {
			g.Expect(now.Status.LoadBalancer.Ingress).NotTo(BeEmpty(), "ingress points of Service %s", now.Name)
			for _, in := range now.Status.LoadBalancer.Ingress {
				if a, err := netip.ParseAddr(in.IP); err == nil {
					addresses = append(addresses, a)
				}
			}
			if see != nil {
				see(now)
			}
		})
	}, append(deciding, spec.ProxyLoadBalancerCreated)...)
	return addresses
}

// throughBalancer are calls to the addresses through the load balancer that has them.
func throughBalancer(addresses []netip.Addr, want check.Want) []check.Case {
	if len(addresses) == 0 {
		check.LeaveUnjudged("load balancers with addresses", "the load balancer is known by a host name only, and what it serves is judged by its address")
	}
	var cases []check.Case
	for _, a := range addresses {
		cases = append(cases, check.Case{From: check.Balanced(), To: exposedAt(a), Want: want})
	}
	return cases
}

// withoutBalancer demands that no shot is answered by one of the pods. That the client is answered at all is shown by another case.
func withoutBalancer(pods ...candidate.Pod) check.Want {
	want := notBy(pods...)
	want.Silent = false
	return want
}

// answeredOften demands that one of the pods answers each of so many shots, or more.
func answeredOften(shots int, pods ...candidate.Pod) check.Want {
	want := check.AnsweredBy(pods...)
	want.Shots = max(want.Shots, shots)
	return want
}

// byUsed demands that pods answer by a load balancer, and only they: each of them where it is one of the service controller, which uses every node with an
// endpoint. One that works in another way may use one of these nodes alone, as one does that answers for the address on the link of the nodes.
func byUsed(net *check.Network, shots int, pods ...candidate.Pod) check.Want {
	want := answeredOften(shots, pods...)
	if net.Declared(spec.LoadBalancers) == serviceController {
		want = check.AnsweredByEach(pods...)
		want.Shots = max(want.Shots, shots)
	}
	return want
}

// byNode demands that some of the connections came by the node: their endpoint sees its address.
func byNode(node candidate.Node, shots int) check.Want {
	return check.Want{Text: "some by " + node.Name, Shots: shots, Met: func(os []candidate.Outcome) bool {
		return slices.ContainsFunc(os, func(o candidate.Outcome) bool { return slices.Contains(node.Addresses, o.Source.Addr()) })
	}}
}

// nodesOfBalancers returns a node that can be excluded from load balancers, and others that they use. The former is one of the check's own where there can be one. A
// cluster has none: there it is a shared one, for as long as the check takes.
func nodesOfBalancers(ctx context.Context, net *check.Network) (own string, others []string) {
	ginkgo.GinkgoHelper()
	if net.Has(spec.OwnNodes) {
		return net.AddNode(ctx, candidate.ProxyConfiguration{}).Name, []string{net.Node(0), net.Node(1), net.Node(2)}
	}
	for _, node := range net.Nodes() {
		object, err := net.Client().CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
		check.Must(err)
		if _, excluded := object.Labels[corev1.LabelNodeExcludeBalancers]; !excluded { // as control planes are
			others = append(others, node.Name)
		}
	}
	if len(others) < 2 {
		check.LeaveUnjudged("a cluster with more nodes", "fewer than two nodes are used by load balancers")
	}
	return others[0], others[1:]
}

// nodeAddresses are those of all shared nodes.
func nodeAddresses(net *check.Network) (all []netip.Addr) {
	for _, n := range net.Nodes() {
		all = append(all, n.Addresses...)
	}
	return all
}

// excludeNode sets the label that excludes a node from load balancers, or, with null, takes it away.
func excludeNode(ctx context.Context, net *check.Network, node, value string) error {
	patch := `{"metadata":{"labels":{"` + corev1.LabelNodeExcludeBalancers + `":` + value + `}}}`
	return candidate.Patch(ctx, net.Client().CoreV1().Nodes(), node, types.MergePatchType, patch)
}

// excludeForAWhile excludes a node, which others may use, until the check ends at most. The check is not judged where the user of the run may not do so.
func excludeForAWhile(ctx context.Context, net *check.Network, node string) {
	ginkgo.GinkgoHelper()
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) {
		if err := excludeNode(context.WithoutCancel(ctx), net, node, `null`); !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			check.Must(err)
		}
	})
	err := excludeNode(ctx, net, node, `""`)
	if apierrors.IsForbidden(err) {
		check.LeaveUnjudged("the right to patch nodes", "it labels a node, which the user of this run may not")
	}
	check.Must(err)
}

var _ = ginkgo.Describe("the load balancer that is made for a Service", func() {
	check.It(spec.ProxyLoadBalancerCreated, "leads to its endpoints", check.Also(spec.ProxyLoadBalancerClassDefault), check.Timeout(balancersTimeout),
		func(ctx context.Context, net *check.Network) {
			needBalancers(net)
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			svc := net.Expose(ctx, ofBalancers("app"))
			addresses := balancerOf(ctx, net, svc, nil, spec.ProxyLoadBalancerClassDefault)
			check.Deciding(func() {
				net.ExpectWithin(ctx, "its load balancer is made", balancersBound, throughBalancer(addresses, check.AnsweredByEach(pods...))...)
			}, spec.ProxyLoadBalancerCreated)
		})

	check.It(spec.ProxyLoadBalancerLocal, "leads to nodes with endpoints under policy Local, also when these move, and shows no node address",
		check.Claiming(spec.FeatureHealthCheckNodePort), check.Also(spec.ProxyLoadBalancerCreated), check.Timeout(balancersTimeout),
		func(ctx context.Context, net *check.Network) {
			needBalancers(net)
			named := func(node int) candidate.Pod { // it moves, so that it is of this check alone
				return net.Start(ctx, candidate.Pod{PodName: candidate.PodName{Name: net.Name("app")}, Node: net.Node(node), Labels: map[string]string{"app": "app"}})
			}
			leaves := named(0)
			svc := net.Expose(ctx, ofBalancers("app", externalLocal))
			addresses := balancerOf(ctx, net, svc, nil)
			nodes := nodeAddresses(net)
			by := func(pods ...candidate.Pod) []check.Case {
				return throughBalancer(addresses, check.AllOf(byUsed(net, shotsForEachNode*len(net.Nodes()), pods...), check.NotSeenFrom(nodes...)))
			}
			check.Deciding(func() {
				net.ExpectWithin(ctx, "its load balancer is made", balancersBound, by(leaves)...)
				for _, node := range []int{1, 0} { // there and back: a load balancer that uses one node prefers one of them
					stays := named(node)
					net.ExpectWithin(ctx, "another node has an endpoint, too", balancersBound, by(leaves, stays)...)
					net.Terminate(ctx, leaves)
					net.ExpectWithin(ctx, "the endpoint of the former node begins to terminate", balancersBound, by(stays)...)
					net.Remove(ctx, leaves)
					net.ExpectWithin(ctx, "that endpoint is gone", balancersBound, by(stays)...)
					leaves = stays
				}
			}, spec.ProxyLoadBalancerLocal)
		})

	check.It(spec.ProxyLoadBalancerLocal, "shows no node address once the policy becomes Local",
		check.Claiming(spec.FeatureHealthCheckNodePort), check.Also(spec.ProxyLoadBalancerCreated), check.Timeout(balancersTimeout),
		func(ctx context.Context, net *check.Network) {
			needBalancers(net)
			pod := net.Backends(ctx, "app", net.Node(1))[0]
			svc := net.Expose(ctx, ofBalancers("app", externalCluster))
			addresses := balancerOf(ctx, net, svc, nil)
			served := func(wants ...check.Want) []check.Case {
				want := check.AllOf(append(wants, check.AnsweredBy(pod))...)
				want.Shots = shotsForEachNode * len(net.Nodes())
				return throughBalancer(addresses, want)
			}
			check.Deciding(func() { net.ExpectWithin(ctx, "its load balancer is made", balancersBound, served()...) }, spec.ProxyLoadBalancerCreated)
			check.Deciding(func() {
				net.Change(ctx, svc.Name, `{"spec":{"externalTrafficPolicy":"Local"}}`)
				net.ExpectWithin(ctx, "its policy becomes Local", balancersBound, served(check.NotSeenFrom(nodeAddresses(net)...))...)
			}, spec.ProxyLoadBalancerLocal)
		})

	check.It(spec.ProxyLoadBalancerClassIgnored, "is not made by the default implementation where the Service names a class of another one", check.Also(spec.ProxyLoadBalancerCreated), check.Timeout(balancersTimeout),
		func(ctx context.Context, net *check.Network) {
			needBalancers(net)
			classed := net.Expose(ctx, ofBalancers("classed", balanced()))
			plain := net.Expose(ctx, ofBalancers("plain")) // it shows that the implementation has come to later Services
			balancerOf(ctx, net, plain, nil)
			check.Deciding(func() {
				now := net.Get(ctx, classed.Name)
				Expect(now).To(check.BeAccepted())
				Expect(now.Service.Status.LoadBalancer.Ingress).To(BeEmpty(), "ingress points of a Service of class %s", *classed.Spec.LoadBalancerClass)
				Expect(now.Service.Finalizers).NotTo(ContainElement(candidate.BalancerCleanup), "finalizers of a Service of class %s", *classed.Spec.LoadBalancerClass)
			}, spec.ProxyLoadBalancerClassIgnored)
		})

	check.It(spec.ProxyLoadBalancerCleanupFinalizer, "comes with the finalizer that has it cleaned up", check.Also(spec.ProxyLoadBalancerCreated), check.Timeout(balancersTimeout),
		func(ctx context.Context, net *check.Network) {
			asDeclared(net, spec.LoadBalancers, serviceController)
			svc := net.Expose(ctx, ofBalancers("app"))
			var seen *corev1.Service
			balancerOf(ctx, net, svc, func(now *corev1.Service) { seen = now })
			check.Deciding(func() {
				Expect(seen.Finalizers).To(ContainElement(candidate.BalancerCleanup), "finalizers of the Service when it was first seen with ingress points")
			}, spec.ProxyLoadBalancerCleanupFinalizer)
		})

	check.It(spec.ProxyLoadBalancerCleanupDeletion, "is cleaned up before the Service is gone", check.Also(spec.ProxyLoadBalancerCreated), check.Timeout(balancersTimeout),
		func(ctx context.Context, net *check.Network) {
			asDeclared(net, spec.LoadBalancers, serviceController)
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			held := net.Expose(ctx, ofBalancers("held", selecting("app"), check.With(func(s *corev1.Service) { s.Finalizers = []string{keeping} })))
			stays := net.Expose(ctx, ofBalancers("stays", selecting("app")))
			gone, left := balancerOf(ctx, net, held, nil), balancerOf(ctx, net, stays, nil)
			served := throughBalancer(left, check.AnsweredBy(pods...))
			check.Deciding(func() {
				net.ExpectWithin(ctx, "load balancers are made", balancersBound, append(throughBalancer(gone, check.AnsweredBy(pods...)), served...)...)
			}, spec.ProxyLoadBalancerCreated)
			check.Deciding(func() {
				net.Unexpose(ctx, held.Name)
				eventually(ctx, net, held, "the Service is deleted, and held by another finalizer", func(g Gomega, now *corev1.Service) {
					g.Expect(now.Finalizers).To(ConsistOf(keeping), "finalizers of a Service that is being deleted")
				})
				net.ExpectNow(ctx, "the finalizer "+candidate.BalancerCleanup+" is gone", append(throughBalancer(gone, withoutBalancer(pods...)), served...)...)
				net.LetGo(ctx, held.Name)
				net.Unexpose(ctx, stays.Name)
				net.Converge(ctx, "a Service with a load balancer is deleted", balancersBound, func(g Gomega) {
					g.Expect(net.Get(ctx, stays.Name).Code).To(Equal(http.StatusNotFound), "answer to a request for the Service")
				})
			}, spec.ProxyLoadBalancerCleanupDeletion)
		})

	check.It(spec.ProxyLoadBalancerCleanupDeletion, "is not made again for a Service that is still being deleted when nodes change", check.OwnNodes(1), check.AloneUnless(spec.OwnNodes), check.Claiming(spec.FeatureHealthCheckNodePort), check.Long(),
		check.Also(spec.ProxyLoadBalancerCreated), check.Timeout(balancersTimeout),
		func(ctx context.Context, net *check.Network) {
			asDeclared(net, spec.LoadBalancers, serviceController)
			own, nodes := nodesOfBalancers(ctx, net)
			pods := net.Backends(ctx, "app", append(nodes, own)...)
			held := net.Expose(ctx, ofBalancers("held", selecting("app"), check.With(func(s *corev1.Service) { s.Finalizers = []string{keeping} })))
			stays := net.Expose(ctx, ofBalancers("stays", selecting("app"), externalLocal)) // each node serves its own pod
			gone, left := balancerOf(ctx, net, held, nil), balancerOf(ctx, net, stays, nil)
			check.Deciding(func() {
				net.ExpectWithin(ctx, "load balancers are made", balancersBound, append(throughBalancer(gone, check.AnsweredBy(pods...)), throughBalancer(left, check.AnsweredByEach(pods...))...)...)
			}, spec.ProxyLoadBalancerCreated)
			check.Deciding(func() {
				net.Unexpose(ctx, held.Name)
				eventually(ctx, net, held, "the Service is deleted, and held by another finalizer", func(g Gomega, now *corev1.Service) {
					g.Expect(now.Finalizers).To(ConsistOf(keeping), "finalizers of a Service that is being deleted")
				})
				still := func(what string, by check.Want) {
					ginkgo.GinkgoHelper()
					net.ExpectWithin(ctx, what, balancersBound, append(throughBalancer(left, by), throughBalancer(gone, withoutBalancer(pods...))...)...)
					now := net.Get(ctx, held.Name)
					Expect(now).To(check.BeAccepted())
					Expect(now.Service.Finalizers).To(ConsistOf(keeping), "finalizers of a Service that is being deleted")
				}
				excludeForAWhile(ctx, net, own)
				still("a node is excluded from load balancers", exactlyBy(len(pods), pods[:len(nodes)]...))
				check.Must(excludeNode(ctx, net, own, `null`))
				still("the node is no longer excluded", check.AnsweredByEach(pods...)) // who came to the other Service first has come to this one, too
				net.LetGo(ctx, held.Name)
			}, spec.ProxyLoadBalancerCleanupDeletion)
		})

	check.It(spec.ProxyLoadBalancerNodeDeleted, "leaves a Node out that was deleted", check.Needs(spec.OwnNodes), check.Long(), check.Also(spec.ProxyLoadBalancerCreated), check.Timeout(balancersTimeout),
		func(ctx context.Context, net *check.Network) {
			asDeclared(net, spec.LoadBalancers, serviceController)
			own := net.AddNode(ctx, candidate.ProxyConfiguration{})
			if !strings.HasPrefix(own.Name, net.Namespace()) {
				check.LeaveUnjudged("--tier lab", "it deletes a Node, and the node %s is only lent", own.Name)
			}
			pods := net.Backends(ctx, "app", net.Node(0))
			svc := net.Expose(ctx, ofBalancers("app", externalCluster)) // endpoints see the node that a connection came by
			addresses := balancerOf(ctx, net, svc, nil)
			shots := check.TrialsUntil(1 / float64(len(net.Nodes())+1))
			check.Deciding(func() {
				made := net.ExpectWithin(ctx, "its load balancer is made", balancersBound, throughBalancer(addresses, answeredOften(shots, pods...))...)
				if seen := slices.Concat(made...); !slices.ContainsFunc(seen, func(o candidate.Outcome) bool { return slices.Contains(nodeAddresses(net), o.Source.Addr()) }) {
					check.DoesNotBind("the endpoint sees none of %d connections from a node's address, as with direct replies: by which node they came cannot be seen", len(seen))
				}
				net.ExpectWithin(ctx, "its load balancer uses the node", balancersBound, throughBalancer(addresses, byNode(own, shots))...)
			}, spec.ProxyLoadBalancerCreated)
			check.Deciding(func() {
				check.Must(net.Client().CoreV1().Nodes().Delete(ctx, own.Name, metav1.DeleteOptions{})) // its machine goes on, and forwards what comes
				without := check.AllOf(answeredOften(shots, pods...), check.NotSeenFrom(own.Addresses...))
				net.ExpectWithin(ctx, "a Node is deleted", balancersBound, throughBalancer(addresses, without)...)
			}, spec.ProxyLoadBalancerNodeDeleted)
		})

	check.It(spec.ProxyLoadBalancerCleanupType, "goes, and leads nowhere any more, when the Service becomes another type", check.Also(spec.ProxyLoadBalancerCreated), check.Timeout(balancersTimeout),
		func(ctx context.Context, net *check.Network) {
			needBalancers(net)
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			become := map[corev1.ServiceType]string{
				corev1.ServiceTypeClusterIP: `{"spec":{"type":"ClusterIP"}}`, corev1.ServiceTypeNodePort: `{"spec":{"type":"NodePort"}}`,
				corev1.ServiceTypeExternalName: `{"spec":{"type":"ExternalName","externalName":"` + externalHost + `","clusterIP":null,"clusterIPs":null}}`,
			}
			stays := net.Expose(ctx, ofBalancers("stays", selecting("app")))
			types := slices.Sorted(maps.Keys(become))
			services, addresses := make([]*corev1.Service, len(types)), make([][]netip.Addr, len(types))
			for i, t := range types {
				services[i] = net.Expose(ctx, ofBalancers(strings.ToLower(string(t)), selecting("app")))
			}
			served := throughBalancer(balancerOf(ctx, net, stays, nil), check.AnsweredBy(pods...))
			all := slices.Clone(served)
			for i, svc := range services {
				addresses[i] = balancerOf(ctx, net, svc, nil)
				all = append(all, throughBalancer(addresses[i], check.AnsweredBy(pods...))...)
			}
			check.Deciding(func() { net.ExpectWithin(ctx, "load balancers are made", balancersBound, all...) }, spec.ProxyLoadBalancerCreated)
			for i, svc := range services {
				net.Change(ctx, svc.Name, become[types[i]])
			}
			check.Deciding(func() {
				gone := slices.Clone(served)
				for i, svc := range services {
					eventually(ctx, net, svc, "its type becomes "+string(types[i]), func(g Gomega, now *corev1.Service) {
						g.Expect(now.Finalizers).NotTo(ContainElement(candidate.BalancerCleanup), "finalizers")
						g.Expect(now.Status.LoadBalancer.Ingress).To(BeEmpty(), "ingress points")
					})
					gone = append(gone, throughBalancer(addresses[i], withoutBalancer(pods...))...)
				}
				net.ExpectWithin(ctx, "Services are of type LoadBalancer no more", balancersBound, gone...)
			}, spec.ProxyLoadBalancerCleanupType)
		})

	check.It(spec.ProxyLoadBalancerCleanupType, "comes again when the Service is of type LoadBalancer once more", check.Claiming(spec.FeatureNodePort), check.Also(spec.ProxyLoadBalancerCreated), check.Timeout(balancersTimeout),
		func(ctx context.Context, net *check.Network) {
			needBalancers(net)
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			svc := net.Expose(ctx, ofBalancers("app"))
			check.Deciding(func() {
				net.ExpectWithin(ctx, "its load balancer is made", balancersBound, throughBalancer(balancerOf(ctx, net, svc, nil), check.AnsweredBy(pods...))...)
			}, spec.ProxyLoadBalancerCreated)
			net.Change(ctx, svc.Name, `{"spec":{"type":"ClusterIP"}}`)
			check.Deciding(func() {
				eventually(ctx, net, svc, "its type becomes ClusterIP", func(g Gomega, now *corev1.Service) {
					g.Expect(now.Status.LoadBalancer.Ingress).To(BeEmpty(), "ingress points")
				})
			}, spec.ProxyLoadBalancerCleanupType)
			net.Change(ctx, svc.Name, `{"spec":{"type":"LoadBalancer"}}`)
			net.ExpectWithin(ctx, "its type becomes LoadBalancer again", balancersBound, throughBalancer(balancerOf(ctx, net, svc, nil), check.AnsweredBy(pods...))...)
		})

	check.It(spec.ProxyLoadBalancerNodeExclusion, "leaves nodes out that are excluded from load balancers", check.Claiming(spec.FeatureHealthCheckNodePort), check.OwnNodes(1), check.AloneUnless(spec.OwnNodes), check.Long(), check.Also(spec.ProxyLoadBalancerCreated), check.Timeout(balancersTimeout),
		func(ctx context.Context, net *check.Network) {
			needBalancers(net)
			own, nodes := nodesOfBalancers(ctx, net)
			pods := net.Backends(ctx, "app", append(nodes, own)...)
			svc := net.Expose(ctx, ofBalancers("app", externalLocal)) // each node serves its own pod
			addresses := balancerOf(ctx, net, svc, nil)
			shots := check.TrialsUntil(1 / float64(len(pods)))
			all := throughBalancer(addresses, byUsed(net, shots, pods...))
			check.Deciding(func() {
				seen := net.ExpectWithin(ctx, "its load balancer is made", balancersBound, all...)
				if net.Declared(spec.LoadBalancers) != serviceController { // that may use one node, so that one is excluded which it uses
					own = nodeOf(seen[0][0].Pod, pods)
				}
			}, spec.ProxyLoadBalancerCreated)
			others := slices.DeleteFunc(slices.Clone(pods), func(p candidate.Pod) bool { return p.Node == own })
			check.Deciding(func() {
				excludeForAWhile(ctx, net, own)
				net.ExpectWithin(ctx, "a node is excluded from load balancers", balancersBound, throughBalancer(addresses, byUsed(net, shots, others...))...)
				check.Must(excludeNode(ctx, net, own, `null`))
				net.ExpectWithin(ctx, "the node is no longer excluded", balancersBound, all...)
			}, spec.ProxyLoadBalancerNodeExclusion)
		})
})

// nodeOf is the node of the pod of that name.
func nodeOf(name candidate.PodName, pods []candidate.Pod) string {
	return pods[slices.IndexFunc(pods, func(p candidate.Pod) bool { return p.PodName == name })].Node
}
