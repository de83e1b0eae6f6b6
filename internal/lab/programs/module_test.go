package programs

import (
	"strings"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"

	"golang.org/x/mod/modfile"
)

func TestGenerateModule(t *testing.T) {
	b, err := generateModule([]byte(fakes.UpstreamGoMod), Version{37, 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := modfile.Parse("go.mod", b, nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, b)
	}
	if m.Go.Version != "1.26.0" || len(m.Godebug) != 1 || m.Godebug[0].Key != "default" || m.Godebug[0].Value != "go1.26" {
		t.Errorf("the go and godebug lines were not copied:\n%s", b)
	}
	required := map[string]string{}
	for _, r := range m.Require {
		if _, twice := required[r.Mod.Path]; twice {
			t.Errorf("%s is required twice", r.Mod.Path)
		}
		required[r.Mod.Path] = r.Mod.Version
	}
	for path, want := range map[string]string{
		"k8s.io/kubernetes": "v1.37.1", "k8s.io/api": "v0.37.1", "k8s.io/client-go": "v0.37.1",
		"example.com/library": "v1.2.3", "go.etcd.io/bbolt": "v1.5.0",
		"go.etcd.io/etcd/client/v3": "v3.7.0", "go.etcd.io/etcd/server/v3": "v3.7.0", // the server follows the client
	} {
		if required[path] != want {
			t.Errorf("%s %q is required, want %s", path, required[path], want)
		}
	}
	if len(m.Replace) != 2 {
		t.Errorf("%d replacements, want those of the two staging modules:\n%s", len(m.Replace), b)
	}
	for _, r := range m.Replace {
		if r.New.Path != r.Old.Path || r.New.Version != "v0.37.1" {
			t.Errorf("%s is replaced by %s %s", r.Old.Path, r.New.Path, r.New.Version)
		}
	}
}

func TestGenerateModuleKeepsOtherReplacements(t *testing.T) {
	b, err := generateModule([]byte(fakes.UpstreamGoMod+"\nreplace example.com/library => example.com/fork v1.2.4\nexclude example.com/library v1.2.5\n"), Version{37, 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"example.com/library => example.com/fork v1.2.4", "exclude example.com/library v1.2.5"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%q is missing in\n%s", want, b)
		}
	}
}

func TestGenerateModuleReplacesWhatWasNotPublished(t *testing.T) {
	b, err := generateModule([]byte(fakes.UpstreamGoMod), Version{37, 1}, []string{"k8s.io/api"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "k8s.io/api => ./missing/k8s.io-api\n") {
		t.Errorf("k8s.io/api is not replaced by an empty folder:\n%s", b)
	}
}

func TestGenerateModuleUsesTheNamedEtcdServer(t *testing.T) {
	b, err := generateModule([]byte(fakes.UpstreamGoMod+"\nrequire go.etcd.io/etcd/server/v3 v3.7.9 // indirect\n"), Version{37, 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "go.etcd.io/etcd/server/v3 v3.7.9\n") {
		t.Errorf("etcd server v3.7.9 is not required directly:\n%s", b)
	}
}

func TestGenerateModuleRefuses(t *testing.T) {
	for name, c := range map[string]struct{ mod, want string }{
		"no staging modules": {"module k8s.io/kubernetes\nrequire go.etcd.io/etcd/client/v3 v3.7.0\n", "staging"},
		"no etcd":            {"module k8s.io/kubernetes\nreplace k8s.io/api => ./staging/src/k8s.io/api\n", "etcd"},
		"no go.mod":          {"<html>", "parse"},
	} {
		if _, err := generateModule([]byte(c.mod), Version{37, 1}, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one about %q", name, err, c.want)
		}
	}
}
