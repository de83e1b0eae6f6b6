package programs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-conformance/conformance/internal/lab/fakes"

	"github.com/service-conformance/conformance/internal/lab/download"
)

// mirror is a server that stands in for dl.k8s.io and github.com.
type mirror struct {
	*httptest.Server
	files map[string][]byte // by path

	mu       sync.Mutex
	requests []string // with the range that was asked for
	// misbehave, if not nil, may answer in the place of the mirror.
	misbehave func(w http.ResponseWriter, r *http.Request) bool
}

// program is one that says a version, made so long that it comes in parts.
func program(says string) []byte {
	return append([]byte("#!/bin/sh\necho '"+says+"'\nexit\n"), bytes.Repeat([]byte("#"), 1<<20)...)
}

func archive(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	entries := tar.NewWriter(zipped)
	for name, content := range files {
		fakes.Must(t, entries.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))}))
		_, err := entries.Write(content)
		fakes.Must(t, err)
	}
	fakes.Must(t, errors.Join(entries.Close(), zipped.Close()))
	return b.Bytes()
}

func sha(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// startMirror starts a mirror with Kubernetes v1.37.1, the etcd that fits, and CoreDNS.
func startMirror(t *testing.T) *mirror {
	t.Helper()
	m := &mirror{files: map[string][]byte{}}
	for _, p := range published(OfficialSources(), Version{37, 1}, "v3.7.0", runtime.GOARCH) {
		content := program("Kubernetes v1.37.1")
		switch p.component {
		case Etcd:
			content = archive(t, map[string][]byte{path.Dir(p.member) + "/README.md": []byte("read me"), p.member: program("etcd Version: 3.7.0")})
			m.files["/"+p.sums] = []byte(sha([]byte("other")) + "  etcd-v3.7.0-plan9-mips.tar.gz\n" + sha(content) + "  " + path.Base(p.file) + "\n")
		case CoreDNS:
			content = archive(t, map[string][]byte{p.member: program("CoreDNS-1.14.6")})
			m.files["/"+p.sums] = []byte(sha(content) + "  " + path.Base(p.file) + "\n")
		default:
			m.files["/"+p.sums] = []byte(sha(content))
		}
		m.files["/"+p.file] = content
	}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.requests = append(m.requests, strings.TrimSpace(r.URL.Path+" "+r.Header.Get("Range")))
	m.mu.Unlock()
	if m.misbehave != nil && m.misbehave(w, r) {
		return
	}
	content, ok := m.files[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// asked counts the requests of a program, not of its checksum.
func (m *mirror) asked(program string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.requests {
		if file, _, _ := strings.Cut(r, " "); path.Base(file) == program {
			n++
		}
	}
	return n
}

// fileOf is the path of the file that a program is published as.
func fileOf(c Component) string {
	for _, p := range published(OfficialSources(), Version{37, 1}, "v3.7.0", runtime.GOARCH) {
		if p.component == c {
			return "/" + p.file
		}
	}
	return ""
}

// options fetch from the mirror into a cache.
func (m *mirror) options(t *testing.T, cache string) FetchOptions {
	t.Helper()
	sources, err := ParseSources([]string{m.URL})
	fakes.Must(t, err)
	return FetchOptions{CacheDir: cache, Sources: sources}
}

// filesIn lists what is in a folder.
func filesIn(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && path != dir {
			name, _ := filepath.Rel(dir, path)
			files = append(files, name)
		}
		return err
	})
	fakes.Must(t, err)
	return files
}

var released = []Component{Etcd, APIServer, ControllerManager, KubeProxy, CoreDNS}

func TestFetchFillsTheCacheOnce(t *testing.T) {
	m, cache := startMirror(t), t.TempDir()
	var told [][2]int64
	o := m.options(t, cache)
	o.Progress = func(done, total int64) { told = append(told, [2]int64{done, total}) }
	got, err := Fetch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != "v1.37.1" || got.EtcdVersion != "v3.7.0" || len(got.New) != len(released) || len(got.Lacking) != 1 || got.Lacking[ServiceController] == "" {
		t.Errorf("fetched %+v", got)
	}
	if last := told[len(told)-1]; last[0] != last[1] || last[0] < 3<<20 {
		t.Errorf("progress was told %v", told)
	}
	if left := filesIn(t, got.Dir); len(left) != len(released)+1 { // and the manifest
		t.Errorf("in the cache are %v", left)
	}
	before := len(m.requests)
	if got, err = Fetch(t.Context(), o); err != nil || len(m.requests) != before || len(got.New) > 0 {
		t.Errorf("the second time: error %v, %d more requests, new %v", err, len(m.requests)-before, got.New)
	}
}

// TestALabRunsWhatWasFetched demands that nothing is built, although the service controller is not there, nor Go.
func TestALabRunsWhatWasFetched(t *testing.T) {
	m, cache := startMirror(t), t.TempDir()
	if _, err := Fetch(t.Context(), m.options(t, cache)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "/usr/bin:/bin")
	t.Setenv("FAKE_GO_CALLS", "")
	b, err := CachedOrBuilt(t.Context(), BuildOptions{CacheDir: cache, Components: ofNodes})
	if err != nil {
		t.Fatal(err)
	}
	if HasServiceController(b) || CoreDNSIn(b) != coreDNSVersion || !b.HasServiceCIDRController() || b.EtcdVersion != "v3.7.0" {
		t.Errorf("the lab has %+v", b)
	}
	// What an older version of this program has built must not be run.
	fakes.Must(t, os.WriteFile(b.Path(ServiceController), nil, 0o755))
	if b, err = CachedOrBuilt(t.Context(), BuildOptions{CacheDir: cache, Components: ofNodes}); err != nil || HasServiceController(b) {
		t.Errorf("a stale service controller would run, error %v", err)
	}
}

// TestBuildAddsWhatNobodyPublishes demands that the programs that were fetched stay.
func TestBuildAddsWhatNobodyPublishes(t *testing.T) {
	m, cache := startMirror(t), t.TempDir()
	o := m.options(t, cache)
	fetched, err := Fetch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	calls := fakeToolchain(t)
	t.Setenv("FAKE_VERSION", "")
	var compiling int
	if _, err := Build(t.Context(), BuildOptions{CacheDir: cache, Components: append(slices.Clone(released), ServiceController), Compiling: func() { compiling++ }}); err != nil {
		t.Fatal(err)
	}
	if n := builds(calls()); n != 1 || strings.Contains(strings.Join(calls(), "\n"), "cmd/kube-apiserver") || compiling != 0 {
		t.Errorf("%d builds, %d announced:\n%s", n, compiling, strings.Join(calls(), "\n"))
	}
	b, err := CachedOrBuilt(t.Context(), BuildOptions{CacheDir: cache, Components: ofNodes})
	if err != nil || !HasServiceController(b) {
		t.Errorf("the service controller is not used, error %v", err)
	}
	if s, err := stampFile(fetched.Path(APIServer)); err != nil || s.SHA256 != sha(m.files[fileOf(APIServer)]) {
		t.Errorf("kube-apiserver is another one, error %v", err)
	}
}

func TestABuildOfMinutesIsAnnounced(t *testing.T) {
	fakeToolchain(t)
	compiling, cache := 0, t.TempDir()
	o := BuildOptions{CacheDir: cache, Components: ControlPlaneComponents, Compiling: func() { compiling++ }}
	for range 2 { // the second time from the cache
		if _, err := CachedOrBuilt(t.Context(), o); err != nil || compiling != 1 {
			t.Errorf("announced %d times, error %v", compiling, err)
		}
	}
}

func TestFetchReplacesDamagedPrograms(t *testing.T) {
	m, cache := startMirror(t), t.TempDir()
	o := m.options(t, cache)
	got, err := Fetch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	fakes.Must(t, os.Truncate(got.Path(KubeProxy), 10))
	if got, err = Fetch(t.Context(), o); err != nil || !slices.Equal(got.New, []Component{KubeProxy}) || m.asked("kube-apiserver") != 1 {
		t.Errorf("fetched %v, error %v, kube-apiserver %d times", got, err, m.asked("kube-apiserver"))
	}
}

func TestFetchOfAnotherEtcd(t *testing.T) {
	m, cache := startMirror(t), t.TempDir()
	if _, err := Fetch(t.Context(), m.options(t, cache)); err != nil {
		t.Fatal(err)
	}
	for _, p := range published(OfficialSources(), Version{37, 1}, "v3.6.5", runtime.GOARCH) {
		if p.component == Etcd {
			content := archive(t, map[string][]byte{p.member: program("etcd Version: 3.6.5")})
			m.files["/"+p.file], m.files["/"+p.sums] = content, []byte(sha(content)+"  "+path.Base(p.file))
		}
	}
	o := m.options(t, cache)
	o.EtcdVersion = "3.6.5"
	got, err := Fetch(t.Context(), o)
	if err != nil || got.EtcdVersion != "v3.6.5" || !slices.Equal(got.New, []Component{Etcd}) {
		t.Errorf("fetched %+v, error %v", got, err)
	}
	fakeToolchain(t)
	if b, err := Build(t.Context(), BuildOptions{CacheDir: cache, Components: []Component{Etcd, ServiceController}}); err != nil || b.EtcdVersion != "v3.6.5" {
		t.Errorf("after a build of something else: %+v, error %v", b, err)
	}
}

func TestFetchRefuses(t *testing.T) {
	proxy, etcd := fileOf(KubeProxy), fileOf(Etcd)
	for name, c := range map[string]struct {
		spoil func(t *testing.T, m *mirror, o *FetchOptions)
		want  []string
	}{
		"a tampered program": {func(t *testing.T, m *mirror, _ *FetchOptions) {
			m.files[proxy] = append(bytes.Clone(m.files[proxy]), '#')
		}, []string{"kube-proxy v1.37.1", proxy, "not what its checksum is of"}},
		"a truncated archive": {func(t *testing.T, m *mirror, _ *FetchOptions) {
			m.files[etcd] = m.files[etcd][:1000]
		}, []string{"etcd v3.7.0", "not what its checksum is of"}},
		"a program of another version": {func(t *testing.T, m *mirror, _ *FetchOptions) {
			m.files[proxy] = program("Kubernetes v1.36.3")
			m.files[proxy+".sha256"] = []byte(sha(m.files[proxy]))
		}, []string{proxy, "it is v1.36.3, not v1.37.1"}},
		"no program": {func(t *testing.T, m *mirror, _ *FetchOptions) {
			m.files[proxy] = []byte("<html>")
			m.files[proxy+".sha256"] = []byte(sha(m.files[proxy]))
		}, []string{proxy, "run "}},
		"an archive of something else": {func(t *testing.T, m *mirror, o *FetchOptions) {
			m.files[etcd] = archive(t, map[string][]byte{"../etcd": program("")})
			o.Sums = allSums(m)
		}, []string{"the archive has no file etcd-v3.7.0-linux-"}},
		"no archive": {func(t *testing.T, m *mirror, o *FetchOptions) {
			m.files[etcd] = []byte("<html>")
			o.Sums = allSums(m)
		}, []string{etcd, "read the archive"}},
		"an archive that is cut": {func(t *testing.T, m *mirror, o *FetchOptions) {
			m.files[etcd] = m.files[etcd][:len(m.files[etcd])/2]
			o.Sums = allSums(m)
		}, []string{etcd, "unexpected EOF"}},
		"a program that a pinned checksum is not of": {func(t *testing.T, m *mirror, o *FetchOptions) {
			o.Sums = allSums(m)
			m.files[proxy] = append(bytes.Clone(m.files[proxy]), '#')
			m.files[proxy+".sha256"] = []byte(sha(m.files[proxy])) // whoever has the server can change both
		}, []string{"kube-proxy v1.37.1", "not what its checksum is of"}},
		"no pinned checksum": {func(t *testing.T, m *mirror, o *FetchOptions) {
			o.Sums = allSums(m)
			delete(o.Sums, "kube-proxy")
		}, []string{"there is no checksum of " + proxy[1:]}},
		"no list of checksums": {func(t *testing.T, m *mirror, o *FetchOptions) {
			m.files[proxy+".sha256"] = []byte("<html>")
		}, []string{proxy + ".sha256", "line 1"}},
		"a list of others": {func(t *testing.T, m *mirror, o *FetchOptions) {
			m.files[path.Dir(etcd)+"/SHA256SUMS"] = []byte(sha(nil) + "  other\n")
		}, []string{"there is no checksum of " + etcd[1:]}},
		"a version that is not there": {func(t *testing.T, m *mirror, o *FetchOptions) {
			o.Version = "v1.37.99"
		}, []string{"kube-apiserver v1.37.99 is not published there", "404 Not Found", "known to work with", DefaultVersion}},
		"an etcd that is not there": {func(t *testing.T, m *mirror, o *FetchOptions) {
			o.EtcdVersion = "v3.9.9"
		}, []string{"etcd v3.9.9 is not published there", "404 Not Found"}},
		"a malformed version": {func(_ *testing.T, _ *mirror, o *FetchOptions) { o.Version = "latest" }, []string{`"latest"`, DefaultVersion}},
		"a malformed etcd":    {func(_ *testing.T, _ *mirror, o *FetchOptions) { o.EtcdVersion = "latest" }, []string{`"latest"`, "v3.7.0"}},
		"a server that forbids": {func(_ *testing.T, m *mirror, _ *FetchOptions) {
			m.misbehave = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusForbidden); return true }
		}, []string{"403 Forbidden"}},
	} {
		t.Run(name, func(t *testing.T) {
			m, cache := startMirror(t), t.TempDir()
			o := m.options(t, cache)
			c.spoil(t, m, &o)
			_, err := Fetch(t.Context(), o)
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in the error: %v", w, err)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a line: %v", err)
			}
			if left := filesIn(t, cache); len(left) > 0 {
				t.Errorf("left in the cache: %v", left)
			}
		})
	}
}

