package standing

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/internal/apiservers"
	"github.com/service-conformance/conformance/internal/lab"
	"github.com/service-conformance/conformance/internal/lab/fakes"
	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/lab/programs"

	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/candidate"
)

// upOptions are for a control plane of fakes, with folders of its own; the control plane is taken down at the end.
func upOptions(t *testing.T) UpOptions {
	t.Helper()
	programs := fakes.Install(t, "etcd", "kube-apiserver") // before temporary files go elsewhere
	tmp, err := os.MkdirTemp("", "lab-")
	fakes.Must(t, err)
	t.Setenv("TMPDIR", tmp)
	t.Setenv("TMP", tmp)
	o := UpOptions{Options: lab.Options{BinDir: programs}, StateDir: filepath.Join(tmp, "state")}
	t.Cleanup(func() {
		if _, err := Down(context.Background(), o.StateDir, ""); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(tmp, "*", "*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		os.RemoveAll(tmp)
	})
	return o
}

func TestUpAndDown(t *testing.T) {
	o := upOptions(t)
	o.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	o.Request = candidate.Request{ServiceCIDRs: fakes.Prefixes("10.96.0.0/24"), NodePorts: "31000-31100"}
	r, err := Up(t.Context(), o)
	fakes.Must(t, err)
	if r.Version != programs.DefaultVersion || r.Kubeconfig != o.Kubeconfig || r.NodePorts != "31000-31100" || len(r.ServiceCIDRs) != 1 || len(r.Servers) != 2 {
		t.Errorf("%+v", r)
	}
	info, err := os.Stat(r.Kubeconfig)
	fakes.Must(t, err)
	if !fakes.OnWindows() && info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig has mode %v", info.Mode())
	}
	c, err := apiservers.NewClient(accessOf(t, r.Kubeconfig))
	fakes.Must(t, err)
	defer c.Close()
	fakes.Must(t, c.Get(t.Context(), apiservers.KubernetesServicePath, nil))

	if running, err := Status(o.StateDir, ""); err != nil || running == nil || running.URL != r.URL {
		t.Errorf("status: %+v, %v", running, err)
	}
	var already *AlreadyUpError
	if _, err := Up(t.Context(), o); !errors.As(err, &already) || !strings.Contains(err.Error(), r.Kubeconfig) {
		t.Errorf("a second one: %v", err)
	}
	fakes.Must(t, c.Get(t.Context(), apiservers.KubernetesServicePath, nil)) // the first one still runs
	fakes.Must(t, process.SweepIn(os.TempDir()))
	fakes.Must(t, c.Get(t.Context(), apiservers.KubernetesServicePath, nil)) // and other labs let it run

	down, err := Down(t.Context(), o.StateDir, "")
	if err != nil || down == nil || down.URL != r.URL {
		t.Errorf("down: %+v, %v", down, err)
	}
	for _, path := range []string{r.Kubeconfig, r.Dir, filepath.Join(o.StateDir, DefaultName+stateSuffix)} {
		if fakes.Exists(t, path) {
			t.Errorf("%s is still there", path)
		}
	}
	if r.alive() {
		t.Error("the servers still run")
	}
	if down, err := Down(t.Context(), o.StateDir, ""); down != nil || err != nil {
		t.Errorf("down again: %+v, %v", down, err)
	}
	if running, err := Status(o.StateDir, ""); running != nil || err != nil {
		t.Errorf("status: %+v, %v", running, err)
	}
}

// accessOf reads a kubeconfig back.
func accessOf(t *testing.T, path string) candidate.Access {
	t.Helper()
	var k struct {
		CurrentContext string `json:"current-context"`
		Contexts       []struct {
			Name    string
			Context struct{ Cluster, User string }
		}
		Clusters []struct {
			Name    string
			Cluster struct {
				Server string
				CA     []byte `json:"certificate-authority-data"`
			}
		}
		Users []struct {
			Name string
			User struct{ Token string }
		}
	}
	b, err := os.ReadFile(path)
	fakes.Must(t, err)
	fakes.Must(t, yaml.Unmarshal(b, &k))
	if len(k.Contexts) != 1 || k.Contexts[0].Name != k.CurrentContext || k.Contexts[0].Context.Cluster != k.Clusters[0].Name || k.Contexts[0].Context.User != k.Users[0].Name {
		t.Fatalf("the parts of the kubeconfig do not fit together:\n%s", b)
	}
	return candidate.Access{URL: k.Clusters[0].Cluster.Server, CA: k.Clusters[0].Cluster.CA, Token: k.Users[0].User.Token}
}

