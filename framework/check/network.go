package check

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient"
	"github.com/service-conformance/conformance/framework/spec"
)

// Network is what a check sees of the data plane under test. It has nodes, the pods that it starts on them, clients,
// and the control plane that they belong to. What fails among its methods is the environment: the check is then
// unknown. All methods are safe for concurrent use.
type Network struct {
	*ControlPlane
	plane   candidate.DataPlane
	what    candidate.Description
	virtual bool
	// patience multiplies every bound on time.
	patience int

	mu        sync.Mutex
	pods      []candidate.Pod            // that answer
	nodes     []candidate.Node           // of the check's own
	ownNodes  int                        // how many these may be
	lent      map[candidate.PodName]bool // those of them that are not the check's own
	addresses []netip.Addr               // of ExternalAddress
	steady    map[string]candidate.Pod   // for controls of During, by node
	saidOf    map[route]string           // what clients are told of addresses that nobody has
	exposed   map[string]bool            // virtual IPs that Services of the check have had
	senders   map[candidate.PodName]bool // pods of the check that are there to send from
	ending    map[candidate.PodName]bool // pods that the check has told to terminate
	features  map[netip.Addr]string      // by which Services of the check have addresses
	shots     *recorder                  // of a check with a timeline
}

// BackendPort is the port that backends answer on unless the check says otherwise.
const BackendPort = 8080

// Pods that are started without ports of their own answer TCP and UDP on BackendPort.
var defaultPorts = []candidate.PodPort{
	{Name: "tcp", Protocol: corev1.ProtocolTCP, Number: BackendPort}, {Name: "udp", Protocol: corev1.ProtocolUDP, Number: BackendPort},
}

func newNetwork(cp *ControlPlane, plane candidate.DataPlane, what candidate.Description) *Network {
	return &Network{
		ControlPlane: cp, plane: plane, what: what, virtual: what.Has(spec.VirtualClock), patience: max(1, what.Patience),
		addresses: slices.Clone(plane.ExternalAddresses()), lent: map[candidate.PodName]bool{}, exposed: map[string]bool{}, saidOf: map[route]string{}, steady: map[string]candidate.Pod{},
		senders: map[candidate.PodName]bool{}, ending: map[candidate.PodName]bool{},
	}
}

// Plane is the data plane itself.
func (n *Network) Plane() candidate.DataPlane { return n.plane }

// OwnNodes is what starts and ends the proxies of nodes that AddNode has made, and interferes with them. The check does not apply where nothing does.
func (n *Network) OwnNodes() candidate.NodeOwner {
	ginkgo.GinkgoHelper()
	own, err := candidate.OwnNodes(n.plane)
	mustOffer(err, "have nodes of its own")
	return own
}

// Aside begins what is no step of the check, such as a Service that tells whether proxies have caught up. The function that it returns ends it. A failure does
// not show its requests.
func (n *Network) Aside() (end func()) { return n.journal.aside() }

// WithoutControllers does something while no endpoint controller runs, and starts them again. It must be short, for all checks share them.
func (n *Network) WithoutControllers(ctx context.Context, do func()) {
	ginkgo.GinkgoHelper()
	own, err := candidate.OwnControllers(n.plane)
	mustOffer(err, "stop the endpoint controllers")
	mustOffer(own.StopControllers(ctx), "stop the endpoint controllers")
	do()
	mustOffer(own.StartControllers(ctx), "start the endpoint controllers")
}

// Nodes are the shared nodes: at least three.
func (n *Network) Nodes() []candidate.Node { return n.plane.Nodes() }

// Node is the name of a shared node.
func (n *Network) Node(i int) string { return n.plane.Nodes()[i].Name }

// Declared is what the implementation declares of itself; empty if it does not.
func (n *Network) Declared(d spec.Declarable) string { return n.what.Declarations[d] }

// AddressOf returns the first address of the family; it is invalid if there is none.
func AddressOf(addresses []netip.Addr, family corev1.IPFamily) netip.Addr {
	for _, a := range addresses {
		if a.Is4() == (family == corev1.IPv4Protocol) {
			return a
		}
	}
	return netip.Addr{}
}

// ExternalAddress takes one of the addresses that clients outside of the cluster reach by their gateway, of the primary family.
func (n *Network) ExternalAddress() netip.Addr { return n.ExternalAddressOf(n.PrimaryFamily()) }

