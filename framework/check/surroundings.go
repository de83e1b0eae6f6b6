package check

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

// surroundingsWithin is how long an answer is waited for before it counts as silence.
const surroundingsWithin = 3 * time.Second

// FindSurroundings asks, from each kind of client, what the network does with an address that nobody has, by TCP and by UDP. It is for people: checks ask for themselves
// where a verdict hangs on it.
func FindSurroundings(ctx context.Context, c candidate.Candidate) (found []candidate.Surrounding, err error) {
	plane, err := c.DataPlane(ctx, candidate.DataPlaneRequest{})
	if err != nil {
		return nil, err
	}
	defer plane.Release()
	node, what := plane.Nodes()[0], c.Describe()
	pod, err := plane.LendPod(ctx, node.Name, nil)
	if err != nil {
		return nil, err
	}
	clients := []struct {
		kind string
		from candidate.Client
	}{{"pods", FromPod(pod)}, {"nodes", Host(node.Name)}, {"clients outside", Outside(node.Name)}}
	for _, client := range clients {
		var probes []candidate.Probe
		var asked []candidate.Surrounding
		for _, a := range node.Addresses {
			for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
				probes = append(probes, candidate.Probe{From: client.from, To: netip.AddrPortFrom(nobody(&what, a), 80), Protocol: protocol, Count: 1, Timeout: surroundingsWithin, Repeats: lossRepeats})
				asked = append(asked, candidate.Surrounding{Clients: client.kind, To: nobody(&what, a), Protocol: protocol})
			}
		}
		outcomes, err := plane.Send(ctx, probes)
		switch {
		case candidate.IsUnavailable(err): // there is no such client
			continue
		case err != nil:
			return nil, err
		}
		for i, os := range outcomes {
			asked[i].Says = saysOfNobody(os[0])
		}
		found = append(found, asked...)
	}
	return slices.DeleteFunc(found, func(s candidate.Surrounding) bool { return s.Says == "" }), nil
}

// saysOfNobody is what an outcome says of an address that nobody has; empty if the prober could not send.
func saysOfNobody(o candidate.Outcome) string {
	switch {
	case o.Result == candidate.Broken:
		return ""
	case o.Result == candidate.Unreachable:
		return fmt.Sprintf("unreachable (%s)", o.Error)
	case o.Result == candidate.Dropped && !o.Stranger:
		return "silence"
	}
	return describe([]candidate.Outcome{o})[len("1× "):]
}
