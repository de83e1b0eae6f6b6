package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/cluster"
	"github.com/service-conformance/conformance/framework/gotest"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
)

// The labels of a feature. Its name is the ID of its requirement.
const (
	LabelSuite   = "suite"   // a suite that has a check of the requirement: allocation, apischema or proxy
	LabelArea    = "area"    // spec.Requirement.Area
	LabelLevel   = "level"   // MUST, SHOULD or MAY
	LabelProfile = "profile" // spec.Requirement.Profile
	LabelFeature = "feature" // spec.Requirement.Feature, what an implementation claims together
)

// Options say what is judged and how. The zero value judges everything that can be judged without pods.
type Options struct {
	// Options are the selection, the folder of the reports, the list of known deviations and the seed. Checks that run on any Service range run on that of the cluster,
	// unless the selection names one.
	gotest.Options
	// Cluster says how the cluster is judged. AgentImage has traffic judged, too. An empty Kubeconfig takes that of the Environment.
	Cluster cluster.Options
}

// Features are the requirements that the checks of the imported suites decide, for an Environment of e2e-framework, sorted by ID. Each has an assessment for each of its
// checks. Call it once in a test binary, for Ginkgo runs its tree once. A selection that is wrong, or a second run, ends the test.
//
// The checks run together, in the first feature that runs, in this process. They are those of the features and assessments that the flags of the Environment select
// (--labels, --feature, --assess and their opposites). The flag -run of go test selects what is told, and not what runs. The context of the Environment ends the run.
//
// An assessment tells what its check says of the requirement of its feature:
//
//   - It passes if the requirement is met. A known deviation, or a SHOULD that is not met, is logged.
//   - It fails if a MUST is not met, if a requirement that the MUST builds on is not met, or if a known deviation has gone.
//   - It fails, and says that the environment is at fault, if the check is unknown.
//   - It is skipped if the check does not apply, or could not be judged. The reason says what would judge it.
//
// So a test may pass in which all assessments were skipped; Options.ReportDir has the report. The features may be tested in parallel.
func Features(t testing.TB, o Options) []features.Feature {
	t.Helper()
	checks, err := o.Checks()
	if err != nil {
		t.Fatalf("conformance: %v", err)
	}
	r := &run{options: o}
	var all []features.Feature
	for _, requirement := range spec.Default().Requirements {
		own := slices.DeleteFunc(slices.Clone(checks), func(d check.Declaration) bool { return !slices.Contains(d.Requirements, requirement.ID) })
		if len(own) > 0 {
			all = append(all, r.feature(&requirement, own))
		}
	}
	slices.SortFunc(all, func(a, b features.Feature) int { return strings.Compare(a.Name(), b.Name()) })
	r.features = all
	return all
}

// run is the one run of the checks, whose report all features read.
type run struct {
	options  Options
	features []features.Feature
	checks   map[string]map[string]string // the name of the check, by the names of feature and assessment

	once   sync.Once
	report *report.Report
	err    error
}

// feature is a requirement with its checks.
func (r *run) feature(requirement *spec.Requirement, checks []check.Declaration) features.Feature {
	id := requirement.ID
	b := features.NewWithDescription(string(id), requirement.Statement).
		WithLabel(LabelArea, string(requirement.Area)).WithLabel(LabelLevel, string(requirement.Level)).
		WithLabel(LabelProfile, string(requirement.Profile)).WithLabel(LabelFeature, requirement.Feature).
		WithSetup("run the checks", r.setup)
	if r.checks == nil {
		r.checks = map[string]map[string]string{}
	}
	r.checks[string(id)] = map[string]string{}
	var suites []string
	for _, d := range checks {
		if !slices.Contains(suites, d.Suite) {
			suites = append(suites, d.Suite)
			b.WithLabel(LabelSuite, d.Suite)
		}
		name := strings.TrimPrefix(d.Name, string(id)+": ")
		r.checks[string(id)][name] = d.Name
		b.Assess(name, func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			t.Helper()
			tell(t, r.report, id, d.Name)
			return ctx
		})
	}
	return b.Feature()
}

