package check

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

// paceBounds limits the time in which the proxies of some nodes serve a plain Service, while other nodes meet the
// demand. It counts bounds of the demand. Beyond it, the check is unknown.
const paceBounds = 4

// controlPace asks whether the nodes where a demand is unmet keep pace with changes at all. It exposes a plain Service
// and waits until these nodes serve it. It returns the time that this took: the demand may take as long, too. Where
// other nodes meet the demand, and these nodes do not serve the plain Service either, their proxies are starved or not
// at work. The check is then unknown. Where no node meets the demand, the plain Service has no longer than the demand
// had, within, and the demand stays unmet.
func (n *Network) controlPace(ctx context.Context, within time.Duration, cases []Case, outcomes [][]candidate.Outcome) time.Duration {
	ginkgo.GinkgoHelper()
	behind, elsewhere := n.behind(cases, outcomes)
	if len(behind) == 0 {
		return 0
	}
	bound := within
	if elsewhere {
		bound *= paceBounds
	}
	defer n.journal.aside()()
	name := n.Name("pace")
	pod := n.Start(ctx, candidate.Pod{PodName: candidate.PodName{Name: name}, Node: n.elsewhere(Host(behind[0])), Labels: map[string]string{"app": name}})
	clients := make([]candidate.Client, len(behind)) // in pods: not every implementation serves the processes of a node
	for i, node := range behind {
		clients[i] = n.ClientPod(ctx, node)
	}
	watch, pause := startStopwatch(), n.Patiently(pollInterval)
	defer watch.stop()
	svc := n.Expose(ctx, Service(name, WithPorts(Port("", corev1.ProtocolTCP, plainPort, BackendPort))))
	address, err := netip.ParseAddr(svc.Spec.ClusterIP)
	if err != nil {
		Abort("no control of the pace: the Service %s has the address %q", name, svc.Spec.ClusterIP)
	}
	for {
		probes := make([]candidate.Probe, len(behind))
		for i, client := range clients {
			probes[i] = candidate.Probe{From: client, To: netip.AddrPortFrom(address, plainPort), Protocol: corev1.ProtocolTCP, Count: 1}
		}
		var still []string
		for i, o := range n.send(ctx, probes...) {
			if o[0].Result != candidate.Answered || o[0].Pod != pod.PodName {
				still = append(still, behind[i])
			}
		}
		took := watch.elapsed()
		switch {
		case len(still) == 0:
			Record("pace", "the nodes where the demand was not met serve a plain Service %.1f s after it was created: %s", took.Seconds(), strings.Join(behind, ", "))
			return took
		case took >= bound && elsewhere:
			Abort("the nodes %s do not serve a plain Service %.0f s after it was created either, while other nodes meet the demand: their proxies are starved or not at work",
				strings.Join(still, ", "), took.Seconds())
		case took >= bound:
			return 0
		}
		n.pause(ctx, pause)
		pause = n.nextPause(pause, took, bound)
	}
}

// plainPort is the port of the Service that tells the pace.
const plainPort = 80

// behind returns the shared nodes at which cases are unmet, and whether others of the same demand are met at other nodes.
func (n *Network) behind(cases []Case, outcomes [][]candidate.Outcome) (nodes []string, elsewhere bool) {
	var met []string
	for i := range cases {
		switch node := n.servedBy(&cases[i]); {
		case !n.shares(node):
		case cases[i].Want.Met(outcomes[i]):
			met = append(met, node)
		case !slices.Contains(nodes, node):
			nodes = append(nodes, node)
		}
	}
	return nodes, slices.ContainsFunc(met, func(node string) bool { return !slices.Contains(nodes, node) })
}

// servedBy is the node whose proxy serves a case: that of the client, or the one that the client outside of the cluster sends to.
func (n *Network) servedBy(c *Case) string {
	if node := n.nodeOf(c.From); node != "" {
		return node
	}
	for _, node := range n.plane.Nodes() {
		if slices.Contains(node.Addresses, c.To.Addr()) || slices.Contains(node.SecondaryAddresses, c.To.Addr()) {
			return node.Name
		}
	}
	return ""
}
