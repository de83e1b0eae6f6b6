//go:build linux

package network

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// The address plan. Nothing of it leaves the namespaces.
var (
	// PodRanges hold the addresses of all pods; each node has a /24 and a /64 of them.
	PodRanges   = []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:10:244::/48")}
	hostRanges  = []netip.Prefix{netip.MustParsePrefix("172.30.0.0/16"), netip.MustParsePrefix("fd00:172:30::/64")}
	podGateways = []netip.Addr{netip.MustParseAddr("169.254.1.1"), netip.MustParseAddr("fe80::1")}
	everything  = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
)

// The kinds of interfaces, in their hardware addresses.
const (
	nodeKind = iota + 1
	podKind
	podGatewayKind
	outsideKind
	bridgePortKind
)

// The third byte of host addresses tells what they belong to; the last one, which.
const (
	rootHosts      = 0
	nodeHosts      = 1
	secondaryHosts = 2
	outsideHosts   = 3 // and up: one third byte for each client
)

// Fabric is the network of one lab. Its methods are safe for concurrent use.
type Fabric struct {
	root     *Namespace // that of the process: it has the bridge, and the API server listens there
	bridge   *netlink.Bridge
	stranger net.Listener // answers for addresses that nobody has; nil if nobody does
	// NodeCgroups gives nodes that are made from now on a cgroup each, where this machine allows for it.
	NodeCgroups bool
	// PodInterfaces is what the names of the nodes' ends of the cables to pods begin with. Empty is "pod".
	PodInterfaces string

	mu       sync.Mutex
	nodes    map[int]*Node
	outsides map[int]*Outside // by the index of their gateway
}

// unnumbered keeps new interfaces without addresses of the kernel's own. Those between pods and nodes have no use for
// them, because both know each other's hardware address. With each address that goes the kernel looks through all
// connections that it tracks.
var unnumbered = map[string]string{"net/ipv6/conf/default/addr_gen_mode": "1"}

// prompt lifts the limits on ICMP errors, without which some refusals look like silence. Linux before 6.12 has one limit for the whole machine, 1000 a second, which stays.
var prompt = map[string]string{
	"net/ipv4/icmp_ratelimit":                      "0",
	"net/ipv4/icmp_msgs_per_sec":                   "100000",
	"net/ipv4/icmp_msgs_burst":                     "10000",
	"net/ipv6/icmp/ratelimit":                      "0",
	"net/netfilter/nf_conntrack_udp_timeout":       "15",
	"net/netfilter/nf_conntrack_tcp_timeout_close": "1",    // seconds; kube-proxy looks through the connections with every sync
	"net/sctp/cookie_hmac_alg":                     "none", // what is the default is not there in every kernel that has SCTP
}

// nodeSysctls make a namespace a router for its pods.
var nodeSysctls = map[string]string{
	"net/ipv4/ip_forward":                  "1",
	"net/ipv4/conf/all/rp_filter":          "0",
	"net/ipv4/conf/default/rp_filter":      "0",
	"net/ipv4/conf/all/route_localnet":     "1",
	"net/ipv6/conf/all/disable_ipv6":       "0",
	"net/ipv6/conf/all/forwarding":         "1",
	"net/ipv6/conf/default/accept_dad":     "0",
	"net/ipv6/conf/all/accept_dad":         "0",
	"net/ipv4/conf/all/accept_redirects":   "0",
	"net/ipv6/conf/all/accept_redirects":   "0",
	"net/ipv4/conf/all/send_redirects":     "0",
	"net/ipv4/conf/default/send_redirects": "0",
}

// hostSysctls are those of pods and clients.
var hostSysctls = map[string]string{
	"net/ipv6/conf/all/disable_ipv6":     "0",
	"net/ipv6/conf/default/accept_dad":   "0",
	"net/ipv4/conf/all/accept_redirects": "0",
	"net/ipv6/conf/all/accept_redirects": "0",
}

