package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/differential/random"
	"github.com/service-conformance/conformance/internal/differential/traffic"
	"github.com/service-conformance/conformance/internal/lab"
	"github.com/service-conformance/conformance/internal/lab/dataplane"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

type differentialTraffic struct {
	randomFlags
	version  string
	proxy    dataplane.ProxyOptions
	patience time.Duration
}

func newDifferentialTraffic() *cobra.Command {
	f := &differentialTraffic{}
	cmd := &cobra.Command{
		Use:   "traffic [FILE...]",
		Short: "send traffic through random Services on the reference and on a lab, and show what differs",
		Long: `traffic makes random Services with EndpointSlices, changes them, and has them on the reference and on a lab. It sends traffic from pods, nodes and clients
outside, and compares who answers, with which client address, and how connections are refused. A share is no difference: an endpoint must be met, or must not.

What differs twice is shrunk: the smallest topology that shows it is written to a file, and printed as kubectl commands. Files name topologies that
are compared instead of random ones. A run can go on where it ended: the last line says how.

Exit codes: 0 nothing differs, 1 something differs, 2 the run was interrupted or a component ended, 64 wrong usage.`,
		Example: `  conformance differential traffic --for 10m
  conformance differential traffic --proxy-mode nftables --seed 42 --from 1200
  conformance differential traffic conformance-report/differential/traffic-42-17-1.json`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), cmd.OutOrStdout(), args) },
	}
	flags := cmd.Flags()
	f.register(flags, 24)
	flags.StringVar(&f.version, "kubernetes-version", programs.DefaultVersion, "Kubernetes version of the lab")
	flags.DurationVar(&f.patience, "patience", traffic.Patience, "how long the lab may take to follow a change")
	registerProxyMode(flags, &f.proxy.Mode)
	registerProxy(flags, &f.proxy)
	return cmd
}

func (f *differentialTraffic) run(ctx context.Context, out io.Writer, files []string) error {
	inputs, err := readInputs(files, traffic.Parse)
	if err != nil {
		return usage("%w", err)
	}
	if err := f.validate(files); err != nil {
		return err
	}
	if f.patience <= 0 {
		return usage("--patience is positive")
	}
	if err := validateProxy(&f.proxy); err != nil {
		return err
	}
	return f.besideLab(ctx, out, lab.Options{Version: f.version, DataPlane: true, Proxy: f.proxy}, func(sound, other candidate.Candidate) error {
		pair, err := sides(ctx, sound, other, f.patience)
		if err != nil {
			return incomplete(ctx, err)
		}
		s := suite[traffic.Topology, traffic.Difference]{
			Test: random.Test[traffic.Topology, traffic.Difference]{Make: traffic.Random, Compare: pair.Compare, Slots: traffic.Slots},
			name: "traffic", shrink: pair.Shrink, sent: func() string { return fmt.Sprintf("%d probes", pair.Probes.Load()) },
			commands: func(t traffic.Topology, _ traffic.Difference) (string, error) { return pair.Real.Kubectl(t) },
		}
		for _, t := range traffic.Tolerances {
			s.tolerated = append(s.tolerated, [2]string{t.Name, t.Why})
		}
		return s.compare(ctx, out, &f.randomFlags, other, files, inputs)
	})
}

// sides starts the pods on both.
func sides(ctx context.Context, sound, other candidate.Candidate, patience time.Duration) (*traffic.Pair, error) {
	first, err := traffic.NewSide(ctx, "reference", sound)
	if err != nil {
		return nil, err
	}
	second, err := traffic.NewSide(ctx, "lab", other)
	if err != nil {
		return nil, err
	}
	return traffic.NewPair(first, second, patience), nil
}
