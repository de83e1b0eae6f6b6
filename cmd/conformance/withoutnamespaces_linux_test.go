package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/service-conformance/conformance/framework/report"
)

// withoutNamespaces makes this program one that is root, and may make no network namespaces, for as long as it runs conformance.
const withoutNamespaces = "CONFORMANCE_TEST_WITHOUT_NAMESPACES"

func init() {
	if os.Getenv(withoutNamespaces) == "" {
		return
	}
	// The limit is that of the user namespace that this process is in, and of no other.
	if err := os.WriteFile("/proc/sys/user/max_net_namespaces", []byte("0"), 0); err != nil {
		panic(err)
	}
	os.Unsetenv(withoutNamespaces)
}

// TestTrafficThatCannotBeSentIsNoPass lets a run ask for traffic where this user may make no namespaces. The run is
// refused, whatever else it asks for, before anything is built or written.
func TestTrafficThatCannotBeSentIsNoPass(t *testing.T) {
	dir := t.TempDir()
	for _, args := range []string{
		"run --tier lab --proxy-command /does/not/exist --focus alloc-any-port,proxy-clusterip-reachable",
		"run --tier lab --suite allocation,proxy",
		"run --tier lab",
		"lab up --kubeconfig kc --proxy-command /does/not/exist",
		"lab up --kubeconfig kc --nodes 2",
	} {
		t.Run(args, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], strings.Fields(args)...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), asProgram+"=1", withoutNamespaces+"=1", "HOME="+dir)
			cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWUSER,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
			}
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if exit := (*exec.ExitError)(nil); !errors.As(cmd.Run(), &exit) || exit.ExitCode() != report.ExitUsage {
				t.Errorf("exit code %d, not %d", cmd.ProcessState.ExitCode(), report.ExitUsage)
			}
			if said := out.String(); !strings.Contains(said, "does not let this user make network namespaces") || strings.Contains(said, "run as root") {
				t.Errorf("it said %q", said)
			}
		})
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("it wrote %v", left)
	}
}
