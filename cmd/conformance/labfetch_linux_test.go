package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

// releases is a server that stands in for dl.k8s.io and github.com.
type releases struct {
	files map[string][]byte // by name

	mu    sync.Mutex
	asked []string // names, each with the range
	// halfway, if not nil, answers the first request of kube-apiserver with the half of it, and then waits until it is closed.
	halfway chan bool
}

func newReleases(t *testing.T) *releases {
	t.Helper()
	r := &releases{files: map[string][]byte{}}
	program := func(says string) []byte {
		return append([]byte("#!/bin/sh\necho '"+says+"'\nexit\n"), bytes.Repeat([]byte("#"), 1<<20)...)
	}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-proxy"} {
		r.files[name] = program("Kubernetes " + programs.DefaultVersion)
	}
	etcd := "etcd-v3.7.0-linux-" + runtime.GOARCH
	for name, member := range map[string]string{etcd + ".tar.gz": etcd + "/etcd", "coredns_1.14.6_linux_" + runtime.GOARCH + ".tgz": "coredns"} {
		var b bytes.Buffer
		zipped := gzip.NewWriter(&b)
		entries := tar.NewWriter(zipped)
		content := program("etcd Version: 3.7.0")
		err := entries.WriteHeader(&tar.Header{Name: member, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))})
		if err == nil {
			_, err = entries.Write(content)
		}
		if err = errors.Join(err, entries.Close(), zipped.Close()); err != nil {
			t.Fatal(err)
		}
		r.files[name] = b.Bytes()
	}
	return r
}

func (r *releases) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name := path.Base(req.URL.Path)
	if strings.Contains(req.URL.Path, "v3.7.99") {
		http.NotFound(w, req)
		return
	}
	if name == "SHA256SUMS" {
		for name, content := range r.files {
			fmt.Fprintf(w, "%x  %s\n", sha256.Sum256(content), name)
		}
		return
	}
	if of, is := strings.CutSuffix(name, ".sha256"); is && r.files[of] != nil {
		fmt.Fprintf(w, "%x", sha256.Sum256(r.files[of]))
		return
	}
	content := r.files[name]
	if content == nil {
		http.NotFound(w, req)
		return
	}
	r.mu.Lock()
	first := len(r.asked) == 0 || !strings.Contains(strings.Join(r.asked, "\n"), name)
	r.asked = append(r.asked, strings.TrimSpace(name+" "+req.Header.Get("Range")))
	r.mu.Unlock()
	if name == "kube-apiserver" && first && r.halfway != nil {
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		_, _ = w.Write(content[:len(content)/2])
		w.(http.Flusher).Flush()
		<-r.halfway
		return
	}
	http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(content))
}

// count counts the requests of a file.
func (r *releases) count(name string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.asked {
		if strings.HasPrefix(a, name) {
			n++
		}
	}
	return n
}

// withoutProxy keeps variables of the machine from a test.
var withoutProxy = []string{"HTTPS_PROXY=", "https_proxy=", "HTTP_PROXY=", "http_proxy=", "NO_PROXY=", "no_proxy=", "ALL_PROXY=", "all_proxy="}

func fetchEnvironment(t *testing.T, dir string, more ...string) []string {
	t.Helper()
	return append(append([]string{"HOME=" + dir, "XDG_CACHE_HOME=" + filepath.Join(dir, "cache"), "TMPDIR=" + temporaryFolder(t)}, withoutProxy...), more...)
}

func TestLabFetchSaysWhatIsThereAndWhatIsNot(t *testing.T) {
	server := httptest.NewServer(newReleases(t))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	stdout, stderr, code := conformanceWith(t, dir, fetchEnvironment(t, dir), "lab", "fetch", "--from", server.URL)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	for _, want := range []string{
		"(100 %)\n", "Kubernetes " + programs.DefaultVersion + ", etcd v3.7.0: " + filepath.Join(dir, "cache", "conformance", "kubernetes"), "without service-controller: ", "`conformance lab build`",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not said:\n%s", want, stdout)
		}
	}
	if strings.ContainsAny(stdout, "\r\x1b") {
		t.Errorf("a pipe gets what is for a terminal: %q", stdout)
	}
	if stdout, _, code = conformanceWith(t, dir, fetchEnvironment(t, dir), "lab", "fetch", "--from", "http://127.0.0.1:1"); code != 0 || !strings.Contains(stdout, "there already") {
		t.Errorf("the second time: exit code %d\n%s", code, stdout)
	}
}

func TestLabFetchTellsAMistakeInOneLine(t *testing.T) {
	r := newReleases(t)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args, want string
		file       string // that is tampered with
	}{
		"no such version": {args: "--etcd-version 3.7.99", want: "etcd v3.7.99 is not published there"},
		"tampered":        {file: "kube-proxy", want: "kube-proxy is not what its checksum is of"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"lab", "fetch", "--from", server.URL}, strings.Fields(c.args)...)
			if c.file != "" {
				var pinned strings.Builder
				for name, content := range r.files {
					if name == c.file {
						content = []byte("another")
					}
					fmt.Fprintf(&pinned, "%x  %s\n", sha256.Sum256(content), name)
				}
				file := filepath.Join(t.TempDir(), "sums")
				if err := os.WriteFile(file, []byte(pinned.String()), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--sha256-file", file)
			}
			_, stderr, code := conformanceWith(t, dir, fetchEnvironment(t, dir), args...)
			if code != report.ExitUsage || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit code %d, %q", code, stderr)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "cache", "conformance", "kubernetes", "*", "*", "*")); len(left) > 0 {
				t.Errorf("left in the cache: %v", left)
			}
		})
	}
}

