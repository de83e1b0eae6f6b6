package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/lab"
	"github.com/service-conformance/conformance/internal/lab/isolation"
	"github.com/service-conformance/conformance/internal/lab/standing"
)

// runsPrograms is a candidate that can tell of the programs that it runs.
type runsPrograms interface {
	OnEnd(func(lab.Log))
	KeepLogs(folder string) ([]lab.Log, error)
}

// enterLab runs this program anew in the network of a lab that is up, unless it runs there already. It reports whether it did, and returns what the other process ends with.
func enterLab(ctx context.Context, name string) (done bool, err error) {
	if isolation.Entered() {
		return false, nil
	}
	code, err := passingSignals(ctx, func(signals <-chan os.Signal) (int, error) { return standing.Enter("", name, signals) })
	if err != nil {
		return false, labError(ctx, err)
	}
	return true, &exitError{code: code}
}

// attachLab makes a candidate of the lab that this process has entered.
func attachLab(ctx context.Context) (candidate.Candidate, error) {
	a, err := standing.Attach(ctx)
	if err != nil {
		return nil, labError(ctx, err)
	}
	return a, nil
}

func newLabRestartProxy() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "restart-proxy NODE…",
		Short: "restart the proxy on nodes of a lab that is up",
		Long: `Restart the proxy on each node that you name, with the command that the lab has, and wait until it serves. What the proxy has done to the node
stays meanwhile, as after a crash. Pods, Services and the API server go on. Use it while you write a proxy: build, restart, judge.`,
		Example: `  conformance lab up --proxy-command './my-proxy --kubeconfig {kubeconfig} --node {node}'
  go build ./cmd/my-proxy && conformance lab restart-proxy node-1 node-2 node-3 && conformance run --tier lab --attach --focus proxy-tcp-forwarded`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("name one or more nodes: conformance lab restart-proxy node-1")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return restartProxies(cmd.Context(), cmd.OutOrStdout(), name, args)
		},
	}
	registerLabName(cmd, &name)
	return cmd
}

// restartProxies starts the proxies side by side.
func restartProxies(ctx context.Context, out io.Writer, name string, nodes []string) error {
	errs := make(chan error, len(nodes))
	for _, node := range nodes {
		go func() { errs <- standing.RestartProxy(ctx, "", name, node) }()
	}
	var first error
	for range nodes {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	if first != nil {
		return labError(ctx, first)
	}
	for _, node := range nodes {
		fmt.Fprintf(out, "the proxy of %s serves\n", node)
	}
	return nil
}
