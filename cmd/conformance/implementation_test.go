package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference"
	"github.com/service-conformance/conformance/framework/spec"
)

func TestTheExampleOfAnImplementationNamesEveryDeclaration(t *testing.T) {
	i, err := readImplementation("../../fixtures/implementation.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name := range spec.Declarables {
		if i.Declarations[name] == "" {
			t.Errorf("the example does not show %s", name)
		}
	}
	c, err := reference.New(reference.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var d candidate.Candidate = declared{c, i}
	if what := d.Describe(); what.Implementation != "my-proxy" || what.Declarations[spec.AffinityScope] != "service" {
		t.Errorf("described as %+v", what)
	}
}

func TestAWrongImplementationFileSaysWhatIsWrong(t *testing.T) {
	for content, want := range map[string]string{
		"declarations: {affinity-scope: pod}": "affinity-scope is port or service, not \"pod\"",
		"declarations: {colour: red}":         "there is no declaration \"colour\"",
		"title: x":                            "unknown field",
	} {
		path := filepath.Join(t.TempDir(), "i.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readImplementation(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want one about %s", content, err, want)
		}
	}
}
