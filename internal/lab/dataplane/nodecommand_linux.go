package dataplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/service-conformance/conformance/internal/lab/controlplane"
	"github.com/service-conformance/conformance/internal/lab/network"
	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/processgroup"
)

// readyAttempt bounds one call of a proxy-ready command, tearDownTimeout one of a node-teardown or pod-teardown command.
const (
	readyAttempt    = 10 * time.Second
	readyPause      = 100 * time.Millisecond
	tearDownTimeout = time.Minute
)

// command runs a command of the user's in the network namespace of the node; what it says goes to the log of the proxy.
func (n *Node) command(ctx context.Context, command string) error {
	log, err := os.OpenFile(n.File(".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, process.Shell, process.ShellLine(proxyCommand(command, n.Name, n.world.Kubeconfig, n.network.Cgroup(), network.PodRanges))...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = slices.Concat(process.ServerEnvironment(), n.world.parts.Dir.Mark(), n.environment())
	cmd.Cancel, cmd.WaitDelay = func() error { return processgroup.Kill(cmd.Process) }, time.Second
	if err := process.SpawnIn(n.network.Namespace)(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// setUp prepares the node for the proxy.
func (n *Node) setUp(ctx context.Context) error {
	if n.world.parts.Proxy.Setup == "" {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, controlplane.StartTimeout, fmt.Errorf("no end after %s", controlplane.StartTimeout))
	defer cancel()
	if err := n.command(ctx, n.world.parts.Proxy.Setup); err != nil {
		return fmt.Errorf("node-setup command on %s: %w; its log ends with: %s", n.Name, errors.Join(err, context.Cause(ctx)), process.LogTail(n.File(".log"), 3))
	}
	n.prepared = true
	return nil
}

// tearDown undoes setUp. An interruption does not keep it from that, and what goes wrong goes with the node: it is in the log.
func (n *Node) tearDown() {
	if !n.prepared || n.world.parts.Proxy.Teardown == "" {
		return
	}
	n.prepared = false
	ctx, cancel := context.WithTimeout(context.Background(), tearDownTimeout)
	defer cancel()
	if err := n.command(ctx, n.world.parts.Proxy.Teardown); err != nil {
		fmt.Fprintf(os.Stderr, "node-teardown command on %s: %v; its log ends with: %s\n", n.Name, err, process.LogTail(n.File(".log"), 3))
	}
}

// waitReady waits until the proxy-ready command succeeds. Without one nothing is known of when the proxy is ready: checks converge.
func (n *Node) waitReady(ctx context.Context) error {
	if n.world.parts.Proxy.Ready == "" {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, controlplane.StartTimeout, fmt.Errorf("the proxy-ready command does not succeed within %s", controlplane.StartTimeout))
	defer cancel()
	for {
		attempt, done := context.WithTimeout(ctx, readyAttempt)
		err := n.command(attempt, n.world.parts.Proxy.Ready)
		done()
		if err == nil {
			return nil
		}
		select {
		case <-n.proxy.Done:
			return fmt.Errorf("%s: %w", n.Name, n.proxy.DiedError())
		case <-ctx.Done():
			return fmt.Errorf("wait for the proxy of %s: %w (at last: %w); its log ends with: %s", n.Name, context.Cause(ctx), err, process.LogTail(n.proxy.Log, 3))
		case <-time.After(readyPause):
		}
	}
}

// setUpPod tells the proxy of a new pod, and reports whether it did. A node without a proxy has nobody to tell.
func (n *Node) setUpPod(p *pod) (bool, error) {
	command := n.world.parts.Proxy.PodSetup
	if command == "" || !n.proxyState().Running {
		return false, nil
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), controlplane.StartTimeout, fmt.Errorf("no end after %s", controlplane.StartTimeout))
	defer cancel()
	if err := n.command(ctx, p.fill(command)); err != nil {
		return false, fmt.Errorf("pod-setup command on %s: %w; its log ends with: %s", n.Name, errors.Join(err, context.Cause(ctx)), process.LogTail(n.File(".log"), 3))
	}
	return true, nil
}

// tearDownPod undoes setUpPod. What goes wrong goes with the pod: it is in the log.
func (n *Node) tearDownPod(p *pod) {
	command := n.world.parts.Proxy.PodTeardown
	if command == "" || !n.proxyState().Running {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), tearDownTimeout)
	defer cancel()
	if err := n.command(ctx, p.fill(command)); err != nil {
		fmt.Fprintf(os.Stderr, "pod-teardown command on %s: %v; its log ends with: %s\n", n.Name, err, process.LogTail(n.File(".log"), 3))
	}
}

// fill puts what a CNI plugin is told of a pod in the place of its placeholders.
func (p *pod) fill(command string) string {
	return process.Fill(command, "{pod-interface}", p.network.Interface(), "{pod-namespace}", p.Namespace, "{pod-name}", p.Name)
}
