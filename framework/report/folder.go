package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/service-conformance/conformance/framework/check"
)

// Names of the files in a report folder.
const (
	JUnitFile   = "junit_01.xml"
	JSONFile    = "report.json"
	partialFile = "results.partial.jsonl"
)

// Folder is where a run writes its reports. While the run lasts it keeps every result in a file of JSON lines, so that
// a crash loses none; the file goes when the reports are complete. Not safe for concurrent use.
type Folder struct {
	dir     string
	partial *os.File
}

// OpenFolder makes the folder if it does not exist and proves that it can be written.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("report folder: %w; name another with --report-dir", err)
	}
	f, err := os.Create(filepath.Join(dir, partialFile))
	if err != nil {
		return nil, fmt.Errorf("report folder cannot be written: %w; name another with --report-dir", err)
	}
	return &Folder{dir: dir, partial: f}, nil
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
func (f *Folder) Add(r *check.Result) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = f.partial.Write(append(line, '\n'))
	return err
}

// Finish writes the reports, each complete or not at all, and returns their paths.
func (f *Folder) Finish(r *Report) ([]string, error) {
	junit, err := r.JUnit()
	if err != nil {
		return nil, fmt.Errorf("write JUnit: %w", err)
	}
	report, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write report: %w", err)
	}
	var paths []string
	for _, file := range []struct {
		name string
		data []byte
	}{{JUnitFile, junit}, {JSONFile, append(report, '\n')}} {
		path := filepath.Join(f.dir, file.name)
		if err := writeWhole(path, file.data); err != nil {
			return paths, fmt.Errorf("write report: %w", err)
		}
		paths = append(paths, path)
	}
	f.partial.Close()
	return paths, os.Remove(f.partial.Name())
}

// writeWhole replaces a file in one step.
func writeWhole(path string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	if _, err = temporary.Write(data); err == nil {
		err = temporary.Chmod(0o644)
	}
	if closeErr := temporary.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
