package programs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"
)

func TestBuildAddsCoreDNSToWhatIsThere(t *testing.T) {
	calls := fakeToolchain(t)
	o := BuildOptions{CacheDir: t.TempDir()}
	b, err := Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(b.Path(APIServer))
	fakes.Must(t, err)
	earlier := len(calls())
	o.Components = append(slices.Clone(ControlPlaneComponents), CoreDNS)
	b, err = Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	later := strings.Join(calls()[earlier:], "\n")
	if strings.Contains(later, kubernetesModule) || builds(calls()[earlier:]) != 1 || !strings.Contains(later, "./coredns") {
		t.Errorf("the go tool was called with\n%s", later)
	}
	if after, err := os.Stat(b.Path(APIServer)); err != nil || !os.SameFile(before, after) {
		t.Errorf("kube-apiserver was replaced: %v", err)
	}
	if b.EtcdVersion != "v3.7.0" || b.GoVersion != "go1.26.8" {
		t.Errorf("the versions of what was there are lost: %+v", b)
	}
	if _, err := os.Stat(b.Path(CoreDNS)); err != nil {
		t.Error(err)
	}
	noWorkLeft(t, b.Dir)
}

func TestCoreDNSOfAnotherVersionIsBuiltAgain(t *testing.T) {
	calls := fakeToolchain(t)
	o := BuildOptions{CacheDir: t.TempDir(), Components: []Component{Etcd, CoreDNS}}
	b, err := Build(t.Context(), o)
	fakes.Must(t, err)
	m, err := readManifest(b.Dir, Version{37, 1})
	fakes.Must(t, err)
	m.CoreDNS = "v1.14.5"
	fakes.Must(t, writeManifest(b.Dir, *m, o.Components))
	earlier := len(calls())
	if _, err := Build(t.Context(), o); err != nil || builds(calls()[earlier:]) != 1 {
		t.Errorf("%v, the go tool was called with %q", err, calls()[earlier:])
	}
	if m, err = readManifest(b.Dir, Version{37, 1}); err != nil || m.CoreDNS != coreDNSVersion {
		t.Errorf("manifest %+v, %v", m, err)
	}
}

func TestCoreDNSInAFolder(t *testing.T) {
	dir := t.TempDir()
	if got := CoreDNSIn(&Binaries{Dir: dir}); got != "" {
		t.Errorf("an empty folder has CoreDNS %s", got)
	}
	fakes.Must(t, os.WriteFile(filepath.Join(dir, binaryName(CoreDNS)), []byte("#!/bin/sh\n"), 0o755))
	if got := CoreDNSIn(&Binaries{Dir: dir}); got != "unknown" {
		t.Errorf("a program that does not say what it is has version %q", got)
	}
}
