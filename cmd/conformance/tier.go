package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

// tier is a place where candidates run, as --tier names it. Each has a file of its own.
type tier interface {
	name() string
	// register adds the flags that this tier alone has.
	register(flags *pflag.FlagSet)
	// validate returns wrong usage. A tier that is not the chosen one refuses its flags.
	validate(f *runFlags, chosen bool) error
	// run makes the candidate, and judges it (plan.judge) or has other processes judge it. Its errors carry their exit code.
	run(ctx context.Context, r *plan) error
}

// place is a candidate, and what a run has to know of where it is.
type place struct {
	candidate.Candidate
	// workers is how many processes judge it, unless --parallel says it.
	workers int
	// shared says that other runs, as those of other shards, may be at work on it.
	shared bool
	// outlives says that it is there when this process has ended, so that workers clean up.
	outlives bool
	// disposable says that nothing needs to be removed at the end, for all of it goes.
	disposable bool
	// surrounded says that the network around it is not known, and is to be asked.
	surrounded bool
	// leaves is what a run that ends at once leaves in it; empty if that is nothing.
	leaves string
	// removeRun removes what the checks of an interrupted run had no time to remove; nil if nothing is left.
	removeRun func(id string)
	closed    bool
}

// closeWithin bounds how long it may take to stop and remove what was started.
const closeWithin = time.Minute

// close stops and removes what was started, unless it goes by itself or is closed.
func (p *place) close() { p.account("") }

// account is close, and tells what is left of a run; nil where that cannot be told.
func (p *place) account(run string) *candidate.Residue {
	if p.disposable || p.closed {
		return nil
	}
	p.closed = true
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	var left *candidate.Residue
	var err error
	if c, can := p.Candidate.(candidate.Accountable); can && run != "" {
		var r candidate.Residue
		if r, err = c.CloseAndAccount(ctx, run); err == nil || len(r.Left) > 0 { // who could not look does not say that there is none
			left = &r
		}
	} else {
		err = p.Close(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance: cleaning up:", err)
	}
	return left
}

// fewWorkers judge what is not known to bear more, or to need fewer.
const fewWorkers = 4

// tierFlags choose and configure what is under test.
type tierFlags struct {
	tier      string // its name
	reference referenceTier
	lab       labTier
	kind      kindTier
	cluster   clusterTier

	// Flags of two tiers; the others refuse them.
	version    string // of the lab, or of the reference
	proxyMode  string // of the lab, or of clusters of kind
	agentImage string // of clusters, those of kind too
	keep       bool   // clusters of kind, or of --cluster-command
}

// tiers are all that there are, in the order in which their flags are validated: the first mistake is told.
func (f *tierFlags) tiers() []tier { return []tier{&f.reference, &f.lab, &f.cluster, &f.kind} }

// chosen is the tier that --tier names; nil if there is none of that name.
func (f *tierFlags) chosen() tier {
	for _, t := range f.tiers() {
		if t.name() == f.tier {
			return t
		}
	}
	return nil
}

func (f *tierFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.tier, "tier", f.reference.name(), "where the candidate runs: reference (in this process), lab (real kube-apiserver and etcd), kind (clusters of containers) or cluster (any kubeconfig)")
	flags.StringVar(&f.version, "kubernetes-version", programs.DefaultVersion, "Kubernetes version of the lab, or whose rules the reference follows")
	registerProxyMode(flags, &f.proxyMode)
	flags.StringVar(&f.agentImage, "agent-image", "", "image of the pods that checks of traffic start in a cluster, as its nodes can pull it or have it")
	flags.BoolVar(&f.keep, "keep", false, "leave the clusters of tier kind or of --cluster-command, and print where their kubeconfigs are")
	for _, t := range f.tiers() {
		t.register(flags)
	}
}

// validateTier returns wrong usage of the flags of all tiers.
func (f *runFlags) validateTier() error {
	chosen := f.chosen()
	if chosen == nil {
		return usage("unknown tier %q; there are reference, lab, kind and cluster", f.tier)
	}
	for _, t := range f.tiers() {
		if err := t.validate(f, t == chosen); err != nil {
			return err
		}
	}
	return nil
}

// noProxyMode refuses --proxy-mode.
func (f *tierFlags) noProxyMode() error {
	if f.proxyMode != "" {
		return usage("--proxy-mode is for --tier lab and --tier kind")
	}
	return nil
}

// noAgentImage refuses --agent-image.
func (f *tierFlags) noAgentImage() error {
	if f.agentImage != "" {
		return usage("--agent-image is for --tier cluster and --tier kind")
	}
	return nil
}

// noPod refuses --sonobuoy, for which a tier must be able to judge from a pod.
func (f *runFlags) noPod() error {
	if f.sonobuoy.on {
		return usage("--sonobuoy is for a pod of a cluster, which tier %s does not judge: use --tier cluster", f.tier)
	}
	return nil
}
