package programs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"
)

// fakeToolchain puts a fake go command first in PATH and returns a function that lists how it was called.
func fakeToolchain(t *testing.T) (calls func() []string) {
	t.Helper()
	t.Setenv("PATH", fakes.Install(t, "go"))
	log := filepath.Join(t.TempDir(), "calls")
	t.Setenv("FAKE_GO_CALLS", log)
	return func() []string {
		b, _ := os.ReadFile(log) // no call, no file
		return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	}
}

func builds(calls []string) (n int) {
	for _, c := range calls {
		if strings.HasPrefix(c, "build ") {
			n++
		}
	}
	return n
}

func TestBuildFillsTheCacheOnce(t *testing.T) {
	calls := fakeToolchain(t)
	cache := t.TempDir()
	var stages []string
	o := BuildOptions{Version: "1.37.1", CacheDir: cache, Progress: func(stage string, done, total int) {
		if done > total {
			t.Errorf("%s: %d of %d", stage, done, total)
		}
		stages = append(stages, stage)
	}}
	b, err := Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if b.Version != "v1.37.1" || b.EtcdVersion != "v3.7.0" || b.GoVersion != "go1.26.8" {
		t.Errorf("built %+v", b)
	}
	for _, c := range ControlPlaneComponents {
		if _, err := os.Stat(b.Path(c)); err != nil {
			t.Error(err)
		}
	}
	if len(stages) == 0 || !strings.Contains(stages[len(stages)-1], "compiling") {
		t.Errorf("progress was told %q", stages)
	}
	before := len(calls())
	if _, err := Build(t.Context(), o); err != nil || len(calls()) != before {
		t.Errorf("the second build: error %v, %d more calls of the go tool", err, len(calls())-before)
	}
	noWorkLeft(t, b.Dir)
}

func noWorkLeft(t *testing.T, dir string) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(dir, workPrefix+"*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestBuildCommandLine(t *testing.T) {
	calls := fakeToolchain(t)
	if _, err := Build(t.Context(), BuildOptions{CacheDir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(calls(), "\n")
	for _, want := range []string{"k8s.io/kubernetes@v1.37.1", "k8s.io/client-go@v0.37.1", "-trimpath", "gitVersion=v1.37.1", "./etcd k8s.io/kubernetes/cmd/kube-apiserver"} {
		if !strings.Contains(all, want) {
			t.Errorf("the go tool was never called with %q:\n%s", want, all)
		}
	}
}

func TestBuildReplacesDamagedBinaries(t *testing.T) {
	fakeToolchain(t)
	cache := t.TempDir()
	b, err := Build(t.Context(), BuildOptions{CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	fakes.Must(t, os.Remove(b.Path(Etcd)))
	fakes.Must(t, os.WriteFile(b.Path(Etcd), []byte("cut"), 0o755))
	if _, err := Build(t.Context(), BuildOptions{CacheDir: cache}); err != nil {
		t.Fatal(err)
	}
	if _, err := lookUpCache(cache, Version{37, 1}, ControlPlaneComponents); err != nil {
		t.Error(err)
	}
}

func TestBuildOfMoreComponentsKeepsTheOthers(t *testing.T) {
	fakeToolchain(t)
	cache := t.TempDir()
	for _, cs := range [][]Component{ControlPlaneComponents, {KubeProxy}} {
		if _, err := Build(t.Context(), BuildOptions{CacheDir: cache, Components: cs}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := lookUpCache(cache, Version{37, 1}, append([]Component{KubeProxy}, ControlPlaneComponents...)); err != nil {
		t.Error(err)
	}
}

func TestConcurrentBuildsDoTheWorkOnce(t *testing.T) {
	calls := fakeToolchain(t)
	cache := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := Build(context.Background(), BuildOptions{CacheDir: cache}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := builds(calls()); n != 1 {
		t.Errorf("%d builds", n)
	}
}

func TestBuildErrorsSayWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		env     [2]string
		want    []string
	}{
		"malformed version": {version: "latest", want: []string{`"latest"`, DefaultVersion}},
		"unknown version": {
			version: "v1.37.99", env: [2]string{"FAKE_DOWNLOAD_ERROR", "k8s.io/kubernetes@v1.37.99: invalid version: unknown revision v1.37.99"},
			want: []string{"not published", "v1.37.99", DefaultVersion},
		},
		"no network": {
			env:  [2]string{"FAKE_DOWNLOAD_ERROR", "dial tcp: lookup modules.invalid: server misbehaving"},
			want: []string{"server misbehaving"},
		},
		"does not compile": {env: [2]string{"FAKE_BUILD", "fail"}, want: []string{"undefined: thing"}},
		"wrong stamp":      {env: [2]string{"FAKE_VERSION", "v0.0.0-master"}, want: []string{"v0.0.0-master"}},
		"no go tool":       {env: [2]string{"PATH", os.DevNull}, want: []string{"not in PATH", "install Go"}},
	} {
		t.Run(name, func(t *testing.T) {
			fakeToolchain(t)
			if c.env[0] != "" {
				t.Setenv(c.env[0], c.env[1])
			}
			cache := t.TempDir()
			_, err := Build(t.Context(), BuildOptions{Version: c.version, CacheDir: cache})
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in the error: %v", w, err)
				}
			}
			noWorkLeft(t, cacheFolder(cache, Version{37, 1}))
			if _, err := lookUpCache(cache, Version{37, 1}, ControlPlaneComponents); !errors.Is(err, errNotCached) {
				t.Errorf("the cache after a failed build: %v", err)
			}
		})
	}
}

func TestBuildOfAnIncompleteRelease(t *testing.T) {
	fakeToolchain(t)
	t.Setenv("FAKE_MISSING_MODULE", "k8s.io/client-go")
	if _, err := Build(t.Context(), BuildOptions{CacheDir: t.TempDir()}); err != nil {
		t.Errorf("a module is missing that no program imports: %v", err)
	}
	t.Setenv("FAKE_BUILD", "fail")
	_, err := Build(t.Context(), BuildOptions{CacheDir: t.TempDir()})
	for _, want := range []string{"incomplete", "k8s.io/client-go", "v0.37.1", "another patch release", "undefined: thing"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in the error: %v", want, err)
		}
	}
}

func TestBuildEndsWithItsContext(t *testing.T) {
	calls := fakeToolchain(t)
	t.Setenv("FAKE_BUILD", "hang")
	ctx, cancel := context.WithCancel(t.Context())
	cache := t.TempDir()
	_, err := Build(ctx, BuildOptions{CacheDir: cache, Progress: func(stage string, _, _ int) {
		if strings.Contains(stage, "compiling") {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v after %v", err, calls())
	}
	noWorkLeft(t, cacheFolder(cache, Version{37, 1}))
}
