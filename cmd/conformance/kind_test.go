package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/kindcluster"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/runner"
	"github.com/service-conformance/conformance/framework/spec"
)

func TestWrongUsageOfTierKindIsFoundBeforeAnythingIsMade(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"junk.yaml": "range: 10.96.0.0/24", "bad.yaml": "serviceCIDR: \"10.96\"\nproxyMode: magic",
		"a.yaml": "serviceCIDR: 10.96.0.0/24", "b.yaml": "serviceCIDR: 10.97.0.0/24\nproxyMode: ipvs"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"run --workers 3", "are for --tier kind"},
		{"run --tier cluster --kubeconfig x --keep", "are for --tier kind"},
		{"run --tier kind --kind-parallel 0", "at least one cluster"},
		{"run --tier kind --workers -1", "there can be 0 to"},
		{"run --tier kind --reuse x --node-image y", "--reuse takes a cluster as it is"},
		{"run --tier kind --reuse x --proxy-mode ipvs", "--reuse takes a cluster as it is"},
		{"run --tier kind --reuse x --service-cidr 10.96.0.0/24 --service-cidr 10.97.0.0/24", "--reuse judges one cluster"},
		{"run --tier kind --proxy-mode userspace", "unknown proxy mode"},
		{"run --tier kind --proxy-command x", "--proxy-command is for --tier lab"},
		{"run --tier kind --pod-setup x", "--pod-setup and --pod-teardown are for --tier lab"},
		{"run --tier lab --pod-setup x", "kube-proxy needs to know of no pod"},
		{"run --tier lab --proxy-command x --pod-teardown x", "--pod-teardown undoes what --pod-setup has done"},
		{"run --tier kind --kubernetes-version v1.36.0", "--node-image"},
		{"run --tier kind --kubeconfig x", "--kubeconfig is for --tier cluster"},
		{"run --tier kind --fault lower-band-first", "--fault is for --tier reference"},
		{"run --tier kind --service-cidr 10.96.0.0/29", "too small"},
		{"run --tier kind --service-cidr 10.96.0.0/24 --service-cidr 10.244.0.0/16", "overlaps that of the pods"},
		{"run --tier lab --agent-image x", "--agent-image is for"},
		{"run --tier lab --kind-cluster x", "are for --tier kind"},
		{"run --tier kind --kind-cluster none.yaml", "read the description of a cluster"},
		{"run --tier kind --kind-cluster junk.yaml", "unknown field \"range\""},
		{"run --tier kind --kind-cluster bad.yaml", "bad.yaml: serviceCIDR: \"10.96\" is not a range"},
		{"run --tier kind --kind-cluster bad.yaml", "proxyMode: unknown proxy mode \"magic\""},
		{"run --tier kind --kind-cluster bad.yaml --service-cidr 10.96.0.0/24", "--service-cidr: with --kind-cluster"},
		{"run --tier kind --kind-cluster bad.yaml --proxy-mode ipvs", "--proxy-mode: with --kind-cluster"},
		{"run --tier kind --kind-cluster a.yaml --kind-cluster b.yaml", "need a run each"},
		{"run --tier kind --kind-cluster a.yaml --kind-cluster a.yaml", "two clusters have the Service range 10.96.0.0/24"},
		{"run --tier kind --kind-cluster bad.yaml --reuse x", "leave out --node-image, --workers, --kind-cluster"},
	} {
		t.Run(c.args, func(t *testing.T) {
			_, stderr, code := conformance(t, dir, strings.Fields(c.args)...)
			if code != report.ExitUsage || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d, %q; want 64 and %q", code, stderr, c.want)
			}
		})
	}
}

