package lab

import (
	"encoding/json"
	"errors"
	"github.com/service-conformance/conformance/framework/lab/fakes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// deadIdentity is a process that certainly does not run: this one, started at another time.
func deadIdentity() ProcessIdentity { return ProcessIdentity{os.Getpid(), "never"} }

// leave makes a folder as a run leaves it.
func leave(t *testing.T, parent string, r record) string {
	t.Helper()
	d, err := newRunDir(parent)
	fakes.Must(t, err)
	d.rec = r
	fakes.Must(t, d.write())
	return d.path
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func TestSweepRemovesWhatKilledRunsLeft(t *testing.T) {
	parent := t.TempDir()
	child := startForever(t)
	dir := leave(t, parent, record{Owner: deadIdentity(), Processes: []ProcessIdentity{{child.pid, child.started}}})
	fakes.Must(t, sweep(parent))
	if exists(t, dir) {
		t.Error("the folder is still there")
	}
	<-child.done // it was killed, or this never ends
}

func TestSweepLeavesOthersAlone(t *testing.T) {
	parent := t.TempDir()
	child := startForever(t)
	live := ProcessIdentity{child.pid, child.started}
	otherStart := ProcessIdentity{child.pid, "another time"}
	kept := map[string]string{
		"of a running owner":                 leave(t, parent, record{Owner: self(), Processes: []ProcessIdentity{live}}),
		"of an owner whose start is unknown": leave(t, parent, record{Owner: ProcessIdentity{PID: os.Getpid()}}),
		"detached and running":               leave(t, parent, record{Owner: deadIdentity(), Detached: true, Processes: []ProcessIdentity{deadIdentity(), live}}),
	}
	unfinished, err := os.MkdirTemp(parent, runDirPrefix)
	fakes.Must(t, err)
	kept["being made"] = unfinished
	kept["of another program"] = filepath.Join(parent, "something")
	fakes.Must(t, os.Mkdir(kept["of another program"], 0o755))
	gone := leave(t, parent, record{Owner: deadIdentity(), Processes: []ProcessIdentity{otherStart}})

	fakes.Must(t, sweep(parent))
	for name, dir := range kept {
		if !exists(t, dir) {
			t.Errorf("the folder %s was removed", name)
		}
	}
	if exists(t, gone) {
		t.Error("the folder of a dead owner is still there")
	}
	if !child.alive() {
		t.Error("a process was killed that only has the pid of a recorded one")
	}
}

func TestSweepRemovesDetachedFoldersWithoutProcesses(t *testing.T) {
	parent := t.TempDir()
	dir := leave(t, parent, record{Owner: self(), Detached: true, Processes: []ProcessIdentity{deadIdentity()}})
	fakes.Must(t, sweep(parent))
	if exists(t, dir) {
		t.Error("the folder is still there")
	}
}

func TestSweepReportsADamagedRecord(t *testing.T) {
	parent := t.TempDir()
	dir := leave(t, parent, record{Owner: deadIdentity()})
	fakes.Must(t, os.WriteFile(filepath.Join(dir, recordFile), []byte("{"), 0o600))
	if err := sweep(parent); err == nil {
		t.Error("no error")
	}
	if !exists(t, dir) {
		t.Error("a folder was removed of which nobody knows whose it is")
	}
}

func TestRunDirRecordsItsProcesses(t *testing.T) {
	d, err := newRunDir(t.TempDir())
	fakes.Must(t, err)
	read := func() (r record) {
		b, err := os.ReadFile(d.file(recordFile))
		fakes.Must(t, err)
		fakes.Must(t, json.Unmarshal(b, &r))
		return r
	}
	child := startForever(t)
	fakes.Must(t, d.add(child))
	if r := read(); r.Owner != self() || len(r.Processes) != 1 || r.Processes[0].PID != child.pid || !r.Processes[0].alive() {
		t.Errorf("recorded %+v", r)
	}
	d.forget(child)
	if r := read(); len(r.Processes) != 0 {
		t.Errorf("recorded %+v", r)
	}
	fakes.Must(t, d.remove())
	if exists(t, d.path) {
		t.Error("the folder is still there")
	}
}
