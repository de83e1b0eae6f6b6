package report

import (
	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/framework/words"
)

// Selection is what a run was asked to judge, and by which list of known deviations.
type Selection struct {
	Suites       []string       `json:"suites,omitempty"`
	Focus        []string       `json:"focus,omitempty"`
	Skip         []string       `json:"skip,omitempty"`
	ServiceCIDRs []string       `json:"serviceCIDRs,omitempty"`
	Profiles     []spec.Profile `json:"profiles,omitempty"`
	Features     []string       `json:"features,omitempty"`
	// ClaimedSuites are the suites that are about the candidate, as it says itself; empty are all.
	ClaimedSuites []string `json:"claimedSuites,omitempty"`
	Slow          bool     `json:"slow,omitempty"`
	// Shard is set where the run judged one shard of a run; MergeShards joins them.
	Shard *Shard `json:"shard,omitempty"`
	// MaxWaitSeconds shortened the time that the candidate had to follow changes; 0 is the time that each demand has.
	MaxWaitSeconds float64 `json:"maxWaitSeconds,omitempty"`
	// Expectations is the list of known deviations: "published", "none", or the file that was named.
	Expectations string `json:"expectations"`
	// Arguments are the words of the command line.
	Arguments []string `json:"arguments,omitempty"`
	// LeftOut are requirements of which checks were left out, because they are about other ranges than the run named.
	LeftOut []spec.ID `json:"leftOut,omitempty"`
	// Unasked are requirements that the claims of the candidate cover, and of which the run was asked to judge no check.
	Unasked []spec.ID `json:"unasked,omitempty"`
	// Claimed is how many requirements with a check the claims of the candidate cover.
	Claimed int `json:"claimed"`
}

// Shard says which shard of a run was judged.
type Shard struct {
	candidate.Shard
	// Checks is how many checks all shards have together.
	Checks int `json:"checks"`
}

// Partial reports whether something was left out that the candidate claims.
func (s *Selection) Partial() bool {
	return len(s.Suites) > 0 || len(s.Focus) > 0 || len(s.Skip) > 0 || len(s.LeftOut) > 0 || s.Shard != nil
}

// ofShard reports whether the run judged one shard only.
func (s *Selection) ofShard() bool { return s != nil && s.Shard != nil }

// Verdicts of a run that no check has. Each stands where the report would say "conformant", and says why that would be too much.
const (
	// InPart is the verdict of a run that judged a part of what is claimed, and found it conformant.
	InPart check.Verdict = "conformant-in-part"
	// AsExpected is the verdict of a run whose failures are all in a list of known deviations that nobody has published.
	AsExpected check.Verdict = "fails-as-expected"
	// Unlisted is the verdict of a run in which a known deviation did not show: the list must be corrected.
	Unlisted check.Verdict = "unexpected-pass"
)

// qualify turns the verdict "conformant" into one that does not say more than was judged.
func (r *Report) qualify() {
	switch {
	case len(r.UnexpectedPasses) > 0 && r.Verdict != check.NonConformant:
		r.Verdict = Unlisted
	case r.Verdict != check.Conformant:
	case r.ownExcuses() > 0:
		r.Verdict = AsExpected
	case r.Selection != nil && r.Selection.Partial(), r.SchemaVersion >= tellsNotJudged && r.mustsNotJudged() > 0:
		r.Verdict = InPart
	}
}

// ownExcuses counts the requirements that are not met and that only a list of the candidate's own excuses.
func (r *Report) ownExcuses() int {
	ids := map[spec.ID]bool{}
	for _, c := range r.Checks {
		if c.KnownDeviation == nil || !c.KnownDeviation.Own {
			continue
		}
		for _, id := range c.Requirements {
			if c.VerdictOn(id) == check.NonConformant {
				ids[id] = true
			}
		}
	}
	return len(ids)
}

// list names the list of known deviations.
func (r *Report) list() string {
	if r.Selection == nil {
		return "a list of its own"
	}
	return r.Selection.Expectations
}

// judged is how many requirements were decided, of how many.
func (r *Report) judged() string { return r.judgedPhrase().String() }

func (r *Report) judgedPhrase() words.Phrase {
	n := r.Summary.Requirements
	switch {
	case r.SchemaVersion >= tellsNotJudged:
		return words.Say("judged-count-of", n.Decided(), n.Binding())
	case r.Selection == nil:
		return words.Say("judged-count", n.Decided())
	}
	return words.Say("judged-count-of", n.Decided(), r.Selection.Claimed)
}
