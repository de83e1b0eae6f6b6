package check

import (
	"context"
	"slices"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

// Verdict is what a check says of a candidate.
type Verdict string

// The verdicts. NonConformant outweighs Blocked, which outweighs Unknown, which outweighs Conformant. NotJudged and NotApplicable are never counted as a pass. A requirement
// is judged once one of its checks is; a profile is not called conformant while a MUST of it is not judged.
const (
	Conformant    Verdict = "conformant"
	NonConformant Verdict = "non-conformant"
	Unknown       Verdict = "unknown"        // the environment or the prober failed
	Blocked       Verdict = "blocked"        // not met, or unknown, while another requirement that it builds on is not met; only a report says so
	NotJudged     Verdict = "not judged"     // it binds the candidate, and this run could not decide it: the tier cannot, the range is another, it was left out
	NotApplicable Verdict = "not applicable" // it does not bind the candidate: a feature that is not claimed, another version, another mode, a declared choice
)

var weight = map[Verdict]int{NotApplicable: 0, NotJudged: 1, Conformant: 2, Unknown: 3, Blocked: 4, NonConformant: 5}

// Worse returns the verdict that outweighs the other.
func Worse(a, b Verdict) Verdict {
	if weight[b] > weight[a] || a == "" {
		return b
	}
	return a
}

// Result is what one run of one check on one control plane found. It is written to report.json as it stands.
type Result struct {
	Suite        string    `json:"suite"`
	Check        string    `json:"check"`
	ServiceCIDR  string    `json:"serviceCIDR,omitempty"` // the range that the check was run on, when the check names one
	Requirements []spec.ID `json:"requirements"`
	Verdict      Verdict   `json:"verdict"`
	// Uses are optional features that the check used and none of its requirements is about.
	Uses []string `json:"uses,omitempty"`
	// Requests are the last requests of the check, as kubectl commands, if the run asked for them (Setup.Requests). They stay in this process.
	Requests []string `json:"-"`
	Reason   string   `json:"reason,omitempty"` // why the verdict is unknown, not judged or not applicable
	// JudgedBy is what would decide a check that is not judged, such as "--slow"; empty where nothing is known that would.
	JudgedBy       string        `json:"judgedBy,omitempty"`
	Failure        *Failure      `json:"failure,omitempty"`
	Evidence       []Evidence    `json:"evidence,omitempty"`
	Convergence    []Convergence `json:"convergence,omitempty"`
	Seconds        float64       `json:"seconds"`
	TimeoutSeconds float64       `json:"timeoutSeconds"` // the bound that was in force
	Location       string        `json:"location"`       // file:line of the check
}

// Failure says why a verdict is non-conformant.
type Failure struct {
	// Violated are the requirements that the unmet demand is about; empty stands for all of the check.
	Violated []spec.ID `json:"violated,omitempty"`
	// Undecided are requirements whose demands the check did not come to.
	Undecided []spec.ID `json:"undecided,omitempty"`
	// Uses are the optional features that the unmet cases of a demand on traffic use, one list for each kind of case.
	Uses [][]string `json:"uses,omitempty"`
	// Message names what was expected and what was observed.
	Message string `json:"message"`
	// Location is the file:line of the demand that was not met.
	Location string `json:"location"`
	// Cases are what a demand on traffic expected and observed, with those first that are not met. They are at most 40,
	// and each stands for all that fared alike.
	Cases []CaseSeen `json:"cases,omitempty"`
	// Reproduce are kubectl commands that repeat the last requests before the failure.
	Reproduce []string `json:"reproduce,omitempty"`
}

// CaseSeen is what clients met at destinations.
type CaseSeen struct {
	Met      bool     `json:"met"`
	Clients  string   `json:"clients"`
	To       []string `json:"to"`
	Expected string   `json:"expected"`
	Observed string   `json:"observed"`
}

// VerdictOn is what the result says of one of its requirements.
func (r *Result) VerdictOn(id spec.ID) Verdict {
	switch f := r.Failure; {
	case f == nil || len(f.Violated) == 0 || slices.Contains(f.Violated, id):
		return r.Verdict
	case slices.Contains(f.Undecided, id):
		return Unknown
	}
	return Conformant
}

// Violates reports whether the result says that one of the requirements is not met.
func (r *Result) Violates(ids ...spec.ID) bool {
	return r.Verdict == NonConformant && slices.ContainsFunc(ids, func(id spec.ID) bool {
		return slices.Contains(r.Requirements, id) && r.VerdictOn(id) == NonConformant
	})
}

// Evidence is one named observation that the verdict rests on.
type Evidence struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Addresses are set where the observation is of addresses that were handed out.
	Addresses *Addresses `json:"addresses,omitempty"`
	// Timeline is set where the observation is of who answered whom in the course of the check.
	Timeline *Timeline `json:"timeline,omitempty"`
}

