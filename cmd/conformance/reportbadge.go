package main

import (
	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/report"
)

func newReportBadge() *cobra.Command {
	return &cobra.Command{
		Use:     "badge DIR",
		Short:   "print the verdict of a report as a picture (SVG) for a README",
		Long:    "Print the verdict of a report as a picture (SVG) for a README. DIR is the folder of a run, or a report.json.",
		Example: "  conformance report badge conformance-report >docs/badge.svg",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("name one folder of a run, or a report.json")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := report.Open(args[0])
			if err != nil {
				return usage("%w", err)
			}
			_, err = cmd.OutOrStdout().Write(r.Badge())
			return err
		},
	}
}
