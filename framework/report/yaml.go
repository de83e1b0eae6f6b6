package report

import (
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// summaryReport is report.yaml, in the shape of the conformance reports of gateway-api, so that reviewers find what they know.
type summaryReport struct {
	APIVersion      string            `json:"apiVersion"`
	Kind            string            `json:"kind"`
	Date            string            `json:"date"`
	SuiteVersion    string            `json:"suiteVersion"`
	Catalogue       string            `json:"catalogue,omitempty"`
	Implementation  Submitter         `json:"implementation"`
	Judged          judged            `json:"judged"`
	Verdict         check.Verdict     `json:"verdict"`
	Sentence        string            `json:"sentence"`
	Profiles        []profileEntry    `json:"profiles"`
	Declarations    map[string]string `json:"declarations,omitempty"`
	KnownDeviations []deviationEntry  `json:"knownDeviations,omitempty"`
}

// judged is what the run saw of the implementation, and where.
type judged struct {
	ControlPlane string            `json:"controlPlane"`
	DataPlane    string            `json:"dataPlane,omitempty"`
	ProxyMode    string            `json:"proxyMode,omitempty"`
	Tier         string            `json:"tier"`
	Components   map[string]string `json:"components,omitempty"`
	Seed         int64             `json:"seed"`
	Partial      bool              `json:"partial,omitempty"`
}

type profileEntry struct {
	Name     string        `json:"name"`
	Core     profileResult `json:"core"`
	Extended *extended     `json:"extended,omitempty"`
}

type profileResult struct {
	Result     string     `json:"result"`
	Statistics statistics `json:"statistics"`
	Failed     []spec.ID  `json:"failedRequirements,omitempty"`
	Undecided  []spec.ID  `json:"undecidedRequirements,omitempty"`
	NotJudged  []spec.ID  `json:"notJudgedRequirements,omitempty"`
}

type extended struct {
	profileResult
	Supported   []string `json:"supportedFeatures,omitempty"`
	Unsupported []string `json:"unsupportedFeatures,omitempty"`
}

type statistics struct {
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
}

type deviationEntry struct {
	Requirement spec.ID `json:"requirement"`
	Reason      string  `json:"reason"`
	Source      string  `json:"source,omitempty"`
}

// add counts the verdict on a requirement. Known deviations are counted as skipped, for they neither pass nor fail.
func (s *profileResult) add(v *RequirementVerdict) {
	switch {
	case v.Level == spec.Must && v.Verdict == check.NotJudged:
		s.NotJudged = append(s.NotJudged, v.ID)
	case v.Level != spec.Must || v.unjudged() || v.KnownDeviation:
		s.Statistics.Skipped++
	case v.Verdict == check.Conformant:
		s.Statistics.Passed++
	case v.Verdict == check.Unknown:
		s.Undecided = append(s.Undecided, v.ID)
	default:
		s.Statistics.Failed++
		s.Failed = append(s.Failed, v.ID)
	}
}

// conclude says success, failure, or partial where something is undecided.
func (s *profileResult) conclude() {
	switch {
	case s.Statistics.Failed > 0:
		s.Result = "failure"
	case len(s.Undecided) > 0 || len(s.NotJudged) > 0 || s.Statistics.Passed == 0:
		s.Result = "partial"
	default:
		s.Result = "success"
	}
}

// YAML renders the report in the shape of gateway-api's conformance reports. Profiles that are no optional features have a core result of their MUST requirements.
// Optional features are the extended result of profile core: supported is what was judged and is claimed.
func (r *Report) YAML() ([]byte, error) {
	c := &r.Candidate
	out := summaryReport{
		APIVersion: "conformance.service-conformance.github.io/v1", Kind: "ConformanceReport", Date: r.Started.Format(time.RFC3339), SuiteVersion: r.SuiteVersion,
		Catalogue: r.Catalogue, Verdict: r.Verdict, Sentence: r.Sentence(),
		Judged: judged{
			ControlPlane: c.Implementation + " " + c.Version, DataPlane: c.DataPlane.String(), ProxyMode: c.ProxyMode, Tier: c.Tier, Components: c.Components, Seed: r.Seed,
			Partial: r.Partial(),
		},
		Implementation: Submitter{Project: c.Implementation, Version: c.Version},
	}
	if r.Submitter != nil {
		out.Implementation = *r.Submitter
	}
	if len(c.Declarations) > 0 {
		out.Declarations = map[string]string{}
		for name, value := range c.Declarations {
			out.Declarations[string(name)] = value
		}
	}
	features := &extended{}
	for i := range r.Requirements {
		v := &r.Requirements[i]
		if spec.IsOptional(string(v.Profile)) {
			features.add(v)
			continue
		}
		at := slices.IndexFunc(out.Profiles, func(p profileEntry) bool { return p.Name == string(v.Profile) })
		if at < 0 {
			at = len(out.Profiles)
			out.Profiles = append(out.Profiles, profileEntry{Name: string(v.Profile)})
		}
		out.Profiles[at].Core.add(v)
	}
	for _, id := range r.unasked(spec.Default()) {
		q := spec.Default().Get(id)
		at := slices.IndexFunc(out.Profiles, func(p profileEntry) bool { return p.Name == string(q.Profile) })
		v := RequirementVerdict{ID: id, Level: q.Level, Verdict: check.NotJudged}
		switch {
		case spec.IsOptional(string(q.Profile)):
			features.add(&v)
		case at >= 0:
			out.Profiles[at].Core.add(&v)
		}
	}
	slices.SortFunc(out.Profiles, func(a, b profileEntry) int { return spec.CompareProfiles(spec.Profile(a.Name), spec.Profile(b.Name)) })
	for i := range out.Profiles {
		out.Profiles[i].Core.conclude()
	}
	for _, p := range spec.Default().Profiles() {
		if !spec.IsOptional(string(p)) {
			continue
		}
		judged := slices.ContainsFunc(r.Profiles, func(v ProfileVerdict) bool { return v.Profile == p && v.Verdict != check.NotJudged })
		if judged {
			features.Supported = append(features.Supported, string(p))
		} else {
			features.Unsupported = append(features.Unsupported, string(p))
		}
	}
	features.conclude()
	if len(out.Profiles) == 0 || out.Profiles[0].Name != string(spec.ProfileCore) {
		core := profileEntry{Name: string(spec.ProfileCore)}
		core.Core.conclude()
		out.Profiles = append([]profileEntry{core}, out.Profiles...)
	}
	out.Profiles[0].Extended = features
	named := map[spec.ID]bool{}
	for i := range r.Checks {
		x := r.Checks[i].KnownDeviation
		if x == nil || named[x.Requirement] {
			continue
		}
		named[x.Requirement] = true
		out.KnownDeviations = append(out.KnownDeviations, deviationEntry{x.Requirement, x.Reason, x.Source})
	}
	return yaml.Marshal(out)
}
