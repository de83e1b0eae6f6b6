package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

func newList() *cobra.Command {
	format := "table"
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list the requirements and their checks",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, catalogue, checks := cmd.OutOrStdout(), spec.Default(), checksByRequirement()
			switch format {
			case "table":
				w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
				fmt.Fprintln(w, "REQUIREMENT\tLEVEL\tBASIS\tPROFILE\tFEATURE\tCHECKS")
				decided := 0
				for _, r := range catalogue.Requirements {
					n := "none: " + r.Unchecked
					if r.Unchecked == "" {
						n = fmt.Sprint(len(checks[r.ID]))
						decided++
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Level, r.Basis, r.Profile, r.Feature, n)
				}
				if err := w.Flush(); err != nil {
					return err
				}
				fmt.Fprintf(out, "%d requirements, %d of them decided by %d checks\n", len(catalogue.Requirements), decided, len(check.Declarations()))
			case "json":
				type row struct {
					spec.Requirement
					Checks []check.Declaration `json:"checks"`
				}
				rows := []row{}
				for _, r := range catalogue.Requirements {
					rows = append(rows, row{r, checks[r.ID]})
				}
				encoder := json.NewEncoder(out)
				encoder.SetIndent("", "  ")
				return encoder.Encode(rows)
			case "markdown":
				fmt.Fprint(out, specification())
			default:
				return usage("unknown format %q; there are table, json and markdown", format)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", format, "table, json or markdown")
	return cmd
}

// checksByRequirement declares all checks and sorts them by what they are bound to.
func checksByRequirement() map[spec.ID][]check.Declaration {
	byID := map[spec.ID][]check.Declaration{}
	check.Configure(check.Setup{Slow: true})
	for _, d := range check.Preview() {
		for _, id := range d.Requirements {
			byID[id] = append(byID[id], d)
		}
	}
	return byID
}

// specification renders docs/specification.md.
func specification() string {
	checks := checksByRequirement()
	return spec.Default().Markdown(func(id spec.ID) []string {
		var names []string
		for _, d := range checks[id] {
			names = append(names, d.Name)
		}
		return names
	})
}
