package agent

import (
	"fmt"
	"net"
	"os"
	"strings"
)

// podNameserver is where the pod's own programs ask for names.
func podNameserver() (string, error) { return nameserver("/etc/resolv.conf") }

// nameserver returns the first name server of a file as resolv.conf(5) describes it, with the port of DNS.
func nameserver(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("find the DNS of this pod: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "nameserver" {
			return net.JoinHostPort(f[1], "53"), nil
		}
	}
	return "", fmt.Errorf("find the DNS of this pod: %s names no nameserver; look at the dnsPolicy of the pod", file)
}
