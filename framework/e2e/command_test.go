package e2e_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/e2e"
	"github.com/service-conformance/conformance/framework/kindcluster"
)

// temporary has the files of clusters in a folder of the test, and returns it.
func temporary(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return dir
}

// empty fails if files of clusters are left.
func empty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, error %v", left, err)
	}
}

func TestCommandMakesAndRemovesACluster(t *testing.T) {
	dir, reference := temporary(t), startReference(t)
	gone := filepath.Join(t.TempDir(), "gone")
	p := e2e.NewCommand(kindcluster.Command{ServiceCIDR: "10.96.0.0/24", Create: "echo making {name} of {service-cidr} >&2; cat " + reference, Teardown: "echo {name} >" + gone})
	if p.GetKubeconfig() != "" || p.GetKubectlContext() != "" || p.KubernetesRestConfig() != nil {
		t.Error("a cluster is there that nobody made")
	}
	if _, err := p.GenerateKubeconfig(); err == nil {
		t.Error("a kubeconfig is there that nobody made")
	}
	if err := errors.Join(p.Destroy(t.Context())); err != nil {
		t.Errorf("there was none: %v", err)
	}

	provider := p.SetDefaults().WithName("mine").WithPath("/usr/bin/tool").WithOpts()
	kubeconfig, err := provider.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := provider.WaitForControlPlane(t.Context(), nil); err != nil {
		t.Error(err)
	}
	again, err := provider.GenerateKubeconfig()
	if err != nil || again != kubeconfig || provider.GetKubeconfig() != kubeconfig || !strings.HasPrefix(kubeconfig, dir) {
		t.Errorf("kubeconfigs %s, %s, %s, error %v", kubeconfig, again, provider.GetKubeconfig(), err)
	}
	if c := provider.KubernetesRestConfig(); c == nil || c.BearerToken != "secret" || provider.GetKubectlContext() == "" {
		t.Errorf("configuration %v, context %q", c, provider.GetKubectlContext())
	}
	if _, err := provider.Create(t.Context()); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("a second one: %v", err)
	}
	logs := filepath.Join(t.TempDir(), "logs")
	if err := provider.ExportLogs(t.Context(), logs); err != nil {
		t.Error(err)
	}
	if said, err := os.ReadFile(filepath.Join(logs, "cluster-command.log")); string(said) != "making mine of 10.96.0.0/24\n" {
		t.Errorf("its log is %q, error %v", said, err)
	}
	if err := provider.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if said, err := os.ReadFile(gone); string(said) != "mine\n" || provider.GetKubeconfig() != "" {
		t.Errorf("torn down: %q, error %v; kubeconfig %q", said, err, provider.GetKubeconfig())
	}
	empty(t, dir)
}

func TestCommandTellsWhatItCannotDo(t *testing.T) {
	reference := startReference(t)
	for name, c := range map[string]struct {
		create func() (string, error)
		want   string
	}{
		"no name": {func() (string, error) { return e2e.NewCommand(kindcluster.Command{}).Create(t.Context()) }, "WithName"},
		"a version": {func() (string, error) {
			return e2e.NewCommand(kindcluster.Command{Name: "a"}).WithVersion("v1.37.1").Create(t.Context())
		}, "v1.37.1 is asked for"},
		"arguments": {func() (string, error) {
			return e2e.NewCommand(kindcluster.Command{Name: "a"}).Create(t.Context(), "--wait")
		}, "takes no arguments"},
		"a file": {func() (string, error) {
			return e2e.NewCommand(kindcluster.Command{Name: "a"}).CreateWithConfig(t.Context(), "kind.yaml")
		}, "takes no file"},
		"it fails": {func() (string, error) {
			return e2e.NewCommand(kindcluster.Command{Name: "a", Create: "echo no quota >&2; exit 3"}).Create(t.Context())
		}, "exit status 3: no quota; its logs are in "},
		"another range": {func() (string, error) {
			return e2e.NewCommand(kindcluster.Command{Name: "a", ServiceCIDR: "10.97.0.0/24", Create: "cat " + reference, Teardown: "true"}).Create(t.Context())
		}, "Service ranges are [10.96.0.0/24], not [10.97.0.0/24]"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := temporary(t)
			if _, err := c.create(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if folders, _ := filepath.Glob(filepath.Join(dir, "conformance-kind-*")); len(folders) > 0 {
				t.Errorf("files are left: %v", folders)
			}
		})
	}
}

// TestAClusterThatIsNotTornDownIsKnown demands that the files stay by which the next start knows what is left.
func TestAClusterThatIsNotTornDownIsKnown(t *testing.T) {
	dir := temporary(t)
	p := e2e.NewCommand(kindcluster.Command{Name: "a", Create: "exit 3", Teardown: "exit 4"})
	if _, err := p.Create(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "exit status 4") {
		t.Errorf("got %v", err)
	}
	var found bool
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		found = found || filepath.Base(path) == "a.command.json"
		return err
	})
	if err != nil || !found {
		t.Errorf("found %v, error %v", found, err)
	}
}
