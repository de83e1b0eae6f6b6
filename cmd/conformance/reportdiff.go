package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/report"
)

func newReportDiff() *cobra.Command {
	format := "text"
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "show the requirements on which two reports differ; exit code 1 on a regression",
		Example: `  conformance report diff main/ branch/
  conformance report diff main/report.json branch/report.json --format md >>"$GITHUB_STEP_SUMMARY"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage("name two folders of runs, or two files report.json: the old one first")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var reports [2]*report.Report
			for i, name := range args {
				var err error
				if reports[i], err = report.Open(name); err != nil {
					return usage("%w", err)
				}
			}
			changes := report.Changes(reports[0], reports[1])
			out := cmd.OutOrStdout()
			switch format {
			case "text":
				report.WriteChanges(out, paletteOf(isTerminal(out)), changes)
			case "md":
				fmt.Fprint(out, report.ChangesMarkdown(reports[0], reports[1], changes))
			case "json":
				if changes == nil {
					changes = []report.Change{}
				}
				data, err := json.MarshalIndent(changes, "", "  ")
				if err != nil {
					return harness("%w", err)
				}
				fmt.Fprintf(out, "%s\n", data)
			default:
				return usage("--format %s: there are text, md, json", format)
			}
			if report.Regressed(changes) {
				return &exitError{code: report.ExitNonConformant}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&format, "format", format, "text, md or json")
	return cmd
}
