//go:build linux

package network

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// cgroupOf is the last part of the path of the cgroup (version 2) that a proc file names.
func cgroupOf(t *testing.T, said string) string {
	t.Helper()
	for line := range strings.Lines(said) {
		if path, found := strings.CutPrefix(line, "0::"); found {
			return filepath.Base(strings.TrimSpace(path))
		}
	}
	t.Fatalf("no cgroup of version 2 in %q", said)
	return ""
}

// TestEveryNodeHasACgroup demands that threads and processes in a node and in its pods are in the cgroup of that node,
// and that threads come back. The cgroup goes with the node, and so do those that a killed lab has left.
func TestEveryNodeHasACgroup(t *testing.T) {
	f := must(NewFabric())(t)
	defer f.Close()
	f.NodeCgroups = true
	own, err := ownCgroup()
	var left string
	if err == nil {
		left, err = os.MkdirTemp(own, cgroupPrefix+"*")
	}
	if err != nil { // as without root: nodes do without
		node := must(f.AddNode())(t)
		defer node.Remove()
		if path := node.Cgroup(); path != "" {
			t.Errorf("this user can make no cgroup (%v), and the node has %s", err, path)
		}
		if err := node.Do(func() error { return nil }); err != nil {
			t.Error(err)
		}
		return
	}
	var paths []string
	for range 2 {
		node := must(f.AddNode())(t)
		pod := must(node.AddPod())(t)
		path := node.Cgroup()
		if path == "" || len(paths) > 0 && path == paths[0] {
			t.Fatalf("the node has the cgroup %q, others %q", path, paths)
		}
		paths = append(paths, path)
		for name, in := range map[string]*Namespace{"node": node.Namespace, "pod": pod.Namespace} {
			var thread []byte
			if err := in.Do(func() (err error) { thread, err = os.ReadFile("/proc/thread-self/cgroup"); return err }); err != nil {
				t.Fatal(err)
			}
			var process strings.Builder
			cmd := exec.Command("cat", "/proc/self/cgroup")
			cmd.Stdout = &process
			if err := in.Do(cmd.Start); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			if got := []string{cgroupOf(t, string(thread)), cgroupOf(t, process.String())}; got[0] != filepath.Base(path) || got[1] != filepath.Base(path) {
				t.Errorf("a thread and a process of the %s are in %q, want %s", name, got, filepath.Base(path))
			}
		}
		pod.Remove()
		node.Remove()
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("the cgroup of a node that is gone is still there: %v", err)
		}
	}
	threads, err := filepath.Glob("/proc/self/task/*/cgroup")
	if err != nil || len(threads) == 0 {
		t.Fatal(threads, err)
	}
	for _, thread := range threads {
		if b, err := os.ReadFile(thread); err == nil && strings.HasPrefix(cgroupOf(t, string(b)), cgroupPrefix) {
			t.Errorf("%s is still in the cgroup of a node: %s", thread, b)
		}
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what a killed lab has left is still there: %v", err)
	}
}

// TestTheMountOfCgroupsIsFound reads tables of mounts.
func TestTheMountOfCgroupsIsFound(t *testing.T) {
	const (
		v1   = "30 24 0:26 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
		part = "31 24 0:27 /kubepods/pod7 /tmp/part rw - cgroup2 cgroup2 rw\n"
		v2   = "32 24 0:27 / /sys/fs/cgroup/unified rw,relatime shared:10 - cgroup2 cgroup2 rw\n"
	)
	for table, want := range map[string]string{v1: "", v1 + part: "", v1 + part + v2: "/sys/fs/cgroup/unified", v2 + part: "/sys/fs/cgroup/unified"} {
		file := filepath.Join(t.TempDir(), "mountinfo")
		if err := os.WriteFile(file, []byte(table), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := cgroupMount(file); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v; want %q", table, got, err, want)
		}
	}
}
