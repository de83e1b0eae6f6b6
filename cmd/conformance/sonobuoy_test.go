package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/internal/sonobuoy"
)

// aggregator stands in for Sonobuoy. The worker beside the plugin relays progress and waits for the file done. The
// aggregator unpacks what the worker sends and counts test cases. All that it knows of a plugin is what those know.
type aggregator struct {
	dir string // of results

	mu      sync.Mutex
	updates []sonobuoy.Update
	looked  error             // why the results could not be read when done was there
	files   map[string][]byte // of the results; nil before done
}

// startAggregator starts it and sets the variables by which Sonobuoy tells a plugin of it.
func startAggregator(t *testing.T) *aggregator {
	t.Helper()
	a := &aggregator{dir: t.TempDir()}
	server := httptest.NewServer(http.HandlerFunc(a.progress))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(sonobuoy.ResultsVariable, a.dir)
	t.Setenv(sonobuoy.ProgressVariable, at.Port())
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for !a.look() {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
	return a
}

func (a *aggregator) progress(w http.ResponseWriter, r *http.Request) {
	var u sonobuoy.Update
	if err := json.NewDecoder(r.Body).Decode(&u); err != nil || r.URL.Path != "/progress" || r.Method != http.MethodPost {
		http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.updates = append(a.updates, u)
}

// look is what the worker does every second: it reads the results as soon as there is a file done, and never again.
func (a *aggregator) look() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.files != nil || a.looked != nil {
		return true
	}
	done, err := os.ReadFile(filepath.Join(a.dir, "done"))
	if err != nil {
		return false
	}
	a.files, a.looked = unpackResults(strings.TrimSpace(string(done)))
	return true
}

func unpackResults(path string) (map[string][]byte, error) {
	if filepath.Ext(path) != ".gz" {
		return nil, fmt.Errorf("the aggregator does not unpack %s", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	compressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	files, packed := map[string][]byte{}, tar.NewReader(compressed)
	for {
		header, err := packed.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[header.Name], err = io.ReadAll(packed); err != nil {
			return nil, err
		}
	}
}

// results are what a plugin that has ended handed over.
func (a *aggregator) results(t *testing.T) map[string][]byte {
	t.Helper()
	if !a.look() {
		t.Fatal("the plugin ended without a file done: Sonobuoy has no results")
	}
	if a.looked != nil {
		t.Fatalf("the results could not be read when done was there: %v", a.looked)
	}
	return a.files
}

func (a *aggregator) lastUpdate() sonobuoy.Update {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.updates) == 0 {
		return sonobuoy.Update{}
	}
	return a.updates[len(a.updates)-1]
}

// counted is what Sonobuoy makes of JUnit files.
type counted struct {
	cases  int
	failed []string // names of test cases with a failure or an error
	texts  string   // what they say
}

// count reads every XML file as Sonobuoy does: a run of suites, times that are numbers.
func count(t *testing.T, files map[string][]byte) counted {
	t.Helper()
	type message struct {
		Message string `xml:"message,attr"`
	}
	var c counted
	for name, data := range files {
		if filepath.Ext(name) != ".xml" {
			continue
		}
		var read struct {
			XMLName xml.Name `xml:"testsuites"`
			Suites  []struct {
				Time  float64 `xml:"time,attr"`
				Cases []struct {
					Name    string   `xml:"name,attr"`
					Failure *message `xml:"failure"`
					Error   *message `xml:"error"`
				} `xml:"testcase"`
			} `xml:"testsuite"`
		}
		if err := xml.Unmarshal(data, &read); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, s := range read.Suites {
			for _, one := range s.Cases {
				c.cases++
				for _, m := range []*message{one.Failure, one.Error} {
					if m != nil {
						c.failed, c.texts = append(c.failed, one.Name), c.texts+m.Message+"\n"
					}
				}
			}
		}
	}
	slices.Sort(c.failed)
	return c
}

const wholeRun = "the run as a whole"

func TestSonobuoyGetsAConformantRun(t *testing.T) {
	a := startAggregator(t)
	args := "run --sonobuoy --focus alloc-upper-band-first --service-cidr 10.96.0.0/26 --seed 7"
	_, stderr, code := conformance(t, t.TempDir(), strings.Fields(args)...)
	if code != report.ExitConformant {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	files := a.results(t)
	var r report.Report
	if err := json.Unmarshal(files[report.JSONFile], &r); err != nil || len(r.Checks) == 0 {
		t.Fatalf("report.json has %d checks: %v", len(r.Checks), err)
	}
	if c := count(t, files); c.cases != len(r.Checks)+1 || len(c.failed) > 0 {
		t.Errorf("Sonobuoy counts %d cases for %d checks and the run, failed %v", c.cases, len(r.Checks), c.failed)
	}
	if u := a.lastUpdate(); u.Total != len(r.Checks) || u.Completed != u.Total || len(u.Failures) > 0 || !strings.HasPrefix(u.Message, "conformant in what was judged") {
		t.Errorf("the last update is %+v, there were %d checks", u, len(r.Checks))
	}
}

func TestSonobuoyGetsTheFailuresOfARun(t *testing.T) {
	a := startAggregator(t)
	args := "run --sonobuoy --focus alloc-* --service-cidr 10.96.0.0/26 --seed 7 --parallel 2 --fault lower-band-first"
	_, stderr, code := conformance(t, t.TempDir(), strings.Fields(args)...)
	if code != report.ExitNonConformant {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	files := a.results(t)
	c, u := count(t, files), a.lastUpdate()
	var r report.Report
	if err := json.Unmarshal(files[report.JSONFile], &r); err != nil {
		t.Fatal(err)
	}
	// A failure that is told while the run goes on may later turn out to be blocked by another one. JUnit has it as
	// skipped.
	told := slices.DeleteFunc(append(slices.Clone(u.Failures), wholeRun), func(name string) bool {
		return slices.ContainsFunc(r.Checks, func(x report.CheckVerdict) bool { return x.StableName() == name && x.Verdict == check.Blocked })
	})
	slices.Sort(told)
	if len(u.Failures) == 0 || !slices.Equal(told, c.failed) {
		t.Errorf("progress tells of %v, JUnit of %v", told, c.failed)
	}
	if u.Completed+len(u.Failures) != u.Total || c.cases != u.Total+1 {
		t.Errorf("the last update is %+v, there are %d test cases", u, c.cases)
	}
}

// The test interrupts the run while the first request for a Service in a second namespace is held back. Something is
// decided then, and something is not.
func TestSonobuoyGetsAnInterruptedRun(t *testing.T) {
	a, held := startAggregator(t), make(chan struct{})
	var mu sync.Mutex
	seen := map[string]bool{} // paths of Services
	cluster := startStandIn(t, standInOptions{cidrs: "10.96.0.0/16", mode: "iptables", before: func(r *http.Request) {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/services") ||
			strings.Contains(r.URL.Path, "/namespaces/default/") || strings.Contains(r.URL.Path, "/conformance-admission-") { // where ranges and admission are asked for
			return
		}
		mu.Lock()
		another := !seen[r.URL.Path]
		seen[r.URL.Path] = true
		hold := another && len(seen) == 2
		mu.Unlock()
		if hold {
			_, _ = io.Copy(io.Discard, r.Body) // or the server would not notice that the client is gone
			close(held)
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}
	}})
	args := "run --sonobuoy --tier cluster --focus api-* --expectations none --parallel 1 --seed 11 --kubeconfig " + cluster.kubeconfig
	cmd := exec.CommandContext(t.Context(), os.Args[0], strings.Fields(args)...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-held:
	case <-t.Context().Done():
		t.Fatal(said.String())
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != report.ExitUnknown {
		t.Errorf("exit code %d\n%s", code, said.String())
	}
	files := a.results(t)
	var r report.Report
	err := json.Unmarshal(files[report.JSONFile], &r)
	decided := r.Summary.Checks.Conformant + r.Summary.Checks.NotJudged + r.Summary.Checks.NotApplicable
	if err != nil || !r.Interrupted || decided == 0 || r.NotRun == 0 {
		t.Errorf("report.json does not tell of the interruption: %v\n%s", err, files[report.JSONFile])
	}
	if c := count(t, files); !slices.Contains(c.failed, wholeRun) || !strings.Contains(c.texts, "interrupted") {
		t.Errorf("Sonobuoy would take the run for a whole one: %+v", c)
	}
	if u := a.lastUpdate(); u.Completed != decided || u.Total <= decided || len(u.Failures) > 0 || !strings.Contains(u.Message, "interrupted") {
		t.Errorf("the last update is %+v, %d checks were decided", u, decided)
	}
	left, err := cluster.admin.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: "service-conformance/run"})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("namespaces are left: %v %v", left.Items, err)
	}
}

func TestSonobuoyIsToldOfARunThatCannotBegin(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close() // nobody answers there
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	writeKubeconfig(t, kubeconfig, "http://"+listener.Addr().String())
	for args, want := range map[string]string{
		"--focus alloc-no-such":                     `no requirement and no check matches "alloc-no-such"`,
		"--tier cluster":                            "needs --kubeconfig",
		"--tier cluster --kubeconfig " + kubeconfig: "no Kubernetes API server answers",
		"--tier kind":                               "--sonobuoy is for a pod of a cluster",
		"--report-dir elsewhere":                    "--report-dir",
	} {
		t.Run(args, func(t *testing.T) {
			a := startAggregator(t)
			_, stderr, code := conformance(t, t.TempDir(), append([]string{"run", "--sonobuoy"}, strings.Fields(args)...)...)
			if code != report.ExitUsage || !strings.Contains(stderr, want) {
				t.Errorf("exit code %d, %q, want 64 and %q", code, stderr, want)
			}
			if c := count(t, a.results(t)); !slices.Equal(c.failed, []string{wholeRun}) || !strings.Contains(c.texts, want) {
				t.Errorf("Sonobuoy counts %+v, want one that says %q", c, want)
			}
			if u := a.lastUpdate(); !strings.Contains(u.Message, want) {
				t.Errorf("the last update is %+v", u)
			}
		})
	}
}

func TestSonobuoyIsToldOfAHarnessThatBroke(t *testing.T) {
	for name, run := range map[string]func() error{
		"an error": func() error { return harness("3 of 7 checks gave no result: a worker died") },
		"a panic":  func() error { panic("a worker died") },
	} {
		t.Run(name, func(t *testing.T) {
			a, f, cmd := startAggregator(t), &runFlags{}, newRun()
			panicked := func() (p any) {
				defer func() { p = recover() }()
				if err := f.forSonobuoy(io.Discard, cmd.Flags(), run); err == nil {
					t.Error("the error of the run is lost")
				}
				return nil
			}()
			if (panicked != nil) != (name == "a panic") {
				t.Errorf("panicked with %v", panicked)
			}
			if c := count(t, a.results(t)); !slices.Equal(c.failed, []string{wholeRun}) || !strings.Contains(c.texts, "a worker died") {
				t.Errorf("Sonobuoy counts %+v", c)
			}
		})
	}
}

func TestWithoutAFolderOfResultsThereIsNothingToRun(t *testing.T) {
	t.Setenv(sonobuoy.ResultsVariable, filepath.Join(t.TempDir(), "none"))
	_, stderr, code := conformance(t, t.TempDir(), "run", "--sonobuoy")
	if code != report.ExitUsage || !strings.Contains(stderr, sonobuoy.ResultsVariable) {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}
