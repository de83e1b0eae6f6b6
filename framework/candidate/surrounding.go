package candidate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Surrounding is what the network does with an address that nobody has.
type Surrounding struct {
	// Clients are the kind of clients that sent: "pods", "nodes" or "clients outside".
	Clients  string          `json:"clients"`
	To       netip.Addr      `json:"to"`
	Protocol corev1.Protocol `json:"protocol"`
	// Says is "silence", "refused", "unreachable" with the ICMP error, or that a stranger answers or accepts.
	Says string `json:"says"`
}

// SurroundingsText tells them in one line, those together that are alike.
func SurroundingsText(all []Surrounding) string {
	var says []string
	who := map[string][]string{}
	for _, s := range all {
		text := fmt.Sprintf("%s by %s", s.Clients, s.Protocol)
		if s.To.Is6() {
			text += " (IPv6)"
		}
		if who[s.Says] == nil {
			says = append(says, s.Says)
		}
		if !slices.Contains(who[s.Says], text) {
			who[s.Says] = append(who[s.Says], text)
		}
	}
	var parts []string
	for _, what := range says {
		part := what + " for " + strings.Join(who[what], ", ")
		if len(says) == 1 {
			part = what + " for every client"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}
