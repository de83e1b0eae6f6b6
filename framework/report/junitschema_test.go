package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// junitElement is what the schema of Jenkins' xUnit plugin (junit-10.xsd) allows of an element: attributes, those that there must be first, and children.
type junitElement struct {
	required, optional, children []string
}

var junitSchema = map[string]junitElement{
	"testsuites": {nil, []string{"name", "time", "tests", "failures", "errors"}, []string{"testsuite"}},
	"testsuite": {[]string{"name", "tests", "failures", "errors"}, []string{"time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url", "version", "group"},
		[]string{"properties", "testcase", "system-out", "system-err"}},
	"properties": {nil, nil, []string{"property"}},
	"property":   {[]string{"name", "value"}, nil, nil},
	"testcase":   {[]string{"name"}, []string{"time", "classname", "group"}, []string{"skipped", "error", "failure", "system-out", "system-err"}},
	"failure":    {nil, []string{"type", "message"}, nil},
	"error":      {nil, []string{"type", "message"}, nil},
	"skipped":    {nil, []string{"type", "message"}, nil},
	"system-out": {},
	"system-err": {},
}

// TestJUnitFollowsTheSchemaOfJenkins demands nothing that the schema does not have: the plugin refuses a whole file for it.
func TestJUnitFollowsTheSchemaOfJenkins(t *testing.T) {
	must := requirement(t, spec.Must)
	unexpected := Expectations{Deviations: []Expectation{{Requirement: must, Check: "*: a", Reason: "it does"}}}
	r := Build(Run{Planned: 6, Expectations: unexpected, Started: time.Now(), Interrupted: true}, []check.Result{
		result(must, "a", check.Conformant), result(must, "b", check.NonConformant), result(must, "c", check.Unknown), result(must, "d", check.NotApplicable),
	})
	data, err := r.JUnit()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var stack []string
	for d := xml.NewDecoder(bytes.NewReader(data)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			name := e.Name.Local
			seen[name] = true
			if len(stack) > 0 && !slices.Contains(junitSchema[stack[len(stack)-1]].children, name) {
				t.Errorf("%s may not hold %s", stack[len(stack)-1], name)
			}
			allowed, missing := junitSchema[name], slices.Clone(junitSchema[name].required)
			for _, a := range e.Attr {
				if !slices.Contains(allowed.required, a.Name.Local) && !slices.Contains(allowed.optional, a.Name.Local) {
					t.Errorf("%s has no attribute %s", name, a.Name.Local)
				}
				missing = slices.DeleteFunc(missing, func(m string) bool { return m == a.Name.Local })
			}
			if len(missing) > 0 {
				t.Errorf("%s needs %q", name, missing)
			}
			stack = append(stack, name)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		}
	}
	for _, name := range []string{"testsuites", "testsuite", "properties", "testcase", "failure", "error", "skipped", "system-out"} {
		if !seen[name] {
			t.Errorf("the report shows no %s", name)
		}
	}
}
