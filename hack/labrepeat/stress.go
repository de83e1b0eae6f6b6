//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/service-conformance/conformance/internal/memory"
)

// A stress makes the machine worse while a run goes on. What it finds it puts back when the run ends.
type stress struct {
	name string
	// prepare changes the command before it starts, and returns what puts the machine right again and says what was done; nil if there is nothing to do.
	prepare func(dir string, cmd *exec.Cmd) (restore func() string, err error)
	// during works beside the run until the context ends, and says what it has done; nothing if it had no occasion.
	during func(ctx context.Context, run *exec.Cmd, random *rand.Rand) string
}

// stresses are all that there are. The clock of the machine is not among them: a namespace has none of its own.
var stresses = []stress{
	{name: "none"},
	{name: "processors", during: busy},
	{name: "memory", during: hoard},
	{name: "worker", during: killWorker},
	{name: "disk", prepare: smallDisk},
	{name: "writer", during: otherWriter},
}

// parseStresses are the named ones, in that order.
func parseStresses(names string) (chosen []stress, err error) {
	if names == "" {
		return stresses[:1], nil
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(stresses, func(s stress) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no stress %q", name)
		}
		chosen = append(chosen, stresses[i])
	}
	return chosen, nil
}

// busy keeps every processor busy twice.
func busy(ctx context.Context, _ *exec.Cmd, _ *rand.Rand) string {
	var all sync.WaitGroup
	for range 2 * runtime.NumCPU() {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				for i := range 1 << 20 {
					n ^= i
				}
			}
		})
	}
	all.Wait()
	return fmt.Sprintf("%d loops", 2*runtime.NumCPU())
}

// hoard holds half of the memory that is available, and touches it again and again.
func hoard(ctx context.Context, _ *exec.Cmd, _ *rand.Rand) string {
	available, known := memory.Available()
	if !known {
		return ""
	}
	held := make([]byte, available/2)
	for ctx.Err() == nil {
		for i := 0; i < len(held) && ctx.Err() == nil; i += os.Getpagesize() {
			held[i]++
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return fmt.Sprintf("%d MiB held", len(held)>>20)
}

// workerName is what the kernel calls a process of a run that judges: proc_pid_stat(5) cuts conformance.test.
const workerName = "conformance.tes"

// killWorker kills a process of the run that judges, again and again.
func killWorker(ctx context.Context, run *exec.Cmd, random *rand.Rand) string {
	for killed := 0; ; {
		select {
		case <-ctx.Done():
			if killed == 0 {
				return ""
			}
			return fmt.Sprintf("%d workers killed", killed)
		case <-time.After(time.Duration(5+random.IntN(20)) * time.Second):
		}
		if workers := descendants(run.Process.Pid, workerName); len(workers) > 0 && syscall.Kill(workers[random.IntN(len(workers))], syscall.SIGKILL) == nil {
			killed++
		}
	}
}

// descendants are the processes of a name below another process.
func descendants(of int, name string) (pids []int) {
	children, names := map[int][]int{}, map[int]string{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		pid, parent, program, ok := parseStat(string(text))
		if ok {
			children[parent] = append(children[parent], pid)
			names[pid] = program
		}
	}
	var visit func(pid int)
	visit = func(pid int) {
		for _, child := range children[pid] {
			if names[child] == name {
				pids = append(pids, child)
			}
			visit(child)
		}
	}
	visit(of)
	return pids
}

// parseStat reads pid, parent and name of proc_pid_stat(5).
func parseStat(text string) (pid, parent int, name string, ok bool) {
	before, after, found := strings.Cut(text, " (")
	end := strings.LastIndex(after, ") ")
	if !found || end < 0 {
		return 0, 0, "", false
	}
	fields := strings.Fields(after[end+2:])
	if len(fields) < 2 {
		return 0, 0, "", false
	}
	pid, err := strconv.Atoi(before)
	if err != nil {
		return 0, 0, "", false
	}
	parent, err = strconv.Atoi(fields[1])
	return pid, parent, after[:end], err == nil
}

// smallSize is what the temporary files of a lab have: etcd alone takes 130 MiB at its start.
const smallSize = "400m"

// smallDisk gives the run a file system for its temporary files that fills up. It needs root.
func smallDisk(dir string, cmd *exec.Cmd) (func() string, error) {
	tmp := filepath.Join(dir, "tmp")
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return nil, err
	}
	if err := syscall.Mount("tmpfs", tmp, "tmpfs", 0, "size="+smallSize); err != nil {
		return nil, fmt.Errorf("mount a small file system: %w", err)
	}
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	var filled atomic.Bool
	full := time.AfterFunc(40*time.Second, func() {
		f, err := os.Create(filepath.Join(tmp, "ballast"))
		if err != nil {
			return
		}
		defer f.Close()
		for block := make([]byte, 1<<20); err == nil; {
			_, err = f.Write(block)
		}
		filled.Store(true)
	})
	return func() string {
		full.Stop()
		_ = syscall.Unmount(tmp, syscall.MNT_DETACH)
		if filled.Load() {
			return "disk filled"
		}
		return ""
	}, nil
}