// TestFetchKeepsWhatIsWhole demands that a file that is not there does not cost the others a second download.
func TestFetchKeepsWhatIsWhole(t *testing.T) {
	m, cache := startMirror(t), t.TempDir()
	proxy := fileOf(KubeProxy)
	content := m.files[proxy]
	delete(m.files, proxy)
	arrived := make(chan bool)
	m.misbehave = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == proxy {
			<-arrived
		}
		return false
	}
	o, once := m.options(t, cache), sync.Once{}
	var others int64
	for _, c := range released {
		others += int64(len(m.files[fileOf(c)]))
	}
	o.Progress = func(done, _ int64) {
		if done == others {
			once.Do(func() { close(arrived) })
		}
	}
	if _, err := Fetch(t.Context(), o); err == nil || !strings.Contains(err.Error(), "kube-proxy v1.37.1") || !strings.Contains(err.Error(), "404 Not Found") {
		t.Fatalf("error %v", err)
	}
	m.files[proxy] = content
	if _, err := Fetch(t.Context(), o); err != nil || m.asked("kube-apiserver") != 1 {
		t.Errorf("error %v, kube-apiserver was asked for %d times", err, m.asked("kube-apiserver"))
	}
}

// allSums are the checksums of all files of a mirror, as a user pins them.
func allSums(m *mirror) download.Sums {
	sums := download.Sums{}
	for file, content := range m.files {
		sums[path.Base(file)] = sha(content)
	}
	return sums
}

