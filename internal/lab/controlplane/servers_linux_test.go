package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"
	"github.com/service-conformance/conformance/internal/lab/process"
)

func TestCommandsAreShellLines(t *testing.T) {
	d, err := process.NewRunDir(t.TempDir())
	fakes.Must(t, err)
	pids := filepath.Join(t.TempDir(), "pids")
	// A variable, several commands, a child that the shell waits for, and one that leaves its session.
	line := `GREETING=two sh -c 'echo $GREETING'; setsid sleep 1000 & echo $! >>` + pids + `; sleep 1000 & echo $! >>` + pids + `; echo >>` + pids + `; wait`
	p, err := process.Start(process.Command{Name: "line", Path: process.Shell, Args: process.ShellLine(line), Log: d.File("log"), Environment: d.Mark()})
	fakes.Must(t, err)
	t.Cleanup(p.Kill)
	var started []string
	fakes.Until(t, "the line has started its programs", func() bool {
		b, _ := os.ReadFile(pids) // not there at first
		if !strings.HasSuffix(string(b), "\n\n") {
			return false
		}
		started = strings.Fields(string(b))
		return true
	})
	if log, _ := os.ReadFile(d.File("log")); strings.TrimSpace(string(log)) != "two" {
		t.Errorf("log %q", log)
	}
	p.Kill()
	fakes.Must(t, process.EndMarked(d.Path))
	fakes.Must(t, d.Remove())
	fakes.Until(t, "all of them have ended", func() bool {
		for _, pid := range started {
			if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
				return false
			}
		}
		return true
	})
}

// A shell dies with the process that has started it, and leaves its children to the next sweep.
func TestSweepEndsWhatAShellHasLeft(t *testing.T) {
	parent := t.TempDir()
	d, err := process.NewRunDir(parent)
	fakes.Must(t, err)
	pid := d.File("pid")
	p, err := process.Start(process.Command{Name: "line", Path: process.Shell, Args: process.ShellLine("setsid sleep 1000 & echo $! >" + pid), Log: d.File("log"), Environment: d.Mark()})
	fakes.Must(t, err)
	<-p.Done
	b, err := os.ReadFile(pid)
	fakes.Must(t, err)
	d.Record.Owner = process.Identity{PID: p.PID, Started: "long ago"}
	fakes.Must(t, d.Write())
	fakes.Must(t, process.SweepIn(parent))
	if stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(b)) + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("the child of the shell still runs: %s", stat)
	}
	if fakes.Exists(t, d.Path) {
		t.Error("the folder is still there")
	}
}
