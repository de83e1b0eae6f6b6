//go:build unix

package processgroup

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// TestKillEndsWhatTheLeaderStarted: a child that outlives its parent ends with the group.
func TestKillEndsWhatTheLeaderStarted(t *testing.T) {
	for name, end := range map[string]func(*os.Process) error{"End": End, "Kill": Kill} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("/bin/sh", "-c", "sleep 1000 & echo $!")
			Own(cmd)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, _, err := bufio.NewReader(out).ReadLine()
			if err != nil {
				t.Fatal(err)
			}
			child, err := strconv.Atoi(string(line))
			if err != nil {
				t.Fatal(err)
			}
			if group, err := syscall.Getpgid(child); err != nil || group != cmd.Process.Pid {
				t.Fatalf("the child is in group %d: %v; want %d", group, err, cmd.Process.Pid)
			}
			if err := end(cmd.Process); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
				if err := end(cmd.Process); errors.Is(err, os.ErrProcessDone) {
					return // nobody is in the group any more
				}
				if time.Since(begin) > time.Minute {
					t.Fatal("the child still runs")
				}
			}
		})
	}
}
