package sonobuoy

import (
	"archive/tar"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unpack returns the files of an archive.
func unpack(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	compressed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files, packed := map[string]string{}, tar.NewReader(compressed)
	for {
		header, err := packed.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(packed)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(data)
	}
}

func openIn(t *testing.T, dir string) *Results {
	t.Helper()
	t.Setenv(ResultsVariable, dir)
	r, err := OpenResults()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSubmitPacksWhatThereIsAndNamesItInDone(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("shared", 0o755); err != nil {
		t.Fatal(err)
	}
	r := openIn(t, "shared")
	report := filepath.Join(r.ReportDir(), "report.json")
	if err := os.WriteFile(report, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	archive, err := r.Submit(report, filepath.Join(r.ReportDir(), "missing.xml"))
	if err != nil {
		t.Fatal(err)
	}
	done, err := os.ReadFile(filepath.Join("shared", "done"))
	if err != nil {
		t.Fatal(err)
	}
	if string(done) != archive || !filepath.IsAbs(archive) || filepath.Ext(archive) != ".gz" {
		t.Errorf("done holds %q, want the absolute path %s of an archive that the aggregator unpacks", done, archive)
	}
	if files := unpack(t, archive); len(files) != 1 || files["report.json"] != "{}" {
		t.Errorf("the archive holds %v", files)
	}
	for _, name := range []string{"done", archiveFile} {
		if info, err := os.Stat(filepath.Join("shared", name)); err != nil || info.Mode().Perm()&0o044 != 0o044 {
			t.Errorf("%s cannot be read by the worker, which is another user: %v %v", name, info.Mode(), err)
		}
	}
	left, err := os.ReadDir("shared")
	if err != nil || len(left) != 3 {
		t.Errorf("temporary files are left: %v %v", left, err)
	}
}

func TestDoneIsMissingIfTheArchiveIs(t *testing.T) {
	r := openIn(t, t.TempDir())
	if _, err := r.Submit(r.ReportDir()); err == nil { // a folder is no file
		t.Error("no error")
	}
	if _, err := os.Stat(filepath.Join(r.dir, "done")); err == nil {
		t.Error("done leads Sonobuoy to an archive that there is not")
	}
}

func TestOpenResultsForgetsAnEarlierProcess(t *testing.T) {
	dir := t.TempDir()
	r := openIn(t, dir)
	old := filepath.Join(r.ReportDir(), "report.json")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Submit(old); err != nil {
		t.Fatal(err)
	}
	r = openIn(t, dir)
	left, err := os.ReadDir(r.ReportDir())
	if err != nil || len(left) != 0 {
		t.Errorf("reports of the earlier process: %v %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "done")); err == nil {
		t.Error("done is there before the run")
	}
}

func TestOpenResultsSaysWhatIsMissing(t *testing.T) {
	t.Setenv(ResultsVariable, filepath.Join(t.TempDir(), "none"))
	if _, err := OpenResults(); err == nil || !strings.Contains(err.Error(), ResultsVariable) {
		t.Errorf("got %v, want an error that names %s", err, ResultsVariable)
	}
}

func TestTheOutcomeIsOneTestCase(t *testing.T) {
	for name, c := range map[string]struct {
		outcome          Outcome
		failures, errors int
		want             string
	}{
		"conformant":     {Outcome{Text: "conformant"}, 0, 0, "<system-out>conformant"},
		"non-conformant": {Outcome{Failed: true, Text: "non-conformant"}, 1, 0, `<failure message="non-conformant"`},
		"broken":         {Outcome{Broken: true, Text: "no <server>\x00"}, 0, 1, `<error message="no &lt;server&gt;`},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := openIn(t, t.TempDir()).WriteOutcome(c.outcome)
			if err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var read outcomeSuites
			if err := xml.Unmarshal(data, &read); err != nil {
				t.Fatal(err)
			}
			if s := read.Suite; s.Tests != 1 || s.Failures != c.failures || s.Errors != c.errors || !strings.Contains(string(data), c.want) {
				t.Errorf("got\n%s\nwant %d failures, %d errors and %s", data, c.failures, c.errors, c.want)
			}
		})
	}
}
