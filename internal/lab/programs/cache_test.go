package programs

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"
)

// filledCache makes a cache with programs of Kubernetes v1.37.1 and returns it with the folder that they are in.
func filledCache(t *testing.T) (cache, dir string) {
	t.Helper()
	cache = t.TempDir()
	v := Version{37, 1}
	dir = cacheFolder(cache, v)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range ControlPlaneComponents {
		if err := os.WriteFile(filepath.Join(dir, binaryName(c)), []byte("program "+c), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m := manifest{Kubernetes: v.String(), Etcd: "v3.7.0", Go: "go1.26.8", Platform: platform()}
	if err := writeManifest(dir, m, ControlPlaneComponents); err != nil {
		t.Fatal(err)
	}
	return cache, dir
}

func TestCacheReturnsWhatWasBuilt(t *testing.T) {
	cache, dir := filledCache(t)
	b, err := lookUpCache(cache, Version{37, 1}, ControlPlaneComponents)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Binaries{Dir: dir, Version: "v1.37.1", EtcdVersion: "v3.7.0", GoVersion: "go1.26.8"}); !reflect.DeepEqual(*b, want) {
		t.Errorf("got %+v, want %+v", *b, want)
	}
}

func TestCacheMisses(t *testing.T) {
	cache, dir := filledCache(t)
	if _, err := lookUpCache(cache, Version{36, 3}, ControlPlaneComponents); !errors.Is(err, errNotCached) {
		t.Errorf("another version: %v", err)
	}
	if _, err := lookUpCache(cache, Version{37, 1}, []Component{KubeProxy}); !errors.Is(err, errNotCached) {
		t.Errorf("a component that was not built: %v", err)
	}
	if got := cachedComponents(dir, Version{37, 1}); len(got) != 2 {
		t.Errorf("cached components: %v", got)
	}
}

func TestCacheDetectsDamage(t *testing.T) {
	server := binaryName(APIServer)
	for name, c := range map[string]struct {
		damage func(t *testing.T, dir string)
		want   string
	}{
		"truncated": {func(t *testing.T, dir string) {
			fakes.Must(t, os.Truncate(filepath.Join(dir, server), 3))
		}, "bytes"},
		"changed, same size": {func(t *testing.T, dir string) {
			fakes.Must(t, os.WriteFile(filepath.Join(dir, server), []byte("Program "+APIServer), 0o755))
		}, "checksum"},
		"missing": {func(t *testing.T, dir string) {
			fakes.Must(t, os.Remove(filepath.Join(dir, server)))
		}, "missing"},
		"not executable": {func(t *testing.T, dir string) {
			fakes.Must(t, os.Chmod(filepath.Join(dir, server), 0o644))
			if fakes.OnWindows() { // no such thing there
				fakes.Must(t, os.Remove(filepath.Join(dir, server)))
			}
		}, ""},
		"manifest cut off": {func(t *testing.T, dir string) {
			fakes.Must(t, os.Truncate(filepath.Join(dir, manifestFile), 20))
		}, manifestFile},
		"of another version": {func(t *testing.T, dir string) {
			fakes.Must(t, writeManifest(dir, manifest{Kubernetes: "v1.36.3", Platform: platform()}, ControlPlaneComponents))
		}, "v1.36.3"},
		"for another platform": {func(t *testing.T, dir string) {
			fakes.Must(t, writeManifest(dir, manifest{Kubernetes: "v1.37.1", Platform: "plan9/mips"}, ControlPlaneComponents))
		}, "plan9"},
	} {
		t.Run(name, func(t *testing.T) {
			cache, dir := filledCache(t)
			c.damage(t, dir)
			_, err := lookUpCache(cache, Version{37, 1}, ControlPlaneComponents)
			if _, ok := errors.AsType[*corruptError](err); !ok {
				t.Fatalf("error %v, want one about damage", err)
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "remove") {
				t.Errorf("the error says neither what is wrong, nor where, nor what to do: %v", err)
			}
		})
	}
}
