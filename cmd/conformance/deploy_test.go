package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/internal/sonobuoy"
)

// imagePlaceholder stands in the manifests where the image goes, and in the line that says how to put it there.
const imagePlaceholder = "CONFORMANCE_IMAGE"

// plugin is the definition of a plugin of Sonobuoy (pkg/plugin/manifest).
type plugin struct {
	Config struct {
		Driver       string   `json:"driver"`
		PluginName   string   `json:"plugin-name"`
		SkipCleanup  bool     `json:"skip-cleanup"`
		ResultFormat string   `json:"result-format"`
		ResultFiles  []string `json:"result-files"`
		Description  string   `json:"description"`
		SourceURL    string   `json:"source-url"`
		Order        int      `json:"order"`
	} `json:"sonobuoy-config"`
	Spec         corev1.Container  `json:"spec"`
	ExtraVolumes []corev1.Volume   `json:"extra-volumes"`
	PodSpec      *corev1.PodSpec   `json:"podSpec"`
	ConfigMap    map[string]string `json:"config-map"`
}

// readManifest reads a file of fixtures/deploy, in which every field must be known, and demands that the placeholder is replaced as the file says.
func readManifest(t *testing.T, name string, into any) {
	t.Helper()
	path := filepath.Join("..", "..", "fixtures", "deploy", name)
	if n := len(documents(t, path)); n != 1 {
		t.Fatalf("%s has %d documents", name, n)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if how := "sed 's|" + imagePlaceholder + "|registry.example.com/team/conformance:v1|' fixtures/deploy/" + name; !strings.Contains(string(text), how) {
		t.Errorf("%s does not say how to name the image: %s", name, how)
	}
	for line := range strings.Lines(string(text)) { // the command replaces the first one of each line
		if n := strings.Count(line, imagePlaceholder); n > 1 {
			t.Errorf("%s has %d placeholders in the line %s", name, n, line)
		}
	}
}

// runsOn demands that the container runs this program in a way that works. It uses flags that exist, folders that it
// can write, and the same image for agents. It needs no right that the restricted pod security standard forbids. pod is
// the security context of its pod; nil if that has none.
func runsOn(t *testing.T, c corev1.Container, pod *corev1.PodSecurityContext, volumes []corev1.Volume) {
	t.Helper()
	if c.Image != imagePlaceholder || !slices.Contains(c.Args, "--agent-image="+imagePlaceholder) {
		t.Errorf("the image is %s, that of agents is another one: %v", c.Image, c.Args)
	}
	if !slices.Equal(c.Command, []string{"/conformance"}) || len(c.Args) == 0 || c.Args[0] != "run" {
		t.Fatalf("it runs %v %v", c.Command, c.Args)
	}
	cmd := newRun()
	if err := cmd.ParseFlags(c.Args[1:]); err != nil || cmd.Flags().NArg() > 0 {
		t.Errorf("`conformance run` does not take %v: %v %v", c.Args[1:], err, cmd.Flags().Args())
	}
	writable := map[string]bool{}
	for _, m := range c.VolumeMounts {
		writable[m.MountPath] = !m.ReadOnly
		if !slices.ContainsFunc(volumes, func(v corev1.Volume) bool { return v.Name == m.Name && v.EmptyDir != nil }) {
			t.Errorf("volume %s at %s is none of %v", m.Name, m.MountPath, volumes)
		}
	}
	needed := map[string]string{"the report": cmd.Flags().Lookup("report-dir").Value.String()}
	if cmd.Flags().Lookup("sonobuoy").Changed {
		needed["the report"] = filepath.Join(sonobuoy.DefaultResultsDir, "x")
	}
	for _, v := range c.Env {
		if v.Name == "TMPDIR" {
			needed["temporary files"] = filepath.Join(v.Value, "x")
		}
	}
	for what, path := range needed {
		if len(needed) != 2 || !writable[filepath.Dir(path)] {
			t.Errorf("%s cannot be written to %s: writable are %v", what, path, writable)
		}
	}
	s := c.SecurityContext
	if pod == nil {
		pod = &corev1.PodSecurityContext{RunAsNonRoot: s.RunAsNonRoot, SeccompProfile: s.SeccompProfile}
	}
	yes, no := true, false
	restricted := corev1.SecurityContext{
		RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	got := *s
	got.RunAsNonRoot, got.SeccompProfile = pod.RunAsNonRoot, pod.SeccompProfile
	if !equality.Semantic.DeepEqual(got, restricted) {
		t.Errorf("it asks for more than the restricted standard allows: %+v %+v", pod, s)
	}
}

// focusOnStandIn are requirements with one check each.
var focusOnStandIn = []string{"api-put-creates", "alloc-any-port", "alloc-concurrent-dynamic"}

// onStandIn runs the arguments of a container on a stand-in for the cluster, for a few checks, with variables that Kubernetes sets.
func onStandIn(t *testing.T, args, variables []string) (stdout string) {
	t.Helper()
	cluster, dir := startStandIn(t, standInOptions{cidrs: "10.96.0.0/16", mode: "iptables"}), t.TempDir()
	args = append(slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "--report-dir=") }),
		"--kubeconfig", cluster.kubeconfig, "--focus", strings.Join(focusOnStandIn, ","), "--expectations", "none")
	stdout, stderr, code := conformanceWith(t, dir, append(variables, "TMPDIR="+temporaryFolder(t)), args...)
	if code != report.ExitConformant {
		t.Fatalf("exit code %d of %v\n%s%s", code, args, stdout, stderr)
	}
	return stdout
}

