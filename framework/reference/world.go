package reference

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/absent"
	"github.com/service-conformance/conformance/framework/reference/apiserver"
	"github.com/service-conformance/conformance/framework/reference/dns"
	"github.com/service-conformance/conformance/framework/reference/kubelet"
	"github.com/service-conformance/conformance/framework/reference/proxy"
)

// world is the cluster that all data planes of a reference are leased from. It has a control plane with the endpoint
// controllers, nodes with their proxies, and pods. Nothing in it moves by itself: what becomes of a packet is decided
// when it is sent, from the objects of that moment.
type world struct {
	server  *apiserver.Server
	book    *book
	absent  absent.Set
	kubelet *kubelet.Rules
	dns     *dns.Rules
	proxy   *proxy.Rules
	epoch   time.Time

	mu       sync.Mutex
	random   *rand.Rand
	nodes    map[string]*host
	shared   []*host
	objects  *proxy.Objects
	pods     map[candidate.PodName]*pod
	byAddr   map[netip.Addr]*pod
	indexes  map[int]bool // of nodes
	external candidate.ExternalAddresses
	idle     candidate.IdlePods[*pod]

	outsidePorts int // counts those that backends outside were given

	balancers balancers
}

// host is a node of the world.
type host struct {
	*proxy.Node
	index int
	next  uint16 // pod number
}

// pod is a pod of the world.
type pod struct {
	candidate.Pod
	host   *host
	killed bool
	life   int // grows when its connections are cut
	// environment is that of its process, as it started.
	environment []string
}

var sharedZones = []string{"zone-a", "zone-a", "zone-b"}

func newWorld(server *apiserver.Server, faults Faults, without absent.Set, seed uint64) (*world, error) {
	w := &world{
		server: server, book: bookWith(faults), absent: without, epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), random: rand.New(rand.NewPCG(seed, 2)), nodes: map[string]*host{},
		pods: map[candidate.PodName]*pod{}, byAddr: map[netip.Addr]*pod{}, indexes: map[int]bool{}, kubelet: kubelet.New(faults), dns: dns.New(faults), proxy: proxy.New(faults),
		balancers: balancers{of: map[types.UID]*balancer{}},
	}
	for i, zone := range sharedZones {
		h, err := w.addNode(candidate.Node{Name: fmt.Sprintf("node-%d", i+1), Zone: zone}, false)
		if err != nil {
			return nil, err
		}
		h.Start(candidate.ProxyConfiguration{})
		w.shared = append(w.shared, h)
	}
	return w, nil
}

// The address plan: hosts are 172.30.<what>.<number> and fd00:172:30::<what><number>, pods 10.244.<node>.<number> and fd00:10:244:<node>::<number>.
const (
	nodeHosts      = 1
	secondaryHosts = 2
	outsideHosts   = 3 // and up, with the index of the gateway
)

func hostAddresses(third, last int) []netip.Addr {
	v6 := netip.MustParseAddr("fd00:172:30::").As16()
	v6[14], v6[15] = byte(third), byte(last)
	return []netip.Addr{netip.AddrFrom4([4]byte{172, 30, byte(third), byte(last)}), netip.AddrFrom16(v6)}
}

func podAddresses(node int, number uint16) []netip.Addr {
	v6 := netip.MustParseAddr("fd00:10:244::").As16()
	binary.BigEndian.PutUint16(v6[6:], uint16(node))
	binary.BigEndian.PutUint16(v6[14:], number)
	return []netip.Addr{netip.AddrFrom4([4]byte{10, byte(244 + number>>8), byte(node), byte(number)}), netip.AddrFrom16(v6)}
}

// maxNodes is how many nodes there can be at a time.
const maxNodes = 250

// plan are the ranges of the address plan.
var plan = []netip.Prefix{
	netip.MustParsePrefix("172.30.0.0/16"), netip.MustParsePrefix("fd00:172:30::/48"), netip.MustParsePrefix("10.244.0.0/14"), netip.MustParsePrefix("10.248.0.0/13"), netip.MustParsePrefix("fd00:10:244::/48"),
}

// routes reports whether the network has a way to an address. What is sent to an address that nobody has any more is
// lost. Where there is no way, the sender is told.
func routes(a netip.Addr) bool {
	return slices.ContainsFunc(plan, func(p netip.Prefix) bool { return p.Contains(a) })
}

// addNode makes a node and its object; its proxy does not run yet.
func (w *world) addNode(as candidate.Node, own bool) (*host, error) {
	if w.nodes[as.Name] != nil {
		return nil, fmt.Errorf("there is a node %q already", as.Name)
	}
	index := 1
	for w.indexes[index] {
		index++
	}
	if index > maxNodes {
		return nil, fmt.Errorf("there are %d nodes already", maxNodes)
	}
	as.Addresses, as.SecondaryAddresses = hostAddresses(nodeHosts, index), hostAddresses(secondaryHosts, index)
	h := &host{Node: w.proxy.NewNode(as, own), index: index}
	capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi")}
	object := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: as.Name, Labels: map[string]string{corev1.LabelHostname: as.Name, corev1.LabelTopologyZone: as.Zone}},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, a := range as.Addresses {
		object.Status.Addresses = append(object.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
	}
	if err := w.server.StoreNode(object); err != nil {
		return nil, err
	}
	w.nodes[as.Name], w.indexes[index] = h, true
	return h, nil
}

