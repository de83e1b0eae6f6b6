package clusterrun

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/kindcluster"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/leaktest"
)

// asJudge makes the test binary the process that judges. Its arguments are the folder of the report and the verdict.
const asJudge = "CLUSTERRUN_TEST_AS_JUDGE"

func TestMain(m *testing.M) {
	if os.Getenv(asJudge) != "" {
		os.Exit(judgeAs(os.Args[1], check.Verdict(os.Args[2])))
	}
	os.Exit(leaktest.Run(m))
}

func judgeAs(dir string, verdict check.Verdict) int {
	result := check.Result{Suite: "allocation", Check: "alloc-dynamic-assigned: x", Requirements: []spec.ID{spec.AllocDynamicAssigned}, Verdict: verdict}
	if verdict == check.Unknown {
		result.Reason = "it took too long"
	}
	r := report.Build(report.Run{Planned: 1}, []check.Result{result})
	folder, err := report.OpenFolder(dir)
	if err == nil {
		_, err = folder.Finish(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		return report.ExitHarness
	}
	return r.ExitCode()
}

// provider is one of a cluster that there is, and notes where it exports logs to and whether it was destroyed.
type provider struct {
	kubeconfig, logs string
	destroyed        bool
}

func (p *provider) CreateWithConfig(context.Context, string) (string, error) {
	return p.kubeconfig, nil
}

func (p *provider) LoadImageArchive(context.Context, string, ...string) error { return nil }

func (p *provider) ExportLogs(_ context.Context, folder string) error {
	p.logs = folder
	return nil
}

func (p *provider) Destroy(context.Context) error {
	p.destroyed = true
	return nil
}

// readyCluster answers what a new cluster is asked until it is ready.
func readyCluster(t *testing.T) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, map[string]string{
			"/api/v1/nodes": `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"a"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}]}`,
			"/apis/apps/v1/namespaces/kube-system/daemonsets":  `{"kind":"DaemonSetList","apiVersion":"apps/v1"}`,
			"/apis/apps/v1/namespaces/kube-system/deployments": `{"kind":"DeploymentList","apiVersion":"apps/v1"}`,
		}[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// TestAClusterIsJudgedAndRemoved demands that the logs of a cluster are exported before it goes, unless it is conformant, and that it is said where they are.
func TestAClusterIsJudgedAndRemoved(t *testing.T) {
	t.Setenv(asJudge, "1")
	kubeconfig := readyCluster(t)
	for verdict, conformant := range map[check.Verdict]bool{check.Conformant: true, check.Unknown: false} {
		t.Run(string(verdict), func(t *testing.T) {
			p := &provider{kubeconfig: kubeconfig}
			var out strings.Builder
			arguments := func(c Judged) []string { return []string{c.ReportDir, string(verdict)} }
			r, err := open(Options{Arguments: arguments, ReportDir: t.TempDir(), Out: &out, Err: os.Stderr}, "10.96.0.0/16")
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			r.create = func(ctx context.Context, i int) (*made, error) {
				c, err := kindcluster.CreateWith(ctx, p, r.clusterName(i), "", 1, "")
				return &made{Cluster: c}, err
			}
			merged, err := r.Judge(t.Context(), report.Run{})
			if err != nil || (merged.ExitCode() == report.ExitConformant) != conformant {
				t.Fatalf("verdict %v, error %v\n%s", merged, err, &out)
			}
			if told := strings.Contains(out.String(), "its logs are in "+r.logsDir(0)); told == conformant || (p.logs == r.logsDir(0)) == conformant || !p.destroyed {
				t.Errorf("logs in %q, told %t, destroyed %t\n%s", p.logs, told, p.destroyed, &out)
			}
		})
	}
}