// readJob reads a Job of fixtures/deploy, demands that it runs with the rights of rbac.yaml, and returns its container.
func readJob(t *testing.T, name string, job *batchv1.Job) corev1.Container {
	t.Helper()
	readManifest(t, name, job)
	namespace, account, _, _ := rbacObjects(t)
	pod := job.Spec.Template.Spec
	if job.Namespace != namespace.Name || account.Namespace != namespace.Name || pod.ServiceAccountName != account.Name ||
		pod.AutomountServiceAccountToken != nil {
		t.Errorf("the Job is in namespace %s as %s; rbac.yaml has %s/%s", job.Namespace, pod.ServiceAccountName, account.Namespace, account.Name)
	}
	if pod.RestartPolicy != corev1.RestartPolicyNever {
		t.Error("a verdict is no reason to try again")
	}
	runsOn(t, pod.Containers[0], pod.SecurityContext, pod.Volumes)
	return pod.Containers[0]
}

// reportsIn are the lines of a log that hold a report, as the manifests find them.
func reportsIn(log string) (found []string) {
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, `{"schemaVersion"`) {
			found = append(found, line)
		}
	}
	return found
}

func TestTheJobRunsWithTheRightsOfRBAC(t *testing.T) {
	var job batchv1.Job
	container := readJob(t, "job.yaml", &job)
	if job.Spec.BackoffLimit == nil || *job.Spec.BackoffLimit != 0 {
		t.Error("a verdict is no reason to try again")
	}
	found := reportsIn(onStandIn(t, container.Args, nil))
	var r report.Report
	if len(found) != 1 || json.Unmarshal([]byte(found[0]), &r) != nil || len(r.Checks) == 0 {
		t.Errorf("the log holds %d reports: %v", len(found), found)
	}
}

// TestThePodsOfTheIndexedJobAreShards starts what its pods start, each with its number, and merges the reports of their logs.
func TestThePodsOfTheIndexedJobAreShards(t *testing.T) {
	var job batchv1.Job
	container := readJob(t, "job-indexed.yaml", &job)
	s := job.Spec
	if s.CompletionMode == nil || *s.CompletionMode != batchv1.IndexedCompletion || s.Completions == nil || s.Parallelism == nil || *s.Parallelism != *s.Completions {
		t.Fatalf("it is no indexed Job whose pods all run at the same time: %+v", s)
	}
	if s.BackoffLimitPerIndex == nil || *s.BackoffLimitPerIndex != 0 || s.BackoffLimit != nil || s.MaxFailedIndexes != nil {
		t.Error("a verdict is no reason to try again, nor to end other shards")
	}
	dir := t.TempDir()
	merge := []string{"report", "merge", "--out", "merged"}
	for i := range *s.Completions {
		found := reportsIn(onStandIn(t, container.Args, []string{fmt.Sprintf("%s=%d", completionIndex, i)}))
		if len(found) != 1 {
			t.Fatalf("the log of pod %d holds %d reports", i, len(found))
		}
		name := fmt.Sprint("shard-", i)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(found[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		merge = append(merge, name)
	}
	if stdout, stderr, code := conformance(t, dir, merge...); code != report.ExitConformant || !strings.Contains(stdout, "checks            "+fmt.Sprint(len(focusOnStandIn))+" conformant") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

func TestThePluginIsOneOfSonobuoy(t *testing.T) {
	var p plugin
	readManifest(t, "sonobuoy-plugin.yaml", &p)
	if p.Config.Driver != "Job" || p.Config.ResultFormat != "junit" || p.Config.PluginName == "" || p.PodSpec != nil {
		t.Errorf("it is a %s with results in %s: %+v", p.Config.Driver, p.Config.ResultFormat, p.Config)
	}
	// Sonobuoy adds this volume, and a container that shares it.
	volumes := append(slices.Clip(p.ExtraVolumes), corev1.Volume{Name: "results", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	runsOn(t, p.Spec, nil, volumes)

	a := startAggregator(t)
	onStandIn(t, p.Spec.Args, nil)
	if c := count(t, a.results(t)); c.cases < 2 || len(c.failed) > 0 {
		t.Errorf("Sonobuoy counts %+v", c)
	}
}

// TestAPluginForEachShard makes the plugins of shards with the command of the manifest.
func TestAPluginForEachShard(t *testing.T) {
	path := filepath.Join("..", "..", "fixtures", "deploy", "sonobuoy-plugin.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`#   for i in 1 2 3; do (sed ".*") plugin.yaml >plugin-\$i.yaml; done`).FindSubmatch(text)
	if command == nil {
		t.Fatalf("%s does not say how to make plugins of shards", path)
	}
	names := map[string]bool{}
	for i := 1; i <= 3; i++ {
		sed := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf("i=%d; %s", i, command[1]))
		sed.Stdin = bytes.NewReader(text)
		made, err := sed.Output()
		if err != nil {
			t.Fatal(err)
		}
		var p plugin
		if err := yaml.UnmarshalStrict(made, &p); err != nil {
			t.Fatalf("%v\n%s", err, made)
		}
		names[p.Config.PluginName] = true
		cmd := newRun()
		if err := cmd.ParseFlags(p.Spec.Args[1:]); err != nil || cmd.Flags().Lookup("shard").Value.String() != fmt.Sprintf("%d/3", i) || !cmd.Flags().Changed("sonobuoy") {
			t.Errorf("plugin %d runs %v: %v", i, p.Spec.Args, err)
		}
	}
	if len(names) != 3 {
		t.Errorf("the plugins have the names %v", names)
	}
}
