//go:build linux

package network

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// inside is the name that every namespace's interface to its neighbour has.
const inside = "eth0"

// connect makes a virtual cable: an interface with the given name in n, up, and one called eth0 in peer, up. Hardware addresses are
// given, so that neighbours can be entered by hand: resolving them takes time and, with IPv6, probes for duplicates.
func (n *Namespace) connect(name string, mac net.HardwareAddr, peer *Namespace, peerMAC net.HardwareAddr) (here, there netlink.Link, err error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = name, mac
	cable := &netlink.Veth{LinkAttrs: attrs, PeerName: inside, PeerHardwareAddr: peerMAC, PeerNamespace: netlink.NsFd(peer.handle)}
	if err := n.links.LinkAdd(cable); err != nil {
		return nil, nil, fmt.Errorf("make interface %s: %w", name, err)
	}
	for ns, end := range map[*Namespace]string{n: name, peer: inside} {
		if err := ns.Do(func() error { return withoutOffload(end) }); err != nil {
			return nil, nil, fmt.Errorf("checksums of interface %s: %w", end, err)
		}
		if err := ns.up(end); err != nil {
			return nil, nil, err
		}
	}
	if here, err = n.links.LinkByName(name); err != nil {
		return nil, nil, err
	}
	there, err = peer.links.LinkByName(inside)
	return here, there, err
}

// address gives an interface an address, ready for use at once.
func (n *Namespace) address(l netlink.Link, a netip.Prefix) error {
	addr := &netlink.Addr{IPNet: ipNet(a)}
	if a.Addr().Is6() {
		addr.Flags = unix.IFA_F_NODAD
	}
	if err := n.links.AddrAdd(l, addr); err != nil {
		return fmt.Errorf("add address %s to %s: %w", a, l.Attrs().Name, err)
	}
	return nil
}

// route sends traffic for to through a gateway on the interface's link, or, without a gateway, straight to the link.
func (n *Namespace) route(l netlink.Link, to netip.Prefix, gateway netip.Addr) error {
	return n.routeWithin(0, l, to, gateway)
}

// routeWithin is route for packets of so many bytes at most, unless it is 0. To who sends larger ones the namespace says so.
func (n *Namespace) routeWithin(mtu int, l netlink.Link, to netip.Prefix, gateway netip.Addr) error {
	r := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: ipNet(to), MTU: mtu}
	if gateway.IsValid() {
		r.Gw = net.IP(gateway.AsSlice())
		r.SetFlag(netlink.FLAG_ONLINK)
	} else {
		r.Scope = netlink.SCOPE_LINK
	}
	if err := n.links.RouteReplace(r); err != nil {
		return fmt.Errorf("route %s through %s: %w", to, l.Attrs().Name, err)
	}
	return nil
}

// block drops what the namespace sends to to.
func (n *Namespace) block(to netip.Prefix) error {
	if err := n.links.RouteReplace(&netlink.Route{Type: unix.RTN_BLACKHOLE, Dst: ipNet(to)}); err != nil {
		return fmt.Errorf("block %s: %w", to, err)
	}
	return nil
}

// unroute removes the route for to; that there is none is no error.
func (n *Namespace) unroute(to netip.Prefix) {
	_ = n.links.RouteDel(&netlink.Route{Dst: ipNet(to)})
}

// neighbour enters the hardware address of an address for good.
func (n *Namespace) neighbour(l netlink.Link, a netip.Addr, mac net.HardwareAddr) error {
	family := unix.AF_INET
	if a.Is6() {
		family = unix.AF_INET6
	}
	err := n.links.NeighSet(&netlink.Neigh{
		LinkIndex: l.Attrs().Index, Family: family, State: netlink.NUD_PERMANENT, IP: net.IP(a.AsSlice()), HardwareAddr: mac,
	})
	if err != nil {
		return fmt.Errorf("enter neighbour %s: %w", a, err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: net.IP(p.Addr().AsSlice()), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// mac makes a locally administered hardware address of a kind and a number.
func mac(kind byte, number uint32) net.HardwareAddr {
	return net.HardwareAddr{0x02, kind, byte(number >> 24), byte(number >> 16), byte(number >> 8), byte(number)}
}
