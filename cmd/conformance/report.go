package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/report/bundle"
	"github.com/service-conformance/conformance/internal/wholefile"
)

func newReport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "report",
		Short: "render, merge, compare, verify and publish reports",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			return usage("name what is to be done: `conformance report --help` shows it")
		},
	}
	cmd.AddCommand(newReportRender(), newReportMerge(), newReportDiff(), newReportCoverage(), newReportDefect(), newReportVerify(), newReportBadge(), newReportIndex(), newReportMatrix(), newReportSite())
	return cmd
}

// writeOrShow writes a text to the file that --write names, or shows it if that is empty.
func writeOrShow(out io.Writer, write string, text []byte) error {
	if write == "" {
		_, err := out.Write(text)
		return err
	}
	if err := wholefile.Write(write, text, 0o644); err != nil {
		if at, ok := errors.AsType[*fs.PathError](err); ok { // of a file beside it, which has a random name
			err = at.Err
		}
		return usage("--write %s: %w", write, err)
	}
	return nil
}

func newReportRender() *cobra.Command {
	var formats []string
	var to string
	cmd := &cobra.Command{
		Use:   "render DIR",
		Short: "render a report.json as a page, Markdown, YAML and JUnit",
		Long: `Render a report as other files: a page for people (html), Markdown for a pull request (md), the summary that vendors submit (yaml), and JUnit.
DIR is the folder of a run, or a report.json. The results of a run that ended without a report become one.`,
		Example: `  conformance report render conformance-report
  conformance report render conformance-report --format html,md --to public`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("name one folder of a run, or a report.json")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			faces, err := facesOf(formats)
			if err != nil {
				return err
			}
			r, err := report.Open(args[0])
			if err != nil {
				return usage("%w", err)
			}
			if to == "" {
				to = args[0]
				if info, err := os.Stat(to); err == nil && !info.IsDir() {
					to = filepath.Dir(to)
				}
			}
			if err := report.CheckFolder(to); err != nil {
				return usage("%w", errors.New(strings.ReplaceAll(err.Error(), "--report-dir", "--to")))
			}
			if bundle.IsSigned(to) {
				return usage("%s is a signed bundle, whose files stay as they are: name another folder with --to", to)
			}
			paths, err := r.WriteFaces(to, faces...)
			if err == nil && bundle.Is(to) {
				err = bundle.Sum(to)
			}
			if err != nil {
				return harness("%w", err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), strings.Join(paths, "\n"))
			return nil
		},
	}
	cmd.Flags().StringSliceVar(&formats, "format", nil, "html, md, yaml, junit (default these), metrics")
	cmd.Flags().StringVar(&to, "to", "", "folder to write to (default that of the report)")
	return cmd
}

func facesOf(formats []string) (faces []report.Face, err error) {
	if len(formats) == 0 {
		return report.Faces, nil
	}
	var names []string
	byName := map[string]report.Face{}
	for _, f := range append(slices.Clone(report.Faces), report.MetricsAs("metrics.txt")) {
		names = append(names, f.Name)
		byName[f.Name] = f
	}
	for _, name := range formats {
		f, known := byName[name]
		if !known {
			return nil, usage("--format %s: there are %s", name, strings.Join(names, ", "))
		}
		faces = append(faces, f)
	}
	return faces, nil
}
