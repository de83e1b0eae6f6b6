package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
)

// beginning is the first line of the results that a run keeps while it lasts: what the run is.
type beginning struct {
	SchemaVersion int                   `json:"schemaVersion"`
	SuiteVersion  string                `json:"suiteVersion"`
	Candidate     candidate.Description `json:"candidate"`
	Started       time.Time             `json:"started"`
	Seed          int64                 `json:"seed"`
	Planned       int                   `json:"planned"`
	Selection     *Selection            `json:"selection,omitempty"`
	Submitter     *Submitter            `json:"submitter,omitempty"`
	Expectations  Expectations          `json:"expectations"`
}

// Begin keeps what the run is, so that a report can be made of its results if it does not come to make it.
func (f *Folder) Begin(run *Run) error {
	return f.keep(beginning{SchemaVersion, run.SuiteVersion, run.Candidate, run.Started, run.Seed, run.Planned, run.Selection, run.Submitter, run.Expectations})
}

// openPartial makes a report of the results that a run had when it ended without one. A last line that is cut off is left out.
func openPartial(path string) (*Report, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(data, []byte("\n"))
	var begun beginning
	if err := json.Unmarshal(lines[0], &begun); err != nil || begun.SchemaVersion == 0 {
		return nil, fmt.Errorf("read report: %s does not begin with what the run was: it ended before its first check", path)
	}
	if begun.SchemaVersion > SchemaVersion {
		return nil, fmt.Errorf("%s: the results have schema version %d, this program knows %d: use the program of suite %s", path, begun.SchemaVersion, SchemaVersion, visible(begun.SuiteVersion))
	}
	run := Run{
		SuiteVersion: begun.SuiteVersion, Candidate: begun.Candidate, Started: begun.Started, Seed: begun.Seed, Planned: begun.Planned, Interrupted: true,
		Expectations: begun.Expectations, Selection: begun.Selection, Submitter: begun.Submitter,
	}
	var results []check.Result
	for i, line := range lines[1:] {
		var r check.Result
		if err := json.Unmarshal(line, &r); err != nil {
			if i >= len(lines)-2 {
				break
			}
			return nil, fmt.Errorf("%s:%d: %w", path, i+2, err)
		}
		results = append(results, r)
	}
	r := Build(run, results)
	if problems := r.Problems(); len(problems) > 0 {
		return nil, fmt.Errorf("%s: %w", path, problems[0])
	}
	return r, nil
}
