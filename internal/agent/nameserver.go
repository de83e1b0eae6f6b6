package agent

import (
	"fmt"
	"net"
	"os"
	"strings"
)

// podDNS is what the pod's own programs know of the DNS.
func podDNS() (dns, error) { return readDNS("/etc/resolv.conf") }

// dns is a part of what a file as resolv.conf(5) describes it says.
type dns struct {
	server string // the first one, with the port of DNS
	domain string // of the cluster, which is in the search list of its pods; empty if it is not
}

func readDNS(file string) (d dns, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return d, fmt.Errorf("find the DNS of this pod: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 2 && f[0] == "nameserver" && d.server == "":
			d.server = net.JoinHostPort(f[1], "53")
		case len(f) >= 2 && f[0] == "search":
			for _, name := range f[1:] {
				if domain, services := strings.CutPrefix(name, "svc."); services && d.domain == "" { // the cluster's own come first
					d.domain = domain
				}
			}
		}
	}
	if d.server == "" {
		return d, fmt.Errorf("find the DNS of this pod: %s names no nameserver; look at the dnsPolicy of the pod", file)
	}
	return d, nil
}
