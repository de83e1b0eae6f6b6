package lab

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

	"github.com/service-conformance/conformance/framework/processgroup"
	"github.com/service-conformance/conformance/framework/scratch"
	"github.com/service-conformance/conformance/framework/wholefile"
)

const (
	// runDirPrefix starts the names of the temporary folders of labs.
	runDirPrefix = "conformance-lab-"
	// recordFile names the file in such a folder that says whose it is and which processes belong to it.
	recordFile = "processes.json"
)

// ProcessIdentity names a process for good: pids are used again, a pid with its start time is not.
type ProcessIdentity struct {
	PID     int    `json:"pid"`
	Started string `json:"started"`
}

// self is the identity of this process.
func self() ProcessIdentity {
	started, _ := processStart(os.Getpid()) // unknown means that nobody can prove us dead
	return ProcessIdentity{os.Getpid(), started}
}

// alive reports whether the process runs; if in doubt it says yes.
func (i ProcessIdentity) alive() bool {
	started, err := processStart(i.PID)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return i.Started == "" || i.Started == started
}

// kill ends the process and its group if it is certain that it is the same process, and waits until it is gone.
func (i ProcessIdentity) kill() error { return i.end(processgroup.Kill) }

// end is kill by other means.
func (i ProcessIdentity) end(kill func(*os.Process) error) error {
	started, err := processStart(i.PID)
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
	for deadline := time.Now().Add(10 * time.Second); i.alive(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not end", i.PID)
		}
	}
	return nil
}

// record is the content of recordFile.
type record struct {
	// Owner is the process that removes the folder. Detached folders belong to nobody; they are in use as long
	// as one of their processes runs.
	Owner     ProcessIdentity   `json:"owner"`
	Detached  bool              `json:"detached,omitempty"`
	Processes []ProcessIdentity `json:"processes,omitempty"`
}

// runDir is the temporary folder of a lab. Its methods are safe for concurrent use.
type runDir struct {
	path string
	mu   sync.Mutex
	rec  record
	// all are the processes that the folder has had, in order.
	all []*process
	// ended is told of each process that ends by itself; nil before the first one starts, if nobody wants to know.
	ended func(*process)
}

// newRunDir makes a folder in parent that belongs to this process.
func newRunDir(parent string) (*runDir, error) {
	path, err := os.MkdirTemp(parent, runDirPrefix)
	if err != nil {
		return nil, err
	}
	d := &runDir{path: path, rec: record{Owner: self()}}
	if err := d.write(); err != nil {
		os.RemoveAll(path)
		return nil, err
	}
	live.Store(d, nil)
	return d, nil
}

// live are the folders that belong to this process.
var live sync.Map

func (d *runDir) abandon() {
	d.mu.Lock() // for good: nothing is started here any more
	for _, p := range d.rec.Processes {
		_ = p.kill()
	}
	_ = endMarked(d.path)
	_ = os.RemoveAll(d.path)
}

func (d *runDir) file(name string) string { return filepath.Join(d.path, name) }

// mark is in the environment of what a shell runs for the lab: the shell dies with this process, what it has started may not, and is found by the mark.
func (d *runDir) mark() []string { return []string{labVariable + "=" + d.path} }

// processes are all that the folder has had, in order.
func (d *runDir) processes() []*process {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.all)
}

// add records a process of the folder.
func (d *runDir) add(p *process) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, p)
	if d.ended != nil {
		go func() {
			<-p.done
			if p.died() && p.startError() != nil && p.died() { // which is not so of one whose port was taken
				d.ended(p)
			}
		}()
	}
	d.rec.Processes = append(d.rec.Processes, ProcessIdentity{p.pid, p.started})
	return d.write()
}

// forget removes a process that has ended from the record.
func (d *runDir) forget(p *process) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := d.rec.Processes[:0]
	for _, i := range d.rec.Processes {
		if i != (ProcessIdentity{p.pid, p.started}) {
			kept = append(kept, i)
		}
	}
	d.rec.Processes = kept
	_ = d.write() // an ended process in the record does no harm: its identity is never used again
}

// detach gives up the ownership of the folder.
func (d *runDir) detach() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rec.Detached = true
	live.Delete(d)
	return d.write()
}

func (d *runDir) write() error {
	b, err := json.MarshalIndent(d.rec, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(d.file(recordFile), append(b, '\n'), 0o600)
}

// remove deletes the folder.
func (d *runDir) remove() error {
	live.Delete(d)
	return os.RemoveAll(d.path)
}

// Sweep removes the folders, and ends the processes, that killed runs of this user left behind, and returns the paths of the folders.
func Sweep() (removed []string, err error) {
	before := runDirs(os.TempDir())
	err = sweep(os.TempDir())
	after := runDirs(os.TempDir())
	return slices.DeleteFunc(before, func(path string) bool { return slices.Contains(after, path) }), err
}

// runDirs are the folders of labs in parent, of whomever.
func runDirs(parent string) []string {
	paths, _ := filepath.Glob(filepath.Join(parent, runDirPrefix+"*")) // the pattern is well formed, unless the folder's name is a pattern itself
	return paths
}

// sweep removes the folders in parent, and ends the processes, that killed runs of this user left behind.
// Folders whose owner still runs, or cannot be told, stay.
func sweep(parent string) error {
	paths, err := filepath.Glob(filepath.Join(parent, runDirPrefix+"*"))
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
	b, err := os.ReadFile(filepath.Join(path, recordFile))
	if err != nil {
		return nil //nolint:nilerr // it is being made at this moment
	}
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		return fmt.Errorf("%s: %w: remove that folder by hand", filepath.Join(path, recordFile), err)
	}
	if r.Detached {
		for _, p := range r.Processes {
			if p.alive() {
				return nil
			}
		}
	} else if r.Owner.alive() {
		return nil
	}
	for _, p := range r.Processes {
		if err := p.kill(); err != nil {
			return err
		}
	}
	if err := endMarked(path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// abandonAll ends the processes of this one's folders and removes them. The process is about to end without waiting for those who use them.
func abandonAll() {
	live.Range(func(d, _ any) bool {
		d.(*runDir).abandon()
		return true
	})
}
