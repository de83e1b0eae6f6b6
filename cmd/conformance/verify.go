package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
)

// newVerify is for the project's own `make verify` and `make generate`.
func newVerify() *cobra.Command {
	write := false
	cmd := &cobra.Command{
		Use:    "verify [docs/specification.md]",
		Short:  "verify that catalogue, checks, faults, expectations and generated documents agree",
		Hidden: true,
		Args:   cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			problems := disagreements()
			if len(args) == 1 {
				want := specification()
				if write {
					if err := os.WriteFile(args[0], []byte(want), 0o644); err != nil {
						return harness("%w", err)
					}
				} else if got, err := os.ReadFile(args[0]); err != nil {
					return usage("%w", err)
				} else if string(got) != want {
					problems = append(problems, fmt.Errorf("%s is stale: run make generate", args[0]))
				}
			}
			if len(problems) > 0 {
				return &exitError{1, errors.Join(problems...)}
			}
			checks := check.Declarations()
			fmt.Fprintf(cmd.OutOrStdout(), "%d requirements, %d checks and %d faults agree\n", len(spec.Default().Requirements), len(checks), len(fault.All()))
			return nil
		},
	}
	cmd.Flags().BoolVar(&write, "write", false, "write the document instead of comparing it")
	return cmd
}

func disagreements() (problems []error) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	checks := checksByRequirement()
	names := map[string]string{}
	for _, d := range check.Declarations() {
		if first, ok := names[d.Name]; ok {
			bad("%s: a check of this name stands at %s already: %s", d.Location, first, d.Name)
		}
		names[d.Name] = d.Location
	}
	for _, r := range spec.Default().Requirements {
		switch n := len(checks[r.ID]); {
		case n == 0 && r.Unchecked == "":
			bad("%s has neither a check nor a reason why none decides it", r.ID)
		case n > 0 && r.Unchecked != "":
			bad("%s has a check, yet the catalogue says why it has none", r.ID)
		case n > 0 && !slices.ContainsFunc(fault.All(), func(f *fault.Fault) bool { return slices.Contains(f.Breaks, r.ID) }):
			bad("%s has a check, but no fault breaks it", r.ID)
		}
	}
	for _, f := range fault.All() {
		for _, id := range f.Breaks {
			if len(checks[id]) == 0 {
				bad("fault %s breaks %s, which no check decides", f.Name, id)
			}
		}
	}
	if err := report.CheckPublished(); err != nil {
		problems = append(problems, err)
	}
	return problems
}
