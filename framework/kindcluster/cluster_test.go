package kindcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fake is a Provider that notes what it is asked for.
type fake struct {
	calls      []string
	kubeconfig string
	creating   error // what creation ends with
	exporting  error
	onCreate   func()
}

func (f *fake) CreateWithConfig(ctx context.Context, _ string) (string, error) {
	f.calls = append(f.calls, "create")
	if f.onCreate != nil {
		f.onCreate()
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return f.kubeconfig, f.creating
}

func (f *fake) LoadImageArchive(context.Context, string, ...string) error { return nil }

func (f *fake) ExportLogs(_ context.Context, folder string) error {
	f.calls = append(f.calls, "export "+folder)
	return f.exporting
}

func (f *fake) Destroy(ctx context.Context) error {
	f.calls = append(f.calls, "destroy")
	return ctx.Err()
}

func isReady(context.Context, string) error { return nil }

func TestCreateLeavesNothingOfAClusterThatFails(t *testing.T) {
	broken := errors.New("it broke")
	for name, c := range map[string]struct {
		provider *fake
		ready    func(context.Context, string) error
		want     string
	}{
		"while it is made":        {&fake{creating: broken}, isReady, "it broke; its logs are in logs"},
		"while it gets ready":     {&fake{}, func(context.Context, string) error { return broken }, "it broke; its logs are in logs"},
		"and so do its last logs": {&fake{creating: broken, exporting: errors.New("no space")}, isReady, "could not be exported: no space"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := create(t.Context(), c.provider, "n", "config", "logs", nil, c.ready)
			if !errors.Is(err, broken) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if !slices.Equal(c.provider.calls, []string{"create", "export logs", "destroy"}) {
				t.Errorf("calls %q", c.provider.calls)
			}
		})
	}
}

func TestCreateThatIsInterruptedDestroys(t *testing.T) {
	for _, where := range []string{"while it is made", "while it gets ready"} {
		t.Run(where, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := &fake{}
			ready := func(ctx context.Context, _ string) error {
				cancel()
				<-ctx.Done()
				return ctx.Err()
			}
			if where == "while it is made" {
				p.onCreate = cancel
			}
			_, err := create(ctx, p, "n", "config", "logs", nil, ready)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if strings.Contains(err.Error(), "delete cluster") {
				t.Errorf("it was destroyed with a context that had ended: %v", err)
			}
			if !slices.Equal(p.calls, []string{"create", "destroy"}) {
				t.Errorf("calls %q", p.calls)
			}
		})
	}
}

func TestDeleteSaysHowToDoItByHand(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // there is no engine
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := &Cluster{Name: "n", provider: NewKind("n", "")}
	if err := c.Delete(ctx); err == nil || !strings.Contains(err.Error(), "kind delete cluster --name n") {
		t.Errorf("got %v", err)
	}
}

// TestCreateWithWaitsForTheNodes demands that a cluster of any provider is one whose nodes have come, as the API server says.
func TestCreateWithWaitsForTheNodes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, map[string]string{
			"/api/v1/nodes": `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"a"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}]}`,
			"/apis/apps/v1/namespaces/kube-system/daemonsets":  `{"kind":"DaemonSetList","apiVersion":"apps/v1"}`,
			"/apis/apps/v1/namespaces/kube-system/deployments": `{"kind":"DeploymentList","apiVersion":"apps/v1"}`,
		}[r.URL.Path])
	}))
	defer server.Close()
	p := &fake{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, server.URL)
	if err := os.WriteFile(p.kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := CreateWith(t.Context(), p, "n", "config", 1, "logs")
	if err != nil || c.Kubeconfig != p.kubeconfig || !slices.Equal(p.calls, []string{"create"}) {
		t.Fatalf("%+v, error %v, calls %q", c, err, p.calls)
	}
	if err := c.Delete(t.Context()); err != nil || !slices.Equal(p.calls, []string{"create", "destroy"}) {
		t.Errorf("error %v, calls %q", err, p.calls)
	}
}

// TestCreateLeavesAClusterOfThatNameAlone demands that a name that is taken is refused before anything is made, written or deleted.
func TestCreateLeavesAClusterOfThatNameAlone(t *testing.T) {
	programs, dir := t.TempDir(), t.TempDir()
	calls := filepath.Join(programs, "calls")
	engine := "#!/bin/sh\ncase $1 in\n-v) echo Docker version 29 ;;\nps) echo mine ;;\n*) echo $1 >>" + calls + "; exit 1 ;;\nesac\n"
	if err := os.WriteFile(filepath.Join(programs, "docker"), []byte(engine), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs)
	t.Setenv("KIND_EXPERIMENTAL_PROVIDER", "docker")
	file := filepath.Join(t.TempDir(), "kind.yaml")
	if err := os.WriteFile(file, []byte("kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Create(t.Context(), Options{Name: "mine", ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/24")}}, dir, dir)
	_, fromFile := CreateFromFile(t.Context(), "mine", file, dir, dir)
	for _, err := range []error{err, fromFile} {
		if err == nil || !strings.Contains(err.Error(), `a cluster of kind called "mine" already`) {
			t.Errorf("got %v", err)
		}
	}
	if asked, err := os.ReadFile(calls); err == nil {
		t.Errorf("the engine was asked for %q", asked)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("files are left: %v, error %v", files, err)
	}
}
