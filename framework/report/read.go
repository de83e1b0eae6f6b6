package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// largestReport bounds what is read as a report: a hundred times what a run of all suites writes.
const largestReport = 64 << 20

// Open reads a report that a folder holds or that is named as a file. A folder of a run that ended without reports gives what the run had found. What Decode
// refuses is an error.
func Open(path string) (*Report, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	if info.IsDir() {
		folder := path
		path = filepath.Join(folder, JSONFile)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			if _, err := os.Stat(filepath.Join(folder, partialFile)); err == nil {
				return openPartial(filepath.Join(folder, partialFile))
			}
			return nil, fmt.Errorf("read report: %s holds no %s", folder, JSONFile)
		}
	}
	data, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	r, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// readBounded reads a file of a reasonable size.
func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, largestReport+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read report: %w", err)
	case len(data) > largestReport:
		return nil, fmt.Errorf("read report: %s is larger than %d MiB, which no report is", path, largestReport>>20)
	}
	return data, nil
}

// Decode reads report.json. It refuses what is no report, a report of a newer schema, and one of requirements that this
// program does not know. It refuses a report that contradicts itself: its summary, verdict or verdicts on requirements
// do not follow from its checks. The error is one line.
func Decode(data []byte) (*Report, error) {
	var head struct {
		SchemaVersion *int   `json:"schemaVersion"`
		SuiteVersion  string `json:"suiteVersion"`
	}
	switch err := json.Unmarshal(data, &head); {
	case err != nil:
		return nil, fmt.Errorf("this is no report, or a part of one: %w", err)
	case head.SchemaVersion == nil:
		return nil, errors.New("this is no report of conformance run: it has no schemaVersion")
	case *head.SchemaVersion > SchemaVersion:
		return nil, fmt.Errorf("the report has schema version %d, this program knows %d: use the program of suite %s", *head.SchemaVersion, SchemaVersion, visible(head.SuiteVersion))
	case *head.SchemaVersion < 1:
		return nil, fmt.Errorf("there is no schema version %d", *head.SchemaVersion)
	}
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("this is no report: %w", err)
	}
	if problems := r.Problems(); len(problems) > 0 {
		return nil, problems[0]
	}
	return &r, nil
}

// ofChecks are the verdicts that a check may have.
var ofChecks = []check.Verdict{check.Conformant, check.NonConformant, check.Unknown, check.Blocked, check.NotJudged, check.NotApplicable}

// Problems are what contradicts itself in a report: checks of unknown requirements, and verdicts without what they rest
// on. If the report is of the catalogue of this program, they are also sums that do not follow from the checks. Nothing
// is wrong with one that Build has made.
func (r *Report) Problems() (problems []error) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	catalogue := spec.Default()
	seen := map[[3]string]bool{}
	for i := range r.Checks {
		c := &r.Checks[i]
		name := visible(c.DisplayName())
		if len(c.Requirements) == 0 {
			bad("check %q has no requirement", name)
			continue
		}
		for _, id := range c.Requirements {
			if catalogue.Get(id) == nil {
				bad("check %q is of requirement %q, which this program does not know: use the program of suite %s", name, visible(string(id)), visible(r.SuiteVersion))
			}
		}
		key := [3]string{c.Suite, c.Check, c.ServiceCIDR}
		if seen[key] {
			bad("check %q stands there twice", name)
		}
		seen[key] = true
		switch {
		case !slices.Contains(ofChecks, c.Verdict):
			bad("check %q has the verdict %q, which there is not", name, visible(string(c.Verdict)))
		case (c.found().Verdict == check.NonConformant) != (c.Failure != nil):
			bad("check %q is %s, which does not follow from its failure", name, c.Verdict)
		case c.Failure != nil && c.Failure.Message == "":
			bad("check %q fails without saying what was expected and observed", name)
		case slices.Contains([]check.Verdict{check.Unknown, check.NotJudged, check.NotApplicable}, c.Verdict) && c.Reason == "":
			bad("check %q is %s without a reason", name, c.Verdict)
		case c.Verdict == check.Conformant && c.Reason != "":
			bad("check %q is conformant, but has a reason not to be: %s", name, visible(oneLine(c.Reason)))
		case c.KnownDeviation != nil && c.Verdict == check.Conformant:
			bad("check %q is conformant and a known deviation", name)
		case c.Seconds < 0:
			bad("check %q took %v s", name, c.Seconds)
		}
		if err := c.contradicted(); err != nil {
			bad("check %q: %w", name, err)
		}
	}
	if len(problems) > 0 || r.Catalogue != spec.Digest() {
		return problems
	}
	again := r.again()
	for _, part := range []struct {
		what      string
		is, ought any
	}{
		{"the verdicts of requirements", r.Requirements, again.Requirements}, {"the summary", r.Summary, again.Summary}, {"the verdict", r.Verdict, again.Verdict},
		{"the verdicts of profiles", r.Profiles, again.Profiles}, {"the roots", r.Roots, again.Roots}, {"what is blocked", blocks(r), blocks(again)},
		{"the time to consistency", r.TimeToConsistency, again.TimeToConsistency},
	} {
		if is, ought := asJSON(part.is), asJSON(part.ought); !bytes.Equal(is, ought) {
			bad("%s: not what follows from the checks: %s", part.what, difference(is, ought))
		}
	}
	return problems
}

// again is the same report, with everything that follows from the checks made anew.
func (r *Report) again() *Report {
	fresh := *r
	fresh.Summary, fresh.Profiles, fresh.Requirements, fresh.Roots, fresh.TimeToConsistency = Summary{}, nil, nil, nil, nil
	fresh.Checks = slices.Clone(r.Checks)
	var results []check.Result
	for i := range fresh.Checks {
		c := &fresh.Checks[i]
		c.Result, c.BlockedBy = *c.found(), nil
		results = append(results, c.Result)
	}
	fresh.conclude(spec.Default(), results)
	return &fresh
}

// blocks are the verdicts of checks, and what blocks them.
func blocks(r *Report) (all []any) {
	for _, c := range r.Checks {
		all = append(all, []any{c.Check, c.ServiceCIDR, c.Verdict, c.BlockedBy})
	}
	return all
}

func asJSON(v any) []byte {
	if v := reflect.ValueOf(v); (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 {
		return []byte("null")
	}
	data, _ := json.Marshal(v)
	return data
}

// difference is the place at which two texts begin to differ.
func difference(is, ought []byte) string {
	at := 0
	for at < min(len(is), len(ought)) && is[at] == ought[at] {
		at++
	}
	part := func(text []byte) string { return visible(string(text[max(0, at-30):min(len(text), at+30)])) }
	return fmt.Sprintf("…%s… instead of …%s…", part(is), part(ought))
}