// rootSysctls let the root namespace say that there is no way to an address that nobody has, in either family, whatever
// the machine's own sysctls are. What a node neither serves nor drops must look otherwise than what it drops.
var rootSysctls = map[string]string{
	"net/bridge/bridge-nf-call-iptables":   "0",
	"net/bridge/bridge-nf-call-ip6tables":  "0",
	"net/ipv4/ip_forward":                  "1",
	"net/ipv4/conf/all/rp_filter":          "0",
	"net/ipv4/conf/default/rp_filter":      "0",
	"net/ipv4/conf/all/send_redirects":     "0",
	"net/ipv4/conf/default/send_redirects": "0",
	"net/ipv6/conf/all/disable_ipv6":       "0",
	"net/ipv6/conf/all/forwarding":         "1",
	"net/ipv6/conf/default/accept_dad":     "0",
	"net/ipv6/conf/all/accept_dad":         "0",
}

// NewFabric makes the bridge in the network namespace of this process, which must be one of its own (see package lab, isolation).
func NewFabric() (*Fabric, error) {
	root, err := current()
	if err != nil {
		return nil, err
	}
	f := &Fabric{root: root, nodes: map[int]*Node{}, outsides: map[int]*Outside{}}
	if err := root.Do(func() error { return setSysctls(rootSysctls, prompt) }); err != nil {
		return nil, err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = "nodes", mac(bridgePortKind, 0)
	f.bridge = &netlink.Bridge{LinkAttrs: attrs}
	if err := root.links.LinkAdd(f.bridge); err != nil {
		return nil, fmt.Errorf("make a bridge: %w", err)
	}
	if err := root.up(attrs.Name); err != nil {
		return nil, err
	}
	for i := range hostRanges {
		if err := root.address(f.bridge, hostAddress(i, rootHosts, 1)); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Gateway is the address of the bridge, of either family: where nodes reach the API server.
func (f *Fabric) Gateway(six bool) netip.Addr {
	family := 0
	if six {
		family = 1
	}
	return hostAddress(family, rootHosts, 1).Addr()
}

// Overlapping is the range of the network that shares addresses with p; invalid if none does.
func Overlapping(p netip.Prefix) netip.Prefix {
	for _, r := range slices.Concat(PodRanges, hostRanges) {
		if r.Overlaps(p) {
			return r
		}
	}
	return netip.Prefix{}
}

// Close removes the bridge and what is plugged into it.
func (f *Fabric) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.root.Close()
	for _, o := range f.outsides {
		f.unplug(o.link())
	}
	for _, n := range f.nodes {
		f.unplug(n.link())
	}
	f.unplug(nowhere)
	if f.stranger != nil {
		_ = f.stranger.Close()
	}
	return f.root.links.LinkDel(f.bridge)
}

// unplug removes a cable to the bridge, if it is still there.
func (f *Fabric) unplug(name string) {
	if l, err := f.root.links.LinkByName(name); err == nil {
		_ = f.root.links.LinkDel(l) // it may go with its other end at this moment
	}
}

// link is the name of the cable to the bridge.
func (n *Node) link() string    { return fmt.Sprintf("node%d", n.index) }
func (o *Outside) link() string { return fmt.Sprintf("outside%d", o.gateway.index) }

// hostAddress is an address on the bridge, with the length of its range.
func hostAddress(family int, third, last byte) netip.Prefix {
	r := hostRanges[family]
	b := r.Addr().AsSlice()
	b[len(b)-2], b[len(b)-1] = third, last
	a, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(a, r.Bits())
}

// podRange is the range of a node's pods.
func podRange(family, node int) netip.Prefix {
	b := PodRanges[family].Addr().AsSlice()
	if family == 0 {
		b[2] = byte(node)
		a, _ := netip.AddrFromSlice(b)
		return netip.PrefixFrom(a, 24)
	}
	binary.BigEndian.PutUint16(b[6:], uint16(node))
	a, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(a, 64)
}

// Node is a namespace that routes between the bridge and its pods.
type Node struct {
	*Namespace
	// Addresses are on the bridge, Secondary further ones, PodRanges those of its pods; IPv4 first.
	Addresses, Secondary []netip.Addr
	PodRanges            []netip.Prefix

	fabric *Fabric
	index  int
	uplink netlink.Link
	cutOff bool // guarded by that of the fabric
	mu     sync.Mutex
	pods   map[byte]bool
	taken  int // counts addresses that were given to pods
}

// MaxNodes is how many nodes there can be at a time.
const MaxNodes = 250

// AddNode makes a node and tells the others where its pods are.
func (f *Fabric) AddNode() (_ *Node, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	index := 1
	for f.nodes[index] != nil {
		index++
	}
	if index > MaxNodes {
		return nil, fmt.Errorf("there are %d nodes already", MaxNodes)
	}
	n := &Node{fabric: f, index: index, pods: map[byte]bool{}}
	if n.Namespace, err = newNamespace(nodeSysctls, prompt); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			n.cgroup.remove()
			n.Namespace.Close()
		}
	}()
	if f.NodeCgroups {
		n.cgroup = newCgroup()
	}
	if n.uplink, err = f.plug(n.Namespace, n.link(), nodeKind, uint32(index)); err != nil {
		return nil, err
	}
	if err := n.Do(func() error { return setSysctls(unnumbered) }); err != nil {
		return nil, err
	}
	for i := range hostRanges {
		a, second := hostAddress(i, nodeHosts, byte(index)), hostAddress(i, secondaryHosts, byte(index))
		n.Addresses, n.Secondary = append(n.Addresses, a.Addr()), append(n.Secondary, second.Addr())
		n.PodRanges = append(n.PodRanges, podRange(i, index))
		if err := errors.Join(n.address(n.uplink, a), n.address(n.uplink, netip.PrefixFrom(second.Addr(), second.Addr().BitLen()))); err != nil {
			return nil, err
		}
		if err := n.route(n.uplink, everything[i], hostAddress(i, rootHosts, 1).Addr()); err != nil {
			return nil, err
		}
		if err := f.root.route(f.bridge, n.PodRanges[i], a.Addr()); err != nil { // for its ICMP errors; what is for a pod that is gone comes back here until its time to live is over
			return nil, err
		}
	}
	for _, other := range f.nodes {
		if err := errors.Join(n.meet(other), other.meet(n)); err != nil {
			return nil, err
		}
	}
	for _, o := range f.outsides {
		if err := n.reply(o); err != nil {
			return nil, err
		}
	}
	f.nodes[index] = n
	return n, nil
}

