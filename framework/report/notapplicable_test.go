package report

import (
	"strings"
	"testing"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// outside is a result that does not bind the candidate.
func outside(id spec.ID, name, why string) check.Result {
	r := result(id, name, check.NotApplicable)
	r.Reason = why
	return r
}

// TestAProfileThatIsConformantByOneRequirementSaysHowManyDoNotApply: whoever claims DNS of Services alone is told what is not judged without headless Services.
func TestAProfileThatIsConformantByOneRequirementSaysHowManyDoNotApply(t *testing.T) {
	const why = "it uses HeadlessService, which is not claimed or declared"
	r := Build(Run{Candidate: candidate.Description{Version: "v1.37.1"}, Started: time.Now(), Planned: 5, Selection: &Selection{}}, []check.Result{
		result(spec.ProxyDNSClusterIP, "a", check.Conformant), outside(spec.ProxyDNSHeadless, "b", why), outside(spec.ProxyDNSHeadlessReverse, "c", why),
		result(spec.AllocUnique, "d", check.Conformant), outside(spec.AllocNodePortRandom, "e", "feature NodePort is not claimed"),
	})
	faces := facesOf(t, r)
	for name, wants := range map[string][]string{
		"text": {"ServiceDNS 1 (2 not applicable)", "not applicable  2 of profile ServiceDNS: " + why},
		"md":   {"| ServiceDNS | conformant | 1 | 0 | 0 | 0 | 0 | 0 | 2 |", "- ServiceDNS, 2 not applicable: " + why},
		"html": {"<li>ServiceDNS: " + why + `: <a href="#proxy-dns-headless`},
	} {
		for _, want := range wants {
			if !strings.Contains(faces[name], want) {
				t.Errorf("%s does not say %q", name, want)
			}
		}
	}
	// Of a profile in which nothing was judged, nothing is claimed.
	if all := r.WhyNotApplicable(); len(all) != 1 {
		t.Errorf("reasons: %+v", all)
	}
	if problems := r.Problems(); len(problems) > 0 {
		t.Errorf("the report contradicts itself: %v", problems)
	}
	r.SchemaVersion = 1 // what was not judged was "not applicable", too
	if n, all := r.NotApplicableOf(spec.FeatureServiceDNS), r.WhyNotApplicable(); n != 0 || len(all) > 0 {
		t.Errorf("a report of before tells %d, %+v", n, all)
	}
}
