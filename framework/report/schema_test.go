package report

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	openapispec "k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// TestReportFollowsItsSchema holds a report with every field against docs/report.schema.json, which forbids fields that it does not name.
func TestReportFollowsItsSchema(t *testing.T) {
	raw, err := os.ReadFile("../../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	must := requirement(t, spec.Must)
	known := Expectation{Requirement: must, Check: "*: x", Versions: ">=1.31", ProxyMode: "ipvs", Reason: "r", Source: "s", Link: "l", Expires: "2999-01-01"}
	passing := Expectation{Requirement: must, Check: "*: a", Reason: "r"}
	full := result(must, "a", check.Conformant)
	full.Suite = "proxy" // so that the report has a time to consistency
	full.ServiceCIDR, full.Evidence, full.Convergence = "10.96.0.0/24", []check.Evidence{{Name: "n", Value: "v", Addresses: &check.Addresses{ServiceCIDR: "10.96.0.0/24", Offsets: []int{17, 3}, Concurrent: 1}}}, []check.Convergence{{What: "w", Seconds: 1}}
	full.Evidence = append(full.Evidence, check.Evidence{Name: "n", Value: "v", Timeline: &check.Timeline{
		Marks: []check.Mark{{At: 1, What: "w"}}, LanesLeftOut: 1, MarksLeftOut: 1,
		Lanes: []check.Lane{{Client: "c", To: "t", Segments: []check.Segment{{To: 1.5, Answered: map[string]int{"a": 1}, Otherwise: map[string]int{"dropped": 1}}}}},
	}})
	failed := result(must, "x", check.NonConformant)
	failed.Failure.Cases = []check.CaseSeen{{Clients: "pod a", To: []string{"10.96.0.1:80/TCP"}, Expected: "e", Observed: "o"}}
	data, err := json.Marshal(Build(Run{
		Submitter:    &Submitter{Organization: "o", Project: "p", Version: "v", URL: "https://example.com", Contact: []string{"@a"}},
		SuiteVersion: "devel", Started: time.Now(), Duration: time.Second, Seed: 1, Planned: 9, Interrupted: true, Ended: []EndedProgram{{Program: "proxy-node-1", How: "exit status 2", Log: "logs/proxy-node-1.log"}},
		Programs: []Program{{Program: "kube-apiserver", Processes: 2, ProcessorSeconds: 8.5}},
		Candidate: candidate.Description{
			Implementation: "kubernetes", Version: "v1.37.1", Tier: "lab", Capabilities: spec.Capabilities,
			Declarations: map[spec.Declarable]string{spec.NoEndpoints: "reject"},
			ProxyMode:    "ipvs",
			Careful:      true, FurtherServiceCIDRs: []string{"10.97.0.0/16"},
			Components: map[string]string{"etcd": "3.6"}, Faults: []string{"f"},
		},
		Expectations: Expectations{Deviations: []Expectation{known, passing}},
	}, []check.Result{full, failed, result(must, "c", check.Unknown), result(must, "d", check.NotApplicable)}))
	if err != nil {
		t.Fatal(err)
	}
	if problems := validateAgainst(t, raw, data); len(problems) > 0 {
		t.Errorf("%v\n%s", problems, data)
	}
	if problems := validateAgainst(t, raw, []byte(`{"schemaVersion":1,"surprise":true}`)); len(problems) == 0 {
		t.Error("the schema admits anything")
	}
}

func validateAgainst(t *testing.T, rawSchema, data []byte) []error {
	t.Helper()
	var schema openapispec.Schema
	if err := json.Unmarshal(inlined(t, rawSchema), &schema); err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	return validate.NewSchemaValidator(&schema, nil, "", strfmt.Default).Validate(value).Errors
}

// inlined replaces every reference by what it refers to, which the validator does not do itself.
func inlined(t *testing.T, raw []byte) []byte {
	t.Helper()
	var document map[string]any
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	definitions := document["definitions"].(map[string]any)
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				return walk(definitions[ref[len("#/definitions/"):]])
			}
			for k := range v {
				v[k] = walk(v[k])
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		}
		return v
	}
	out, err := json.Marshal(walk(document))
	if err != nil {
		t.Fatal(err)
	}
	return out
}
