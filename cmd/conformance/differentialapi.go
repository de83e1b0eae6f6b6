package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/internal/differential"
	"github.com/service-conformance/conformance/internal/lab"
	"github.com/service-conformance/conformance/internal/lab/controlplane"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

type differentialAPI struct {
	randomFlags
	version string
	servers programs.ServerOptions
}

func newDifferentialAPI() *cobra.Command {
	f := &differentialAPI{}
	cmd := &cobra.Command{
		Use:   "api [FILE...]",
		Short: "send random requests to the reference and to a lab's kube-apiserver, and show what differs",
		Long: `api tells random stories to the reference and to a kube-apiserver: requests about Services, EndpointSlices, Endpoints, ServiceCIDRs and IPAddresses that follow each other.
It compares codes, reasons, the fields that causes name, warnings and objects. Texts of messages and what a server chooses by itself are not compared.

What differs twice is shrunk: the shortest story that shows it is written to a file, and printed with both answers. Files name stories that are told
instead of random ones. A run can go on where it ended: the last line says how.

Exit codes: 0 nothing differs, 1 something differs, 2 the run was interrupted or a component ended, 64 wrong usage.`,
		Example: `  conformance differential api --for 10m
  conformance differential api --kubernetes-version v1.33.13 --seed 42
  conformance differential api conformance-report/differential/api-42-17-1.json`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), cmd.OutOrStdout(), args) },
	}
	flags := cmd.Flags()
	f.register(flags, 8)
	flags.StringVar(&f.version, "kubernetes-version", programs.DefaultVersion, "Kubernetes version of the lab")
	registerServers(flags, &f.servers)
	return cmd
}

func (f *differentialAPI) run(ctx context.Context, out io.Writer, files []string) error {
	if err := validateServers(f.servers); err != nil {
		return err
	}
	v, err := programs.ParseVersion(f.version)
	if err != nil {
		return usage("%w", err)
	}
	s := stories{
		name: "api", version: f.version, make: differential.RandomStory, compare: (*differential.Pair).Compare, shrink: (*differential.Pair).Shrink,
		lab: lab.Options{Servers: f.servers}, tolerances: differential.Tolerances,
	}
	if v.ServiceCIDRAPI() {
		s.lab.Controllers = controlplane.ServiceCIDRController
	}
	return s.run(ctx, out, &f.randomFlags, files)
}
