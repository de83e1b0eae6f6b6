package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"
)

// A process that starts its program over and over is in the midst of execve for much of its time.
func TestEnvironmentOfAProcessThatIsBeingStarted(t *testing.T) {
	program := filepath.Join(t.TempDir(), "again")
	fakes.Must(t, os.WriteFile(program, []byte("#!/bin/sh\nexec \"$0\"\n"), 0o700))
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = []string{"MARK=there"}
	fakes.Must(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	for look := range 500 {
		env, err := environmentOf(cmd.Process.Pid)
		fakes.Must(t, err)
		if !strings.Contains(string(env), "MARK=there") {
			t.Fatalf("look %d: %q", look, env)
		}
	}
}
