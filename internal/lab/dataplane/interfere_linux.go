package dataplane

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/ownproxy"
)

// Interfere implements candidate.NodeOwner.
func (d *dataPlane) Interfere(ctx context.Context, name string, what candidate.Interference) error {
	n, err := d.ownNode(name)
	if err != nil {
		return err
	}
	switch what {
	case candidate.CutOff:
		return n.network.CutOff()
	case candidate.Disconnect:
		return n.network.Disconnect()
	case candidate.Reconnect:
		n.network.Reconnect()
		return nil
	}
	script := ownproxy.Script(what)
	if script == "" {
		return fmt.Errorf("unknown interference %q", what)
	}
	out, err := n.run(ctx, script)
	if err != nil {
		return fmt.Errorf("%s on %s: %w: %s", what, name, err, strings.TrimSpace(out))
	}
	return nil
}

// run runs a shell script in the namespace of the node and returns what it prints.
func (n *Node) run(ctx context.Context, script string) (string, error) {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script)
	cmd.Env = append(process.ServerEnvironment(), n.environment()...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := process.SpawnIn(n.network.Namespace)(cmd); err != nil {
		return "", err
	}
	err := cmd.Wait()
	return out.String(), err
}
