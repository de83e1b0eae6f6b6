package selftest

import (
	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
)

// job is one reference that is judged. A worker is told jobs as JSON.
type job struct {
	Label string `json:"label"`
	// Faults are the deliberate bugs that it is started with, and Without the features that it is started without.
	Faults  []string `json:"faults,omitempty"`
	Without []string `json:"without,omitempty"`
	// Features are those that it claims; empty claims all.
	Features []string `json:"features,omitempty"`
	// Slow includes slow checks.
	Slow bool `json:"slow,omitempty"`
	// Only are the names of the checks that judge it; nil are all.
	Only []string `json:"only,omitempty"`
	// Record asks which of the checks each fault could change.
	Record bool `json:"record,omitempty"`
}

// answer is a line that a worker writes: a result of one of its jobs or, in the last line of the job, what was judged.
type answer struct {
	Job       int                    `json:"job"`
	Result    *check.Result          `json:"result,omitempty"`
	Candidate *candidate.Description `json:"candidate,omitempty"`
	Reach     []reach                `json:"reach,omitempty"`
	Problem   string                 `json:"problem,omitempty"`
}

// reach is what a recording says of a fault.
type reach struct {
	Fault string `json:"fault"`
	// Checks are those that the fault could change; fault.Outside stands for all.
	Checks []string `json:"checks"`
	// Rules are those that the fault edits.
	Rules []string `json:"rules"`
}

// finding is what became of a job.
type finding struct {
	candidate candidate.Description
	results   []check.Result
	reach     []reach
	problem   string // why it was not judged; empty if it was
	ended     bool
}

// report is that of a job which ran all checks.
func (f *finding) report() *report.Report {
	return report.Build(report.Run{Candidate: f.candidate}, f.results)
}

// reportOver is the report of a job which ran some checks: what the others find is what they find without a fault.
func (f *finding) reportOver(sound []check.Result) *report.Report {
	found := map[string]bool{}
	for _, r := range f.results {
		found[check.DisplayName(r.Check, r.ServiceCIDR)] = true
	}
	all := f.results
	for _, r := range sound {
		if !found[check.DisplayName(r.Check, r.ServiceCIDR)] {
			all = append(all, r)
		}
	}
	return report.Build(report.Run{Candidate: f.candidate}, all)
}
