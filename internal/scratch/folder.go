// Package scratch holds what a process has on disk for as long as it runs. It has temporary folders, which the next
// start removes after a process was killed. Lock files tell that it was.
package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// prefix starts the names of all temporary folders.
const prefix = "conformance-"

// ownerFile names the file in a folder that its process holds locked.
const ownerFile = ".owner"

// A Folder is a temporary folder of this process.
type Folder struct {
	Path  string
	owner *Lock
}

// lefts are what OnSweep was called with.
var lefts sync.Map // of func(path string) error, by kind

// OnSweep has left called for each folder of a kind that a process left behind, before it is removed. So left can
// remove what the folder tells of. If left fails, the folder stays, and the next start tries again.
func OnSweep(kind string, left func(path string) error) { lefts.Store(kind, left) }

// leftOf is what OnSweep was called with for the kind of a folder, or nil.
func leftOf(path string) (left func(string) error) {
	lefts.Range(func(kind, f any) bool {
		if strings.HasPrefix(filepath.Base(path), prefix+kind.(string)+"-") {
			left = f.(func(string) error)
		}
		return left == nil
	})
	return left
}

// live are the folders of this process.
var live sync.Map

// Abandon removes all folders of this process, which is about to end without waiting for those who use them. Those that tell the next start what else is to be
// removed stay, see OnSweep.
func Abandon() {
	live.Range(func(f, _ any) bool {
		if f := f.(*Folder); leftOf(f.Path) == nil {
			f.Remove()
		}
		return true
	})
}

// New makes a folder among the system's temporary ones. It removes those of the same kind that processes of this user
// left behind: those whose owner is gone.
func New(kind string) (*Folder, error) { return newFolder(os.TempDir(), kind) }

func newFolder(parent, kind string) (*Folder, error) {
	if _, err := sweep(parent, kind); err != nil {
		fmt.Fprintf(os.Stderr, "what a killed run has left could not be removed, the next start tries again: %v\n", err)
	}
	path, err := os.MkdirTemp(parent, prefix+kind+"-")
	if err != nil {
		return nil, err
	}
	owner, err := AttemptLock(filepath.Join(path, ownerFile))
	if err == nil && owner == nil {
		err = errors.New("another process holds " + filepath.Join(path, ownerFile))
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	f := &Folder{path, owner}
	live.Store(f, nil)
	return f, nil
}

// Remove deletes the folder. What cannot be deleted is left to the next start.
func (f *Folder) Remove() {
	live.Delete(f)
	f.owner.Unlock() // some systems do not remove open files
	_ = os.RemoveAll(f.Path)
}

// Keep leaves the folder to the user: nobody removes it when this process is gone.
func (f *Folder) Keep() error {
	live.Delete(f)
	f.owner.Remove()
	if err := os.Remove(filepath.Join(f.Path, ownerFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Sweep removes the folders of every kind that processes of this user left behind, and returns their paths. The error tells what OnSweep could not remove.
func Sweep() (removed []string, err error) { return sweep(os.TempDir(), "*") }

// sweep removes folders without an owner. What cannot be removed waits for the next start; a folder without an owner file is being made, or kept.
func sweep(parent, kind string) (removed []string, err error) {
	paths, err := filepath.Glob(filepath.Join(parent, prefix+kind+"-*"))
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, path := range paths {
		file := filepath.Join(path, ownerFile)
		if info, err := os.Lstat(path); err != nil || !info.IsDir() || !OwnedByUser(info) {
			continue
		}
		if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		owner, err := AttemptLock(file)
		if err != nil || owner == nil {
			continue
		}
		if left := leftOf(path); left != nil {
			if err := left(path); err != nil {
				errs = append(errs, err)
				owner.Unlock()
				continue
			}
		}
		(&Folder{path, owner}).Remove()
		removed = append(removed, path)
	}
	return removed, errors.Join(errs...)
}
