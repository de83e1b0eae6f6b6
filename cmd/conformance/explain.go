package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/reference"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/framework/words"
)

func newExplain() *cobra.Command {
	language, requests := "", false
	cmd := &cobra.Command{
		Use:   "explain ID",
		Short: "explain a requirement: what it demands, from where, how it is checked, which rules of the reference follow it, which faults it catches",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("name one requirement, such as alloc-upper-band-first; `conformance list` shows them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r := spec.Default().Get(spec.ID(args[0]))
			if r == nil {
				return usage("unknown requirement %q%s; `conformance list` shows them", args[0], similar(args[0]))
			}
			if language == "" {
				language = languageOf(os.Getenv)
			} else if !slices.Contains(spec.Languages, language) {
				return usage("--lang %s: there are %s", language, strings.Join(spec.Languages, ", "))
			}
			explain(cmd.OutOrStdout(), r, language)
			if requests && r.Unchecked == "" {
				return byHand(cmd.Context(), cmd.OutOrStdout(), r.ID, language)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&requests, "requests", false, "also show how to repeat its checks by hand: the requests that they send to the reference, as kubectl commands")
	cmd.Flags().StringVar(&language, "lang", "", "language of the statement and of the labels: "+strings.Join(spec.Languages, ", ")+" (default that of LC_ALL, LC_MESSAGES or LANG)")
	return cmd
}

// languageOf is the one of spec.Languages that the environment asks for (locale(7)); English if it asks for another one.
func languageOf(variable func(string) string) string {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if value := variable(name); value != "" {
			language, _, _ := strings.Cut(strings.ToLower(value), "_")
			if language, _, _ = strings.Cut(language, "."); slices.Contains(spec.Languages, language) {
				return language
			}
			break
		}
	}
	return spec.Languages[0]
}

func similar(name string) string {
	var near []string
	for _, r := range spec.Default().Requirements {
		if strings.Contains(string(r.ID), strings.ToLower(name)) && len(near) < 3 {
			near = append(near, string(r.ID))
		}
	}
	if len(near) == 0 {
		return ""
	}
	return " (did you mean " + strings.Join(near, " or ") + "?)"
}

func explain(out io.Writer, r *spec.Requirement, language string) {
	field := func(key, value string) {
		if value != "" {
			fmt.Fprintf(out, "%s %s\n", inColumns(words.In(language, key), labelWidth), value)
		}
	}
	under := inColumns("", labelWidth) + " "
	fmt.Fprintf(out, "%s (%s)\n  %s\n", r.ID, r.Level, r.In(language))
	if language != spec.Languages[0] {
		fmt.Fprintf(out, "  %s\n", r.Statement) // the sentence that counts
	}
	fmt.Fprintln(out)
	for _, source := range spec.Default().References(r) {
		section := ""
		if source.Section != "" {
			section = ", " + words.In(language, "explain-section") + " " + source.Section
		}
		field("explain-source", source.Document.Title+section+"\n"+under+source.URL)
	}
	if r.Basis != "" {
		field("explain-basis", words.In(language, "basis-"+string(r.Basis)))
	}
	field("explain-feature", r.Feature)
	field("explain-profile", string(r.Profile))
	field("explain-versions", r.Versions)
	var needs []string
	for _, n := range r.Needs {
		needs = append(needs, string(n))
	}
	field("explain-needs", strings.Join(needs, ", "))
	for _, d := range checksByRequirement()[r.ID] {
		on := ""
		if len(d.ServiceCIDRs) > 0 {
			on = "\n" + under + words.In(language, "explain-on") + " " + strings.Join(d.ServiceCIDRs, ", ")
		}
		_, text, _ := strings.Cut(d.Name, ": ")
		field("explain-check", fmt.Sprintf("%s (%s)%s", text, d.Location, on))
	}
	for _, f := range r.BuildsOn {
		field("explain-builds-on", fmt.Sprintf("%s: %s", f.ID, f.Because))
	}
	field("explain-unchecked", r.Unchecked)
	var rules []string
	for _, e := range reference.Rules() {
		if slices.Contains(e.Cites, r.ID) {
			rules = append(rules, e.Name)
		}
	}
	field("explain-rule", strings.Join(rules, ", "))
	for _, f := range fault.All() {
		if slices.Contains(f.Breaks, r.ID) {
			field("explain-fault", f.Name+": "+f.Description)
		}
	}
	for _, b := range spec.RealBugs(r.ID) {
		field("explain-real-bug", b.About+"\n"+under+b.URL()+" ("+b.Fault+")")
	}
	field("explain-notes", r.Notes)
	for _, d := range r.Deviations {
		versions := ""
		if d.Versions != "" {
			versions = " " + d.Versions
		}
		field("explain-deviation", fmt.Sprintf("%s%s: %s (%s)", d.Implementation, versions, d.Behavior, d.Source))
	}
}

// labelWidth is how wide labels are, in columns of a terminal.
const labelWidth = 12

// inColumns fills a label up to a width. Letters of Chinese and Japanese take two columns.
func inColumns(label string, width int) string {
	for _, r := range label {
		if width--; r >= firstWide {
			width--
		}
	}
	return label + strings.Repeat(" ", max(0, width))
}

// firstWide is where the scripts of Chinese and Japanese begin in Unicode.
const firstWide = '\u2e80'
