//go:build linux

package network

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"

	"github.com/vishvananda/netlink"
)

// nowhere is the interface that the namespace of this process forwards to what nobody has.
const nowhere = "nowhere"

// refusals reject what goes there, by the first of the programs that this machine has. The kernel itself tells a peer only once a second that it knows no route
// (ip_error in net/ipv4/route.c of Linux), whatever the limits on ICMP errors are.
const refusals = `
{ nft -f - <<-end
	add table inet nobody
	add chain inet nobody forward { type filter hook forward priority 0; }
	add rule inet nobody forward oifname nowhere reject with icmpx type no-route
	end
} 2>/dev/null && exit
iptables -A FORWARD -o nowhere -j REJECT --reject-with icmp-net-unreachable &&
ip6tables -A FORWARD -o nowhere -j REJECT --reject-with icmp6-no-route`

// RefuseNobody lets the network tell everybody each time that there is no way to an address that nobody has. path is where its programs, nft or iptables, are
// looked for; it reports whether there is one that works.
func (f *Fabric) RefuseNobody(path string) (bool, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = nowhere
	link := &netlink.Bridge{LinkAttrs: attrs}
	if err := f.root.links.LinkAdd(link); err != nil {
		return false, fmt.Errorf("make interface %s: %w", nowhere, err)
	}
	if err := f.root.up(nowhere); err != nil {
		return false, err
	}
	cmd := exec.Command("/bin/sh", "-c", refusals)
	cmd.Env = append(os.Environ(), "PATH="+path)
	if err := f.root.Do(cmd.Start); err != nil {
		return false, err
	}
	if cmd.Wait() != nil {
		return false, nil
	}
	for _, all := range everything {
		if err := f.root.route(link, all, netip.Addr{}); err != nil {
			return false, err
		}
	}
	return true, nil
}