func TestUpReplacesOneThatDied(t *testing.T) {
	o := upOptions(t)
	first, err := Up(t.Context(), o)
	fakes.Must(t, err)
	fakes.Must(t, first.Servers[1].Kill())
	second, err := Up(t.Context(), o)
	fakes.Must(t, err)
	if fakes.Exists(t, first.Dir) || first.Servers[0].Alive() {
		t.Error("what was left of the first one is still there")
	}
	if !second.alive() {
		t.Error("the second one does not run")
	}
}

func TestUpLeavesForeignFilesAlone(t *testing.T) {
	o := upOptions(t)
	o.Kubeconfig = filepath.Join(t.TempDir(), "config")
	fakes.Must(t, os.WriteFile(o.Kubeconfig, []byte("mine"), 0o600))
	if _, err := Up(t.Context(), o); err == nil || !strings.Contains(err.Error(), o.Kubeconfig) {
		t.Errorf("error %v", err)
	}
	if b, _ := os.ReadFile(o.Kubeconfig); string(b) != "mine" {
		t.Errorf("the file is now %q", b)
	}
}

func TestDownLeavesAChangedKubeconfig(t *testing.T) {
	o := upOptions(t)
	o.Kubeconfig = filepath.Join(t.TempDir(), "config")
	_, err := Up(t.Context(), o)
	fakes.Must(t, err)
	fakes.Must(t, os.WriteFile(o.Kubeconfig, []byte("now of another cluster"), 0o600))
	if _, err := Down(t.Context(), o.StateDir, ""); err != nil {
		t.Error(err)
	}
	if !fakes.Exists(t, o.Kubeconfig) {
		t.Error("somebody else's kubeconfig was removed")
	}
}

func TestAFailedUpLeavesNothing(t *testing.T) {
	o := upOptions(t)
	t.Setenv("FAKE_APISERVER_ERROR", "no such flag")
	if _, err := Up(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no such flag") {
		t.Errorf("error %v", err)
	}
	if r, err := Status(o.StateDir, ""); r != nil || err != nil {
		t.Errorf("status: %+v, %v", r, err)
	}
	o.Request.ServiceCIDRs = fakes.Prefixes("10.0.0.0/30")
	if _, err := Up(t.Context(), o); !candidate.IsUnavailable(err) {
		t.Errorf("error %v", err)
	}
}

func TestLabsOfTwoNamesRunSideBySide(t *testing.T) {
	o := upOptions(t)
	first, err := Up(t.Context(), o)
	fakes.Must(t, err)
	o.Name = "second-1"
	second, err := Up(t.Context(), o)
	fakes.Must(t, err)
	t.Cleanup(func() {
		_, err := Down(context.Background(), o.StateDir, o.Name)
		fakes.Must(t, err)
	})
	up, err := List(o.StateDir)
	fakes.Must(t, err)
	if len(up) != 2 || up[0].Name != DefaultName || up[1].Name != o.Name || up[0].URL == up[1].URL {
		t.Errorf("list: %+v", up)
	}
	var already *AlreadyUpError
	if _, err := Up(t.Context(), o); !errors.As(err, &already) || already.Running.Name != o.Name {
		t.Errorf("the same name again: %v", err)
	}
	down, err := Down(t.Context(), o.StateDir, o.Name)
	fakes.Must(t, err)
	if down == nil || down.URL != second.URL || second.alive() {
		t.Errorf("down: %+v", down)
	}
	if !first.alive() {
		t.Error("the end of one lab has ended the other")
	}
	if err := NotUp(o.StateDir, o.Name); !strings.Contains(err.Error(), DefaultName) {
		t.Errorf("error %v", err)
	}
}

func TestNamesOfLabsAreChecked(t *testing.T) {
	o := upOptions(t)
	for _, name := range []string{"..", "a/b", "A", "-a", "a-", strings.Repeat("a", 41)} {
		o.Name = name
		if _, err := Up(t.Context(), o); err == nil || !strings.Contains(err.Error(), "hyphens") {
			t.Errorf("up %q: %v", name, err)
		}
		if _, err := Down(t.Context(), o.StateDir, name); err == nil {
			t.Errorf("down %q is accepted", name)
		}
	}
}

func TestADamagedStateIsReported(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, DefaultName+stateSuffix)
	fakes.Must(t, os.WriteFile(path, []byte("{"), 0o600))
	if _, err := Status(dir, ""); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
	fakes.Must(t, os.Remove(path))
}
