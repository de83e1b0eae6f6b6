package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/report/bundle"
	"github.com/service-conformance/conformance/framework/runner"
	"github.com/service-conformance/conformance/framework/spec"
)

// implementation is what a vendor says of an implementation, in a file such as fixtures/implementation.example.yaml.
type implementation struct {
	// ControlPlane and DataPlane replace the names of the API server and of the proxy in reports. A file may say name instead, which is that of both.
	ControlPlane, DataPlane candidate.Implementation
	// Submitter is who answers for it; nil where the file does not say it.
	Submitter *report.Submitter
	// Features are the features that it claims; empty claims all.
	Features []string
	// Profiles are the profiles that it claims; empty claims all.
	Profiles []spec.Profile
	// Suites are the suites that are about it; empty are all.
	Suites []string
	// Declarations say what it does where the specification leaves room. They replace those of the candidate.
	Declarations map[spec.Declarable]string
}

// suiteNames are the suites of this program.
var suiteNames = []string{"allocation", "apischema", "proxy"}

// declaredOf are the optional features that a declaration is about.
var declaredOf = map[spec.Declarable]string{
	spec.AffinityScope: spec.FeatureSessionAffinity, spec.AffinityTimer: spec.FeatureSessionAffinity, spec.NodePortLoopback: spec.FeatureNodePort,
}

// readImplementation reads and checks the file. The error is one line that begins with the name of the file and the number of the line that is wrong.
func readImplementation(path string) (*implementation, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the implementation file: %w", err)
	}
	return parseImplementation(path, data)
}

// parseImplementation reads and checks the text of a file of that name.
func parseImplementation(path string, data []byte) (*implementation, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		text := strings.TrimPrefix(err.Error(), "yaml: ")
		if rest, ok := strings.CutPrefix(text, "line "); ok {
			line, what, _ := strings.Cut(rest, ": ")
			return nil, fmt.Errorf("%s:%s: %s", path, line, what)
		}
		return nil, fmt.Errorf("%s:1: %s", path, text)
	}
	i := &implementation{}
	if len(document.Content) == 0 {
		return i, nil
	}
	if err := i.read(document.Content[0]); err != nil {
		if at, ok := errors.AsType[misplaced](err); ok {
			return nil, fmt.Errorf("%s:%d: %w", path, at.line, err)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return i, nil
}

// misplaced is what is wrong with a line.
type misplaced struct {
	line int
	what string
}

func (m misplaced) Error() string { return m.what }

func wrong(n *yaml.Node, format string, args ...any) error {
	return misplaced{n.Line, fmt.Sprintf(format, args...)}
}

// fields calls read for each key of a mapping.
func fields(n *yaml.Node, what string, read func(key, value *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return wrong(n, "%s is a mapping of names to values", what)
	}
	seen := map[string]bool{}
	for k := 0; k+1 < len(n.Content); k += 2 {
		key := n.Content[k]
		if seen[key.Value] {
			return wrong(key, "%s stands there twice", key.Value)
		}
		seen[key.Value] = true
		if err := read(key, n.Content[k+1]); err != nil {
			return err
		}
	}
	return nil
}

// texts reads a list of names out of those that there are.
func texts(n *yaml.Node, what string, known []string) (all []string, err error) {
	if n.Kind != yaml.SequenceNode {
		return nil, wrong(n, "%ss are a list, such as [%s]", what, known[0])
	}
	for _, v := range n.Content {
		if !slices.Contains(known, v.Value) {
			return nil, wrong(v, "there is no %s %q; there are %s", what, v.Value, strings.Join(known, ", "))
		}
		all = append(all, v.Value)
	}
	return all, nil
}

func (i *implementation) read(root *yaml.Node) error {
	var both *yaml.Node
	var declared []*yaml.Node // the names of declarations
	var submitter report.Submitter
	parts := map[string]*string{"organization": &submitter.Organization, "project": &submitter.Project, "version": &submitter.Version, "url": &submitter.URL}
	var said *yaml.Node // the last of what is said of the submitter
	err := fields(root, "an implementation file", func(key, value *yaml.Node) (err error) {
		switch key.Value {
		case "name":
			both = key
			i.ControlPlane.Name, err = text(value)
			i.DataPlane.Name = i.ControlPlane.Name
		case "controlPlane", "dataPlane":
			if both != nil {
				return wrong(key, "%s is named by name on line %d already", key.Value, both.Line)
			}
			part := &i.ControlPlane
			if key.Value == "dataPlane" {
				part = &i.DataPlane
			}
			*part, err = readPart(key, value)
			if i.ControlPlane.Name == i.DataPlane.Name && err == nil {
				return wrong(key, "controlPlane and dataPlane are both %q: give each its own name, or write name for one that is both", part.Name)
			}
		case "organization", "project", "version", "url":
			said = key
			*parts[key.Value], err = text(value)
			if key.Value == "url" && err == nil && !strings.HasPrefix(submitter.URL, "https://") {
				err = wrong(value, "url begins with https://")
			}
		case "contact":
			said = key
			if value.Kind != yaml.SequenceNode || len(value.Content) == 0 {
				return wrong(value, "contact is a list of addresses or handles")
			}
			for _, v := range value.Content {
				submitter.Contact = append(submitter.Contact, v.Value)
			}
		case "features":
			i.Features, err = texts(value, "feature", spec.Default().FeaturesWithout())
		case "profiles":
			var known, names []string
			for _, p := range spec.Default().Profiles() {
				known = append(known, string(p))
			}
			names, err = texts(value, "profile", known)
			for _, name := range names {
				i.Profiles = append(i.Profiles, spec.Profile(name))
			}
		case "suites":
			i.Suites, err = texts(value, "suite", suiteNames)
		case "declarations":
			i.Declarations = map[spec.Declarable]string{}
			err = fields(value, "declarations", func(name, value *yaml.Node) error {
				declared = append(declared, name)
				return i.declare(name, value)
			})
		default:
			return wrong(key, "unknown field %q; there are organization, project, version, url, contact, name, controlPlane, dataPlane, suites, features, profiles and declarations", key.Value)
		}
		return err
	})
	if err != nil {
		return err
	}
	if said != nil {
		for _, name := range []string{"organization", "project", "version", "url"} {
			if *parts[name] == "" {
				return wrong(said, "%s is missing: organization, project, version, url and contact are given together", name)
			}
		}
		if len(submitter.Contact) == 0 {
			return wrong(said, "contact is missing: organization, project, version, url and contact are given together")
		}
		i.Submitter = &submitter
	}
	claims := runner.Selection{Features: i.Features, Profiles: i.Profiles}
	for _, name := range declared {
		if f := declaredOf[spec.Declarable(name.Value)]; f != "" && !claims.Claims(f) {
			return wrong(name, "%s is declared, but the feature %s is not claimed", name.Value, f)
		}
	}
	return nil
}

func text(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		return "", wrong(n, "a name is expected")
	}
	return n.Value, nil
}

