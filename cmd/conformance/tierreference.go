package main

import (
	"cmp"
	"context"
	"os"
	"runtime/debug"

	"github.com/spf13/pflag"

	"github.com/service-conformance/conformance/framework/reference"
	"github.com/service-conformance/conformance/framework/reference/absent"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/spec"
)

// referenceTier is the reference, in this process.
type referenceTier struct {
	faults  []string
	without []string
}

func (*referenceTier) name() string { return "reference" }

func (t *referenceTier) register(flags *pflag.FlagSet) {
	flags.StringSliceVar(&t.faults, "fault", nil, "deliberate bugs to start the reference with")
	flags.StringSliceVar(&t.without, "without", nil, "optional features that the reference is started without and does not claim, unless --feature names them; \"proxy:NAME\" takes one from the proxy alone")
}

func (t *referenceTier) validate(f *runFlags, chosen bool) error {
	if _, err := namedFaults(t.faults); err != nil {
		return err
	}
	if _, err := absent.Parse(t.without...); err != nil {
		return usage("--without: %w", err)
	}
	switch {
	case chosen:
		return cmp.Or(f.noProxyMode(), f.noAgentImage())
	case len(t.without) > 0:
		return usage("--without is for --tier reference: with --feature, name the features that others claim")
	case len(t.faults) > 0:
		return usage("--fault is for --tier reference: a real API server has only its own bugs")
	}
	return nil
}

// namedFaults are those that --fault names. An empty one is wrong usage: a script whose list is empty would judge without any, or try all.
func namedFaults(names []string) (fault.Set, error) {
	if names != nil && len(names) == 0 {
		return fault.Set{}, usage("--fault is empty: name a fault, or leave it out")
	}
	set, err := fault.Parse(names...)
	if err != nil {
		return fault.Set{}, usage("%w", err)
	}
	return set, nil
}

// features are those that a reference claims from which some were taken; nil are all.
func (t *referenceTier) features() []string {
	lacks, err := absent.Parse(t.without...)
	if err != nil || len(lacks) == 0 {
		return nil
	}
	return spec.Default().FeaturesWithout(lacks.Features()...)
}

func (t *referenceTier) run(ctx context.Context, r *plan) error {
	collectSeldom()
	faults, err := namedFaults(t.faults)
	if err != nil {
		return err
	}
	lacks, err := absent.Parse(t.without...)
	if err != nil {
		return usage("--without: %w", err)
	}
	c, err := reference.New(reference.Options{Faults: faults, Absent: lacks, Seed: uint64(r.seed), Version: r.version})
	if err != nil {
		return usage("start the reference: %w", err)
	}
	return r.judge(ctx, &place{Candidate: c, workers: 1})
}

// collectSeldom lets memory grow more than Go does by itself. The reference runs in this process, for two seconds: a seventh of them would
// go into collecting.
func collectSeldom() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(400)
	}
}