func TestTwoProcessesFetchOnce(t *testing.T) {
	r := newReleases(t)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	var both sync.WaitGroup
	for range 2 {
		env := fetchEnvironment(t, dir)
		both.Go(func() {
			if stdout, stderr, code := conformanceWith(t, dir, env, "lab", "fetch", "--from", server.URL); code != 0 {
				t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
			}
		})
	}
	both.Wait()
	for name := range r.files {
		if n := r.count(name); n != 1 {
			t.Errorf("%s was asked for %d times", name, n)
		}
	}
}

// TestLabFetchContinuesAfterItsEnd demands that a process that was interrupted or killed leaves no program, and that the next one continues.
func TestLabFetchContinuesAfterItsEnd(t *testing.T) {
	for _, s := range []os.Signal{os.Interrupt, os.Kill} {
		t.Run(s.String(), func(t *testing.T) {
			r := newReleases(t)
			r.halfway = make(chan bool)
			server := httptest.NewServer(r)
			t.Cleanup(server.Close)
			defer close(r.halfway)
			dir := t.TempDir()
			env := fetchEnvironment(t, dir)
			cmd := exec.CommandContext(t.Context(), os.Args[0], "lab", "fetch", "--from", server.URL)
			cmd.Env = append(append(os.Environ(), asProgram+"=1"), env...)
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			folder := filepath.Join(dir, "cache", "conformance", "kubernetes", programs.DefaultVersion, "linux-"+runtime.GOARCH)
			half := int64(len(r.files["kube-apiserver"]) / 2)
			for there := int64(0); there < half; time.Sleep(time.Millisecond) {
				parts, _ := filepath.Glob(filepath.Join(folder, ".fetch", "kube-apiserver-*"))
				for _, part := range parts {
					if info, err := os.Stat(part); err == nil {
						there = info.Size()
					}
				}
			}
			if err := cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); s == os.Interrupt && (code != report.ExitUnknown || !strings.Contains(said.String(), "the next call continues")) {
				t.Errorf("exit code %d\n%s", code, &said)
			}
			if _, err := os.Stat(filepath.Join(folder, "kube-apiserver")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a program is there already: %v", err)
			}
			if stdout, stderr, code := conformanceWith(t, dir, env, "lab", "fetch", "--from", server.URL); code != 0 {
				t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
			}
			if want := fmt.Sprintf("kube-apiserver bytes=%d-", half); r.count(want) != 1 {
				t.Errorf("requests %q, want %q", r.asked, want)
			}
		})
	}
}

// TestLabFetchHeedsTheVariablesOfAProxy demands that TLS goes through a proxy that is named, and that a host that is excepted does not.
func TestLabFetchHeedsTheVariablesOfAProxy(t *testing.T) {
	mirror := httptest.NewTLSServer(newReleases(t)) // its certificate is good for example.com
	t.Cleanup(mirror.Close)
	dir := t.TempDir()
	authority := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: mirror.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	tunnels := make(chan string, 100)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tunnels <- r.Method + " " + r.Host
		if r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		there, err := net.Dial("tcp", mirror.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		here, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() {
			_, _ = io.Copy(there, buffered)
			_ = there.(*net.TCPConn).CloseWrite()
		}()
		_, _ = io.Copy(here, there)
		here.Close()
	}))
	t.Cleanup(proxy.Close)
	env := fetchEnvironment(t, dir, "HTTPS_PROXY="+proxy.URL, "SSL_CERT_FILE="+authority)
	if stdout, stderr, code := conformanceWith(t, dir, env, "lab", "fetch", "--from", "https://example.com"); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if through := <-tunnels; through != "CONNECT example.com:443" {
		t.Errorf("the proxy was asked for %q", through)
	}

	plain := httptest.NewUnstartedServer(newReleases(t))
	plain.Listener.Close()
	var err error
	if plain.Listener, err = net.Listen("tcp", "0.0.0.0:0"); err != nil { // for an address that is reached here and, unlike one of loopback, by the proxy
		t.Fatal(err)
	}
	plain.Start()
	t.Cleanup(plain.Close)
	_, port, _ := net.SplitHostPort(plain.Listener.Addr().String())
	dir = t.TempDir()
	env = fetchEnvironment(t, dir, "HTTP_PROXY=http://127.0.0.1:1", "NO_PROXY=0.0.0.0")
	if stdout, stderr, code := conformanceWith(t, dir, env, "lab", "fetch", "--from", "http://0.0.0.0:"+port); code != 0 {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
