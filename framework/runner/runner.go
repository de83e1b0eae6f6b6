// Package runner runs the checks against a candidate, in this process or in parallel workers of the same binary, and
// collects the results.
package runner

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/formatter"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// Selection says which checks run and on what. It is plain data, so that it reaches parallel workers.
type Selection struct {
	// Suites are names of suites; empty selects all.
	Suites []string `json:"suites,omitempty"`
	// Focus are requirement IDs or check names, or globs on them; empty selects all.
	Focus []string `json:"focus,omitempty"`
	// Skip are requirement IDs or check names, or globs on them, that are left out of what Focus selects.
	Skip []string `json:"skip,omitempty"`
	// MaxWait bounds the time that the candidate has to follow a change, where a demand gives it more; 0 does not.
	MaxWait time.Duration `json:"maxWait,omitempty"`
	// Features are the features that the candidate claims; empty claims all.
	Features []string `json:"features,omitempty"`
	// Profiles are the profiles that the candidate claims; empty claims all.
	Profiles []spec.Profile `json:"profiles,omitempty"`
	// ClaimedSuites are the suites that are about the candidate, such as proxy of one that is a proxy; empty are all.
	ClaimedSuites []string `json:"claimedSuites,omitempty"`
	// ServiceCIDRs replace the ranges of the checks that run on any range.
	ServiceCIDRs []string `json:"serviceCIDRs,omitempty"`
	// Sharing selects checks by what they need of a cluster whose range is the only one of ServiceCIDRs; empty selects all.
	Sharing []check.Sharing `json:"sharing,omitempty"`
	// Elsewhere are ranges of other clusters that share the work: what has such a range for itself runs there.
	Elsewhere []string `json:"elsewhere,omitempty"`
	// OtherRanges also runs checks that Focus selects and that name other ranges than ServiceCIDRs.
	OtherRanges bool `json:"otherRanges,omitempty"`
	// Slow includes slow checks.
	Slow bool `json:"slow,omitempty"`
	// Shard selects, of the checks that the rest selects, those of one shard; the zero value selects all.
	Shard candidate.Shard `json:"shard,omitzero"`
	// Beside says that the other shards may be at work on the same candidate.
	Beside bool `json:"beside,omitempty"`
	// ExpectedToFail are names of checks that begin first (check.Setup).
	ExpectedToFail []string `json:"expectedToFail,omitempty"`
}

// Options are what a run needs.
type Options struct {
	Selection
	Candidate candidate.Candidate
	// Parallel is the number of worker processes; 1 runs the checks in this process.
	Parallel int
	// Outlives says that the candidate is there when this process has ended, so that interrupted workers clean up.
	Outlives bool
	// RunID distinguishes the objects of this run; empty makes one.
	RunID string
	// Seed makes random choices repeatable.
	Seed int64
	// Version is the version of the suite.
	Version string
	// Requests is how many of its requests each result tells (check.Setup); for runs in this process.
	Requests int
	// SecondAttempt runs checks a second time that the environment left unknown by what may pass, see secondAttempt. It needs a binary that is a worker (Work).
	SecondAttempt bool
	// Sink receives the events of the run, one at a time.
	Sink check.Sink
}

// Claims reports whether an optional feature is claimed.
func (s *Selection) Claims(feature string) bool {
	return (len(s.Features) == 0 || slices.Contains(s.Features, feature)) && (len(s.Profiles) == 0 || slices.Contains(s.Profiles, spec.Profile(feature)))
}

// Claimed are the requirements that the candidate claims and that a check decides.
func (s *Selection) Claimed(declarations []check.Declaration) map[spec.ID]bool {
	claimed := map[spec.ID]bool{}
	for _, d := range declarations {
		if len(s.ClaimedSuites) > 0 && !slices.Contains(s.ClaimedSuites, d.Suite) {
			continue
		}
		for _, id := range d.Requirements {
			r := spec.Default().Get(id)
			if (len(s.Features) == 0 || slices.Contains(s.Features, r.Feature)) && (len(s.Profiles) == 0 || slices.Contains(s.Profiles, r.Profile)) {
				claimed[id] = true
			}
		}
	}
	return claimed
}

