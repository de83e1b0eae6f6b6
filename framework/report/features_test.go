package report

import (
	"slices"
	"testing"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// violated is a check of a requirement that is not met, whose failed cases use these features.
func violated(id spec.ID, kinds ...[]string) check.Result {
	r := check.Result{Check: string(id), Requirements: []spec.ID{id}, Verdict: check.NonConformant, Failure: &check.Failure{Message: "no", Uses: kinds}}
	for _, kind := range kinds {
		r.Uses = append(r.Uses, kind...)
	}
	return r
}

// TestFeaturesExplainFailures looks at a check that failed where it used a feature. It goes back to the requirement of
// that feature which is not met for a reason of its own.
func TestFeaturesExplainFailures(t *testing.T) {
	external, policy := violated(spec.ProxyExternalIPReachable), spec.ProxyExternalLocalDrops
	for name, test := range map[string]struct {
		results []check.Result
		want    []spec.ID // that the second result is blocked by
	}{
		"all unmet cases use it":      {[]check.Result{external, violated(policy, []string{spec.FeatureExternalIPs})}, []spec.ID{spec.ProxyExternalIPReachable}},
		"one unmet case does not":     {[]check.Result{external, violated(policy, []string{spec.FeatureExternalIPs}, []string{})}, nil},
		"no unmet case does":          {[]check.Result{external, violated(policy)}, nil},
		"another feature is violated": {[]check.Result{external, violated(policy, []string{spec.FeatureLoadBalancer})}, nil},
		"an unknown check that used it": {[]check.Result{external, {
			Check: "x", Requirements: []spec.ID{policy}, Verdict: check.Unknown, Reason: "the arrangement was not accepted", Uses: []string{spec.FeatureExternalIPs},
		}}, []spec.ID{spec.ProxyExternalIPReachable}},
		"two features that each used the other": {[]check.Result{
			violated(spec.ProxyExternalIPReachable, []string{spec.FeatureNodePort}), violated(spec.ProxyNodePortEveryNode, []string{spec.FeatureExternalIPs}),
		}, nil},
	} {
		r := Build(Run{Planned: len(test.results)}, test.results)
		i := slices.IndexFunc(r.Checks, func(c CheckVerdict) bool { return c.Check == test.results[1].Check })
		c := r.Checks[i]
		if got := c.BlockedBy[c.Requirements[0]]; !slices.Equal(got, test.want) {
			t.Errorf("%s: blocked by %q, want %q", name, got, test.want)
		}
		if r.Verdict != check.NonConformant {
			t.Errorf("%s: the run is %s", name, r.Verdict)
		}
	}
}
