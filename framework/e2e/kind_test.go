package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/e2e-framework/support"

	"github.com/service-conformance/conformance/framework/kindcluster"
	"github.com/service-conformance/conformance/framework/spec"
)

// Every provider of the framework that loads images can make clusters for kindcluster.CreateWith.
var _ kindcluster.Provider = support.E2EClusterProviderWithImageLoader(nil)

// fake stands in for clusters of kind, and for one of them. It notes what it is asked for.
type fake struct {
	calls   []string
	options kindcluster.Options
	failing error
}

func (f *fake) make(_ context.Context, o kindcluster.Options, file, dir, _ string) (made, string, error) {
	f.calls, f.options = append(f.calls, strings.TrimSpace("make "+file)), o
	kubeconfig := filepath.Join(dir, o.Name+".kubeconfig")
	text := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],"contexts":[{"name":"kind-mine","context":{"cluster":"c"}}],"current-context":"kind-mine"}`
	return f, kubeconfig, errors.Join(f.failing, os.WriteFile(kubeconfig, []byte(text), 0o600))
}

func (f *fake) LoadImageArchive(_ context.Context, archive string) error {
	text, err := os.ReadFile(archive)
	f.calls = append(f.calls, "load "+string(text))
	return err
}

func (f *fake) ExportLogs(_ context.Context, folder string) error {
	f.calls = append(f.calls, "export "+folder)
	return f.failing
}

func (f *fake) Delete(context.Context) error {
	f.calls = append(f.calls, "delete")
	return f.failing
}

func newFake(t *testing.T, o kindcluster.Options) (*fake, *Kind, string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	f, k := &fake{}, NewKind(o)
	k.make = f.make
	return f, k, dir
}

func TestKindMakesAndRemovesACluster(t *testing.T) {
	f, k, dir := newFake(t, kindcluster.Options{Workers: 2})
	optioned := false
	provider := k.SetDefaults().WithName("mine").WithVersion("1.37.1").WithPath("kind").WithOpts(func(p support.E2EClusterProvider) { optioned = p == k })
	kubeconfig, err := provider.Create(t.Context())
	if err != nil || !optioned {
		t.Fatalf("options given: %v, error %v", optioned, err)
	}
	if o := f.options; o.Name != "mine" || o.Workers != 2 || o.NodeImage != "kindest/node:v1.37.1" || spec.ServiceCIDRs(o.ServiceCIDRs).String() != "10.96.0.0/16" {
		t.Errorf("made with %+v", o)
	}
	again, err := provider.GenerateKubeconfig()
	if err != nil || again != kubeconfig || provider.GetKubeconfig() != kubeconfig || provider.GetKubectlContext() != "kind-mine" {
		t.Errorf("kubeconfigs %s, %s, %s, context %s, error %v", kubeconfig, again, provider.GetKubeconfig(), provider.GetKubectlContext(), err)
	}
	if c := provider.KubernetesRestConfig(); c == nil || c.Host != "http://127.0.0.1:1" {
		t.Errorf("configuration %v", c)
	}
	if err := errors.Join(provider.WaitForControlPlane(t.Context(), nil), provider.ExportLogs(t.Context(), "logs")); err != nil {
		t.Error(err)
	}
	f.failing = errors.New("the engine is busy")
	if err := provider.Destroy(t.Context()); !errors.Is(err, f.failing) || provider.GetKubeconfig() == "" {
		t.Errorf("got %v, kubeconfig %q", err, provider.GetKubeconfig())
	}
	f.failing = nil
	if err := errors.Join(provider.Destroy(t.Context()), provider.Destroy(t.Context())); err != nil {
		t.Error(err)
	}
	if want := []string{"make", "export logs", "delete", "delete"}; !slices.Equal(f.calls, want) {
		t.Errorf("calls %q, want %q", f.calls, want)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, error %v", left, err)
	}
}

func TestKindIsMadeFromAFile(t *testing.T) {
	f, k, _ := newFake(t, kindcluster.Options{Name: "mine"})
	if _, err := k.CreateWithConfig(t.Context(), "kind.yaml"); err != nil || !slices.Equal(f.calls, []string{"make kind.yaml"}) {
		t.Errorf("error %v, calls %q", err, f.calls)
	}
}

func TestKindLoadsImages(t *testing.T) {
	f, k, dir := newFake(t, kindcluster.Options{Name: "mine"})
	if err := k.LoadImage(t.Context(), "mine:1"); err == nil || !strings.Contains(err.Error(), "create it first") {
		t.Errorf("there is no cluster: %v", err)
	}
	if _, err := k.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	t.Setenv("PATH", programs)
	if err := k.LoadImage(t.Context(), "mine:1"); err == nil || !strings.Contains(err.Error(), "none of docker, nerdctl, podman is installed") {
		t.Errorf("there is no engine: %v", err)
	}
	if err := os.WriteFile(filepath.Join(programs, "podman"), []byte("#!/bin/sh\n[ $4 = mine:1 ] || { echo no such image >&2; exit 1; }\necho -n $4 >$3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := k.LoadImage(t.Context(), "mine:1"); err != nil || !slices.Contains(f.calls, "load mine:1") {
		t.Errorf("error %v, calls %q", err, f.calls)
	}
	if err := k.LoadImage(t.Context(), "mine:2"); err == nil || !strings.Contains(err.Error(), "save image mine:2: podman: exit status 1: no such image") {
		t.Errorf("there is no image: %v", err)
	}
	if archives, _ := filepath.Glob(filepath.Join(dir, "conformance-image-*")); len(archives) > 0 {
		t.Errorf("archives are left: %v", archives)
	}
}

func TestKindThatIsNotMadeLeavesNothing(t *testing.T) {
	f, k, dir := newFake(t, kindcluster.Options{Name: "mine"})
	f.failing = errors.New("no room")
	if _, err := k.Create(t.Context()); !errors.Is(err, f.failing) || k.GetKubeconfig() != "" {
		t.Errorf("got %v, kubeconfig %q", err, k.GetKubeconfig())
	}
	if _, err := k.Create(t.Context(), "--wait=1m"); err == nil || !strings.Contains(err.Error(), "takes no arguments") {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, error %v", left, err)
	}
}
