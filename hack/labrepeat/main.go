// Command labrepeat runs `conformance run` many times and reports every check whose verdict differs from run to run. A deviation that
// is listed as intermittent may differ.
//
//	go run ./hack/labrepeat -n 50 bin/conformance run --tier lab
//	go run ./hack/labrepeat -each surroundings=silent,accepting bin/conformance run --tier lab --suite proxy
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
)

func main() {
	n := flag.Int("n", 50, "number of runs")
	each := flag.String("each", "", "a flag and its values, NAME=VALUE,VALUE…: one run with each instead of -n runs")
	flag.Parse()
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
	differing, err := repeat(commands)
	if err != nil {
		fmt.Fprintln(os.Stderr, "labrepeat:", err)
		os.Exit(report.ExitHarness)
	}
	if differing > 0 {
		os.Exit(report.ExitNonConformant)
	}
}

// repeat runs the commands, one after the other, and returns the number of checks whose verdict was not the same each time.
func repeat(commands [][]string) (int, error) {
	n := len(commands)
	dir, err := os.MkdirTemp("", "labrepeat-")
	if err != nil {
		return 0, err
	}
	seen := map[string]map[check.Verdict][]int{}
	var times []float64
	for i, command := range commands {
		i++
		r, err := once(filepath.Join(dir, fmt.Sprint(i)), command)
		if err != nil {
			return 0, fmt.Errorf("run %d: %w", i, err)
		}
		times = append(times, r.Seconds)
		for _, c := range r.Checks {
			name := c.DisplayName()
			if seen[name] == nil {
				seen[name] = map[check.Verdict][]int{}
			}
			seen[name][verdictOf(&c)] = append(seen[name][verdictOf(&c)], i)
		}
		fmt.Printf("run %2d  %s  %5.1f s  %s  (%d conformant, %d non-conformant, %d unknown, %d not applicable checks)\n", i,
			r.Started.Format(time.TimeOnly), r.Seconds, r.VerdictLine(), r.Summary.Checks.Conformant, r.Summary.Checks.NonConformant, r.Summary.Checks.Unknown, r.Summary.Checks.NotApplicable)
	}
	differing := 0
	for _, name := range sortedNames(seen) {
		if len(seen[name]) == 1 && total(seen[name]) == n {
			continue
		}
		if onlyIntermittent(seen[name]) && total(seen[name]) == n {
			fmt.Printf("intermittent, as listed: %s", name)
		} else {
			differing++
			fmt.Printf("differs: %s", name)
		}
		for v, runs := range seen[name] {
			fmt.Printf("; %s in %d runs %v", v, len(runs), runs)
		}
		fmt.Println()
	}
	if differing == 0 {
		_ = os.RemoveAll(dir)
	} else {
		fmt.Printf("the reports are in %s\n", dir)
	}
	slices.Sort(times)
	fmt.Printf("%d runs of %d checks, median %.1f s, slowest %.1f s: %d verdicts differ from run to run\n", n, len(seen), times[len(times)/2], times[len(times)-1], differing)
	return differing, nil
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

func once(dir string, command []string) (*report.Report, error) {
	output, err := exec.Command(command[0], append(slices.Clone(command[1:]), "--report-dir", dir)...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	data, readErr := os.ReadFile(filepath.Join(dir, report.JSONFile))
	if readErr != nil {
		return nil, fmt.Errorf("%w\n%s", errors.Join(err, readErr), strings.TrimSpace(string(output)))
	}
	var r report.Report
	return &r, json.Unmarshal(data, &r)
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
