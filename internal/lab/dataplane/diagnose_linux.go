package dataplane

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

// diagnosisLines bounds a part of a diagnosis, so that all of it fits on a screen.
const diagnosisLines = 12

// Diagnose implements candidate.DataPlane. It returns the Service, its EndpointSlices, and the rules and the tracked
// connections that concern it. It does so for each node that the check has made or, if it has made none, for each
// shared node.
func (d *dataPlane) Diagnose(ctx context.Context, to netip.AddrPort) (string, error) {
	var b strings.Builder
	all, err := d.world.Api.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return "", err
	}
	svc := candidate.ServiceAt(all.Items, to)
	if svc == nil {
		fmt.Fprintf(&b, "no Service has %s\n", to)
	} else if err := d.world.describeService(ctx, &b, svc); err != nil {
		return "", err
	}
	d.mu.Lock()
	nodes := slices.SortedFunc(maps.Values(d.extra), func(a, b *Node) int { return strings.Compare(a.Name, b.Name) })
	d.mu.Unlock()
	if len(nodes) == 0 {
		nodes = d.world.Shared
	}
	for _, n := range nodes {
		rules, err := n.run(ctx, rulesScript(to, svc))
		if err != nil {
			rules += fmt.Sprintf("(%v)\n", err)
		}
		fmt.Fprintf(&b, "%s, rules:\n%s", n.Name, clipped(rules, "  none\n"))
	}
	return strings.TrimRight(b.String(), "\n"), nil
}

func (w *World) describeService(ctx context.Context, b *strings.Builder, s *corev1.Service) error {
	var ports []string
	for _, p := range s.Spec.Ports {
		ports = append(ports, fmt.Sprintf("%d/%s to %s", p.Port, p.Protocol, p.TargetPort.String()))
	}
	fmt.Fprintf(b, "Service %s/%s, type %s, ports %s\n", s.Namespace, s.Name, s.Spec.Type, strings.Join(ports, ", "))
	slices, err := w.Api.DiscoveryV1().EndpointSlices(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + s.Name})
	if err != nil {
		return err
	}
	for _, slice := range slices.Items {
		var list strings.Builder
		for _, e := range slice.Endpoints {
			node := "no node"
			if e.NodeName != nil {
				node = *e.NodeName
			}
			fmt.Fprintf(&list, "  %s on %s, ready %s, serving %s, terminating %s\n", strings.Join(e.Addresses, " "), node,
				truth(e.Conditions.Ready), truth(e.Conditions.Serving), truth(e.Conditions.Terminating))
		}
		fmt.Fprintf(b, "EndpointSlice %s (%s):\n%s", slice.Name, slice.AddressType, clipped(list.String(), "  no endpoints\n"))
	}
	return nil
}

func truth(b *bool) string {
	if b == nil {
		return "unset"
	}
	return fmt.Sprint(*b)
}

// rulesScript prints the rules of each mode that name the address or the Service (at a node port: its number). It also
// prints the tracked connections to there.
func rulesScript(to netip.AddrPort, service *corev1.Service) string {
	iptables, family := "iptables-save", "ip"
	address := to.Addr().Unmap()
	if address.Is6() {
		iptables, family = "ip6tables-save", "ip6"
	}
	pattern, tracked := address.String(), fmt.Sprintf("dst=%s .*dport=%d ", address.StringExpanded(), to.Port())
	if service != nil {
		pattern += fmt.Sprintf("|%s/%s", service.Namespace, service.Name)
		if !candidate.HasAddress(service, address) {
			pattern += fmt.Sprintf(`|\b%d\b`, to.Port())
		}
	}
	return fmt.Sprintf(`
if command -v %[1]s >/dev/null; then %[1]s -t nat 2>/dev/null | grep -E '%[2]s' | grep -v '^:'; fi
if command -v nft >/dev/null; then nft list table %[3]s kube-proxy 2>/dev/null | grep -E '%[2]s'; fi
if test -e /proc/net/ip_vs; then ipvsadm -Ln | grep -A 8 -F '%[4]s'; fi
if test -r /proc/net/nf_conntrack; then grep -E '%[5]s' /proc/net/nf_conntrack | sed 's/^/tracked: /'; fi
true`, iptables, pattern, family, to, tracked)
}

// clipped indents lines and leaves out those that are too many.
func clipped(text, none string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if text == "" {
		return none
	}
	more := ""
	if len(lines) > diagnosisLines {
		more = fmt.Sprintf("  … %d more\n", len(lines)-diagnosisLines)
		lines = lines[:diagnosisLines]
	}
	for i, l := range lines {
		lines[i] = "  " + strings.TrimSpace(l)
	}
	return strings.Join(lines, "\n") + "\n" + more
}