// ExternalAddressOf takes one of the addresses of a family that clients outside of the cluster reach by their gateway.
func (n *Network) ExternalAddressOf(family corev1.IPFamily) netip.Addr {
	ginkgo.GinkgoHelper()
	if len(n.plane.ExternalAddresses()) == 0 {
		LeaveUnjudged(ByOutside, "the candidate has no external addresses")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	a := AddressOf(n.addresses, family)
	if !a.IsValid() {
		Abort("the candidate has no further external address of family %s", family)
	}
	n.addresses = slices.DeleteFunc(n.addresses, func(b netip.Addr) bool { return a == b })
	return a
}

// Host is a client in the host network of a node.
func Host(node string) candidate.Client { return candidate.Client{Node: node} }

// Outside is a client outside of the cluster, whose traffic enters it at a node.
func Outside(gateway string) candidate.Client { return candidate.Client{Gateway: gateway} }

// Balanced is a client outside of the cluster whose traffic enters it by the load balancers that the cluster has made.
func Balanced() candidate.Client { return candidate.Client{Balanced: true} }

// FromPod is a client in a pod.
func FromPod(pod candidate.Pod) candidate.Client { return candidate.Client{Pod: pod.PodName} }

// Start starts a pod, in the check's namespace, under a name and with ports of its own where it has none.
func (n *Network) Start(ctx context.Context, pod candidate.Pod) candidate.Pod {
	ginkgo.GinkgoHelper()
	if pod.Namespace == "" {
		pod.Namespace = n.Namespace()
	}
	if pod.Name == "" {
		pod.Name, pod.AnyName = n.Name("pod"), true
	}
	if pod.Ports == nil {
		pod.Ports = defaultPorts
	} else {
		pod.AnyName = false
	}
	pod.AnyName = pod.AnyName && !pod.Unready && !pod.HostNetwork && pod.Hostname == "" && pod.Subdomain == "" && pod.Variables == nil && !pod.WithoutServiceLinks
	started, err := n.plane.StartPod(ctx, pod)
	mustOffer(err, "start pod %s", pod.PodName)
	n.mu.Lock()
	n.pods = append(n.pods, started)
	n.mu.Unlock()
	return started
}

// Backends starts a pod with the label app on each of the nodes, all at the same time. It returns them in the order of
// the nodes.
func (n *Network) Backends(ctx context.Context, app string, nodes ...string) []candidate.Pod {
	ginkgo.GinkgoHelper()
	pods := make([]candidate.Pod, len(nodes))
	Concurrently(len(nodes), func(i int) {
		pods[i] = n.Start(ctx, candidate.Pod{PodName: candidate.PodName{Name: n.Name(app)}, Node: nodes[i], Labels: map[string]string{"app": app}, AnyName: true})
	})
	for i := range pods {
		if pods[i].Name == "" { // the goroutine has failed the check
			Abort("a backend did not start")
		}
	}
	return pods
}

// ClientPod is a pod on the node to send from. On a shared node it is lent: earlier checks may have sent from it, and nothing may be changed about it.
func (n *Network) ClientPod(ctx context.Context, node string) candidate.Client {
	ginkgo.GinkgoHelper()
	if n.shares(node) {
		return FromPod(n.borrow(ctx, node))
	}
	sender := n.Start(ctx, candidate.Pod{PodName: candidate.PodName{Name: n.Name("client")}, Node: node})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.senders[sender.PodName] = true
	return FromPod(sender)
}

// shares reports whether the node is one that checks share.
func (n *Network) shares(node string) bool {
	return slices.ContainsFunc(n.plane.Nodes(), func(shared candidate.Node) bool { return shared.Name == node })
}

// borrow returns a pod on a shared node that was lent to the check.
func (n *Network) borrow(ctx context.Context, node string) candidate.Pod {
	ginkgo.GinkgoHelper()
	lent, err := n.plane.LendPod(ctx, node, defaultPorts)
	mustOffer(err, "lend a pod on %s", node)
	n.mu.Lock()
	n.pods, n.lent[lent.PodName] = append(n.pods, lent), true
	n.mu.Unlock()
	return lent
}

// SetReady makes the pod ready or unready. One that terminates must have been started under a name.
func (n *Network) SetReady(ctx context.Context, pod candidate.Pod, ready bool) {
	ginkgo.GinkgoHelper()
	n.mu.Lock()
	ending := n.ending[pod.PodName]
	n.mu.Unlock()
	if pod.AnyName && ending {
		Abort("the check sets the readiness of pod %s, which terminates and may be lent: start it under a name", pod.PodName)
	}
	n.shots.changing()
	mustOffer(n.plane.SetReady(ctx, pod.PodName, ready), "set the readiness of pod %s", pod.PodName)
}

// AnswerReadiness lets the pod pass its readiness probe from now on, or fail it, and does not wait for what follows.
func (n *Network) AnswerReadiness(ctx context.Context, pod candidate.Pod, ready bool) {
	ginkgo.GinkgoHelper()
	mustOffer(n.plane.AnswerReadiness(ctx, pod.PodName, ready), "answer the readiness probe of pod %s", pod.PodName)
}

// Environment returns the environment variables of the pod's process, by name.
func (n *Network) Environment(ctx context.Context, pod candidate.Pod) map[string]string {
	ginkgo.GinkgoHelper()
	told, err := n.plane.Environment(ctx, pod.PodName)
	mustOffer(err, "read the environment of pod %s", pod.PodName)
	variables := make(map[string]string, len(told))
	for _, v := range told {
		name, value, _ := strings.Cut(v, "=")
		variables[name] = value
	}
	return variables
}

// Terminate begins the deletion of the pod; it goes on answering.
func (n *Network) Terminate(ctx context.Context, pod candidate.Pod) {
	ginkgo.GinkgoHelper()
	n.mu.Lock()
	n.ending[pod.PodName] = true
	n.mu.Unlock()
	n.shots.changing()
	mustOffer(n.plane.Terminate(ctx, pod.PodName), "terminate pod %s", pod.PodName)
}

// Kill ends the backend in the pod without the API knowing.
func (n *Network) Kill(ctx context.Context, pod candidate.Pod) {
	ginkgo.GinkgoHelper()
	n.forget(pod)
	n.shots.changing()
	mustOffer(n.plane.Kill(ctx, pod.PodName), "kill pod %s", pod.PodName)
}

// Remove removes the pod from the network and the API.
func (n *Network) Remove(ctx context.Context, pod candidate.Pod) {
	ginkgo.GinkgoHelper()
	n.forget(pod)
	n.shots.changing()
	mustOffer(n.plane.Remove(ctx, pod.PodName), "remove pod %s", pod.PodName)
}

func (n *Network) forget(pod candidate.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods = slices.DeleteFunc(n.pods, func(p candidate.Pod) bool { return p.PodName == pod.PodName })
}

// AddNode starts a node of the check's own, with a proxy configured as given. The check says how many it adds (OwnNodes).
func (n *Network) AddNode(ctx context.Context, proxy candidate.ProxyConfiguration) candidate.Node {
	ginkgo.GinkgoHelper()
	n.mu.Lock()
	added := len(n.nodes)
	n.mu.Unlock()
	if added >= n.ownNodes {
		Abort("the check adds more nodes than it says: declare check.OwnNodes(%d)", added+1)
	}
	node, err := n.OwnNodes().AddNode(ctx, candidate.Node{Name: n.Namespace() + "-" + n.Name("node"), Zone: n.plane.Nodes()[0].Zone}, proxy)
	mustOffer(err, "add a node")
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes = append(n.nodes, node)
	return node
}

// Patiently is a bound on the time that the candidate may take, times its patience, for loops of a check's own.
func (n *Network) Patiently(bound time.Duration) time.Duration {
	return bound * time.Duration(n.patience)
}

// Pass lets time pass on the candidate's clock.
func (n *Network) Pass(ctx context.Context, d time.Duration) {
	ginkgo.GinkgoHelper()
	Must(n.plane.Pass(ctx, d))
	n.shots.passed(d, true)
}

// pause is Pass between two looks at what is waited for.
func (n *Network) pause(ctx context.Context, d time.Duration) {
	ginkgo.GinkgoHelper()
	Must(n.plane.Pass(ctx, d))
	n.shots.passed(d, false)
}

// mustOffer aborts the check when the environment failed, and ends it as not applicable when the candidate cannot offer what it asked for.
func mustOffer(err error, format string, args ...any) {
	ginkgo.GinkgoHelper()
	switch {
	case candidate.IsUnavailable(err):
		cannot(err)
	case err != nil:
		Abort("%s: %v", fmt.Sprintf(format, args...), err)
	}
}

// ServiceAddress is the address and port of a Service's virtual IP of its primary family.
func ServiceAddress(svc *corev1.Service, port int32) netip.AddrPort {
	ginkgo.GinkgoHelper()
	a, err := netip.ParseAddr(svc.Spec.ClusterIP)
	if err != nil {
		Abort("Service %s has no virtual IP: %v", svc.Name, err)
	}
	return netip.AddrPortFrom(a, uint16(port))
}

// Endpoint makes an endpoint of a hand-made EndpointSlice from a pod: ready, serving, on the pod's node.
func Endpoint(pod candidate.Pod, family corev1.IPFamily) discoveryv1.Endpoint {
	ready, node := true, pod.Node
	return discoveryv1.Endpoint{
		Addresses: []string{AddressOf(pod.Addresses, family).String()}, NodeName: &node,
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready},
	}
}

