package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/kindcluster"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/runner"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/clusterrun"
)

func TestWrongUsageOfTierKindIsFoundBeforeAnythingIsMade(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"junk.yaml": "range: 10.96.0.0/24", "bad.yaml": "serviceCIDR: \"10.96\"\nproxyMode: magic",
		"a.yaml": "serviceCIDR: 10.96.0.0/24", "b.yaml": "serviceCIDR: 10.97.0.0/24\nproxyMode: ipvs", "nothing.yaml": "serviceCIDR: 10.96.0.0/24\nnetwork: none"} {
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
		{"run --tier kind --pod-interface-prefix lxc", "--pod-interface-prefix is for --tier lab"},
		{"run --tier lab --pod-setup x", "kube-proxy needs to know of no pod"},
		{"run --tier lab --pod-interface-prefix lxc", "kube-proxy knows pods by their addresses"},
		{"run --tier lab --proxy-command x --pod-interface-prefix much-too-long", `"much-too-long" is no prefix for the interfaces of pods`},
		{"run --tier lab --proxy-command x --pod-interface-prefix eth", "is not eth"},
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
		{"run --tier kind --kind-cluster nothing.yaml", "name by --kind-setup what installs another one"},
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
	f.kind.workers, f.kind.nodeImage, f.kind.setUp = 2, "node:1", "install"
	for _, path := range paths {
		f.kind.files = []string{path}
		clusters, err := f.kind.clusters(f)
		if err != nil || len(clusters) != 1 {
			t.Fatalf("%s: %d clusters, error %v", path, len(clusters), err)
		}
		file, err := kindcluster.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		o := clusters[0]
		if o.NodeImage != "node:1" || o.ProxyMode != file.ProxyMode || spec.ServiceCIDRs(o.ServiceCIDRs).String() != file.ServiceCIDR || o.NoNetwork != (file.Network == "none") || o.SetUp != "install" {
			t.Errorf("%s: %+v", path, o)
		}
		if strings.HasSuffix(path, "large.yaml") != (o.Workers == 4) {
			t.Errorf("%s: %d workers", path, o.Workers)
		}
	}
}

// TestClustersWithoutASelectedCheckAreNotMade has a check of any cluster, one of traffic, one of a range that is named, and all.
func TestClustersWithoutASelectedCheckAreNotMade(t *testing.T) {
	for focus, want := range map[string]int{"api-externalname-syntax": 1, "proxy-hairpin": 1, "*that are stated of 10.96.0.0/20*": 1, "proxy-dns-*": 1, "*": len(kindcluster.Matrix())} {
		f := &runFlags{Selection: runner.Selection{Focus: []string{focus}, OtherRanges: true}}
		f.kind.workers, f.given = defaultWorkers, newRun().Flags()
		all, err := f.kind.clusters(f)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		r := &plan{runFlags: f, out: &out}
		r.count()
		before := r.checks
		some := r.withChecks(all)
		if len(some) != want || strings.Contains(out.String(), "no selected check") != (len(some) < len(all)) {
			t.Errorf("--focus %q: %d of %d clusters, want %d; told: %s", focus, len(some), len(all), want, &out)
		}
		if r.checks != before {
			t.Errorf("--focus %q: %d results are planned afterwards, %d before", focus, r.checks, before)
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
		parallel:  3, expectations: "none", declared: "impl.yaml", profiles: []string{"core"}, seed: 7,
	}
	f.Shard = candidate.Shard{Index: 2, Of: 3}
	f.kind.setUp = "install"
	to := clusterrun.Judged{Kubeconfig: "kc", ServiceCIDR: "10.97.0.0/24,fd00::/112", ReportDir: "out/conformance-abc-2", AgentImage: "agent:1", Outside: "kc.outside.yaml", OfKind: "conformance-abc-2"}
	cmd := newRun()
	if err := cmd.ParseFlags(f.arguments(&f.kind, f.kind.how(f), to)[1:]); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"tier": "cluster", "tier-name": "kind", "kubeconfig": "kc", "service-cidr": "[\"10.97.0.0/24,fd00::/112\"]", "suite": "[proxy]", "focus": "[alloc-*,api-*]",
		"feature": "[Core]", "profile": "[core]", "slow": "true", "parallel": "3", "seed": "7", "expectations": "none", "implementation": "impl.yaml", "agent-image": "agent:1", "outside": "kc.outside.yaml", "disposable": "true", "deleted-after": "true", "set-up": "true", "of-kind": "conformance-abc-2",
		"report-dir": "out/conformance-abc-2", "shard": "2/3",
	} {
		if got := cmd.Flags().Lookup(name).Value.String(); got != want {
			t.Errorf("--%s is %s, want %s", name, got, want)
		}
	}
}
