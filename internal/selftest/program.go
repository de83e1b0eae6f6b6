package selftest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
)

// program judges references, each in a process of its own. Its reports go into folders below work.
type program struct{ path, work string }

// judge judges the reference with further arguments. The label names the run, its folder, and its errors.
func (p program) judge(ctx context.Context, label string, arguments ...string) (*report.Report, error) {
	dir := filepath.Join(p.work, strings.ReplaceAll(label, ":", "-"))
	args := append([]string{"run", "--report-dir", dir, "--parallel", "1", "--seed", "1"}, arguments...) // the same seed, so that two score cards agree
	output, err := exec.CommandContext(ctx, p.path, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != report.ExitNonConformant && exit.ExitCode() != report.ExitUnknown) {
		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		return nil, fmt.Errorf("%s: %w: %s", label, err, lines[len(lines)-1])
	}
	data, err := os.ReadFile(filepath.Join(dir, report.JSONFile))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", label, err)
	}
	var r report.Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", label, err)
	}
	return &r, nil
}

// failed are the checks that are non-conformant.
func failed(r *report.Report) (names []string) {
	for _, c := range r.Checks {
		if c.Verdict == check.NonConformant {
			names = append(names, c.DisplayName())
		}
	}
	return names
}
