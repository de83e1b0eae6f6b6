package kindcluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/kind/pkg/cluster/nodes"
)

// Proxies stop kube-proxy on the nodes of a cluster. Their methods are safe for concurrent use.
type Proxies struct{ nodes []nodes.Node }

// OpenProxies prepares to stop the proxies of a cluster of kind, and starts those that a killed run has left stopped. The error says why that cannot be, as where another
// proxy runs.
func OpenProxies(ctx context.Context, cluster string) (*Proxies, error) {
	all, err := NewKind(cluster, "").nodes()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, reachableWithin)
	defer cancel()
	_, err = onNodes(ctx, all, func(int) string {
		return "pids=$(pidof kube-proxy)\nfor p in $pids; do\n if grep -q '^State:[[:space:]]*T' /proc/$p/status; then kill -KILL $p; fi\ndone\n"
	})
	if err != nil {
		return nil, fmt.Errorf("no kube-proxy runs on every node: %w", err)
	}
	return &Proxies{nodes: all}, nil
}

// Stop keeps the process of a node's proxy from running, until its pod is deleted.
func (p *Proxies) Stop(ctx context.Context, node string) error {
	i := slices.IndexFunc(p.nodes, func(n nodes.Node) bool { return n.String() == node })
	if i < 0 {
		return errors.New("there is no node " + node)
	}
	_, err := onNodes(ctx, p.nodes[i:i+1], func(int) string { return "kill -STOP $(pidof kube-proxy)\n" })
	if err != nil {
		return fmt.Errorf("stop kube-proxy: %w", err)
	}
	return nil
}
