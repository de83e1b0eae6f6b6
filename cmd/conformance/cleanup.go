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
		Long: `Remove what runs that were killed have left. On this machine these are temporary folders of this user whose process is gone, processes of its labs, and clusters of tier
kind, for which a Docker engine must answer, or of --cluster-command, whose teardown command is called; the next run removes them, too. In a cluster, if one is named, these are the namespaces that runs made, which carry the label service-conformance/run, and all that is in them.
Nothing else is touched. Do not name a cluster while a run goes on there. It waits until the namespaces are gone, and exits with 70 if one is left, or if something on this machine is.`,
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