// Unasked are the requirements that the candidate claims and of which this selection has no check run, sorted. What the other shards judge is not among them.
func (s *Selection) Unasked(declarations []check.Declaration) (ids []spec.ID) {
	asked := map[spec.ID]bool{}
	for _, d := range declarations {
		if !s.selects(d) || d.OtherRanges {
			continue
		}
		for _, id := range d.Requirements {
			asked[id] = true
		}
	}
	for id := range s.Claimed(declarations) {
		if !asked[id] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Validate finds names in the selection that mean nothing. declarations are all checks.
func (s *Selection) Validate(declarations []check.Declaration) error {
	var problems []error
	suites, features := map[string]bool{}, map[string]bool{}
	for _, d := range declarations {
		suites[d.Suite] = true
	}
	for _, r := range spec.Default().Requirements {
		features[r.Feature] = true
	}
	for _, name := range slices.Concat(s.Suites, s.ClaimedSuites) {
		if !suites[name] {
			problems = append(problems, fmt.Errorf("unknown suite %q; there are %s", name, sortedKeys(suites)))
		}
	}
	for _, name := range s.Features {
		if !features[name] {
			problems = append(problems, fmt.Errorf("unknown feature %q; there are %s", name, sortedKeys(features)))
		}
	}
	for _, name := range s.Profiles {
		if all := spec.Default().Profiles(); !slices.Contains(all, name) {
			problems = append(problems, fmt.Errorf("unknown profile %q; there are %s", name, joined(all)))
		}
	}
	for _, f := range slices.Concat(s.Focus, s.Skip) {
		matches := spec.Glob(f)
		known := slices.ContainsFunc(spec.Default().Requirements, func(r spec.Requirement) bool { return matches(string(r.ID)) }) ||
			slices.ContainsFunc(declarations, func(d check.Declaration) bool { return matches(d.Name) })
		if !known {
			problems = append(problems, fmt.Errorf("no requirement and no check matches %q%s; `conformance list` shows them", f, meant(f)))
		}
	}
	if len(problems) == 0 && s.Shard.Of > 0 {
		if n := s.Divided(declarations); s.Shard.Of > n {
			problems = append(problems, fmt.Errorf("shard %s: each shard needs a check, and the selection has %d", s.Shard, n))
		}
	}
	return errors.Join(problems...)
}

func joined(profiles []spec.Profile) string {
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = string(p)
	}
	return strings.Join(names, ", ")
}

func sortedKeys(m map[string]bool) string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return strings.Join(keys, ", ")
}

func (s *Selection) selects(d check.Declaration) bool {
	for _, suites := range [][]string{s.Suites, s.ClaimedSuites} {
		if len(suites) > 0 && !slices.Contains(suites, d.Suite) {
			return false
		}
	}
	return (len(s.Focus) == 0 || matchAny(s.Focus, d)) && !matchAny(s.Skip, d)
}

// matchAny reports whether one of the patterns is of the check's name or of one of its requirements.
func matchAny(patterns []string, d check.Declaration) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		matches := spec.Glob(p)
		return matches(d.Name) || slices.ContainsFunc(d.Requirements, func(id spec.ID) bool { return matches(string(id)) })
	})
}

func (s *Selection) setup(c candidate.Candidate, sink check.Sink, runID, version string) check.Setup {
	setup := check.Setup{
		Candidate: c, Sink: sink, ServiceCIDRs: s.ServiceCIDRs, OnlyServiceCIDRs: len(s.Focus) > 0 && len(s.ServiceCIDRs) > 0 && !s.OtherRanges, Slow: s.Slow, Select: s.selects, ExpectedToFail: s.ExpectedToFail, MaxWait: s.MaxWait, Features: s.Features, Profiles: s.Profiles,
		RunID: runID, Version: version,
	}
	if len(s.Sharing) > 0 || len(s.Elsewhere) > 0 {
		setup.SelectRange = func(d check.Declaration, serviceCIDR string) bool {
			if slices.Contains(s.Elsewhere, serviceCIDR) && d.SharingOn(serviceCIDR, serviceCIDR) == check.OwnRange {
				return false
			}
			return len(s.Sharing) == 0 || slices.Contains(s.Sharing, d.SharingOn(serviceCIDR, strings.Join(s.ServiceCIDRs, "")))
		}
	}
	if s.Shard.Of > 0 {
		elsewhere := s.elsewhere(setup)
		setup.Select = func(d check.Declaration) bool { return s.selects(d) && !elsewhere[d.Name] }
		if s.Beside {
			setup.Beside = s.Shard
		}
	}
	return setup
}

