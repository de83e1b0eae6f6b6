package spec

import (
	"regexp"
	"testing"
)

func TestRealBugsAreReportedSomewhereAndBreakRequirementsThatAreChecked(t *testing.T) {
	issue, seen := regexp.MustCompile(`^[a-z0-9-]+/[a-z0-9-]+#[0-9]+$`), map[string]bool{}
	for _, b := range realBugs() {
		if !issue.MatchString(b.Issue) || seen[b.Issue] || b.About == "" || b.Fault == "" || len(b.Requirements) == 0 {
			t.Errorf("%q has no issue of its own, says nothing, has no fault, or breaks nothing", b.Issue)
		}
		seen[b.Issue] = true
		for _, id := range b.Requirements {
			if r := Default().Get(id); r == nil || r.Unchecked != "" {
				t.Errorf("%s: no check decides %s", b.Issue, id)
			}
		}
	}
	if bugs := RealBugs(APINodePortShared); len(bugs) == 0 || bugs[0].URL() != "https://github.com/kubernetes/kubernetes/issues/91404" {
		t.Errorf("the bugs of %s are %v", APINodePortShared, bugs)
	}
}
