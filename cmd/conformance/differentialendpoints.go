package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/reference/apiserver"
	"github.com/service-conformance/conformance/internal/differential"
	"github.com/service-conformance/conformance/internal/lab"
	"github.com/service-conformance/conformance/internal/lab/dataplane"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

type differentialEndpoints struct {
	randomFlags
	version string
}

func newDifferentialEndpoints() *cobra.Command {
	f := &differentialEndpoints{}
	cmd := &cobra.Command{
		Use:   "endpoints [FILE...]",
		Short: "change random Pods on the reference and on a lab's API server with its controllers, and show what differs",
		Long: `endpoints tells random stories of Pods and Services to the reference and to a kube-apiserver with the endpoint controllers of Kubernetes. Pods come, change
their status and go. Services select them, or have Endpoints that somebody wrote. The EndpointSlices and Endpoints that come out are compared.

What differs twice is shrunk: the shortest story that shows it is written to a file, and printed with both results. Files name stories that are told
instead of random ones. A run can go on where it ended: the last line says how.

Exit codes: 0 nothing differs, 1 something differs, 2 the run was interrupted or a component ended, 64 wrong usage.`,
		Example: `  conformance differential endpoints --for 10m
  conformance differential endpoints conformance-report/differential/endpoints-42-17-1.json`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), cmd.OutOrStdout(), args) },
	}
	flags := cmd.Flags()
	f.register(flags, 12)
	flags.StringVar(&f.version, "kubernetes-version", programs.DefaultVersion, "Kubernetes version of the lab")
	return cmd
}

func (f *differentialEndpoints) run(ctx context.Context, out io.Writer, files []string) error {
	s := stories{
		name: "endpoints", version: f.version, make: differential.RandomPods, compare: (*differential.Pair).CompareControllers, shrink: (*differential.Pair).ShrinkControllers,
		reference: apiserver.Options{Controllers: true}, lab: lab.Options{Controllers: dataplane.EndpointControllers},
		prepare: (*differential.Pair).Nodes,
	}
	return s.run(ctx, out, &f.randomFlags, files)
}