func TestFetchWithPinnedChecksumsAsksForNone(t *testing.T) {
	m := startMirror(t)
	o := m.options(t, t.TempDir())
	o.Sums = allSums(m)
	if _, err := Fetch(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if len(m.requests) != len(released) {
		t.Errorf("requests %q", m.requests)
	}
}

// TestFetchWithoutCoreDNS demands that a mirror of Kubernetes and etcd alone is enough.
func TestFetchWithoutCoreDNS(t *testing.T) {
	m, cache := startMirror(t), t.TempDir()
	delete(m.files, fileOf(CoreDNS)+".sha256")
	got, err := Fetch(t.Context(), m.options(t, cache))
	if err != nil || !strings.Contains(got.Lacking[CoreDNS], "404 Not Found") {
		t.Fatalf("fetched %+v, error %v", got, err)
	}
	if b, err := CachedOrBuilt(t.Context(), BuildOptions{CacheDir: cache, Components: ofNodes}); err != nil || CoreDNSIn(b) != "" {
		t.Errorf("the lab has %+v, error %v", b, err)
	}
}

func TestFetchTriesAgain(t *testing.T) {
	m := startMirror(t)
	m.misbehave = func(w http.ResponseWriter, r *http.Request) bool {
		if m.asked(path.Base(r.URL.Path)) > 1 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	var said []string
	o := m.options(t, t.TempDir())
	o.Say = func(line string) { said = append(said, line) }
	if _, err := Fetch(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "trying again in") && strings.Contains(s, "503") }) {
		t.Errorf("it said %q", said)
	}
}

