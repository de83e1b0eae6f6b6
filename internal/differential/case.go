// Package differential holds cases in which the reference and kube-apiserver were seen to answer differently, and how each was decided. It
// replays their requests against any API server.
package differential

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/service-conformance/conformance/framework/spec"
)

// Decision is what became of a difference.
type Decision string

// The decisions.
const (
	// Corrected says that the reference was wrong, and answers as kube-apiserver does now.
	Corrected Decision = "reference-corrected"
	// Deviation says that kube-apiserver does not do what a document demands, and that the reference does.
	Deviation Decision = "deviation"
	// Tolerated says that no document decides, and that the reference stays as it is.
	Tolerated Decision = "tolerated"
)

var decisions = []Decision{Corrected, Deviation, Tolerated}

// Case is one class of differences, with requests that show it.
type Case struct {
	// Name is that of the file without its ending.
	Name string `yaml:"-"`
	// Class is the number that the class was found under, such as W1.
	Class string `yaml:"class"`
	// Operation says what a client does.
	Operation string `yaml:"operation"`
	// Before is what the reference answered when the class was found, Now what it answers since, and Kubernetes what kube-apiserver answers. Without
	// Now, a corrected reference answers as kube-apiserver, and any other as before.
	Before     string `yaml:"before"`
	Now        string `yaml:"now"`
	Kubernetes string `yaml:"kubernetes"`
	// Decided is the decision, and Why its reason in one sentence.
	Decided Decision `yaml:"decided"`
	Why     string   `yaml:"why"`
	// Requirement is the one that the case is about. A deviation always has one.
	Requirement spec.ID `yaml:"requirement"`
	// Steps are the requests, in order.
	Steps []Step `yaml:"steps"`
}

// Step is one request with what is answered. In all its texts, {namespace} is a namespace of the replay's own.
type Step struct {
	// Request is a method and a path with its query.
	Request string `yaml:"request"`
	// Type is the media type of the body, JSON if empty. Accept is that of the answer, whatever the server likes if empty.
	Type   string `yaml:"type"`
	Accept string `yaml:"accept"`
	// Body is sent as it is if it is a text, and as JSON otherwise.
	Body yaml.Node `yaml:"body"`
	// Kubernetes is the answer of kube-apiserver. Reference is that of the reference where it differs.
	Kubernetes Answer  `yaml:"kubernetes"`
	Reference  *Answer `yaml:"reference"`
}

// Answer is what of an answer is compared.
type Answer struct {
	Code int `yaml:"code"`
	// Reason and Causes are those of the Status that refuses a request. Causes are the fields that it names, in any order.
	Reason string   `yaml:"reason"`
	Causes []string `yaml:"causes"`
	// Warnings are all warnings, in any order.
	Warnings []string `yaml:"warnings"`
	// Object has chosen fields of what is answered, such as items.0.metadata.name. The value null is a field that is absent or null, and "*" any other one.
	Object map[string]any `yaml:"object"`
	// Or is another answer that is as good, such as one that depends on what the storage still keeps.
	Or *Answer `yaml:"or"`
}

// Load reads the cases of a folder. They are sorted by class.
func Load(folder fs.FS) ([]Case, error) {
	names, err := fs.Glob(folder, "*.yaml")
	if err != nil {
		return nil, err
	}
	cases := make([]Case, 0, len(names))
	for _, name := range names {
		data, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, err
		}
		c, err := Parse(name, data)
		if err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	slices.SortStableFunc(cases, func(a, b Case) int { return compareClasses(a.Class, b.Class) })
	for i := range cases[min(1, len(cases)):] {
		if cases[i].Class == cases[i+1].Class {
			return nil, fmt.Errorf("%s.yaml and %s.yaml are both of class %s", cases[i].Name, cases[i+1].Name, cases[i].Class)
		}
	}
	return cases, nil
}

var classPattern = regexp.MustCompile(`^([A-Z])([0-9]+)$`)