// plug connects a namespace to the bridge.
func (f *Fabric) plug(ns *Namespace, name string, kind byte, number uint32) (netlink.Link, error) {
	here, there, err := f.root.connect(name, mac(bridgePortKind, number|uint32(kind)<<16), ns, mac(kind, number))
	if err != nil {
		return nil, err
	}
	if err := f.root.links.LinkSetMaster(here, f.bridge); err != nil {
		return nil, fmt.Errorf("put %s on the bridge: %w", name, err)
	}
	return there, nil
}

// meet routes to the pods of another node.
func (n *Node) meet(other *Node) error {
	var errs []error
	for i, r := range other.PodRanges {
		errs = append(errs, n.neighbour(n.uplink, other.Addresses[i], mac(nodeKind, uint32(other.index))), n.route(n.uplink, r, other.Addresses[i]))
	}
	return errors.Join(errs...)
}

// reply routes to an outside client by its gateway: the way that its packets come. A node that sees one direction of a connection only
// takes it for invalid.
func (n *Node) reply(o *Outside) error {
	var errs []error
	for i, r := range o.ranges {
		if n != o.gateway {
			errs = append(errs, n.route(n.uplink, r, o.gateway.Addresses[i]))
		}
	}
	return errors.Join(errs...)
}

// CutOff keeps everything that the namespace of this process sends from the node, until it is removed.
func (n *Node) CutOff() error {
	n.fabric.mu.Lock()
	defer n.fabric.mu.Unlock()
	n.cutOff = true
	var errs []error
	for _, a := range n.Addresses {
		errs = append(errs, n.fabric.root.block(netip.PrefixFrom(a, a.BitLen())))
	}
	return errors.Join(errs...)
}

