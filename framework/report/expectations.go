package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/fixtures"
	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// Expectation is a known failure of an implementation. It needs a reason. One that no longer fails is an error, unless
// it is Intermittent, so that the list cannot outlive the deviation.
type Expectation struct {
	// Requirement that is not met.
	Requirement spec.ID `json:"requirement"`
	// Check is a glob on the name of the check ("*" any text, "?" any character); empty means every check of the requirement.
	Check string `json:"check,omitempty"`
	// Versions is the constraint on the candidate's version (spec.ParseVersions); empty means all.
	Versions string `json:"versions,omitempty"`
	// ProxyMode is the mode of kube-proxy that deviates (candidate.Description); empty means all.
	ProxyMode string `json:"proxyMode,omitempty"`
	// Intermittent is a deviation that shows in some runs only, such as one that hangs on the order of two events. To pass is no error then.
	Intermittent bool `json:"intermittent,omitempty"`
	// Reason says what the implementation does instead, and why.
	Reason string `json:"reason"`
	// Source is the place of the cause in the implementation's source.
	Source string `json:"source,omitempty"`
	// Link leads to the issue where it is discussed.
	Link string `json:"link,omitempty"`
	// Own is set on what stands in a list that the run was given, and in no published one.
	Own bool `json:"own,omitempty"`
	// WaitsFor says what is expected to end the deviation, such as a fix in the next release. It is empty for one that released versions keep for ever.
	WaitsFor string `json:"waitsFor,omitempty"`
	// Expires is the day (YYYY-MM-DD) from which the expectation no longer excuses; empty means never.
	Expires string `json:"expires,omitempty"`
}

// Excuses reports whether other excuses the same failures. The words in which they are told may have changed since, and so may the day on which they end.
func (x *Expectation) Excuses(other *Expectation) bool {
	reworded := *x
	reworded.Reason, reworded.Source, reworded.Link = other.Reason, other.Source, other.Link
	reworded.WaitsFor, reworded.Expires = other.WaitsFor, other.Expires
	return reworded == *other
}

// Expectations is the list for one implementation.
type Expectations struct {
	Deviations []Expectation `json:"deviations"`
}

// PublishedExpectations returns the embedded lists for a candidate: that of its control plane, and that of its proxy for what proxies decide. They are empty where
// none is published.
func PublishedExpectations(c *candidate.Description) (Expectations, error) {
	var all Expectations
	for _, part := range []struct {
		name string
		part spec.Part
	}{{c.Implementation, spec.ControlPlanePart}, {c.DataPlane.Name, spec.DataPlanePart}} {
		list, err := publishedList(part.name)
		if err != nil {
			return Expectations{}, err
		}
		for _, x := range list.Deviations {
			if spec.Default().Get(x.Requirement).Part() == part.part {
				all.Deviations = append(all.Deviations, x)
			}
		}
	}
	return all, nil
}

// MarkOwn marks what stands in no published list for the candidate.
func (e *Expectations) MarkOwn(c *candidate.Description) error {
	published, err := PublishedExpectations(c)
	if err != nil {
		return err
	}
	for i := range e.Deviations {
		e.Deviations[i].Own = !slices.Contains(published.Deviations, e.Deviations[i])
	}
	return nil
}

// publishedList is the embedded list of one implementation.
func publishedList(implementation string) (Expectations, error) {
	name := "expectations/" + path.Base(implementation) + ".yaml"
	data, err := fs.ReadFile(fixtures.Expectations, name)
	if errors.Is(err, fs.ErrNotExist) {
		return Expectations{}, nil
	}
	if err != nil {
		return Expectations{}, err
	}
	return parseExpectations(name, data)
}

