package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/runner"
)

// TestEveryCheckIsInOneShard looks at all checks of the program, for every number of shards up to 50.
func TestEveryCheckIsInOneShard(t *testing.T) {
	runner.Plan(runner.Selection{})
	all := check.Declarations()
	for n := 1; n <= 50; n++ {
		shards := runner.Divide(all, n)
		sizes := make([]int, n)
		for _, d := range all {
			if i := shards[d.Name]; i < 1 || i > n {
				t.Fatalf("%q is in shard %d of %d", d.Name, i, n)
			}
			sizes[shards[d.Name]-1]++
		}
		if len(shards) != len(all) || slices.Min(sizes) < len(all)/(2*n) {
			t.Errorf("%d checks are in %d shards: %v", len(shards), n, sizes)
		}
	}
}

// planned are the results that a run with the selection will give, by the name of their check, and the requirements that it leaves out.
func planned(s runner.Selection) (results map[string]int, others []string) {
	runner.Plan(s)
	results = map[string]int{}
	for _, d := range check.Declarations() {
		if d.Runs > 0 {
			results[d.Name] = d.Runs
		}
	}
	return results, leftOut()
}

// TestShardsOfASelectionAreItsParts demands that shards together run what the run runs undivided, each check in one of them, and that all leave out the same.
func TestShardsOfASelectionAreItsParts(t *testing.T) {
	for name, s := range map[string]runner.Selection{
		"all": {}, "suites": {Suites: []string{"allocation", "apischema"}}, "focus": {Focus: []string{"proxy-*"}, Skip: []string{"proxy-s*"}},
		"ranges": {Focus: []string{"alloc-*"}, ServiceCIDRs: []string{"10.96.0.0/22"}}, "workers of a proxy": {ClaimedSuites: []string{"proxy"}, Slow: true},
	} {
		whole, left := planned(s)
		together := map[string]int{}
		for i := 1; i <= 3; i++ {
			s.Shard = candidate.Shard{Index: i, Of: 3}
			part, others := planned(s)
			if !slices.Equal(left, others) {
				t.Errorf("%s: shard %s leaves out %v, the whole run %v", name, s.Shard, others, left)
			}
			for check, runs := range part {
				if together[check] != 0 {
					t.Errorf("%s: %q is in shard %s and in another one", name, check, s.Shard)
				}
				together[check] = runs
			}
		}
		if !maps.Equal(whole, together) {
			t.Errorf("%s: the shards run %d checks, the whole run %d", name, len(together), len(whole))
		}
	}
}

// TestClustersOfARunDivideAlike demands that the ranges of a process do not decide in which shard a check is. Each
// cluster of tier kind has one range.
func TestClustersOfARunDivideAlike(t *testing.T) {
	s := runner.Selection{Focus: []string{"alloc-*"}, Shard: candidate.Shard{Index: 2, Of: 3}}
	want, _ := planned(s)
	for _, cidr := range []string{"10.96.0.0/24", "10.96.0.0/16", "fd00:10:96::/112"} {
		s.ServiceCIDRs = []string{cidr}
		got, _ := planned(s)
		for name := range got {
			if want[name] == 0 {
				t.Errorf("on %s shard %s has %q", cidr, s.Shard, name)
			}
		}
	}
}

func TestParseShard(t *testing.T) {
	for _, c := range []struct{ text, index, want string }{
		{"1/1", "", "1/1"}, {"3/3", "7", "3/3"}, {"index/3", "0", "1/3"}, {"index/3", "2", "3/3"},
		{"x", "", "write which one it is"}, {"1/0", "", "write which one it is"}, {"1/", "", "write which one it is"}, {"1/2/3", "", "write which one it is"},
		{"/3", "", "there are shards 1/3 to 3/3"}, {"0/3", "", "there are shards 1/3 to 3/3"}, {"4/3", "", "there are shards 1/3 to 3/3"}, {"-1/3", "", "there are shards 1/3 to 3/3"},
		{"index/3", "", "JOB_COMPLETION_INDEX is not set"}, {"index/3", "3", `JOB_COMPLETION_INDEX is "3", and not 0 to 2: the Job must have 3 completions`},
		{"index/3", "x", `JOB_COMPLETION_INDEX is "x"`}, {"Index/3", "1", "there are shards"},
	} {
		s, err := parseShard(c.text, c.index)
		got := s.String()
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) || (err != nil) == (len(c.want) == 3) {
			t.Errorf("--shard %s with index %q: %s, want %s", c.text, c.index, got, c.want)
		}
	}
}