// Plan returns how many results a run with this selection will give.
func Plan(s Selection) int {
	check.Configure(s.setup(nil, nil, "", ""))
	n := 0
	for _, d := range check.Preview() {
		n += d.Runs
	}
	return n
}

// Run runs the selected checks and returns when all have run, or at most EndsWithin after the context ends.
// The error tells that the harness broke, never that a check failed. It may be called once per process.
func Run(ctx context.Context, o Options) error {
	silence()
	if o.RunID == "" {
		o.RunID = NewRunID()
	}
	open := &gate{sink: o.Sink}
	o.Sink = open.pass
	defer open.close()
	first := &firstAttempt{sink: open.pass}
	if o.SecondAttempt {
		o.Sink = first.pass
		defer first.settle()
	}
	ended := make(chan error, 1)
	go func() {
		err := runAll(ctx, o)
		if again := first.leave(); len(again) > 0 && err == nil && ctx.Err() == nil {
			o.Sink, o.Parallel = first.replace, min(o.Parallel, len(again))
			err = runParallel(ctx, o, again)
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(EndsWithin): // a check that does not heed its context is left to itself
		return nil
	}
}

// runAll runs the selected checks once.
func runAll(ctx context.Context, o Options) error {
	if o.Parallel > 1 {
		return runParallel(ctx, o, nil)
	}
	suite, reporter := ginkgo.GinkgoConfiguration()
	configure(&suite, o.Seed)
	setup := o.setup(o.Candidate, o.Sink, o.RunID, o.Version)
	setup.Context, setup.Requests = ctx, o.Requests
	check.RunConfigured(&harness{}, setup, suite, reporter)
	return nil
}

// Bounds on what happens after a run was ended. Workers that have not finished the cleanup end, and then Run returns,
// whatever else goes on. What they could not remove is left to the caller.
const (
	workerEndsWithin = 4 * time.Second
	EndsWithin       = 6 * time.Second
)

// NewRunID makes what distinguishes the objects of a run.
func NewRunID() string { return strings.ToLower(rand.Text()[:6]) }

// gate passes events on until it is closed.
type gate struct {
	mu     sync.Mutex
	closed bool
	sink   check.Sink
}

func (g *gate) pass(e check.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed && g.sink != nil {
		g.sink(e)
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

func configure(suite *types.SuiteConfig, seed int64) {
	suite.RandomSeed = seed
	suite.Timeout = 0
}

// harness stands in for *testing.T: a failed suite is no failure of the harness.
type harness struct{}

func (*harness) Fail() {}

// silence keeps Ginkgo's own report off the screen: the run's report is ours.
func silence() {
	formatter.ColorableStdOut = io.Discard
	formatter.ColorableStdErr = io.Discard
}

// settings reach every worker.
type settings struct {
	Selection Selection `json:"selection"`
	RunID     string    `json:"runID"`
	Version   string    `json:"version"`
	Outlives  bool      `json:"outlives,omitempty"`
	Again     []string  `json:"again,omitempty"` // names of checks, see check.Setup
}

func decodeEvent(raw json.RawMessage, sink check.Sink) {
	var e check.Event
	if err := json.Unmarshal(raw, &e); err == nil && sink != nil {
		sink(e)
	}
}

// devNull opens the null device for writing.
func devNull() (*os.File, error) { return os.OpenFile(os.DevNull, os.O_WRONLY, 0) }