// CheckPublished reads every embedded list. A deviation must stand in a list of the part that it is about, for in
// another one nobody would look for it. It says what it waits for, and ends on a day, unless a later version is known
// to be free of it. What is released stays as it is.
func CheckPublished() error {
	names, err := fs.Glob(fixtures.Expectations, "expectations/*.yaml")
	if err != nil {
		return err
	}
	parts := map[string]spec.Part{"kubernetes": spec.ControlPlanePart, "kube-proxy": spec.DataPlanePart}
	var problems []error
	for _, name := range names {
		implementation := strings.TrimSuffix(path.Base(name), ".yaml")
		list, err := publishedList(implementation)
		problems = append(problems, err)
		for _, x := range list.Deviations {
			if r := spec.Default().Get(x.Requirement); r != nil && parts[implementation] != "" && r.Part() != parts[implementation] {
				problems = append(problems, fmt.Errorf("%s: %s is about the %s", name, x.Requirement, r.Part()))
			}
			if ended := strings.Contains(x.Versions, "<"); ended != (x.WaitsFor == "") {
				problems = append(problems, fmt.Errorf("%s: %s: waitsFor is needed for a deviation of the newest version, and for no other", name, x.Requirement))
			}
		}
	}
	return errors.Join(problems...)
}

// ReadExpectations reads a list from a file.
func ReadExpectations(file string) (Expectations, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Expectations{}, fmt.Errorf("read expectations: %w", err)
	}
	return parseExpectations(file, data)
}

func parseExpectations(name string, data []byte) (e Expectations, err error) {
	if err := yaml.UnmarshalStrict(data, &e); err != nil {
		return e, fmt.Errorf("%s: %w", name, err)
	}
	var problems []error
	for i, x := range e.Deviations {
		bad := func(format string, args ...any) {
			problems = append(problems, fmt.Errorf("%s: deviation %d (%s): %w", name, i+1, x.Requirement, fmt.Errorf(format, args...)))
		}
		if spec.Default().Get(x.Requirement) == nil {
			bad("unknown requirement")
		}
		if x.Own {
			bad("own is not for lists: a run says it")
		}
		if x.Reason == "" {
			bad("a reason is required")
		}
		if _, err := spec.ParseVersions(x.Versions); err != nil {
			bad("versions %q: %w", x.Versions, err)
		}
		if err := candidate.CheckProxyMode(x.ProxyMode); err != nil {
			bad("%w", err)
		}
		if x.Expires != "" {
			if _, err := time.Parse(time.DateOnly, x.Expires); err != nil {
				bad("expires %q is not a date like 2027-01-31", x.Expires)
			}
		} else if x.WaitsFor != "" {
			bad("it waits for %s: expires must say on which day to look again", x.WaitsFor)
		}
	}
	return e, errors.Join(problems...)
}

// covers reports whether the expectation speaks of this result of this candidate.
func (x *Expectation) covers(r *check.Result, c *candidate.Description) bool {
	bound := x.names(r.Requirements, r.Check, c)
	if r.Verdict == check.NonConformant {
		bound = bound && r.Violates(x.Requirement)
	}
	return bound
}

// CoveredBy reports whether the expectation excuses what the check found at that time.
func (c *CheckVerdict) CoveredBy(x *Expectation, candidate *candidate.Description, at time.Time) bool {
	return x.covers(c.found(), candidate) && !x.expired(at)
}

// names reports whether the expectation speaks of a check of these requirements on this candidate.
func (x *Expectation) names(requirements []spec.ID, name string, c *candidate.Description) bool {
	version := c.Version
	if r := spec.Default().Get(x.Requirement); r != nil && r.Part() == spec.DataPlanePart && c.DataPlane.Version != "" {
		version = c.DataPlane.Version
	}
	admits, err := spec.ParseVersions(x.Versions)
	if err != nil || !admits(version) || x.ProxyMode != "" && x.ProxyMode != c.ProxyMode {
		return false
	}
	return slices.Contains(requirements, x.Requirement) && (x.Check == "" || spec.Glob(x.Check)(name))
}

// Failing returns the names of those checks that the list expects to fail on the candidate.
func (e *Expectations) Failing(declarations []check.Declaration, c *candidate.Description) []string {
	var names []string
	for _, d := range declarations {
		if slices.ContainsFunc(e.Deviations, func(x Expectation) bool { return x.names(d.Requirements, d.Name, c) }) {
			names = append(names, d.Name)
		}
	}
	return names
}

func (x *Expectation) expired(now time.Time) bool {
	day, err := time.Parse(time.DateOnly, x.Expires)
	return err == nil && !now.Before(day)
}
