package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/differential"
)

// newVerify is for the project's own `make verify` and `make generate`.
func newVerify() *cobra.Command {
	write := false
	cmd := &cobra.Command{
		Use:    "verify [docs/specification.md docs/differential.md]",
		Short:  "verify that catalogue, checks, faults, expectations and generated documents agree",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			names := maps.Clone(spec.DefaultCheckNames())
			if write {
				names.Complete(checkNames())
				if err := writeCheckNames(names); err != nil {
					return harness("%w", err)
				}
			}
			problems := disagreements(names)
			for _, page := range args {
				want, err := generated(page)
				if err != nil {
					return err
				}
				if write {
					if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
						return harness("%w", err)
					}
				} else if got, err := os.ReadFile(page); err != nil {
					return usage("%w", err)
				} else if string(got) != want {
					problems = append(problems, fmt.Errorf("%s is stale: run make generate", page))
				}
			}
			if len(problems) > 0 {
				return &exitError{1, errors.Join(problems...)}
			}
			checks := check.Declarations()
			fmt.Fprintf(cmd.OutOrStdout(), "%d requirements, %d checks and %d faults agree\n", len(spec.Default().Requirements), len(checks), len(fault.All()))
			missing := spec.Untranslated()
			for _, language := range slices.Sorted(maps.Keys(missing)) {
				fmt.Fprintf(cmd.OutOrStdout(), "%d statements have no translation into %s and are shown in English: %v\n", len(missing[language]), language, missing[language])
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&write, "write", false, "write the documents instead of comparing them, and add new checks to "+checkNamesFile)
	return cmd
}

// generated is the page that a file of this name has.
func generated(page string) (string, error) {
	switch filepath.Base(page) {
	case "specification.md":
		return specification(), nil
	case "differential.md":
		cases, err := differentialCases(nil)
		if err != nil {
			return "", harness("%w", err)
		}
		return differential.Markdown(cases, passedOver()), nil
	}
	return "", usage("%s is no page that is generated: there are specification.md and differential.md", page)
}

const checkNamesFile = "fixtures/checknames.yaml"

func writeCheckNames(names spec.CheckNames) error {
	data, err := names.YAML()
	if err != nil {
		return err
	}
	return os.WriteFile(checkNamesFile, data, 0o644)
}

func checkNames() (names []string) {
	checksByRequirement() // which declares the checks
	for _, d := range check.Declarations() {
		names = append(names, d.Name)
	}
	return names
}

func disagreements(stable spec.CheckNames) (problems []error) {
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
	if err := stable.Compare(checkNames()); err != nil {
		problems = append(problems, err)
	}
	if err := report.CheckPublished(); err != nil {
		problems = append(problems, err)
	}
	return problems
}
