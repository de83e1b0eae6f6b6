package spec

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/fixtures"
)

// Catalogue is the whole specification, in the order of its files.
type Catalogue struct {
	Documents    []Document
	Requirements []Requirement
	byID         map[ID]*Requirement
	foundations  map[ID][]ID // what each builds on, directly or through others
}

// Default returns the embedded catalogue. It panics if the embedded files are broken, which
// `make verify` rules out for a released binary. Safe for concurrent use; callers must not modify it.
var Default = sync.OnceValue(func() *Catalogue {
	c, err := Load(fixtures.Spec, "spec")
	if err == nil {
		err = c.takeListed(fixtures.Expectations, "expectations")
	}
	if err != nil {
		panic(fmt.Sprintf("embedded specification: %v", err))
	}
	return c
})

// Get returns the requirement with this ID, or nil.
func (c *Catalogue) Get(id ID) *Requirement { return c.byID[id] }

type file struct {
	Area         Area          `json:"area"`
	Documents    []Document    `json:"documents"`
	Requirements []Requirement `json:"requirements"`
	BuildsOn     []building    `json:"buildsOn"`
}

// Load reads and validates every *.yaml file of dir but for translations. All problems are returned joined, each with file and ID.
func Load(fsys fs.FS, dir string) (*Catalogue, error) {
	names, err := fs.Glob(fsys, path.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	c := &Catalogue{byID: map[ID]*Requirement{}}
	origin := map[ID]string{}
	var problems []error
	var buildings []building
	for _, name := range names {
		if isTranslation(name) {
			continue
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		var f file
		if err := yaml.UnmarshalStrict(data, &f); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
			continue
		}
		c.Documents = append(c.Documents, f.Documents...)
		buildings = append(buildings, f.BuildsOn...)
		for _, r := range f.Requirements {
			r.Area = f.Area
			if first, ok := origin[r.ID]; ok {
				problems = append(problems, fmt.Errorf("%s: requirement %s stands in %s already", name, r.ID, first))
			}
			origin[r.ID] = name
			for _, f := range r.BuildsOn {
				buildings = append(buildings, building{f.Because, []string{string(r.ID)}, []ID{f.ID}})
			}
			r.BuildsOn = nil
			c.Requirements = append(c.Requirements, r)
		}
	}
	for i := range c.Requirements {
		r := &c.Requirements[i]
		c.byID[r.ID] = r
		if r.Basis != "" || r.Profile != "" {
			problems = append(problems, fmt.Errorf("%s: %s: basis and profile follow from sources and feature: remove them", origin[r.ID], r.ID))
		}
		r.Basis = c.basis(r)
		r.Profile = r.profile()
		for _, p := range c.problems(r) {
			problems = append(problems, fmt.Errorf("%s: %s: %w", origin[r.ID], r.ID, p))
		}
	}
	for _, p := range c.build(buildings) {
		problems = append(problems, fmt.Errorf("%s: %w", dir, p))
	}
	for i, d := range c.Documents {
		if !slices.Contains(Bases, d.Basis) || d.AsOf == "" {
			problems = append(problems, fmt.Errorf("%s: document %s needs a basis (one of %v) and asOf", dir, d.ID, Bases))
		}
		if slices.ContainsFunc(c.Documents[:i], func(e Document) bool { return e.ID == d.ID }) {
			problems = append(problems, fmt.Errorf("%s: document %s stands there twice", dir, d.ID))
		}
	}
	if len(c.Requirements) == 0 {
		problems = append(problems, fmt.Errorf("%s holds no requirement", dir))
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return c, nil
}

// basis is the strongest basis among the sources of a requirement.
func (c *Catalogue) basis(r *Requirement) Basis {
	strongest := len(Bases)
	for _, s := range r.Sources {
		id, _, _ := strings.Cut(s, "#")
		for _, d := range c.Documents {
			if at := slices.Index(Bases, d.Basis); d.ID == id && at >= 0 {
				strongest = min(strongest, at)
			}
		}
	}
	if strongest == len(Bases) {
		return ""
	}
	return Bases[strongest]
}

var idPattern = regexp.MustCompile(`^(alloc|api|proxy)(-[a-z0-9]+)+$`)

var areaPrefix = map[Area]string{Allocation: "alloc-", APISchema: "api-", Proxy: "proxy-"}

func (c *Catalogue) problems(r *Requirement) (ps []error) {
	bad := func(format string, args ...any) { ps = append(ps, fmt.Errorf(format, args...)) }
	if !idPattern.MatchString(string(r.ID)) {
		bad("the ID must match %s", idPattern)
	}
	if prefix, ok := areaPrefix[r.Area]; !ok {
		bad("unknown area %q", r.Area)
	} else if !strings.HasPrefix(string(r.ID), prefix) {
		bad("the ID of a requirement of area %s must begin with %s", r.Area, prefix)
	}
	if r.Statement == "" || r.Feature == "" {
		bad("statement and feature are required")
	}
	if !slices.Contains([]Level{Must, Should, May, Info}, r.Level) {
		bad("unknown level %q", r.Level)
	}
	if len(r.Sources) == 0 {
		bad("at least one source is required")
	}
	for _, s := range r.Sources {
		doc, _, _ := strings.Cut(s, "#")
		if !slices.ContainsFunc(c.Documents, func(d Document) bool { return d.ID == doc }) {
			bad("unknown document %q in source %q", doc, s)
		}
	}
	for _, n := range r.Needs {
		if !slices.Contains(Capabilities, n) {
			bad("unknown capability %q", n)
		}
	}
	for _, v := range append([]string{r.Versions}, deviationVersions(r)...) {
		if _, err := ParseVersions(v); err != nil {
			bad("versions %q: %w", v, err)
		}
	}
	return ps
}

func deviationVersions(r *Requirement) (vs []string) {
	for _, d := range r.Deviations {
		vs = append(vs, d.Versions)
	}
	return vs
}

// ParseVersions turns a constraint on Kubernetes minor versions into a predicate on a server's git version ("v1.37.1").
// A constraint is made of >=X.Y and <X.Y (a patch number may follow), which all must hold. Alternatives are separated
// by "||": ">=1.31 <1.36 || >=1.37". The empty constraint admits everything; a version that cannot be parsed is
// admitted, for a candidate may be unversioned.
func ParseVersions(constraint string) (func(version string) bool, error) {
	if constraint == "" {
		return func(string) bool { return true }, nil
	}
	terms := strings.Fields(constraint)
	for i, term := range terms {
		if term == "||" {
			continue
		}
		if !versionTerm.MatchString(term) {
			return nil, fmt.Errorf("%q is not >=X.Y or <X.Y; write a constraint like >=1.33 or >=1.31 <1.36", term)
		}
		if strings.Count(term, ".") == 1 {
			terms[i] = term + ".0"
		}
	}
	admits, err := semver.ParseRange(strings.Join(terms, " "))
	if err != nil {
		return nil, fmt.Errorf("write a constraint like >=1.33 or >=1.31 <1.36: %w", err)
	}
	return func(version string) bool {
		v, err := semver.ParseTolerant(version)
		if err != nil {
			return true
		}
		v.Pre, v.Build = nil, nil // a pre-release of 1.34 is judged as 1.34
		return admits(v)
	}, nil
}

// versionTerm leaves out =, !=, > and <=: on minor versions they would read like X.Y and mean X.Y.0.
var versionTerm = regexp.MustCompile(`^(>=|<)[0-9]+\.[0-9]+(\.[0-9]+)?$`)
