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
		Short: "Remove what killed runs have left in a cluster",
		Long: `Remove what runs that were killed have left in a cluster: the namespaces that they made, which carry the label service-conformance/run, and all that is
in them. Nothing else is touched. Do not call it while a run goes on. It waits until they are gone, and exits with 70 if one is left.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case kubeconfig == "" && !inPod():
				return usage("cleanup needs --kubeconfig, unless it runs in a pod of the cluster")
			case timeout <= 0:
				return usage("--timeout %s: it must be positive", timeout)
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
			return nil
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default in a pod: its service account)")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long it waits until all namespaces are gone")
	return cmd
}
