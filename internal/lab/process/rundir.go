package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/service-conformance/conformance/internal/processgroup"
	"github.com/service-conformance/conformance/internal/scratch"
	"github.com/service-conformance/conformance/internal/wholefile"
)

const (
	// RunDirPrefix starts the names of the temporary folders of labs.
	RunDirPrefix = "conformance-lab-"
	// RecordFile names the file in such a folder that says whose it is and which processes belong to it.
	RecordFile = "processes.json"
)

// Identity names a process for good: pids are used again, a pid with its start time is not.
type Identity struct {
	PID     int    `json:"pid"`
	Started string `json:"started"`
}

// Self is the identity of this process.
func Self() Identity {
	started, _ := StartTime(os.Getpid()) // unknown means that nobody can prove us dead
	return Identity{os.Getpid(), started}
}

// Alive reports whether the process runs; if in doubt it says yes.
func (i Identity) Alive() bool {
	started, err := StartTime(i.PID)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return i.Started == "" || i.Started == started
}

// Kill ends the process and its group if it is certain that it is the same process, and waits until it is gone.
func (i Identity) Kill() error { return i.End(processgroup.Kill) }

// End is kill by other means.
func (i Identity) End(kill func(*os.Process) error) error {
	started, err := StartTime(i.PID)
	if err != nil || i.Started == "" || started != i.Started {
		return nil //nolint:nilerr // it has ended, and another process may have its number
	}
	p, err := os.FindProcess(i.PID)
	if err != nil {
		return nil //nolint:nilerr // it has just ended
	}
	if err := kill(p); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill process %d: %w", i.PID, err)
	}
	for deadline := time.Now().Add(10 * time.Second); i.Alive(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not end", i.PID)
		}
	}
	return nil
}

// Record is the content of RecordFile.
type Record struct {
	// Owner is the process that removes the folder. Detached folders belong to nobody; they are in use as long
	// as one of their processes runs.
	Owner     Identity   `json:"owner"`
	Detached  bool       `json:"detached,omitempty"`
	Processes []Identity `json:"processes,omitempty"`
}

// RunDir is the temporary folder of a lab. Its methods are safe for concurrent use.
type RunDir struct {
	Path   string
	mu     sync.Mutex
	Record Record
	// all are the processes that the folder has had, in order.
	all []*Process
	// Ended is told of each process that ends by itself; nil before the first one starts, if nobody wants to know.
	Ended func(*Process)
}

// NewRunDir makes a folder in parent that belongs to this process.
func NewRunDir(parent string) (*RunDir, error) {
	path, err := os.MkdirTemp(parent, RunDirPrefix)
	if err != nil {
		return nil, err
	}
	d := &RunDir{Path: path, Record: Record{Owner: Self()}}
	if err := d.Write(); err != nil {
		os.RemoveAll(path)
		return nil, err
	}
	live.Store(d, nil)
	return d, nil
}

// live are the folders that belong to this process.
var live sync.Map

func (d *RunDir) abandon() {
	d.mu.Lock() // for good: nothing is started here any more
	for _, p := range d.Record.Processes {
		_ = p.Kill()
	}
	_ = EndMarked(d.Path)
	_ = os.RemoveAll(d.Path)
}

// File is the path of a file in the folder.
func (d *RunDir) File(name string) string { return filepath.Join(d.Path, name) }

// Mark is in the environment of what a shell runs for the lab. The shell dies with this process, but what it has
// started may not, and is found by the mark.
func (d *RunDir) Mark() []string { return []string{LabVariable + "=" + d.Path} }

// Processes are all that the folder has had, in order.
func (d *RunDir) Processes() []*Process {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.all)
}

// Add records a process of the folder.
func (d *RunDir) Add(p *Process) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, p)
	if d.Ended != nil {
		go func() {
			<-p.Done
			if p.Died() && p.StartError() != nil && p.Died() { // which is not so of one whose port was taken
				d.Ended(p)
			}
		}()
	}
	d.Record.Processes = append(d.Record.Processes, p.Identity())
	return d.Write()
}

// Forget removes a process that has ended from the record.
func (d *RunDir) Forget(p *Process) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := d.Record.Processes[:0]
	for _, i := range d.Record.Processes {
		if i != p.Identity() {
			kept = append(kept, i)
		}
	}
	d.Record.Processes = kept
	_ = d.Write() // an ended process in the record does no harm: its identity is never used again
}

// Detach gives up the ownership of the folder.
func (d *RunDir) Detach() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Record.Detached = true
	live.Delete(d)
	return d.Write()
}

func (d *RunDir) Write() error {
	b, err := json.MarshalIndent(d.Record, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(d.File(RecordFile), append(b, '\n'), 0o600)
}

// Remove deletes the folder.
func (d *RunDir) Remove() error {
	live.Delete(d)
	return os.RemoveAll(d.Path)
}

// Sweep removes the folders, and ends the processes, that killed runs of this user left behind, and returns the paths of the folders.
func Sweep() (removed []string, err error) {
	before := runDirs(os.TempDir())
	err = SweepIn(os.TempDir())
	after := runDirs(os.TempDir())
	return slices.DeleteFunc(before, func(path string) bool { return slices.Contains(after, path) }), err
}

// runDirs are the folders of labs in parent, of whomever.
func runDirs(parent string) []string {
	paths, _ := filepath.Glob(filepath.Join(parent, RunDirPrefix+"*")) // the pattern is well formed, unless the folder's name is a pattern itself
	return paths
}

// SweepIn removes the folders in parent, and ends the processes, that killed runs of this user left behind.
// Folders whose owner still runs, or cannot be told, stay.
func SweepIn(parent string) error {
	paths, err := filepath.Glob(filepath.Join(parent, RunDirPrefix+"*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range paths {
		if info, err := os.Lstat(path); err != nil || !info.IsDir() || !scratch.OwnedByUser(info) {
			continue
		}
		errs = append(errs, sweepDir(path))
	}
	return errors.Join(errs...)
}

func sweepDir(path string) error {
	b, err := os.ReadFile(filepath.Join(path, RecordFile))
	if err != nil {
		return nil //nolint:nilerr // it is being made at this moment
	}
	var r Record
	if err := json.Unmarshal(b, &r); err != nil {
		return fmt.Errorf("%s: %w: remove that folder by hand", filepath.Join(path, RecordFile), err)
	}
	if r.Detached {
		for _, p := range r.Processes {
			if p.Alive() {
				return nil
			}
		}
	} else if r.Owner.Alive() {
		return nil
	}
	for _, p := range r.Processes {
		if err := p.Kill(); err != nil {
			return err
		}
	}
	if err := EndMarked(path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// AbandonAll ends the processes of this one's folders and removes them. The process is about to end without waiting for those who use them.
func AbandonAll() {
	live.Range(func(d, _ any) bool {
		d.(*RunDir).abandon()
		return true
	})
}
