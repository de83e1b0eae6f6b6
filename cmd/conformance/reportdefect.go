package main

import (
	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
)

func newReportDefect() *cobra.Command {
	var write string
	cmd := &cobra.Command{
		Use:   "defect REPORT REQUIREMENT",
		Short: "write the text of a bug report about a requirement that is not met",
		Long:  `Write the text of a bug report, as Markdown. It says what the documents say and what happens. Requests show it on any cluster. REPORT is the folder of a run, or a report.json. Read the text before you send it: a maintainer wants one defect, and no more.`,
		Example: `  conformance report defect conformance-report proxy-hairpin
  conformance report defect conformance-report proxy-hairpin --write defect.md`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage("name one report and one requirement, such as conformance-report proxy-hairpin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := report.Open(args[0])
			if err != nil {
				return usage("%w", err)
			}
			text, err := r.Defect(spec.ID(args[1]))
			if err != nil {
				return usage("%w", err)
			}
			return writeOrShow(cmd.OutOrStdout(), write, text)
		},
	}
	cmd.Flags().StringVar(&write, "write", "", "file to write instead of showing it")
	return cmd
}