// Slice returns an EndpointSlice for the Service, not created yet, that lists the pods as ready endpoints of the primary family. Its
// ports have the names and protocols of the Service's ports and their numeric targets.
func (n *Network) Slice(svc *corev1.Service, pods ...candidate.Pod) *discoveryv1.EndpointSlice {
	family := n.PrimaryFamily()
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name(svc.Name), Namespace: svc.Namespace, Labels: map[string]string{discoveryv1.LabelServiceName: svc.Name},
		},
		AddressType: discoveryv1.AddressType(family),
	}
	for _, p := range svc.Spec.Ports {
		number := p.TargetPort.IntVal
		if number == 0 {
			number = p.Port
		}
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: &p.Name, Protocol: &p.Protocol, Port: &number})
	}
	for _, pod := range pods {
		s.Endpoints = append(s.Endpoints, Endpoint(pod, family))
	}
	return s
}

// CreateSlice creates a hand-made EndpointSlice.
func (n *Network) CreateSlice(ctx context.Context, s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	ginkgo.GinkgoHelper()
	n.showSlice(http.MethodPost, s)
	created, err := candidate.Create(ctx, n.slicesOf(s), s)
	Must(err)
	return created
}

// UpdateSlice replaces a hand-made EndpointSlice.
func (n *Network) UpdateSlice(ctx context.Context, s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	ginkgo.GinkgoHelper()
	n.shots.changing()
	n.showSlice(http.MethodPut, s)
	updated, err := candidate.Update(ctx, n.slicesOf(s), s)
	Must(err)
	return updated
}

