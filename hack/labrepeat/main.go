//go:build linux

// Command labrepeat runs `conformance run` many times and reports every check whose verdict differs from run to run. A deviation that
// is listed as intermittent may differ.
//
//	go run ./hack/labrepeat -n 50 bin/conformance run --tier lab
//	go run ./hack/labrepeat -each surroundings=silent,accepting bin/conformance run --tier lab --suite proxy
//	go run ./hack/labrepeat -n 10 -stress none,processors,memory,worker,disk bin/conformance run --tier lab
//
// Under stress a check may be unknown. A verdict that turns from conformant to non-conformant or back is shown with both evidences.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
)

func main() {
	n := flag.Int("n", 50, "number of runs")
	each := flag.String("each", "", "a flag and its values, NAME=VALUE,VALUE…: one run with each instead of -n runs")
	under := flag.String("stress", "", "what makes the machine worse meanwhile, one of them after the other: none, processors, memory, worker, disk, writer")
	seed := flag.Uint64("seed", 1, "seed of the moments of stress")
	flag.Parse()
	chosen, err := parseStresses(*under)
	if err != nil {
		fmt.Fprintln(os.Stderr, "labrepeat:", err)
		os.Exit(report.ExitUsage)
	}
	name, values, valid := strings.Cut(*each, "=")
	if flag.NArg() == 0 || *each != "" && !valid {
		fmt.Fprintln(os.Stderr, "usage: labrepeat [-n N | -each FLAG=VALUE,VALUE…] COMMAND ARG…")
		os.Exit(report.ExitUsage)
	}
	var commands [][]string
	for v := range strings.SplitSeq(values, ",") {
		if valid {
			commands = append(commands, slices.Concat(flag.Args(), []string{"--" + name, v}))
		}
	}
	for range *n {
		if !valid {
			commands = append(commands, flag.Args())
		}
	}
	differing, err := (&series{commands: commands, stresses: chosen, random: rand.New(rand.NewPCG(*seed, 0))}).run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "labrepeat:", err)
		os.Exit(report.ExitHarness)
	}
	if differing > 0 {
		os.Exit(report.ExitNonConformant)
	}
}

// series is a number of runs, and what was seen in them.
type series struct {
	commands [][]string
	stresses []stress
	random   *rand.Rand

	seen    map[string]map[check.Verdict][]int
	reports []*report.Report
	times   []float64
}

// run runs the commands, one after the other, and returns the number of checks whose verdict was not the same each time.
func (s *series) run() (int, error) {
	n := len(s.commands)
	dir, err := os.MkdirTemp("", "labrepeat-")
	if err != nil {
		return 0, err
	}
	s.seen = map[string]map[check.Verdict][]int{}
	for i, command := range s.commands {
		under := s.stresses[i%len(s.stresses)]
		i++
		r, did, err := s.once(filepath.Join(dir, fmt.Sprint(i)), command, under)
		if err != nil {
			return 0, fmt.Errorf("run %d, stress %s: %w", i, under.name, err)
		}
		s.reports, s.times = append(s.reports, r), append(s.times, r.Seconds)
		for _, c := range r.Checks {
			name := c.DisplayName()
			if s.seen[name] == nil {
				s.seen[name] = map[check.Verdict][]int{}
			}
			s.seen[name][verdictOf(&c)] = append(s.seen[name][verdictOf(&c)], i)
		}
		residue := r.ResidueLine()
		if residue == "" {
			residue = "nobody looked"
		}
		if under.name != "none" && did == "" {
			did = "no occasion"
		}
		fmt.Printf("run %2d  %s  stress %-28s  %5.1f s  %s  (%d conformant, %d non-conformant, %d unknown, %d not judged, %d not applicable checks, %d not run)  residue: %s\n", i,
			r.Started.Format(time.TimeOnly), strings.TrimSuffix(under.name+": "+did, ": "), r.Seconds, r.VerdictLine(), r.Summary.Checks.Conformant, r.Summary.Checks.NonConformant, r.Summary.Checks.Unknown, r.Summary.Checks.NotJudged, r.Summary.Checks.NotApplicable, r.NotRun, residue)
	}
	differing, undecided := 0, 0
	for _, name := range sortedNames(s.seen) {
		switch verdicts := s.seen[name]; {
		case len(verdicts) == 1 && total(verdicts) == n:
		case len(s.stresses) > 1 && onlyUndecided(verdicts):
			undecided++
		case onlyIntermittent(verdicts) && total(verdicts) == n:
			fmt.Printf("intermittent, as listed: %s%s\n", name, inRuns(verdicts))
		default:
			differing++
			fmt.Printf("differs: %s%s\n", name, inRuns(verdicts))
			s.showBoth(name)
		}
	}
	if differing == 0 {
		_ = os.RemoveAll(dir)
	} else {
		fmt.Printf("the reports are in %s\n", dir)
	}
	slices.Sort(s.times)
	fmt.Printf("%d runs of %d checks, median %.1f s, slowest %.1f s: %d verdicts differ from run to run", n, len(s.seen), s.times[len(s.times)/2], s.times[len(s.times)-1], differing)
	if undecided > 0 {
		fmt.Printf("; %d were not decided in every run, and agree where they were", undecided)
	}
	fmt.Println()
	return differing, nil
}

