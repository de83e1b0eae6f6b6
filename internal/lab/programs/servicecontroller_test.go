package programs

import (
	"errors"
	"go/format"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"
)

func TestSourceOfServiceController(t *testing.T) {
	formatted, err := format.Source([]byte(serviceControllerMain))
	fakes.Must(t, err)
	if string(formatted) != serviceControllerMain {
		t.Error("gofmt would change the source of the service controller")
	}
}

func TestServiceControllerOfAnotherSourceIsNotUsed(t *testing.T) {
	fakeToolchain(t)
	o := BuildOptions{CacheDir: t.TempDir(), Components: []Component{Etcd, ServiceController}}
	b, err := Build(t.Context(), o)
	fakes.Must(t, err)
	if _, err := lookUpCache(o.CacheDir, Version{37, 1}, o.Components); err != nil {
		t.Errorf("what was built is not found: %v", err)
	}
	m, err := readManifest(b.Dir, Version{37, 1})
	fakes.Must(t, err)
	m.ServiceController = "0123456789abcdef"
	fakes.Must(t, writeManifest(b.Dir, *m, o.Components))
	if _, err := lookUpCache(o.CacheDir, Version{37, 1}, o.Components); !errors.Is(err, errNotCached) {
		t.Errorf("a program of another source: %v", err)
	}
}
