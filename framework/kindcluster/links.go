package kindcluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sigs.k8s.io/kind/pkg/cluster/nodes"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Links make the links of pods narrow. Its methods are safe for concurrent use.
type Links struct{ nodes []nodes.Node }

// OpenLinks prepares to make links of a cluster of kind narrow.
func OpenLinks(cluster string) (*Links, error) {
	all, err := NewKind(cluster, "").nodes()
	if err != nil {
		return nil, err
	}
	return &Links{nodes: all}, nil
}

// noRoute is what the script of Narrow says of a pod without a route of its own.
const noRoute = "no route of its own"

// Narrow makes a node let packets of mtu bytes at most through to a pod. The network of kind gives each pod a route of its own, which goes with the pod. The error is a
// *candidate.UnavailableError where another network does not.
func (l *Links) Narrow(ctx context.Context, node string, pod []netip.Addr, mtu int) error {
	i := slices.IndexFunc(l.nodes, func(n nodes.Node) bool { return n.String() == node })
	if i < 0 {
		return errors.New("there is no node " + node)
	}
	said, err := onNodes(ctx, l.nodes[i:i+1], func(int) string { return narrowing(pod, mtu) })
	if err != nil {
		return err
	}
	if strings.Contains(said[0], noRoute) {
		return candidate.UnavailableHere("--tier lab", "the network of the cluster gives pods no routes of their own")
	}
	return nil
}

// narrowing is what a node runs to make its link to a pod narrow.
func narrowing(pod []netip.Addr, mtu int) string {
	var script strings.Builder
	for _, a := range pod {
		fmt.Fprintf(&script, "route=$(ip %s route show %s | head -n 1)\n", flag(a), netip.PrefixFrom(a, a.BitLen()))
		fmt.Fprintf(&script, "if [ -n \"$route\" ]; then ip %s route replace $route mtu %d; else echo '%s'; fi\n", flag(a), mtu, noRoute)
	}
	return script.String()
}