func (w *world) removeNode(h *host) error {
	delete(w.nodes, h.Name)
	delete(w.indexes, h.index)
	return w.server.RemoveNode(h.Name)
}

// current returns the objects of this moment.
func (w *world) current() *proxy.Objects {
	if w.objects != nil && w.objects.Version == w.server.Version() {
		return w.objects
	}
	version, services, slices := w.server.ProxySnapshot()
	for tries := 0; tries < 3 && w.balance(services); tries++ {
		version, services, slices = w.server.ProxySnapshot()
	}
	services, slices = proxy.Without(w.absent, services, slices)
	w.objects = w.proxy.NewObjects(version, services, slices, w.book.rangesForNFTables.Do(w.server))
	return w.objects
}

// startPod starts a backend and makes its object.
func (w *world) startPod(as candidate.Pod) (*pod, error) {
	h := w.nodes[as.Node]
	if h == nil {
		return nil, fmt.Errorf("there is no node %q", as.Node)
	}
	if w.pods[as.PodName] != nil {
		return nil, fmt.Errorf("there is a pod %s already", as.PodName)
	}
	if as.Outside {
		p := &pod{Pod: as, host: h}
		p.Addresses, p.Ports = hostAddresses(outsideHosts+h.index, candidate.OutsideBackend+1), slices.Clone(as.Ports)
		for i := range p.Ports {
			if p.Ports[i].Number == 0 {
				w.outsidePorts++
				p.Ports[i].Number = firstOutsidePort + w.outsidePorts%outsidePorts
			}
		}
		w.pods[as.PodName] = p
		return p, nil
	}
	_, services, _ := w.server.ProxySnapshot()
	p := &pod{Pod: as, host: h, environment: w.kubelet.Environment(&as, services)}
	if as.HostNetwork {
		p.Addresses = h.Addresses
	} else {
		h.next++
		p.Addresses = podAddresses(h.index, h.next)
	}
	if err := w.server.StorePod(w.object(p, !as.Unready)); err != nil {
		return nil, err
	}
	w.pods[as.PodName] = p
	if !as.HostNetwork {
		for _, a := range p.Addresses {
			w.byAddr[a] = p
		}
	}
	return p, nil
}

// The ports of backends outside that take any.
const (
	firstOutsidePort = 40000
	outsidePorts     = 20000
)

// object is the Pod object as a kubelet keeps it.
func (w *world) object(p *pod, ready bool) *corev1.Pod {
	container := corev1.Container{Name: "backend", Image: "backend"}
	for _, name := range slices.Sorted(maps.Keys(p.Variables)) {
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: p.Variables[name]})
	}
	for _, port := range p.Ports {
		container.Ports = append(container.Ports, corev1.ContainerPort{Name: port.Name, Protocol: port.Protocol, ContainerPort: int32(port.Number)})
	}
	o := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, Labels: p.Labels},
		Spec: corev1.PodSpec{
			NodeName: p.host.Name, Containers: []corev1.Container{container}, HostNetwork: p.HostNetwork, Hostname: p.Hostname, Subdomain: p.Subdomain,
			EnableServiceLinks: new(!p.WithoutServiceLinks),
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: readiness(ready), PodIP: p.Addresses[0].String()},
	}
	for _, a := range p.Addresses {
		o.Status.PodIPs = append(o.Status.PodIPs, corev1.PodIP{IP: a.String()})
	}
	return o
}

func readiness(ready bool) []corev1.PodCondition {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return []corev1.PodCondition{{Type: corev1.ContainersReady, Status: status}, {Type: corev1.PodReady, Status: status}}
}

// changePod changes a Pod object.
func (w *world) changePod(p *pod, change func(*corev1.Pod)) error {
	stored := w.server.Pod(p.Namespace, p.Name)
	if stored == nil {
		return errors.New("somebody has deleted the Pod object")
	}
	o := stored.DeepCopy()
	change(o)
	return w.server.StorePod(o)
}

func (w *world) removePod(p *pod) error {
	p.killed = true
	p.life++
	delete(w.pods, p.PodName)
	for _, a := range p.Addresses {
		if w.byAddr[a] == p {
			delete(w.byAddr, a)
		}
	}
	return w.server.RemovePod(p.Namespace, p.Name)
}

// backendAt returns the pod that answers at an address and port; nil with there being a host, or none.
func (w *world) backendAt(to netip.AddrPort, protocol corev1.Protocol) (backend *pod, exists bool) {
	answers := func(p *pod) bool {
		if p.killed {
			return false
		}
		for _, port := range p.Ports {
			if port.Number == int(to.Port()) && port.Protocol == protocol {
				return true
			}
		}
		return false
	}
	if p := w.byAddr[to.Addr()]; p != nil {
		if answers(p) {
			return p, true
		}
		return nil, true
	}
	h := w.hostAt(to.Addr())
	for _, p := range w.pods {
		if p.Outside && slices.Contains(p.Addresses, to.Addr()) && answers(p) {
			return p, true
		}
	}
	if h == nil {
		return nil, false
	}
	for _, p := range w.pods {
		if p.HostNetwork && p.host == h && answers(p) {
			return p, true
		}
	}
	return nil, true
}

// hostAt returns the node that has an address.
func (w *world) hostAt(a netip.Addr) *host {
	for _, h := range w.nodes {
		if slices.Contains(h.Addresses, a) {
			return h
		}
		if slices.Contains(h.SecondaryAddresses, a) {
			return h
		}
	}
	return nil
}
