package isolation

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"
	"github.com/service-conformance/conformance/internal/lab/process"

	"github.com/service-conformance/conformance/internal/scratch"
)

func init() {
	// isolating isolates itself, and prints what came of it. Inside it ends with the code that it is given, or is killed.
	fakes.Programs["isolating"] = func(args []string) {
		if !Isolated() {
			fmt.Println(Isolate(nil))
			return
		}
		code, err := strconv.Atoi(args[0])
		if err != nil {
			_, err := scratch.New("work")
			fakes.Check(err)
			_, err = process.NewRunDir(os.TempDir())
			fakes.Check(err)
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			select {}
		}
		os.Exit(code)
	}
}

// TestIsolateReturnsHowTheProcessEnded demands that each exit code is passed on, 0 among them. A process that was
// killed is no end of its own, and what it had on disk goes with it.
func TestIsolateReturnsHowTheProcessEnded(t *testing.T) {
	if err := Works(); err != nil {
		t.Fatalf("the test needs a machine that lets this user make network namespaces: %v", err)
	}
	program := filepath.Join(fakes.Install(t, "isolating"), "isolating")
	for ends, want := range map[string]string{"0": "0 <nil>", "2": "2 <nil>", "killed": "0 the process in namespaces of its own ended: signal: killed"} {
		cmd, tmp := exec.Command(program, ends), t.TempDir()
		cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
		out, err := cmd.CombinedOutput()
		if said := strings.TrimSpace(string(out)); err != nil || said != want {
			t.Errorf("%s: %q, %v, want %q", ends, said, err, want)
		}
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind: %v %v", ends, left, err)
		}
	}
}

// TestRootIsNotToldToBecomeRoot demands a hint that its reader can follow.
func TestRootIsNotToldToBecomeRoot(t *testing.T) {
	if said := allowNamespaces(0); strings.Contains(said, "root") || !strings.Contains(said, "SYS_ADMIN") {
		t.Errorf("root is told: %s", said)
	}
	if said := allowNamespaces(1000); !strings.Contains(said, "root") {
		t.Errorf("a user is told: %s", said)
	}
}
