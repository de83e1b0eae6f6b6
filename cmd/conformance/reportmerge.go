package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/report"
)

func newReportMerge() *cobra.Command {
	out := ""
	cmd := &cobra.Command{
		Use:   "merge SHARD... --out FOLDER",
		Short: "join the reports of all shards of a run (run --shard) into the one that the run has undivided",
		Long: `Join the reports of all shards of a run (run --shard). The result is the report of the undivided run. A SHARD is a folder of a run, or a report.json.
All shards must be there and complete. They must be of one run: same suite, flags, candidate and seed. The exit code is that of the run.`,
		Example: `  conformance run --shard 1/2 --report-dir part-1    # on one machine
  conformance run --shard 2/2 --report-dir part-2    # on another one
  conformance report merge part-1 part-2 --out conformance-report`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("name the folders of the shards of a run, or their files report.json")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usage("name the folder of the merged report with --out")
			}
			var shards []report.ShardReport
			for _, path := range args {
				r, err := report.Open(path)
				if err != nil {
					return usage("%w", err)
				}
				if sameFile(reportIn(path), reportIn(out)) {
					return usage("--out %s is the folder of a shard: name another one", out)
				}
				shards = append(shards, report.ShardReport{Path: path, Report: r})
			}
			merged, err := report.MergeShards(shards)
			if err != nil {
				return usage("%w", err)
			}
			folder, err := report.OpenFolder(out)
			if err != nil {
				return usage("%w", errors.New(strings.ReplaceAll(err.Error(), "--report-dir", "--out")))
			}
			for _, s := range shards {
				err = errors.Join(err, keepShardLogs(s, out))
			}
			paths, writing := folder.Finish(merged)
			if err = errors.Join(err, writing); err != nil {
				return harness("%w", err)
			}
			w := cmd.OutOrStdout()
			palette := paletteOf(isTerminal(w))
			merged.WriteReasons(w, palette)
			merged.WriteFailures(w, palette, nil)
			merged.WriteSummary(w, palette)
			fmt.Fprintf(w, "reports: %s\n", reportsLine(paths))
			if code := merged.ExitCode(); code != 0 {
				return &exitError{code: code}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "folder of the merged report; one that is there before goes to previous/")
	return cmd
}

// reportIn is the report.json that a path names.
func reportIn(path string) string {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return path
	}
	return filepath.Join(path, report.JSONFile)
}

// sameFile reports whether two paths lead to the same file, which there is.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// keepShardLogs copies the logs of a shard, whose folder may have some, to where the merged report names them. What another merge has left there goes.
func keepShardLogs(s report.ShardReport, out string) error {
	to := filepath.Join(out, filepath.FromSlash(report.LogsOf(s.Selection.Shard.Shard)))
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	from := filepath.Join(s.Path, report.LogsFolder)
	switch _, err := os.Stat(from); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // a report that was named as a file has no logs beside it
		return nil
	case err != nil:
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}