// TestFetchThatIsCancelledContinues demands that there is no program until all are there, and that none comes twice.
func TestFetchThatIsCancelledContinues(t *testing.T) {
	m, cache := startMirror(t), t.TempDir()
	const half = 1 << 19
	ctx, cancel := context.WithCancel(t.Context())
	m.misbehave = func(w http.ResponseWriter, r *http.Request) bool {
		if path.Base(r.URL.Path) != "kube-apiserver" || m.asked("kube-apiserver") > 1 {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(m.files[r.URL.Path])))
		_, _ = w.Write(m.files[r.URL.Path][:half])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	}
	o := m.options(t, cache)
	o.Progress = func(int64, int64) {
		parts, _ := filepath.Glob(filepath.Join(cacheFolder(cache, Version{37, 1}), partsFolder, "kube-apiserver-*"))
		for _, part := range parts {
			if info, err := os.Stat(part); err == nil && info.Size() == half {
				cancel()
			}
		}
	}
	if _, err := Fetch(ctx, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(cacheFolder(cache, Version{37, 1}), string(APIServer))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program is there already: %v", err)
	}
	o.Progress = nil
	if _, err := Fetch(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%s bytes=%d-", fileOf(APIServer), half); !slices.Contains(m.requests, want) {
		t.Errorf("requests %q, want %q", m.requests, want)
	}
}

func TestConcurrentFetchesDoTheWorkOnce(t *testing.T) {
	m, cache := startMirror(t), t.TempDir()
	var fetches sync.WaitGroup
	for range 4 {
		fetches.Go(func() {
			if _, err := Fetch(t.Context(), m.options(t, cache)); err != nil {
				t.Error(err)
			}
		})
	}
	fetches.Wait()
	for _, c := range released {
		if n := m.asked(path.Base(fileOf(c))); n != 1 {
			t.Errorf("%s was asked for %d times", c, n)
		}
	}
}
