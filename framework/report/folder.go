package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/internal/scratch"
	"github.com/service-conformance/conformance/internal/wholefile"
)

// Names of the files in a report folder.
const (
	JUnitFile   = "junit_01.xml"
	JSONFile    = "report.json"
	partialFile = "results.partial.jsonl"
	lockFile    = ".lock" // held by the run that writes
	// PreviousFolder holds the reports of the run before, which a run moves away when it begins: what stands beside it is its own.
	PreviousFolder = "previous"
)

// Folder is where a run writes its reports. While the run lasts it keeps every result in a file of JSON lines, so that
// a crash loses none. The file goes when the reports are complete. Not safe for concurrent use.
type Folder struct {
	dir     string
	partial *os.File
	lock    *scratch.Lock
}

// OpenFolder makes the folder if it does not exist and proves that it can be written.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("report folder: %w; name another with --report-dir", err)
	}
	lock, err := scratch.AttemptLock(filepath.Join(dir, lockFile))
	if err != nil {
		return nil, fmt.Errorf("report folder cannot be written: %w; name another with --report-dir", err)
	}
	if lock == nil {
		return nil, fmt.Errorf("report folder: another run writes to %s; name another folder with --report-dir", dir)
	}
	err = setAside(dir)
	var partial *os.File
	if err == nil {
		partial, err = os.Create(filepath.Join(dir, partialFile))
	}
	if err != nil {
		lock.Remove()
		return nil, fmt.Errorf("report folder: %w", err)
	}
	return &Folder{dir: dir, partial: partial, lock: lock}, nil
}

// setAside moves the reports and logs of the run before away, so that nobody takes them for those of this run, or of one that is killed.
func setAside(dir string) error {
	previous, cleared := filepath.Join(dir, PreviousFolder), false
	for _, name := range []string{JUnitFile, YAMLFile, MarkdownFile, HTMLFile, JSONFile, LogsFolder} {
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if !cleared { // a folder does not replace another one, and logs of a run of before that one would stay
			if err := errors.Join(os.MkdirAll(previous, 0o755), os.RemoveAll(filepath.Join(previous, LogsFolder))); err != nil {
				return err
			}
			cleared = true
		}
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(previous, name)); err != nil {
			return err
		}
	}
	return nil
}

// CheckFolder reports what will keep OpenFolder from making the folder, as far as that can be known without making it.
func CheckFolder(dir string) error {
	existing := filepath.Clean(dir)
	for {
		info, err := os.Stat(existing)
		if err == nil {
			if !info.IsDir() {
				return fmt.Errorf("report folder: %s is not a folder; name another with --report-dir", existing)
			}
			break
		}
		if parent := filepath.Dir(existing); errors.Is(err, fs.ErrNotExist) && parent != existing {
			existing = parent
			continue
		}
		return fmt.Errorf("report folder: %w; name another with --report-dir", err)
	}
	f, err := os.CreateTemp(existing, ".conformance-*")
	if err != nil {
		return fmt.Errorf("report folder cannot be written: %w; name another with --report-dir", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Add keeps a result.
func (f *Folder) Add(r *check.Result) error { return f.keep(r) }

// keep writes a line that a crash leaves.
func (f *Folder) keep(what any) error {
	line, err := json.Marshal(what)
	if err != nil {
		return err
	}
	_, err = f.partial.Write(append(line, '\n'))
	return err
}

// Finish writes report.json and its faces, each complete or not at all, and returns their paths, report.json last.
func (f *Folder) Finish(r *Report) ([]string, error) {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write report: %w", err)
	}
	paths, err := r.WriteFaces(f.dir, Faces...)
	if err != nil {
		return paths, err
	}
	path := filepath.Join(f.dir, JSONFile)
	if err := wholefile.Write(path, append(data, '\n'), 0o644); err != nil {
		return paths, fmt.Errorf("write report: %w", err)
	}
	f.partial.Close()
	err = os.Remove(f.partial.Name())
	f.lock.Remove()
	return append(paths, path), err
}

// WriteFaces renders faces of the report into a folder, which it makes if there is none. All are rendered before the first is written.
func (r *Report) WriteFaces(dir string, faces ...Face) (paths []string, err error) {
	rendered := make([][]byte, len(faces))
	for i, face := range faces {
		if rendered[i], err = face.Render(r); err != nil {
			return nil, fmt.Errorf("render %s: %w", face.File, err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("write report: %w", err)
	}
	for i, face := range faces {
		path := filepath.Join(dir, face.File)
		if err := wholefile.Write(path, rendered[i], 0o644); err != nil {
			return paths, fmt.Errorf("write report: %w", err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}
