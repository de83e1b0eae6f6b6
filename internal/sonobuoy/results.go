// Package sonobuoy is what a plugin owes to Sonobuoy. It writes results into a folder that it shares with the worker
// beside it, and a file that tells where they are. It tells how far it is. What Sonobuoy demands was read from its
// release v0.57.5: pkg/worker, pkg/plugin and pkg/client/results of https://github.com/vmware-tanzu/sonobuoy.
package sonobuoy

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/service-conformance/conformance/internal/wholefile"
)

// ResultsVariable names the shared folder; without it the folder is DefaultResultsDir.
const (
	ResultsVariable   = "SONOBUOY_RESULTS_DIR"
	DefaultResultsDir = "/tmp/sonobuoy/results"
)

// Names of files in the shared folder.
const (
	doneFile    = "done"
	archiveFile = "conformance.tar.gz" // the aggregator unpacks what ends in .gz
	reportDir   = "conformance"
)

// worldReadable is the mode of its files: the worker is another user.
const worldReadable = 0o644

// Results is the shared folder. The worker waits for the file "done" in it, and then sends the file that "done" names
// to the aggregator. How the process of the plugin ends does not matter then. Without "done" a failed one counts as an
// error of the plugin, five minutes later.
type Results struct{ dir string }

// OpenResults takes the shared folder, which Sonobuoy has made, and removes from it what an earlier process of the plugin left.
func OpenResults() (*Results, error) {
	dir := os.Getenv(ResultsVariable)
	if dir == "" {
		dir = DefaultResultsDir
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("folder of results: %w; Sonobuoy makes it for its plugins, and names it in %s", err, ResultsVariable)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("folder of results: %s is not a folder; name another one in %s", dir, ResultsVariable)
	}
	r := &Results{dir}
	for _, name := range []string{doneFile, archiveFile, reportDir} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("folder of results: %w", err)
		}
	}
	if err := os.Mkdir(r.ReportDir(), 0o755); err != nil {
		return nil, fmt.Errorf("folder of results cannot be written: %w", err)
	}
	return r, nil
}

// ReportDir is the folder for the reports of the run. It exists and is empty.
func (r *Results) ReportDir() string { return filepath.Join(r.dir, reportDir) }

// Submit packs those of the files that exist, by their base names, and hands the archive over, whose path it returns. It is the last thing that a
// plugin does: "done" appears when the archive is complete, with all that it says.
func (r *Results) Submit(files ...string) (archive string, err error) {
	archive = filepath.Join(r.dir, archiveFile)
	if err := wholefile.Stream(archive, worldReadable, func(w io.Writer) error { return pack(w, files) }); err != nil {
		return "", fmt.Errorf("pack the results: %w", err)
	}
	if err := wholefile.Stream(filepath.Join(r.dir, doneFile), worldReadable, func(w io.Writer) error {
		_, err := io.WriteString(w, archive)
		return err
	}); err != nil {
		return "", fmt.Errorf("tell Sonobuoy where the results are: %w", err)
	}
	return archive, nil
}

// pack writes a compressed tar archive of those of the files that exist.
func pack(w io.Writer, files []string) error {
	compressed := gzip.NewWriter(w)
	packed := tar.NewWriter(compressed)
	for _, path := range files {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = packed.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: filepath.Base(path), Mode: 0o644, Size: int64(len(data))})
		}
		if err == nil {
			_, err = packed.Write(data)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(packed.Close(), compressed.Close())
}
