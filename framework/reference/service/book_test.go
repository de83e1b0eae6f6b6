package service

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/reference/rule/ruletest"
)

func TestBook(t *testing.T) { ruletest.Book(t, newBook, wrongs()) }

// The file lists faults by name. A fault that is moved to another package is taken off it.
func TestNoFaultIsLost(t *testing.T) {
	list, err := os.ReadFile("testdata/faults.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(list)) {
		if !slices.ContainsFunc(wrongs(), func(w wrong) bool { return w.Fault.Name == name }) {
			t.Errorf("fault %s edits no rule of this package any more", name)
		}
	}
}
