package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/report/collection"
	"github.com/service-conformance/conformance/framework/report/site"
)

const collectionHelp = "DIR holds bundles as IMPLEMENTATION/VERSION/MODE/" + collection.BundleFile + ". All of them are verified before anything is written."

// openCollection reads and verifies the bundles of a folder.
func openCollection(dir string) ([]collection.Entry, error) {
	suite, err := suiteOfProgram()
	if err != nil {
		return nil, harness("%w", err)
	}
	all, err := collection.Open(dir, suite)
	if err != nil {
		return nil, usage("%w", err)
	}
	return all, nil
}

func oneCollection(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage("name one folder of bundles, such as reports")
	}
	return nil
}

// writeFiles writes files by their slash-separated paths into a folder.
func writeFiles(dir string, files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return harness("%w", err)
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return harness("%w", err)
		}
	}
	return nil
}

func newReportIndex() *cobra.Command {
	return &cobra.Command{
		Use:   "index DIR",
		Short: "write the table of a folder of bundles, with a badge and a report.md for each",
		Long:  "Write README.md into a folder of bundles, and report.md and badge.svg beside each bundle.\n" + collectionHelp,
		Args:  oneCollection,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := openCollection(args[0])
			if err != nil {
				return err
			}
			files, err := collection.Index(all)
			if err != nil {
				return harness("%w", err)
			}
			if err := writeFiles(args[0], files); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d reports: %s\n", len(all), filepath.Join(args[0], collection.IndexFile))
			return nil
		},
	}
}

func newReportMatrix() *cobra.Command {
	format, whole := "text", false
	cmd := &cobra.Command{
		Use:     "matrix DIR",
		Short:   "compare the reports of a folder of bundles: implementations by requirements",
		Long:    "Compare the reports of a folder of bundles: implementations by requirements, and what the implementations say of themselves.\n" + collectionHelp,
		Example: "  conformance report matrix reports\n  conformance report matrix reports --all --format md >matrix.md",
		Args:    oneCollection,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{"text", "md", "json"}, format) {
				return usage("--format %s: there are text, md, json", format)
			}
			all, err := openCollection(args[0])
			if err != nil {
				return err
			}
			m, out := collection.Compare(all), cmd.OutOrStdout()
			switch format {
			case "text":
				m.WriteText(out, paletteOf(isTerminal(out)), whole)
			case "md":
				m.WriteMarkdown(out, whole)
			case "json":
				data, err := json.MarshalIndent(m, "", "  ")
				if err != nil {
					return harness("%w", err)
				}
				fmt.Fprintf(out, "%s\n", data)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&format, "format", format, "text, md or json; json has all requirements")
	cmd.Flags().BoolVar(&whole, "all", false, "show the requirements and declarations on which nothing differs, too")
	return cmd
}

func newReportSite() *cobra.Command {
	out := ""
	cmd := &cobra.Command{
		Use:   "site DIR --out FOLDER",
		Short: "make a website of a folder of bundles: which implementation meets what",
		Long:  "Make a static website of a folder of bundles: an overview, a page for each implementation, and a page for each requirement.\nIt works from a file:// address and from any web server, and asks for nothing else.\n" + collectionHelp,
		Args:  oneCollection,
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usage("name the folder to write to with --out")
			}
			if _, err := os.Stat(out); err == nil && !site.Is(out) {
				return usage("--out %s exists and is no website that this command has made", out)
			}
			all, err := openCollection(args[0])
			if err != nil {
				return err
			}
			files, err := site.Make(all)
			if err != nil {
				return harness("%w", err)
			}
			if err := os.RemoveAll(out); err != nil {
				return harness("%w", err)
			}
			if err := writeFiles(out, files); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d reports, %d pages: %s\n", len(all), len(files), filepath.Join(out, site.Start))
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "folder of the website; one that this command has made before is replaced")
	return cmd
}
