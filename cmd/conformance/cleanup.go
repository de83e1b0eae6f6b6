package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/cluster"
)

func newCleanup() *cobra.Command {
	var kubeconfig string
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove what killed runs have left in a cluster",
		Long: `Remove what runs that were killed have left in a cluster: the namespaces that they made, which carry the label service-conformance/run, and all that is
in them. Nothing else is touched. Do not call it while a run goes on.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kubeconfig == "" {
				return usage("cleanup needs --kubeconfig")
			}
			removed, err := cluster.Cleanup(cmd.Context(), kubeconfig, 0)
			for _, name := range removed {
				fmt.Fprintln(cmd.OutOrStdout(), "namespace", name)
			}
			if err != nil {
				if e := interrupted(cmd.Context(), err); e != nil {
					return e
				}
				return usage("%w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d namespaces removed\n", len(removed))
			return nil
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the cluster")
	return cmd
}
