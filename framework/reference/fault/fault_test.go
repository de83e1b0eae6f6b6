package fault

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/spec"
)

func TestEveryFaultNamesKnownRequirementsOnce(t *testing.T) {
	kebab := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	descriptions := map[string]string{}
	for _, f := range All() {
		if !kebab.MatchString(f.Name) {
			t.Errorf("fault %q: the name is not kebab-case", f.Name)
		}
		if first, ok := descriptions[f.Description]; ok || f.Description == "" {
			t.Errorf("fault %s has no description of its own (%q, also that of %s)", f.Name, f.Description, first)
		}
		descriptions[f.Description] = f.Name
		for i, id := range f.Breaks {
			if spec.Default().Get(id) == nil {
				t.Errorf("fault %s breaks %s, which is not in the catalogue", f.Name, id)
			}
			if slices.Contains(f.Breaks[:i], id) {
				t.Errorf("fault %s names %s twice", f.Name, id)
			}
		}
	}
}

func TestParse(t *testing.T) {
	all := All()
	set, err := Parse(all[1].Name, all[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	if !set.On(all[0]) || !set.On(all[1]) || set.On(all[2]) || !slices.Equal(set.Names(), []string{all[0].Name, all[1].Name}) {
		t.Errorf("the set is %v", set.Names())
	}
	if _, err := Parse(all[0].Name + "x"); err == nil || !strings.Contains(err.Error(), "did you mean") {
		t.Errorf("a misspelt fault: %v", err)
	}
	if (Set{}).On(all[0]) || len(Set{}.Names()) != 0 {
		t.Error("the zero set has a fault on")
	}
}

func TestNewRefusesAFaultThatProvesNothing(t *testing.T) {
	refused := func(f func()) (panicked bool) {
		defer func() { panicked = recover() != nil }()
		f()
		return false
	}
	if !refused(func() { New("breaks-nothing", "a bug that breaks no requirement") }) {
		t.Error("a fault without requirements was registered")
	}
	if !refused(func() { New(All()[0].Name, "a second fault of this name", All()[0].Breaks...) }) {
		t.Error("a name was registered twice")
	}
}

func TestEveryPublicBugIsAFaultThatBreaksOneOfItsRequirements(t *testing.T) {
	for _, bug := range spec.AllRealBugs() {
		i := slices.IndexFunc(All(), func(f *Fault) bool { return f.Name == bug.Fault })
		if i < 0 {
			t.Errorf("%s: there is no fault %q", bug.Issue, bug.Fault)
			continue
		}
		if !slices.ContainsFunc(bug.Requirements, func(id spec.ID) bool { return slices.Contains(All()[i].Breaks, id) }) {
			t.Errorf("%s: the fault %s breaks none of %v", bug.Issue, bug.Fault, bug.Requirements)
		}
	}
}
