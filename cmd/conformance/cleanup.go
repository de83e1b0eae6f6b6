package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/cluster"
)

func newCleanup() *cobra.Command {
	var kubeconfig string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove what killed runs have left, on this machine and in a cluster",
		Long: `Remove what runs that were killed have left. The next run does the same on this machine.

On this machine it removes this user's temporary folders whose process is gone, and the processes of their labs. It deletes clusters of tier
kind, for which a Docker engine must answer. It calls the teardown command for clusters of --cluster-command.

In a cluster, if you name one, it removes the namespaces with the label service-conformance/run, and all that is in them.
It touches nothing else. Do not name a cluster while a run goes on there. The command waits until the namespaces are gone.
It exits with 70 if something is left.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if timeout <= 0 {
				return usage("--timeout %s: it must be positive", timeout)
			}
			paths, left := removeLeft()
			for _, path := range paths {
				fmt.Fprintln(cmd.OutOrStdout(), "folder", path)
			}
			if left != nil {
				left = harness("remove what a killed run has left on this machine: %w", left)
			}
			if kubeconfig == "" && !inPod() {
				return left
			}
			client, err := cluster.Connect(kubeconfig)
			if err != nil {
				return usage("%w", err)
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, fmt.Errorf("that took longer than --timeout %s", timeout))
			defer cancel()
			removed, err := cluster.Cleanup(ctx, client, 0)
			for _, name := range removed {
				fmt.Fprintln(cmd.OutOrStdout(), "namespace", name)
			}
			if err != nil {
				if e := interrupted(cmd.Context(), err); e != nil {
					return e
				}
				return harness("%w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d namespaces removed\n", len(removed))
			return left
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of a cluster (default in a pod: its service account; else none)")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long it waits until all namespaces are gone")
	return cmd
}