// compareClasses puts W2 before W10, and K after W.
func compareClasses(a, b string) int {
	x, y := classPattern.FindStringSubmatch(a), classPattern.FindStringSubmatch(b)
	m, _ := strconv.Atoi(x[2]) // digits, by the pattern
	n, _ := strconv.Atoi(y[2])
	return cmp.Or(cmp.Compare(y[1], x[1]), cmp.Compare(m, n))
}

// Parse reads a case from the content of a file. The error names the file and, where it can, the line.
func Parse(file string, data []byte) (Case, error) {
	var c Case
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
		return Case{}, fmt.Errorf("%s%s", file, place(err))
	}
	if err := decoder.Decode(&Case{}); !errors.Is(err, io.EOF) {
		return Case{}, fmt.Errorf("%s: there is more than one case", file)
	}
	c.Name = strings.TrimSuffix(path.Base(file), ".yaml")
	if err := c.complete(); err != nil {
		return Case{}, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

var (
	yamlLine     = regexp.MustCompile(`line (\d+): (.*)`)
	unknownField = regexp.MustCompile(`^field (\S+) not found in type .*`)
)

// place turns the first complaint of the reader of YAML into ":LINE: COMPLAINT".
func place(err error) string {
	if errors.Is(err, io.EOF) {
		return ": there is no case"
	}
	found := yamlLine.FindStringSubmatch(err.Error())
	if found == nil {
		return ": " + strings.TrimPrefix(err.Error(), "yaml: ")
	}
	return ":" + found[1] + ": " + unknownField.ReplaceAllString(found[2], `unknown field "$1"`)
}

// complete says what a case lacks.
func (c *Case) complete() error {
	for _, field := range []struct{ name, value string }{
		{"operation", c.Operation}, {"before", c.Before}, {"kubernetes", c.Kubernetes}, {"why", c.Why},
	} {
		if field.value == "" {
			return fmt.Errorf("%s is missing", field.name)
		}
	}
	switch {
	case !classPattern.MatchString(c.Class):
		return fmt.Errorf("class %q is no letter with a number, such as W1", c.Class)
	case !slices.Contains(decisions, c.Decided):
		return fmt.Errorf("decided is %q: there are %q", c.Decided, decisions)
	case c.Requirement != "" && spec.Default().Get(c.Requirement) == nil:
		return fmt.Errorf("there is no requirement %s", c.Requirement)
	case c.Decided == Deviation && c.Requirement == "":
		return errors.New("a deviation names its requirement")
	case len(c.Steps) == 0:
		return errors.New("there are no steps")
	}
	differs := false
	for i, s := range c.Steps {
		if method, path, ok := strings.Cut(s.Request, " "); !ok || method == "" || !strings.HasPrefix(path, "/") {
			return fmt.Errorf("request %d is no method with a path: %q", i+1, s.Request)
		}
		if s.Kubernetes.Code == 0 || s.Reference != nil && s.Reference.Code == 0 {
			return fmt.Errorf("request %d has an answer without a code", i+1)
		}
		differs = differs || s.Reference != nil
	}
	if differs == (c.Decided == Corrected) && c.Now == "" {
		return fmt.Errorf("decided is %s, and the answers say otherwise", c.Decided)
	}
	return nil
}

// AnswerNow is what the reference answers now, in words.
func (c *Case) AnswerNow() string {
	switch {
	case c.Now != "":
		return c.Now
	case c.Decided == Corrected:
		return "as Kubernetes"
	}
	return "as before"
}

// body is what a step sends, nil for nothing.
func (s *Step) body() ([]byte, error) {
	switch {
	case s.Body.Kind == 0:
		return nil, nil
	case s.Body.Kind == yaml.ScalarNode:
		return []byte(s.Body.Value), nil
	}
	var content any
	if err := s.Body.Decode(&content); err != nil {
		return nil, err
	}
	return json.Marshal(content)
}