// inRuns says which verdict was seen in which runs.
func inRuns(verdicts map[check.Verdict][]int) string {
	text := ""
	for _, v := range slices.Sorted(maps.Keys(verdicts)) {
		text += fmt.Sprintf("; %s in %d runs %v", v, len(verdicts[v]), verdicts[v])
	}
	return text
}

// showBoth prints what the check saw in the first run of each verdict.
func (s *series) showBoth(name string) {
	shown := map[check.Verdict]bool{}
	for i, r := range s.reports {
		for k := range r.Checks {
			c := &r.Checks[k]
			if c.DisplayName() != name || shown[verdictOf(c)] {
				continue
			}
			shown[verdictOf(c)] = true
			fmt.Printf("  run %d: %s, %.1f s\n", i+1, verdictOf(c), c.Seconds)
			if c.Failure != nil {
				fmt.Printf("    %s\n", strings.ReplaceAll(strings.TrimSpace(c.Failure.Message), "\n", "\n    "))
			} else if c.Reason != "" {
				fmt.Printf("    %s\n", c.Reason)
			}
			for _, e := range c.Evidence {
				fmt.Printf("    %s: %s\n", e.Name, e.Value)
			}
		}
	}
}

// onlyUndecided reports whether every run that decided the check found the same.
func onlyUndecided(verdicts map[check.Verdict][]int) bool {
	decided := 0
	for v := range verdicts {
		if v != check.Unknown && v != check.Blocked {
			decided++
		}
	}
	return decided <= 1 || decided == 2 && len(verdicts[check.Conformant]) > 0 && len(verdicts[listedIntermittent]) > 0
}

// listedIntermittent is the verdict on a check that fails now and then, as a published list of known deviations says.
const listedIntermittent check.Verdict = "known deviation, intermittent"

func verdictOf(c *report.CheckVerdict) check.Verdict {
	if c.KnownDeviation != nil && c.KnownDeviation.Intermittent {
		return listedIntermittent
	}
	return c.Verdict
}

// onlyIntermittent reports whether a check is conformant but where it fails as listed: then runs need not agree.
func onlyIntermittent(verdicts map[check.Verdict][]int) bool {
	return len(verdicts) == 2 && len(verdicts[check.Conformant]) > 0 && len(verdicts[listedIntermittent]) > 0
}

// once runs a command under stress, and says what that has done.
func (s *series) once(dir string, command []string, under stress) (_ *report.Report, did string, _ error) {
	cmd := exec.Command(command[0], append(slices.Clone(command[1:]), "--report-dir", filepath.Join(dir, "report"))...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if under.prepare != nil {
		restore, err := under.prepare(dir, cmd)
		if err != nil {
			return nil, "", err
		}
		defer func() { did = restore() }()
	}
	if err := cmd.Start(); err != nil {
		return nil, did, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var beside sync.WaitGroup
	if under.during != nil {
		beside.Go(func() { did = under.during(ctx, cmd, s.random) })
	}
	err := cmd.Wait()
	cancel()
	beside.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, did, err
	}
	data, readErr := os.ReadFile(filepath.Join(dir, "report", report.JSONFile))
	if readErr != nil {
		return nil, did, fmt.Errorf("%w\n%s", errors.Join(err, readErr), strings.TrimSpace(output.String()))
	}
	var r report.Report
	return &r, did, json.Unmarshal(data, &r)
}

func total(verdicts map[check.Verdict][]int) (n int) {
	for _, runs := range verdicts {
		n += len(runs)
	}
	return n
}

func sortedNames(m map[string]map[check.Verdict][]int) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