// Disconnect is CutOff, and breaks the connections of the node to the namespace of this process.
func (n *Node) Disconnect() error {
	if err := n.CutOff(); err != nil {
		return err
	}
	return n.Do(func() error {
		for i, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
			to := net.IP(hostAddress(i, rootHosts, 1).Addr().AsSlice())
			sockets, err := netlink.SocketDiagTCP(family)
			if err != nil {
				return fmt.Errorf("list connections: %w", err)
			}
			for _, s := range sockets {
				if !s.ID.Destination.Equal(to) {
					continue
				}
				here, there := &net.TCPAddr{IP: s.ID.Source, Port: int(s.ID.SourcePort)}, &net.TCPAddr{IP: s.ID.Destination, Port: int(s.ID.DestinationPort)}
				if err := netlink.SocketDestroy(here, there); err != nil && !errors.Is(err, unix.ENOENT) { // it has ended
					return fmt.Errorf("break the connection of %s to %s: %w", here, there, err)
				}
			}
		}
		return nil
	})
}

// Reconnect ends what CutOff and Disconnect have begun.
func (n *Node) Reconnect() {
	n.fabric.mu.Lock()
	defer n.fabric.mu.Unlock()
	n.reconnect()
}

func (n *Node) reconnect() {
	if !n.cutOff {
		return
	}
	n.cutOff = false
	for _, a := range n.Addresses {
		n.fabric.root.unroute(netip.PrefixFrom(a, a.BitLen()))
	}
}

// Remove removes the node; its pods must be gone. Processes inside of it must have ended.
func (n *Node) Remove() {
	f := n.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.nodes, n.index)
	n.reconnect()
	for _, r := range n.PodRanges {
		f.root.unroute(r)
		for _, other := range f.nodes {
			other.unroute(r)
		}
	}
	n.Namespace.Close() // before its link, see Pod.Remove
	n.cgroup.remove()
	f.unplug(n.link())
}

// Pod is a namespace behind a node.
type Pod struct {
	*Namespace
	// Addresses are its own, IPv4 first.
	Addresses []netip.Addr

	node   *Node
	number byte
	cable  netlink.Link
}