// inShards runs the reference in n shards, each as a process with a different number of workers. It merges the reports,
// and returns the folder of the merged report, the output and the exit code.
func inShards(t *testing.T, n int, args ...string) (folder, stdout, stderr string, code int) {
	t.Helper()
	dir := t.TempDir()
	merge := []string{"report", "merge", "--out", "merged"}
	for i := n; i >= 1; i-- {
		part := fmt.Sprint("part-", i)
		all := append(slices.Clone(args), "--report-dir", part, "--shard", fmt.Sprintf("%d/%d", i, n), "--parallel", fmt.Sprint(1+i%3/2))
		if stdout, stderr, code := conformance(t, dir, all...); code != report.ExitConformant && code != report.ExitNonConformant {
			t.Fatalf("%v: exit code %d\n%s%s", all, code, stdout, stderr)
		}
		merge = append(merge, part)
	}
	stdout, stderr, code = conformance(t, dir, merge...)
	return filepath.Join(dir, "merged"), stdout, stderr, code
}

// failures are the whole messages of the checks that failed, of which the terminal shows the beginning.
func failures(t *testing.T, folder string) string {
	t.Helper()
	r, err := report.Open(folder)
	if err != nil {
		return err.Error()
	}
	b := &strings.Builder{}
	for i := range r.Checks {
		if f := r.Checks[i].Failure; f != nil {
			fmt.Fprintf(b, "%s: %s\n%v\n", r.Checks[i].Check, f.Message, r.Checks[i].Evidence)
		}
	}
	return b.String()
}

// decided is report.json of a folder without what differs between two runs of the same flags. These are times,
// addresses, and names of namespaces.
func decided(t *testing.T, folder string) []byte {
	t.Helper()
	r, err := report.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	r.Started, r.Seconds, r.TimeToConsistency = time.Time{}, 0, nil
	r.Selection.Arguments = slices.DeleteFunc(r.Selection.Arguments, func(word string) bool { return word == "--parallel" || word == "1" || word == "2" })
	for i := range r.Checks {
		c := &r.Checks[i]
		c.Seconds, c.Evidence, c.Convergence = 0, nil, nil
		if f := c.Failure; f != nil {
			f.Message, f.Cases, f.Reproduce = "", nil, nil
		}
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestARunInShardsIsTheRun judges the reference once undivided and once in three shards, and compares the reports. It
// does so for a conformant reference, and for a proxy whose fault blocks much that is in other shards.
func TestARunInShardsIsTheRun(t *testing.T) {
	for name, args := range map[string][]string{
		"conformant": {"run", "--seed", "7"},
		"faulty":     {"run", "--seed", "7", "--fault", "cluster-ip-not-served", "--suite", "proxy", "--max-wait", "1s"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, _, wantCode := conformance(t, dir, args...)
			merged, stdout, stderr, code := inShards(t, 3, args...)
			got, want := decided(t, merged), decided(t, filepath.Join(dir, "conformance-report"))
			if !bytes.Equal(got, want) {
				t.Errorf("the merged report is another one than that of the run: %s", firstDifference(got, want))
			}
			if code != wantCode || !strings.Contains(stdout, "verdict: ") {
				t.Errorf("exit code %d, want %d\n%s%s\n%s", code, wantCode, stdout, stderr, failures(t, merged))
			}
			for _, face := range report.Faces {
				if info, err := os.Stat(filepath.Join(merged, face.File)); err != nil || info.Size() == 0 {
					t.Errorf("%s was not written: %v", face.File, err)
				}
			}
		})
	}
}

// firstDifference are the lines at which two texts begin to differ.
func firstDifference(got, want []byte) string {
	a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d\n%s\nwant\n%s", i+1, strings.Join(a[max(0, i-4):min(len(a), i+3)], "\n"), strings.Join(b[max(0, i-4):min(len(b), i+3)], "\n"))
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(a), len(b))
}

