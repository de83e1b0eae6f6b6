package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/service-conformance/conformance/framework/report"
)

// wrongUsage lists commands that are wrong, each with what it prints. The commands are read from it; UPDATE_GOLDEN=1 writes what they print.
const wrongUsage = "testdata/wrongusage.golden"

func TestWrongUsageIsOneClearLineAndExit64(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SONOBUOY_RESULTS_DIR", "/nonexistent")
	for name, text := range map[string]string{
		"empty": "", "file": "", "junk.yaml": "{", "expired.yaml": "deviations: [{requirement: alloc-unique}]", "wrong.yaml": "name: x\nfeatures: [Teleport]\n",
		"vendor.yaml": claimOfTests, "proxy.yaml": "nodePortAddresses: [primary]", "mode.yaml": "mode: ipvs", "foreign.json": `{"kind":"ConformanceReport"}`, "partial/results.partial.jsonl": "{", "sound/report.json": `{"schemaVersion":1}`, "story.json": `{"steps":[{"request":"GET /api"}]}`,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	golden, err := os.ReadFile(wrongUsage)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split("\n"+strings.TrimSpace(string(golden)), "\n$ conformance ")[1:]
	printed := make([]string, len(blocks))
	var wait sync.WaitGroup
	places := make(chan bool, runtime.NumCPU())
	for i, block := range blocks {
		args, _, _ := strings.Cut(block, "\n")
		wait.Go(func() {
			places <- true
			defer func() { <-places }()
			where := strings.NewReplacer("DIR", dir, "TAKEN", listener.Addr().String(), "''", "")
			words := strings.Split(args, " ")
			for i := range words {
				words[i] = where.Replace(words[i])
			}
			stdout, stderr, code := conformance(t, dir, words...)
			said := strings.NewReplacer(dir, "DIR", listener.Addr().String(), "TAKEN").Replace(stderr)
			if code != report.ExitUsage {
				t.Errorf("%s: exit code %d, want 64\n%s%s", args, code, stdout, stderr)
			}
			if strings.Contains(said, "goroutine ") || strings.Count(said, "\n") > 3 {
				t.Errorf("%s: too much for a user's mistake:\n%s", args, said)
			}
			printed[i] = fmt.Sprintf("$ conformance %s\n%s\n", args, strings.TrimSpace(said))
		})
	}
	wait.Wait()
	got := strings.Join(printed, "\n")
	switch {
	case os.Getenv("UPDATE_GOLDEN") != "":
		if err := os.WriteFile(wrongUsage, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	case got != string(golden):
		for i, block := range blocks {
			if want := "$ conformance " + strings.TrimSpace(block); strings.TrimSpace(printed[i]) != want {
				t.Errorf("got\n%swant\n%s", printed[i], want)
			}
		}
		t.Errorf("%s is not what the program prints: UPDATE_GOLDEN=1 go test -run WrongUsage ./cmd/conformance", wrongUsage)
	}
	after, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(after) > len(before)+1 { // the cache folder of the lab may appear
		t.Errorf("files were left behind: %v", after)
	}
}

// unseen are messages that no command of the list can cause here, and why.
var unseen = map[string]string{
	"%s is a signed bundle, whose files stay as they are: name another folder with --to":                    "it needs a signed bundle, see TestASignedBundleIsVerifiedByItsKeyAlone",
	"no traffic can be sent here: %w; without it, judge the API server alone: --suite allocation,apischema": "it needs a machine without namespaces, see withoutnamespaces_linux_test.go",
	"there can be no nodes here: %w": "it needs a machine without namespaces, see withoutnamespaces_linux_test.go",
	"--output: %w":                   "it needs a program for an image, see TestImageWithWrongUsage",
	"--report-dir: with --sonobuoy the reports are in Sonobuoy's folder of results":          "it needs a folder of Sonobuoy, see TestSonobuoyIsRefusedWhatItCannotHave",
	"--sonobuoy is for a pod of a cluster, which tier %s does not judge: use --tier cluster": "it needs a folder of Sonobuoy, see TestSonobuoyIsRefusedWhatItCannotHave",
	"--sonobuoy judges the cluster whose pod it runs in: leave out --cluster-command":        "it needs a folder of Sonobuoy, see TestSonobuoyIsRefusedWhatItCannotHave",
	"--cluster-command needs /bin/sh, which Windows has not":                                 "it needs Windows",
	"--kind-setup needs /bin/sh, which Windows has not":                                      "it needs Windows",
	"score card: %w; name another file with --write":                                         "the self-test runs for minutes before",
}

// TestEveryMessageOfWrongUsageIsListed finds messages in the source that no command of the golden file prints.
func TestEveryMessageOfWrongUsageIsListed(t *testing.T) {
	golden, err := os.ReadFile(wrongUsage)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	seen := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			if function, ok := call.Fun.(*ast.Ident); !ok || function.Name != "usage" {
				return true
			}
			literal, ok := call.Args[0].(*ast.BasicLit)
			if !ok {
				return true
			}
			format, err := strconv.Unquote(literal.Value)
			if err != nil || format == "%w" {
				return true
			}
			seen[format] = true
			if !printedBy(format, string(golden)) && unseen[format] == "" {
				t.Errorf("%s: no command in %s prints %q", set.Position(literal.Pos()), wrongUsage, format)
			}
			return true
		})
	}
	for format := range unseen {
		if !seen[format] {
			t.Errorf("%q is excused and nowhere in the source", format)
		}
	}
}

// printedBy reports whether a line could have been made by the format.
func printedBy(format, lines string) bool {
	var pattern strings.Builder
	for i, part := range regexp.MustCompile(`%[a-z]`).Split(format, -1) {
		if i > 0 {
			pattern.WriteString(".*")
		}
		pattern.WriteString(regexp.QuoteMeta(part))
	}
	return regexp.MustCompile("(?m)^conformance: " + pattern.String()).MatchString(lines)
}

func TestSonobuoyIsRefusedWhatItCannotHave(t *testing.T) {
	t.Setenv("SONOBUOY_RESULTS_DIR", t.TempDir())
	for args, want := range map[string]string{
		"run --sonobuoy --report-dir x":                            "--report-dir: with --sonobuoy the reports are in Sonobuoy's folder of results",
		"run --sonobuoy --tier lab":                                "--sonobuoy is for a pod of a cluster, which tier lab does not judge: use --tier cluster",
		"run --sonobuoy --tier cluster --cluster-command x --keep": "--sonobuoy judges the cluster whose pod it runs in: leave out --cluster-command",
	} {
		if _, stderr, code := conformance(t, t.TempDir(), strings.Fields(args)...); code != report.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, want 64 and %q\n%s", args, code, want, stderr)
		}
	}
}
