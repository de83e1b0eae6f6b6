package kindcluster

import (
	"context"
	"fmt"

	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
)

// Controllers are those of the kube-controller-manager of a cluster of kind. Their methods are for one caller at a time.
type Controllers struct{ node []nodes.Node }

// thawed kills a kube-controller-manager that is stopped: the kubelet starts another one.
const thawed = `for p in $(pidof kube-controller-manager); do
	if grep -q '^State:[[:space:]]*T' /proc/$p/status; then kill -KILL $p; fi
done
`

// OpenControllers prepares to stop them, and starts those that a killed run has left stopped. The error says why that cannot be.
func OpenControllers(ctx context.Context, cluster string) (*Controllers, error) {
	all, err := NewKind(cluster, "").nodes()
	if err != nil {
		return nil, err
	}
	control, err := nodeutils.ControlPlaneNodes(all)
	if err != nil {
		return nil, err
	}
	if len(control) != 1 {
		return nil, fmt.Errorf("the cluster has %d control planes, and which has the controllers is not known", len(control))
	}
	ctx, cancel := context.WithTimeout(ctx, reachableWithin)
	defer cancel()
	c := &Controllers{node: control}
	if _, err := onNodes(ctx, c.node, func(int) string { return "pidof kube-controller-manager >/dev/null\n" + thawed }); err != nil {
		return nil, fmt.Errorf("no kube-controller-manager runs: %w", err)
	}
	return c, nil
}

// Stop keeps their process from running. It may be called for one that is stopped.
func (c *Controllers) Stop(ctx context.Context) error {
	if _, err := onNodes(ctx, c.node, func(int) string { return "kill -STOP $(pidof kube-controller-manager)\n" }); err != nil {
		return fmt.Errorf("stop kube-controller-manager: %w", err)
	}
	return nil
}

// Start ends the process that Stop has stopped, so that the kubelet starts another one, and waits until that runs. It finds the lease of the former one first, which
// lasts for 15 seconds.
func (c *Controllers) Start(ctx context.Context) error {
	script := thawed + `for i in $(seq 600); do
	if p=$(pidof kube-controller-manager) && ! grep -q '^State:[[:space:]]*[TZ]' /proc/${p%% *}/status; then exit 0; fi
	sleep 0.1
done
echo "the kubelet did not start it again within a minute" >&2
exit 1
`
	if _, err := onNodes(ctx, c.node, func(int) string { return script }); err != nil {
		return fmt.Errorf("start kube-controller-manager: %w", err)
	}
	return nil
}
