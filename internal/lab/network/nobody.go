//go:build linux

package network

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"github.com/vishvananda/netlink"
)

// nowhere is the interface that the namespace of this process forwards to what nobody has.
const nowhere = "nowhere"

// fresh removes the table of an earlier network of this process.
const fresh = "nft delete table inet nobody 2>/dev/null\n"

// refusals reject what goes there, by the first of the programs that this machine has. The kernel itself tells a peer
// only once a second that it knows no route (ip_error in net/ipv4/route.c of Linux). The limits on ICMP errors do not
// change that.
const refusals = fresh + `
{ nft -f - <<-end
	add table inet nobody
	add chain inet nobody forward { type filter hook forward priority 0; }
	add rule inet nobody forward oifname nowhere reject with icmpx type no-route
	end
} 2>/dev/null && exit
iptables -A FORWARD -o nowhere -j REJECT --reject-with icmp-net-unreachable &&
ip6tables -A FORWARD -o nowhere -j REJECT --reject-with icmp6-no-route`

// rules make the other surroundings, by nft.
func rules(s Surroundings, port int) string {
	filter := "oifname nowhere drop"
	nat := ""
	switch s {
	case Resetting:
		filter = "oifname nowhere meta l4proto tcp reject with tcp reset\n\t\toifname nowhere reject with icmpx type port-unreachable"
	case Accepting:
		nat = fmt.Sprintf("\tchain prerouting {\n\t\ttype nat hook prerouting priority -100;\n\t\tip daddr { %s } return\n\t\tip6 daddr { %s } return\n\t\tiifname nodes meta l4proto tcp redirect to :%d\n\t}\n",
			joinedRanges(0), joinedRanges(1), port)
	}
	return fmt.Sprintf(fresh+"nft -f - <<-end\ntable inet nobody {\n\tchain forward {\n\t\ttype filter hook forward priority 0;\n\t\t%s\n\t}\n%s}\nend", filter, nat)
}

// joinedRanges are all of a family that somebody in the lab can have, and link-local ones.
func joinedRanges(family int) string {
	local := []string{"127.0.0.0/8, 169.254.0.0/16", "fe80::/10, ff00::/8"}[family]
	return strings.Join([]string{PodRanges[family].String(), hostRanges[family].String(), local}, ", ")
}

// Surround sets what the network does with addresses that nobody has. path is where its programs, nft or iptables, are
// looked for. It reports whether one of them works, which all but Unreachable need.
func (f *Fabric) Surround(s Surroundings, path string) (bool, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = nowhere
	link := &netlink.Bridge{LinkAttrs: attrs}
	if err := f.root.links.LinkAdd(link); err != nil {
		return false, fmt.Errorf("make interface %s: %w", nowhere, err)
	}
	if err := f.root.up(nowhere); err != nil {
		return false, err
	}
	script := refusals
	if s != Unreachable {
		port, err := f.accept(s)
		if err != nil {
			return false, err
		}
		script = rules(s, port)
	}
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env = append(os.Environ(), "PATH="+path)
	var said strings.Builder
	cmd.Stderr = &said
	if err := f.root.Do(cmd.Start); err != nil {
		return false, err
	}
	if err := cmd.Wait(); err != nil {
		if s != Unreachable {
			err = fmt.Errorf("surroundings that are %s need nft: %w: %s", s, err, strings.TrimSpace(said.String()))
			return false, err
		}
		return false, nil
	}
	for _, all := range everything {
		if err := f.root.route(link, all, netip.Addr{}); err != nil {
			return false, err
		}
	}
	return true, nil
}

// accept listens for whatever is sent to nobody, if the surroundings accept it, and returns the port.
func (f *Fabric) accept(s Surroundings) (port int, err error) {
	if s != Accepting {
		return 0, nil
	}
	if err := f.root.Do(func() error { f.stranger, err = net.Listen("tcp", ":0"); return err }); err != nil { //nolint:gosec // in a namespace of its own
		return 0, fmt.Errorf("listen for what nobody has: %w", err)
	}
	go func() {
		for {
			c, err := f.stranger.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.ReadFull(c, make([]byte, 1))
				_ = c.(*net.TCPConn).SetLinger(0) // a reset
				_ = c.Close()
			}()
		}
	}()
	return f.stranger.Addr().(*net.TCPAddr).Port, nil
}
