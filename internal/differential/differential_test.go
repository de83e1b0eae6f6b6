package differential

import (
	"context"
	"io/fs"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/fixtures"
	"github.com/service-conformance/conformance/framework/reference/apiserver"
	"github.com/service-conformance/conformance/internal/leaktest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

func published(t *testing.T) []Case {
	t.Helper()
	folder, err := fs.Sub(fixtures.Differential, "differential")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// startReference starts a reference that ends with the test.
func startReference(t *testing.T) Server {
	t.Helper()
	reference, err := apiserver.New(apiserver.Options{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/24"), netip.MustParsePrefix("fd00:10:96::/112")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := reference.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reference.Close() })
	return Server{Client: &http.Client{Transport: reference}, URL: reference.URL(), Reference: true}
}

func TestTheReferenceAnswersAsDecided(t *testing.T) {
	server := startReference(t)
	for _, c := range published(t) {
		t.Run(c.Class+" "+c.Name, func(t *testing.T) {
			differences, err := Replay(context.Background(), server, c)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range differences {
				t.Error(d)
			}
		})
	}
}

func TestADeviationIsOneAgainstKubernetes(t *testing.T) {
	server := startReference(t)
	server.Reference = false
	for _, c := range published(t) {
		differences, err := Replay(context.Background(), server, c)
		if err != nil {
			t.Fatal(err)
		}
		if differs := len(differences) > 0; differs != hasOtherAnswer(c) {
			t.Errorf("%s: decided is %s, and the reference differs from kube-apiserver in %v", c.Name, c.Decided, differences)
		}
	}
}

func hasOtherAnswer(c Case) bool {
	return slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Reference != nil })
}

const sound = `class: W1
operation: o
before: b
kubernetes: k
decided: reference-corrected
why: w
steps:
- request: GET /api
  kubernetes: {code: 200}
`

func TestABadCaseIsNamed(t *testing.T) {
	if c, err := Parse("x/sound.yaml", []byte(sound)); err != nil || c.Name != "sound" {
		t.Fatal(c.Name, err)
	}
	for _, bad := range []struct{ from, to, want string }{
		{"before: b", "befor: b", `case.yaml:3: unknown field "befor"`},
		{"{code: 200}", "{code: 200, warning: x}", `case.yaml:9: unknown field "warning"`},
		{"{code: 200}", "{code: many}", "case.yaml:9: cannot unmarshal"},
		{"steps:", "steps: [", "case.yaml:"},
		{sound, "", "case.yaml: there is no case"},
		{"why: w", "", "case.yaml: why is missing"},
		{"class: W1", "class: one", `case.yaml: class "one" is no letter with a number`},
		{"reference-corrected", "maybe", `case.yaml: decided is "maybe"`},
		{"reference-corrected", "deviation", "case.yaml: a deviation names its requirement"},
		{"reference-corrected", "tolerated", "case.yaml: decided is tolerated, and the answers say otherwise"},
		{"why: w", "why: w\nrequirement: api-nonsense", "case.yaml: there is no requirement api-nonsense"},
		{"GET /api", "GET", "case.yaml: request 1 is no method with a path"},
		{"{code: 200}", "{reason: x}", "case.yaml: request 1 has an answer without a code"},
	} {
		_, err := Parse("case.yaml", []byte(strings.Replace(sound, bad.from, bad.to, 1)))
		if err == nil || !strings.HasPrefix(err.Error(), bad.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q for %q: %v, want %s", bad.to, bad.from, err, bad.want)
		}
	}
}

func TestEveryPartOfAnAnswerIsCompared(t *testing.T) {
	got := answered{code: 422, warnings: []string{"w in ns"}, object: map[string]any{
		"reason": "Invalid", "details": map[string]any{"causes": []any{map[string]any{"field": "b"}, map[string]any{"field": "a"}}}, "list": []any{1.0},
	}}
	right := func() Answer {
		return Answer{Code: 422, Reason: "Invalid", Causes: []string{"a", "b"}, Warnings: []string{"w in {namespace}"},
			Object: map[string]any{"list.0": 1, "list.1": nil, "reason": "*"}}
	}
	here := strings.NewReplacer("{namespace}", "ns")
	want := right()
	if d := want.compare(got, here); len(d) > 0 {
		t.Error(d)
	}
	want = right()
	want.Code, want.Or = 400, &Answer{Code: 422, Reason: "Invalid", Causes: want.Causes, Warnings: want.Warnings}
	if d := want.compare(got, here); len(d) > 0 {
		t.Errorf("the other answer is as good: %v", d)
	}
	for what, change := range map[string]func(*Answer){
		"code":     func(a *Answer) { a.Code = 400 },
		"reason":   func(a *Answer) { a.Reason = "" },
		"causes":   func(a *Answer) { a.Causes = []string{"a"} },
		"warnings": func(a *Answer) { a.Warnings = nil },
		"list.0":   func(a *Answer) { a.Object["list.0"] = 2 },
		"list.1":   func(a *Answer) { a.Object["list.1"] = "*" },
	} {
		want := right()
		change(&want)
		if d := want.compare(got, here); len(d) != 1 || d[0].What != what {
			t.Errorf("%s: %v", what, d)
		}
	}
}