// setup runs the checks unless another feature has.
func (r *run) setup(ctx context.Context, t *testing.T, config *envconf.Config) context.Context {
	t.Helper()
	r.once.Do(func() { r.report, r.err = r.judge(ctx, t, config) })
	if r.err != nil {
		t.Fatalf("conformance: %v", r.err)
	}
	return ctx
}

// judge runs the checks that the flags of the environment select on its cluster.
func (r *run) judge(ctx context.Context, t *testing.T, config *envconf.Config) (_ *report.Report, err error) {
	t.Helper()
	o := r.options
	if o.Cluster.Kubeconfig == "" {
		if o.Cluster.Kubeconfig, err = kubeconfigOf(config, t.TempDir()); err != nil {
			return nil, err
		}
	}
	c, err := cluster.Open(ctx, o.Cluster)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closing := c.Close(context.WithoutCancel(ctx)); closing != nil {
			err = errors.Join(err, fmt.Errorf("remove what the checks have left: %w", closing))
		}
	}()
	if len(o.ServiceCIDRs) == 0 {
		o.ServiceCIDRs, o.OtherRanges = []string{spec.ServiceCIDRs(c.ServiceCIDRs()).String()}, true
	}
	if names, all := r.selected(config); !all {
		if len(o.Focus) == 0 {
			o.OtherRanges = true
		}
		o.Focus = names
	}
	judged, err := gotest.Judge(ctx, c, o.Options, nil)
	if judged != nil {
		var end strings.Builder
		judged.WriteSummary(&end, report.Palette{})
		t.Logf("the checks of all features:\n%s", strings.TrimRight(end.String(), "\n"))
	}
	return judged, err
}

// kubeconfigOf is a kubeconfig whose current context is that of the environment. If it is another one in the file of the environment, a copy is written to the folder.
func kubeconfigOf(config *envconf.Config, folder string) (string, error) {
	file, name := config.KubeconfigFile(), config.KubeContext()
	if file == "" || name == "" {
		return file, nil
	}
	loaded, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return "", fmt.Errorf("read kubeconfig %s: %w", file, err)
	}
	if loaded.Contexts[name] == nil {
		return "", fmt.Errorf("kubeconfig %s has no context %q", file, name)
	}
	if err := clientcmd.ResolveLocalPaths(loaded); err != nil {
		return "", fmt.Errorf("kubeconfig %s: %w", file, err)
	}
	loaded.CurrentContext = name
	copied := filepath.Join(folder, "kubeconfig")
	if err := clientcmd.WriteToFile(*loaded, copied); err != nil {
		return "", fmt.Errorf("write a kubeconfig with context %s: %w", name, err)
	}
	return copied, nil
}

// selected are the names of the checks whose assessments the flags of the environment select, and whether these are all.
func (r *run) selected(config *envconf.Config) (names []string, all bool) {
	all = true
	for _, f := range r.features {
		chosen := named(f.Name(), config.FeatureRegex(), config.SkipFeatureRegex()) && labelled(f, config)
		for assessment, name := range r.checks[f.Name()] {
			if chosen && named(assessment, config.AssessmentRegex(), config.SkipAssessmentRegex()) {
				names = append(names, name)
			} else {
				all = false
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), all
}

// named reports whether e2e-framework selects what has the name.
func named(name string, required, skipped *regexp.Regexp) bool {
	return (required == nil || required.MatchString(name)) && (skipped == nil || !skipped.MatchString(name))
}

// labelled reports whether e2e-framework selects the feature by its labels: it has one value of each key of --labels, and none of --skip-labels.
func labelled(f features.Feature, config *envconf.Config) bool {
	has := func(key string, values []string) bool {
		return slices.ContainsFunc(values, func(v string) bool { return f.Labels().Contains(key, v) })
	}
	for key, values := range config.Labels() {
		if !has(key, values) {
			return false
		}
	}
	for key, values := range config.SkipLabels() {
		if has(key, values) {
			return false
		}
	}
	return true
}
