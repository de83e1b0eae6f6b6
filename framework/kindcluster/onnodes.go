package kindcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"sigs.k8s.io/kind/pkg/cluster/nodes"
)

// onNodes runs a script of its own in the shell of each node, on all of them at a time, and returns what each printed. An error is of all that failed.
func onNodes(ctx context.Context, all []nodes.Node, script func(i int) string) ([]string, error) {
	said, errs := make([]string, len(all)), make([]error, len(all))
	var wait sync.WaitGroup
	for i, n := range all {
		wait.Go(func() {
			var out, stderr bytes.Buffer
			if err := n.CommandContext(ctx, "sh", "-ec", script(i)).SetStdout(&out).SetStderr(&stderr).Run(); err != nil {
				errs[i] = fmt.Errorf("node %s: %w: %s", n, explained(err, nil), strings.TrimSpace(stderr.String()))
			}
			said[i] = out.String()
		})
	}
	wait.Wait()
	return said, errors.Join(errs...)
}
