package process

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"
)

// deadIdentity is a process that certainly does not run: this one, started at another time.
func deadIdentity() Identity { return Identity{os.Getpid(), "never"} }

// leave makes a folder as a run leaves it.
func leave(t *testing.T, parent string, r Record) string {
	t.Helper()
	d, err := NewRunDir(parent)
	fakes.Must(t, err)
	d.Record = r
	fakes.Must(t, d.Write())
	return d.Path
}

func TestSweepRemovesWhatKilledRunsLeft(t *testing.T) {
	parent := t.TempDir()
	child := startForever(t)
	dir := leave(t, parent, Record{Owner: deadIdentity(), Processes: []Identity{child.Identity()}})
	fakes.Must(t, SweepIn(parent))
	if fakes.Exists(t, dir) {
		t.Error("the folder is still there")
	}
	<-child.Done // it was killed, or this never ends
}

func TestSweepLeavesOthersAlone(t *testing.T) {
	parent := t.TempDir()
	child := startForever(t)
	live := child.Identity()
	otherStart := Identity{child.PID, "another time"}
	kept := map[string]string{
		"of a running owner":                 leave(t, parent, Record{Owner: Self(), Processes: []Identity{live}}),
		"of an owner whose start is unknown": leave(t, parent, Record{Owner: Identity{PID: os.Getpid()}}),
		"detached and running":               leave(t, parent, Record{Owner: deadIdentity(), Detached: true, Processes: []Identity{deadIdentity(), live}}),
	}
	unfinished, err := os.MkdirTemp(parent, RunDirPrefix)
	fakes.Must(t, err)
	kept["being made"] = unfinished
	kept["of another program"] = filepath.Join(parent, "something")
	fakes.Must(t, os.Mkdir(kept["of another program"], 0o755))
	gone := leave(t, parent, Record{Owner: deadIdentity(), Processes: []Identity{otherStart}})

	fakes.Must(t, SweepIn(parent))
	for name, dir := range kept {
		if !fakes.Exists(t, dir) {
			t.Errorf("the folder %s was removed", name)
		}
	}
	if fakes.Exists(t, gone) {
		t.Error("the folder of a dead owner is still there")
	}
	if !child.Alive() {
		t.Error("a process was killed that only has the pid of a recorded one")
	}
}

func TestSweepRemovesDetachedFoldersWithoutProcesses(t *testing.T) {
	parent := t.TempDir()
	dir := leave(t, parent, Record{Owner: Self(), Detached: true, Processes: []Identity{deadIdentity()}})
	fakes.Must(t, SweepIn(parent))
	if fakes.Exists(t, dir) {
		t.Error("the folder is still there")
	}
}

func TestSweepReportsADamagedRecord(t *testing.T) {
	parent := t.TempDir()
	dir := leave(t, parent, Record{Owner: deadIdentity()})
	fakes.Must(t, os.WriteFile(filepath.Join(dir, RecordFile), []byte("{"), 0o600))
	if err := SweepIn(parent); err == nil {
		t.Error("no error")
	}
	if !fakes.Exists(t, dir) {
		t.Error("a folder was removed of which nobody knows whose it is")
	}
}

func TestRunDirRecordsItsProcesses(t *testing.T) {
	d, err := NewRunDir(t.TempDir())
	fakes.Must(t, err)
	read := func() (r Record) {
		b, err := os.ReadFile(d.File(RecordFile))
		fakes.Must(t, err)
		fakes.Must(t, json.Unmarshal(b, &r))
		return r
	}
	child := startForever(t)
	fakes.Must(t, d.Add(child))
	if r := read(); r.Owner != Self() || len(r.Processes) != 1 || r.Processes[0].PID != child.PID || !r.Processes[0].Alive() {
		t.Errorf("recorded %+v", r)
	}
	d.Forget(child)
	if r := read(); len(r.Processes) != 0 {
		t.Errorf("recorded %+v", r)
	}
	fakes.Must(t, d.Remove())
	if fakes.Exists(t, d.Path) {
		t.Error("the folder is still there")
	}
}