// AddPod makes a pod.
func (n *Node) AddPod() (_ *Pod, err error) {
	p := &Pod{node: n}
	if p.number, err = n.takeNumber(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.Remove()
		}
	}()
	if p.Namespace, err = newNamespace(hostSysctls, unnumbered, prompt); err != nil {
		return nil, err
	}
	p.cgroup = n.cgroup
	id := uint32(n.index)<<8 | uint32(p.number)
	var eth netlink.Link
	if p.cable, eth, err = n.connect(p.Interface(), mac(podGatewayKind, id), p.Namespace, mac(podKind, id)); err != nil {
		return nil, err
	}
	for i, r := range n.PodRanges {
		b := r.Addr().AsSlice()
		b[len(b)-1] = p.number
		a, _ := netip.AddrFromSlice(b)
		p.Addresses = append(p.Addresses, a)
		alone := netip.PrefixFrom(a, a.BitLen())
		err := errors.Join(
			p.address(eth, alone), p.neighbour(eth, podGateways[i], mac(podGatewayKind, id)), p.route(eth, everything[i], podGateways[i]),
			n.neighbour(p.cable, a, mac(podKind, id)), n.route(p.cable, alone, netip.Addr{}),
		)
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Narrow makes the node let packets of mtu bytes at most through to the pod.
func (p *Pod) Narrow(mtu int) error {
	var errs []error
	for _, a := range p.Addresses {
		errs = append(errs, p.node.routeWithin(mtu, p.cable, netip.PrefixFrom(a, a.BitLen()), netip.Addr{}))
	}
	return errors.Join(errs...)
}

// Interface is the name of the node's end of the cable to the pod.
func (p *Pod) Interface() string {
	return fmt.Sprintf("%s%d", cmp.Or(p.node.fabric.PodInterfaces, "pod"), p.number)
}

// The last bytes of pods' addresses.
const (
	firstPod = 2
	podCount = 253
)

// takeNumber reserves the last byte of a pod's addresses: the one after the last that was taken. So an address comes
// again only when nothing remembers its earlier pod.
func (n *Node) takeNumber() (byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for range podCount {
		i := byte(firstPod + n.taken%podCount)
		n.taken++
		if !n.pods[i] {
			n.pods[i] = true
			return i, nil
		}
	}
	return 0, errors.New("the node has no address left for another pod")
}

// Remove removes the pod. Its sockets must be closed.
func (p *Pod) Remove() {
	// The namespace goes first: for each address that goes in one that stays the kernel looks through all connections of the machine.
	if p.Namespace != nil {
		p.Namespace.Close()
	}
	if p.cable != nil {
		_ = p.node.links.LinkDel(p.cable) // and with it its other end and the routes, at once
	}
	p.node.mu.Lock()
	defer p.node.mu.Unlock()
	delete(p.node.pods, p.number)
}

// Outside is a client on the bridge that sends everything by one node.
type Outside struct {
	*Namespace
	// Addresses are its own, for each family, IPv4 first.
	Addresses [][]netip.Addr

	fabric  *Fabric
	gateway *Node
	ranges  []netip.Prefix // that hold its addresses and no others
}

// AddOutside makes a client outside of the cluster, with count addresses of each family, at most 254. A node has at most one.
func (f *Fabric) AddOutside(gateway *Node, count int) (_ *Outside, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := &Outside{fabric: f, gateway: gateway}
	if o.Namespace, err = newNamespace(hostSysctls, prompt); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			o.Namespace.Close()
		}
	}()
	eth, err := f.plug(o.Namespace, o.link(), outsideKind, uint32(gateway.index))
	if err != nil {
		return nil, err
	}
	for i := range hostRanges {
		var own []netip.Addr
		for k := range count {
			a := hostAddress(i, outsideHosts+byte(gateway.index), byte(k+1)).Addr()
			if err := o.address(eth, netip.PrefixFrom(a, a.BitLen())); err != nil {
				return nil, err
			}
			own = append(own, a)
		}
		o.Addresses = append(o.Addresses, own)
		o.ranges = append(o.ranges, netip.PrefixFrom(own[0], own[0].BitLen()-8).Masked())
		err := errors.Join(o.neighbour(eth, gateway.Addresses[i], mac(nodeKind, uint32(gateway.index))), o.route(eth, everything[i], gateway.Addresses[i]))
		if err != nil {
			return nil, err
		}
	}
	for _, n := range f.nodes {
		if err := n.reply(o); err != nil {
			return nil, err
		}
	}
	f.outsides[gateway.index] = o
	return o, nil
}

// Narrow makes the gateway let packets of mtu bytes at most through to the address with the index, of either family.
func (o *Outside) Narrow(index, mtu int) error {
	var errs []error
	for _, own := range o.Addresses {
		errs = append(errs, o.gateway.routeWithin(mtu, o.gateway.uplink, netip.PrefixFrom(own[index], own[index].BitLen()), netip.Addr{}))
	}
	return errors.Join(errs...)
}

// Remove removes the client. Its sockets must be closed.
func (o *Outside) Remove() {
	f := o.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.outsides, o.gateway.index)
	for _, own := range o.Addresses {
		for _, a := range own { // those that are narrow
			o.gateway.unroute(netip.PrefixFrom(a, a.BitLen()))
		}
	}
	for _, n := range f.nodes {
		for _, r := range o.ranges {
			n.unroute(r)
		}
	}
	o.Namespace.Close() // before its link, see Pod.Remove
	f.unplug(o.link())
}

// SetLoopbackUp makes loopback addresses work in the namespace of this process.
func SetLoopbackUp() error {
	n, err := current()
	if err != nil {
		return err
	}
	defer n.Close()
	return n.up("lo")
}

// current is the namespace of this process.
func current() (*Namespace, error) {
	h, err := netns.GetFromPid(os.Getpid())
	if err != nil {
		return nil, err
	}
	links, err := netlink.NewHandleAt(h)
	if err != nil {
		h.Close()
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	return &Namespace{handle: h, links: links}, nil
}
