//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/service-conformance/conformance/framework/report"
)

// documented is a command that a document shows.
type documented struct {
	where string // file:line
	line  string // as a shell reads it
}

// documentedCommands returns the lines that begin with "$ " in the console blocks of all documents. A line that ends with a backslash goes on in the next one.
func documentedCommands(t *testing.T) (all []documented) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"node_modules", "conformance-report", "candidates"}, name)) {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" || d.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		inBlock, goesOn := false, false
		for i, line := range strings.Split(string(text), "\n") {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, "```"):
				inBlock, goesOn = line == "```console", false
			case inBlock && goesOn:
				all[len(all)-1].line += "\n" + line
				goesOn = strings.HasSuffix(line, `\`)
			case inBlock && strings.HasPrefix(line, "$ "):
				all = append(all, documented{fmt.Sprintf("%s:%d", path, i+1), line[2:]})
				goesOn = strings.HasSuffix(line, `\`)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// calls has a shell read a line. It returns the calls of conformance and of make in it. All other programs are left out.
func calls(t *testing.T, d documented) (all [][]string) {
	t.Helper()
	const script = `conformance() { printf '%s\0' conformance "$@" '' >&3; }
make() { printf '%s\0' make "$@" '' >&3; }
command_not_found_handle() { return 0; }
exec 3>calls
PATH=/nowhere
`
	dir := t.TempDir()
	shell := exec.CommandContext(t.Context(), "bash", "-c", script+strings.ReplaceAll(d.line, "bin/conformance", "conformance"))
	shell.Dir, shell.Env = dir, []string{"HOME=" + dir, "ARTIFACTS=" + dir}
	out, err := shell.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || strings.Contains(string(out), "syntax error") {
		t.Errorf("%s: %s: %v\n%s", d.where, d.line, err, out)
	}
	recorded, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	var call []string
	for word := range strings.SplitSeq(string(recorded), "\x00") {
		if word != "" {
			call = append(call, word)
		} else if len(call) > 0 {
			all, call = append(all, call), nil
		}
	}
	return all
}

var makeTarget = regexp.MustCompile(`(?m)^([a-z-]+):`)

// Every command in the documents is one that this program or the Makefile has, with flags that it has.
func TestDocumentedCommandsExist(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range makeTarget.FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, m[1])
	}
	ofProgram := 0
	for _, d := range documentedCommands(t) {
		for _, call := range calls(t, d) {
			if call[0] == "make" {
				for _, target := range call[1:] {
					if !strings.Contains(target, "=") && !slices.Contains(targets, target) {
						t.Errorf("%s: make has no target %s", d.where, target)
					}
				}
				continue
			}
			ofProgram++
			cmd, args, err := newRoot().Find(call[1:])
			if err == nil {
				err = cmd.ParseFlags(args)
			}
			if err == nil && cmd.Args != nil {
				err = cmd.Args(cmd, cmd.Flags().Args())
			}
			if err != nil && !errors.Is(err, pflag.ErrHelp) {
				t.Errorf("%s: %s: %v", d.where, strings.Join(call, " "), err)
			}
		}
	}
	if ofProgram < 30 {
		t.Errorf("only %d commands of this program were found in the documents", ofProgram)
	}
}

// What the documents show of the reference, and of the catalogue, is run as it stands there.
func TestDocumentedCommandsWork(t *testing.T) {
	needs := []string{"--tier", "--kubeconfig", "--implementation", "--sign", "--shard"}
	done, dir := map[string]bool{}, t.TempDir()
	for _, d := range documentedCommands(t) {
		for _, call := range calls(t, d) {
			text := strings.Join(call, " ")
			alone := len(call) > 1 && slices.Contains([]string{"run", "list", "explain", "version"}, call[1]) ||
				len(call) > 2 && call[1] == "selftest" && call[2] == "--fault"
			if !alone || done[text] || slices.ContainsFunc(needs, func(flag string) bool { return strings.Contains(text, flag) }) {
				continue
			}
			done[text] = true
			_, stderr, code := conformance(t, dir, call[1:]...)
			faulty := call[1] == "run" && strings.Contains(text, "--fault")
			if want := map[bool]int{false: report.ExitConformant, true: report.ExitNonConformant}[faulty]; code != want {
				t.Errorf("%s: %s: exit code %d, want %d\n%s", d.where, text, code, want, stderr)
			}
		}
	}
	if len(done) < 5 {
		t.Errorf("only %d commands were run", len(done))
	}
}