// TestAnExpectedFailureThatPassesIsDecidedOverAllShards has a list whose only entry covers checks of all shards: no shard by itself can say that it is wrong.
func TestAnExpectedFailureThatPassesIsDecidedOverAllShards(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "list.yaml"), []byte("deviations: [{requirement: alloc-dynamic-assigned, reason: it does}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 2; i++ {
		args := []string{"run", "--focus", "alloc-dynamic-assigned", "--expectations", "list.yaml", "--shard", fmt.Sprintf("%d/2", i), "--report-dir", fmt.Sprint(i)}
		if stdout, stderr, code := conformance(t, dir, args...); code != report.ExitConformant {
			t.Errorf("shard %d: exit code %d\n%s%s", i, code, stdout, stderr)
		}
	}
	stdout, stderr, code := conformance(t, dir, "report", "merge", "1", "2", "--out", "all")
	if code != report.ExitNonConformant || !strings.Contains(stdout, "expected to fail, but passed  alloc-dynamic-assigned: it does") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// TestMergeWritesNothingUnlessAllShardsFit also demands that a folder with a report that was there before keeps it.
func TestMergeWritesNothingUnlessAllShardsFit(t *testing.T) {
	dir := t.TempDir()
	shard := func(name string, args ...string) {
		t.Helper()
		all := append([]string{"run", "--focus", "alloc-upper-band-first", "--report-dir", name}, args...)
		if stdout, stderr, code := conformance(t, dir, all...); code != report.ExitConformant {
			t.Fatalf("%v: exit code %d\n%s%s", all, code, stdout, stderr)
		}
	}
	shard("1", "--shard", "1/2")
	shard("2", "--shard", "2/2")
	shard("seed", "--shard", "2/2", "--seed", "9")
	shard("whole")
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"1":                "conformance: shard 2/2 is missing: 1 of 2 are there\n",
		"1 1":              "conformance: 1 and 1 are both of shard 1/2\n",
		"1 seed":           "conformance: 1 and seed are not of one run: seed is 1 there, and 9 here\n",
		"1 whole":          "conformance: whole is the report of a whole run: only those of shards are merged (run --shard)\n",
		"1 2 --out 1":      "conformance: --out 1 is the folder of a shard: name another one\n",
		"1 nowhere":        "conformance: read report: stat nowhere: no such file or directory\n",
		"1 2 --out ./2///": "conformance: --out ./2/// is the folder of a shard: name another one\n",
	} {
		if _, stderr, code := conformance(t, dir, append([]string{"report", "merge", "--out", "out"}, strings.Fields(args)...)...); code != report.ExitUsage || stderr != want {
			t.Errorf("merge %s: exit code %d, %swant %s", args, code, stderr, want)
		}
	}
	after, err := os.ReadDir(dir)
	if err != nil || len(after) != len(before) {
		t.Errorf("it left %v: %v", after, err)
	}
	// From files, as the logs of pods give them.
	if err := os.MkdirAll(filepath.Join(dir, "1", report.LogsFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "1", report.LogsFolder, "proxy.log"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time into the same folder
		stdout, stderr, code := conformance(t, dir, "report", "merge", "2/report.json", "1", "--out", "out")
		if code != report.ExitConformant {
			t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out", "logs", "shard-1", "proxy.log")); err != nil {
		t.Error(err)
	}
}

// TestShardsOfOneClusterMeetInPeace runs three shards at the same time on a stand-in for one cluster, with checks that name node ports and addresses.
func TestShardsOfOneClusterMeetInPeace(t *testing.T) {
	cluster, dir := startStandIn(t, standInOptions{cidrs: "10.96.0.0/16"}), t.TempDir()
	const n = 3
	type ended struct {
		said string
		code int
	}
	all := make(chan ended)
	for i := range n {
		go func() {
			stdout, stderr, code := conformanceWith(t, dir, []string{fmt.Sprintf("%s=%d", completionIndex, i), "TMPDIR=" + dir}, "run", "--tier", "cluster", "--kubeconfig", cluster.kubeconfig,
				"--suite", "apischema,allocation", "--expectations", "none", "--shard", fmt.Sprintf("index/%d", n), "--report-dir", fmt.Sprint(i), "--parallel", "4")
			all <- ended{stdout + stderr, code}
		}()
	}
	for range n {
		if e := <-all; e.code != report.ExitConformant {
			t.Errorf("exit code %d\n%s", e.code, e.said)
		}
	}
	if stdout, stderr, code := conformance(t, dir, "report", "merge", "0", "1", "2", "--out", "all"); code != report.ExitConformant || !strings.Contains(stdout, "tier cluster") && !strings.Contains(stdout, "verdict: conformant") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