// TestClusterFilesOfTheProjectAreValid demands that a cluster can be made from each, as it says.
func TestClusterFilesOfTheProjectAreValid(t *testing.T) {
	paths, err := filepath.Glob("../../fixtures/kind/*.yaml")
	if err != nil || len(paths) < 3 {
		t.Fatalf("files %v, error %v", paths, err)
	}
	f := &runFlags{}
	f.kind.workers, f.kind.nodeImage = 2, "node:1"
	r := &kindRun{runFlags: f, id: "abc"}
	for _, path := range paths {
		file, err := readClusterFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r.files, r.cidrs = append(r.files, file), append(r.cidrs, file.ServiceCIDR)
	}
	for i, path := range paths {
		o, err := r.options(i)
		if err == nil {
			err = o.Validate()
		}
		if err != nil || o.NodeImage != "node:1" || o.ProxyMode != r.files[i].ProxyMode || spec.ServiceCIDRs(o.ServiceCIDRs).String() != r.files[i].ServiceCIDR {
			t.Errorf("%s: %+v, error %v", path, o, err)
		}
		if strings.HasSuffix(path, "large.yaml") != (o.Workers == 4) {
			t.Errorf("%s: %d workers", path, o.Workers)
		}
	}
}

func TestWithoutAContainerEngineTierKindSaysWhatToDo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, stderr, code := conformance(t, t.TempDir(), "run", "--tier", "kind")
	if code != report.ExitUsage || !strings.Contains(stderr, "tier kind needs a Docker engine") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}

// What a person selects must reach the process that judges, or it would judge something else.
func TestArgumentsOfTheProcessThatJudgesCarryTheSelection(t *testing.T) {
	f := &runFlags{
		Selection: runner.Selection{Suites: []string{"proxy"}, Focus: []string{"alloc-*", "api-*"}, Features: []string{"Core"}, Slow: true},
		parallel:  3, reportDir: "out", expectations: "none", declared: "impl.yaml", profiles: []string{"core"}, seed: 7,
	}
	f.Shard = candidate.Shard{Index: 2, Of: 3}
	f.agentImage = "agent:1"
	r := &kindRun{runFlags: f, id: "abc", cidrs: []string{"10.96.0.0/24", "10.97.0.0/24,fd00::/112"}}

	cmd := newRun()
	if err := cmd.ParseFlags(r.arguments(1, "kc", "kc.outside.yaml")[1:]); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"tier": "cluster", "tier-name": "kind", "kubeconfig": "kc", "service-cidr": "[\"10.97.0.0/24,fd00::/112\"]", "suite": "[proxy]", "focus": "[alloc-*,api-*]",
		"feature": "[Core]", "profile": "[core]", "slow": "true", "parallel": "3", "seed": "7", "expectations": "none", "implementation": "impl.yaml", "agent-image": "agent:1", "outside": "kc.outside.yaml", "disposable": "true",
		"report-dir": "out/conformance-abc-2", "shard": "2/3",
	} {
		if got := cmd.Flags().Lookup(name).Value.String(); got != want {
			t.Errorf("--%s is %s, want %s", name, got, want)
		}
	}
}

// turns is what inTurn works on: clusters that are numbers.
type turns struct {
	mu          sync.Mutex
	alive, most int
	judged      []int
	failed      []int
	created     int
	onJudge     func(i int)
	fails       int // this one cannot be created
}

func (s *turns) create(ctx context.Context, i int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if i == s.fails {
		return 0, errors.New("no room")
	}
	s.created++
	s.alive++
	s.most = max(s.most, s.alive)
	return i, nil
}

func (s *turns) judge(_ context.Context, i, thing int, err error) {
	if s.onJudge != nil {
		s.onJudge(i)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed = append(s.failed, i)
		return
	}
	s.judged = append(s.judged, thing)
}

func (s *turns) remove(ctx context.Context, _ int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil {
		s.alive--
	}
}

func TestInTurnJudgesAllInOrderAndLeavesNone(t *testing.T) {
	for _, alive := range []int{1, 2, 3} {
		s := &turns{fails: 2}
		inTurn(t.Context(), 5, alive, s.create, s.judge, s.remove)
		if !slices.Equal(s.judged, []int{0, 1, 3, 4}) || !slices.Equal(s.failed, []int{2}) {
			t.Errorf("judged %v, failed %v", s.judged, s.failed)
		}
		if s.alive != 0 || s.most > alive {
			t.Errorf("%d are left, there were %d at a time, want at most %d", s.alive, s.most, alive)
		}
	}
}

