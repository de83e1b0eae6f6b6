package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/report"
)

const coverageHead = `# What each tier judges

This page is written by %s from reports of runs. A check is judged where the run decided it on at least one Service range.

`

func newReportCoverage() *cobra.Command {
	var write string
	cmd := &cobra.Command{
		Use:     "coverage NAME=REPORT...",
		Short:   "show by check which of several runs judged it, and why others did not",
		Example: `  conformance report coverage lab=lab/report.json kind=kind/report.json --write docs/coverage.md`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("name at least one report, as NAME=FOLDER or NAME=FILE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var all []report.Covered
			for _, arg := range args {
				name, from, named := strings.Cut(arg, "=")
				if !named || name == "" || from == "" {
					return usage("%s: name a report as NAME=FOLDER or NAME=FILE", arg)
				}
				r, err := report.Open(from)
				if err != nil {
					return usage("%w", err)
				}
				all = append(all, report.Covered{Name: name, Report: r})
			}
			text := fmt.Sprintf(coverageHead, "`conformance report coverage`") + report.CoverageMarkdown(all)
			return writeOrShow(cmd.OutOrStdout(), write, []byte(text))
		},
	}
	cmd.Flags().StringVar(&write, "write", "", "file to write instead of showing it")
	return cmd
}
