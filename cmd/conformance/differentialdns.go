package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/differential/dns"
	"github.com/service-conformance/conformance/internal/differential/random"
	"github.com/service-conformance/conformance/internal/lab"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

type differentialDNS struct {
	randomFlags
	version  string
	patience time.Duration
}

func newDifferentialDNS() *cobra.Command {
	f := &differentialDNS{}
	cmd := &cobra.Command{
		Use:   "dns [FILE...]",
		Short: "ask the DNS of the reference and of a lab for names of random Services, and show what differs",
		Long: `dns makes random Services with EndpointSlices, changes them, and has them on the reference and on a lab with CoreDNS. It asks for the names of Services,
of ports and of endpoints, and for the names of their addresses, and compares the records.

What differs twice is shrunk: the smallest zone that shows it is written to a file, and printed as kubectl commands. Files name zones that are compared
instead of random ones. A run can go on where it ended: the last line says how.

Exit codes: 0 nothing differs, 1 something differs, 2 the run was interrupted or a component ended, 64 wrong usage.`,
		Example: `  conformance differential dns --for 10m
  conformance differential dns conformance-report/differential/dns-42-17-1.json`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), cmd.OutOrStdout(), args) },
	}
	flags := cmd.Flags()
	f.register(flags, 12)
	flags.StringVar(&f.version, "kubernetes-version", programs.DefaultVersion, "Kubernetes version of the lab")
	flags.DurationVar(&f.patience, "patience", dns.Patience, "how long the lab may take to follow a change")
	return cmd
}

func (f *differentialDNS) run(ctx context.Context, out io.Writer, files []string) error {
	inputs, err := readInputs(files, dns.Parse)
	if err != nil {
		return usage("%w", err)
	}
	if err := f.validate(files); err != nil {
		return err
	}
	if f.patience <= 0 {
		return usage("--patience is positive")
	}
	return f.besideLab(ctx, out, lab.Options{Version: f.version, DataPlane: true}, func(sound, other candidate.Candidate) error {
		pair := &dns.Pair{Patience: f.patience}
		if pair.Reference, err = dns.NewSide(ctx, "reference", sound); err == nil {
			pair.Real, err = dns.NewSide(ctx, "lab", other)
		}
		if err != nil {
			return incomplete(ctx, err)
		}
		s := suite[dns.Zone, dns.Difference]{
			Test: random.Test[dns.Zone, dns.Difference]{Make: dns.Random, Compare: pair.Compare, Slots: dns.Slots},
			name: "dns", shrink: pair.Shrink, sent: func() string { return fmt.Sprintf("%d questions", pair.Questions.Load()) },
			commands: func(z dns.Zone, d dns.Difference) (string, error) { return pair.Real.Commands(z, d.Question) },
		}
		for _, t := range dns.Tolerances {
			s.tolerated = append(s.tolerated, [2]string{t.Name, t.Why})
		}
		return s.compare(ctx, out, &f.randomFlags, other, files, inputs)
	})
}