// DeleteSlice deletes an EndpointSlice.
func (n *Network) DeleteSlice(ctx context.Context, s *discoveryv1.EndpointSlice) {
	ginkgo.GinkgoHelper()
	n.shots.changing()
	n.showSlice(http.MethodDelete, s)
	Must(candidate.Delete(ctx, n.slicesOf(s), s.Name, metav1.DeleteOptions{}))
}

// showSlice puts a request for a hand-made EndpointSlice beside those of the check, without what the server adds.
func (n *Network) showSlice(method string, s *discoveryv1.EndpointSlice) {
	e := entry{server: n.server, method: method, target: "/apis/discovery.k8s.io/v1/namespaces/" + s.Namespace + "/endpointslices"}
	if method != http.MethodPost {
		e.target += "/" + s.Name
	}
	if method != http.MethodDelete {
		e.body, _ = json.Marshal(&discoveryv1.EndpointSlice{ // of plain values
			TypeMeta:   metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
			ObjectMeta: metav1.ObjectMeta{Name: s.Name, Labels: s.Labels}, AddressType: s.AddressType, Endpoints: s.Endpoints, Ports: s.Ports,
		})
	}
	n.journal.add(e)
}

// slicesOf are those of the namespace of a slice.
func (n *Network) slicesOf(s *discoveryv1.EndpointSlice) apiclient.Collection[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList] {
	ginkgo.GinkgoHelper()
	return n.ControlPlane.Client().DiscoveryV1().EndpointSlices(s.Namespace)
}
