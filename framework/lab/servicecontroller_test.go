package lab

import (
	"errors"
	"go/format"
	"slices"
	"testing"
)

func TestSourceOfServiceController(t *testing.T) {
	formatted, err := format.Source([]byte(serviceControllerMain))
	must(t, err)
	if string(formatted) != serviceControllerMain {
		t.Error("gofmt would change the source of the service controller")
	}
}

func TestServiceControllerOfAnotherSourceIsNotUsed(t *testing.T) {
	fakeToolchain(t)
	o := BuildOptions{CacheDir: t.TempDir(), Components: []Component{Etcd, ServiceController}}
	b, err := Build(t.Context(), o)
	must(t, err)
	if _, err := lookUpCache(o.CacheDir, version{37, 1}, o.Components); err != nil {
		t.Errorf("what was built is not found: %v", err)
	}
	m, err := readManifest(b.Dir, version{37, 1})
	must(t, err)
	m.ServiceController = "0123456789abcdef"
	must(t, writeManifest(b.Dir, *m, o.Components))
	if _, err := lookUpCache(o.CacheDir, version{37, 1}, o.Components); !errors.Is(err, errNotCached) {
		t.Errorf("a program of another source: %v", err)
	}
}

func TestServiceControllerIsBuiltForLabsWithNodes(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		want    bool
	}{
		"with nodes":                 {Options{DataPlane: true}, true},
		"of a folder":                {Options{DataPlane: true, BinDir: "bin"}, false}, // no user has to have one
		"with a control plane alone": {Options{}, false},
	} {
		if got := slices.Contains(c.options.Components(), ServiceController); got != c.want {
			t.Errorf("%s: service controller %v, want %v", name, got, c.want)
		}
	}
}