func TestInTurnCreatesTheNextWhileOneIsJudged(t *testing.T) {
	s := &turns{fails: -1}
	second := make(chan struct{})
	create := func(ctx context.Context, i int) (int, error) {
		if i == 1 {
			close(second)
		}
		return s.create(ctx, i)
	}
	s.onJudge = func(i int) {
		if i == 0 {
			<-second // this would wait for ever if the next one came later
		}
	}
	inTurn(t.Context(), 2, 2, create, s.judge, s.remove)
	if !slices.Equal(s.judged, []int{0, 1}) {
		t.Errorf("judged %v", s.judged)
	}
}

func TestInTurnRemovesWhatThereIsWhenInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &turns{fails: -1, onJudge: func(i int) {
		if i == 1 {
			cancel()
		}
	}}
	inTurn(ctx, 4, 2, s.create, s.judge, s.remove)
	if s.alive != 0 || s.created == 4 {
		t.Errorf("%d are left of %d", s.alive, s.created)
	}
	if len(s.judged)+len(s.failed) != 4 {
		t.Errorf("judged %v, failed %v: each must be told of", s.judged, s.failed)
	}
}

// otherProvider is a provider of a cluster that there is, and notes where it exports logs to.
type otherProvider struct{ kubeconfig, logs string }

func (p *otherProvider) CreateWithConfig(context.Context, string) (string, error) {
	return p.kubeconfig, nil
}

func (p *otherProvider) LoadImageArchive(context.Context, string, ...string) error { return nil }

func (p *otherProvider) ExportLogs(_ context.Context, folder string) error {
	p.logs = folder
	return nil
}

func (p *otherProvider) Destroy(context.Context) error { return nil }

// TestLogsAreKeptUnlessAClusterIsConformant demands that the logs are exported before the cluster goes, and that it is said where they are.
func TestLogsAreKeptUnlessAClusterIsConformant(t *testing.T) {
	s := startStandIn(t, standInOptions{cidrs: "10.96.0.0/16"})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/apis/apps/v1/") { // of what runs in kube-system
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{}")
			return
		}
		s.ServeHTTP(w, r)
	}))
	defer front.Close()
	t.Setenv(asProgram, "1")                                                                                          // for the process that judges
	for focus, conformant := range map[string]bool{"alloc-dynamic-assigned": true, "alloc-upper-band-first": false} { // the other one needs a range of its own: nothing is decided
		t.Run(focus, func(t *testing.T) {
			dir := t.TempDir()
			p := &otherProvider{kubeconfig: filepath.Join(dir, "kubeconfig")}
			writeKubeconfig(t, p.kubeconfig, front.URL)
			c, err := kindcluster.CreateWith(t.Context(), p, "n", "", len(standInNodes), "")
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			f := &runFlags{Selection: runner.Selection{Focus: []string{focus}}, reportDir: filepath.Join(dir, "out"), expectations: "none"}
			r := &kindRun{runFlags: f, id: "abc", cidrs: []string{"10.96.0.0/16"}, out: &out}
			if result := r.judge(t.Context(), 0, made{Cluster: c}, nil); (result.ExitCode() == report.ExitConformant) != conformant {
				t.Fatalf("verdict %s\n%s", result.Verdict, &out)
			}
			if told := strings.Contains(out.String(), "its logs are in "+r.logsDir(0)); told == conformant || (p.logs == r.logsDir(0)) == conformant {
				t.Errorf("logs in %q, told %t\n%s", p.logs, told, &out)
			}
		})
	}
}

func TestWhyAProcessCouldNotJudge(t *testing.T) {
	for said, want := range map[string]string{"": "signal: killed", " \n": "signal: killed", "conformance: no such file\n": "signal: killed: no such file"} {
		if got := explained(errors.New("signal: killed"), said).Error(); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}