// Convergence records how long a condition took to hold.
type Convergence struct {
	What    string  `json:"what"`
	Seconds float64 `json:"seconds"`
}

// Event reports the progress of a run: a check that starts (Result nil), ends, or is postponed to a second attempt (Result nil).
type Event struct {
	Check       string    `json:"check"`
	ServiceCIDR string    `json:"serviceCIDR,omitempty"`
	Time        time.Time `json:"time"`
	Result      *Result   `json:"result,omitempty"`
	// Transient says that the environment left the result unknown by what may pass: a request that was given up, a timeout, too little memory.
	Transient bool `json:"transient,omitempty"`
	// Postponed is why the check that ended is unknown so far. It runs once more at the end of the run.
	Postponed string `json:"postponed,omitempty"`
}

// DisplayName is the name of the check and, if it has one, its range.
func (e Event) DisplayName() string { return DisplayName(e.Check, e.ServiceCIDR) }

// DisplayName is the name of a check and, if it has one, its range.
func DisplayName(check, serviceCIDR string) string {
	if serviceCIDR == "" {
		return check
	}
	return check + " [" + serviceCIDR + "]"
}

// Sink receives the events of a run. It is called from one goroutine at a time.
type Sink func(Event)

// Setup is everything that a run needs to know before its checks are declared.
type Setup struct {
	// Candidate is what is under test.
	Candidate candidate.Candidate
	// Sink receives every result; nil drops them (the Ginkgo report still tells passed from failed).
	Sink Sink
	// ServiceCIDRs, if set, replace the ranges of every check that can be run on any range. An entry is one range or
	// two joined by a comma (dual stack).
	ServiceCIDRs []string
	// OnlyServiceCIDRs leaves out checks that name other ranges and cannot be run on these: of an example of the documents, or of both families.
	OnlyServiceCIDRs bool
	// Slow includes checks that take long (filling a /16).
	Slow bool
	// Select decides which checks run; nil selects all.
	Select func(Declaration) bool
	// SelectRange decides on which of its ranges a selected check runs, "" being that of a check without; nil selects all.
	SelectRange func(d Declaration, serviceCIDR string) bool
	// Again are names of checks that run a second time; only these run. nil is the first attempt of all.
	Again []string
	// ExpectedToFail are names of checks. Those of them that send traffic begin before all others, with what stands in
	// the same container. They wait in vain, which takes as long as a demand may take to hold.
	ExpectedToFail []string
	// Context ends the run: no further check begins, and the one that runs is interrupted; nil never does.
	Context context.Context
	// MaxWait bounds the time that the candidate has to follow a change, where a demand gives it more; 0 does not.
	MaxWait time.Duration
	// Features are the features that the candidate claims; nil claims all.
	Features []string
	// Profiles are the profiles that the candidate claims, of which optional features are a part; nil claims all.
	Profiles []spec.Profile
	// RunID distinguishes the objects of this run, a DNS label of at most 10 characters; empty makes one.
	RunID string
	// Version is the version of the suite, for the User-Agent.
	Version string
	// Requests is how many of its last requests each result tells; 0 tells a few of a failure only.
	Requests int
	// Beside is set where other shards of the run may be at work on the same candidate. Numbers that checks name are
	// then divided among the shards.
	Beside candidate.Shard

	admission *candidate.Admission // of the candidate
}