func readPart(of, n *yaml.Node) (part candidate.Implementation, err error) {
	err = fields(n, of.Value, func(key, value *yaml.Node) (err error) {
		switch key.Value {
		case "name":
			part.Name, err = text(value)
		case "version":
			part.Version, err = text(value)
		default:
			err = wrong(key, "unknown field %q of %s; there are name and version", key.Value, of.Value)
		}
		return err
	})
	if err == nil && part.Name == "" {
		err = wrong(of, "%s needs a name", of.Value)
	}
	return part, err
}

func (i *implementation) declare(name, value *yaml.Node) error {
	d := spec.Declarable(name.Value)
	values, known := spec.Declarables[d]
	switch {
	case !known:
		return wrong(name, "there is no declaration %q; there are %v", name.Value, slices.Sorted(maps.Keys(spec.Declarables)))
	case !slices.Contains(values, value.Value):
		return wrong(value, "%s is %s, not %q", name.Value, strings.Join(values, " or "), value.Value)
	}
	i.Declarations[d] = value.Value
	return nil
}

// claim is what reports of the implementation must follow.
func (i *implementation) claim() bundle.Claim {
	c := bundle.Claim{Suites: i.Suites, Features: i.Features}
	if i.Submitter != nil {
		c.Submitter = *i.Submitter
	}
	for _, p := range i.Profiles {
		c.Profiles = append(c.Profiles, string(p))
	}
	if i.Declarations != nil {
		c.Declarations = map[string]string{}
		for name, value := range i.Declarations {
			c.Declarations[string(name)] = value
		}
	}
	return c
}

// declared is a candidate with what its vendor says of it.
type declared struct {
	candidate.Candidate
	implementation *implementation
}

// Describe implements candidate.Candidate.
func (d declared) Describe() candidate.Description {
	what := d.Candidate.Describe()
	if part := d.implementation.ControlPlane; part.Name != "" {
		what.Implementation, what.Version = part.Name, cmp.Or(part.Version, what.Version)
	}
	if part := d.implementation.DataPlane; part.Name != "" {
		what.DataPlane = part
	}
	if d.implementation.Declarations != nil {
		what.Declarations = d.implementation.Declarations
	}
	return what
}
