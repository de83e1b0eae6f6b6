package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/pflag"

	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/internal/sonobuoy"
)

// sonobuoyFlags make a run a plugin of Sonobuoy.
type sonobuoyFlags struct {
	on       bool
	progress *sonobuoy.Progress // nil if it is off
}

func (s *sonobuoyFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&s.on, "sonobuoy", false, "run as a plugin of Sonobuoy: reports go to its folder of results, news of the progress to its worker")
}

// told tells Sonobuoy of a check that has ended, as JUnit will.
func (s *sonobuoyFlags) told(c *report.CheckVerdict) {
	s.progress.Done(c.StableName(), c.Red(), string(c.Verdict))
}

// forSonobuoy runs, and then hands over what there is, whatever came of it: nobody but Sonobuoy looks at the pod. The error is that of the run.
func (f *runFlags) forSonobuoy(out io.Writer, flags *pflag.FlagSet, run func() error) (err error) {
	results, err := sonobuoy.OpenResults()
	if err != nil {
		return usage("--sonobuoy: %w", err)
	}
	named := flags.Changed("report-dir")
	f.reportDir = results.ReportDir()
	f.sonobuoy.progress = sonobuoy.StartProgress()
	defer func() {
		panicked := recover()
		if panicked != nil {
			err = harness("the program panicked: %v\n%s", panicked, debug.Stack())
		}
		outcome := outcomeOf(f.reportDir, err)
		message, _, _ := strings.Cut(outcome.Text, "\n")
		if lost := f.sonobuoy.progress.Stop(message); lost != nil {
			fmt.Fprintln(os.Stderr, "conformance:", lost)
		}
		if handing := handOver(results, out, outcome); handing != nil {
			err = harness("%w", errors.Join(err, handing))
		}
		if panicked != nil {
			panic(panicked)
		}
	}()
	if named {
		return usage("--report-dir: with --sonobuoy the reports are in Sonobuoy's folder of results")
	}
	return run()
}

// handOver gives Sonobuoy the reports, as far as there are any, and the outcome.
func handOver(results *sonobuoy.Results, out io.Writer, outcome sonobuoy.Outcome) error {
	whole, err := results.WriteOutcome(outcome)
	if err != nil {
		return err
	}
	dir := results.ReportDir()
	archive, err := results.Submit(filepath.Join(dir, report.JUnitFile), filepath.Join(dir, report.JSONFile), whole)
	if err == nil {
		fmt.Fprintf(out, "results for Sonobuoy: %s\n", archive)
	}
	return err
}

// outcomeOf is how a run ended that returned the error and has left its report, if there is one, in the folder.
func outcomeOf(dir string, err error) sonobuoy.Outcome {
	code, text := report.ExitConformant, ""
	if err != nil {
		code, text = report.ExitUsage, err.Error()
		if e := (*exitError)(nil); errors.As(err, &e) {
			code = e.code
		}
	}
	if r, reading := report.Open(dir); reading == nil && text == "" {
		text = r.VerdictLine()
	}
	failed := code == report.ExitNonConformant
	return sonobuoy.Outcome{Failed: failed, Broken: !failed && code != report.ExitConformant, Text: text}
}
