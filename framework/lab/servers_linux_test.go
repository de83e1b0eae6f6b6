package lab

import (
	"github.com/service-conformance/conformance/framework/lab/fakes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommandsAreShellLines(t *testing.T) {
	d, err := newRunDir(t.TempDir())
	fakes.Must(t, err)
	pids := filepath.Join(t.TempDir(), "pids")
	// A variable, several commands, a child that the shell waits for, and one that leaves its session.
	line := `GREETING=two sh -c 'echo $GREETING'; setsid sleep 1000 & echo $! >>` + pids + `; sleep 1000 & echo $! >>` + pids + `; echo >>` + pids + `; wait`
	p, err := startProcess(command{name: "line", path: systemShell, args: shellLine(line), log: d.file("log"), environment: d.mark()})
	fakes.Must(t, err)
	t.Cleanup(p.kill)
	var started []string
	fakes.Until(t, "the line has started its programs", func() bool {
		b, _ := os.ReadFile(pids) // not there at first
		if !strings.HasSuffix(string(b), "\n\n") {
			return false
		}
		started = strings.Fields(string(b))
		return true
	})
	if log, _ := os.ReadFile(d.file("log")); strings.TrimSpace(string(log)) != "two" {
		t.Errorf("log %q", log)
	}
	p.kill()
	fakes.Must(t, endMarked(d.path))
	fakes.Must(t, d.remove())
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
	d, err := newRunDir(parent)
	fakes.Must(t, err)
	pid := d.file("pid")
	p, err := startProcess(command{name: "line", path: systemShell, args: shellLine("setsid sleep 1000 & echo $! >" + pid), log: d.file("log"), environment: d.mark()})
	fakes.Must(t, err)
	<-p.done
	b, err := os.ReadFile(pid)
	fakes.Must(t, err)
	d.rec.Owner = ProcessIdentity{PID: p.pid, Started: "long ago"}
	fakes.Must(t, d.write())
	fakes.Must(t, sweep(parent))
	if stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(b)) + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("the child of the shell still runs: %s", stat)
	}
	if exists(t, d.path) {
		t.Error("the folder is still there")
	}
}
