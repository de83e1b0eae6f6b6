package report

import (
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// TestMetricsCountVerdictsAndTimes looks at numbers and names that nobody may break out of; that the text is OpenMetrics is for `make readers`.
func TestMetricsCountVerdictsAndTimes(t *testing.T) {
	must := requirement(t, spec.Must)
	slow := result(must, "a", check.Conformant)
	slow.Suite = string(spec.Proxy)
	slow.Convergence = []check.Convergence{{What: "x", Seconds: 0.1}, {What: "y", Seconds: 0.3}, {What: "z", Seconds: 90}}
	other := result(must, "b", check.NonConformant)
	other.Convergence = []check.Convergence{{What: "an address", Seconds: 5}} // not of the proxy suite
	r := Build(Run{Planned: 2}, []check.Result{slow, other})
	r.Candidate.Implementation = "a\"b\\c\nd"
	data, err := r.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	common := `{control_plane="a\"b\\c\nd",control_plane_version="",data_plane="",data_plane_version="",proxy_mode="",tier=""`
	for _, line := range []string{
		"conformance_checks" + common + `,verdict="conformant"} 1`,
		"conformance_checks" + common + `,verdict="non-conformant"} 1`,
		"conformance_requirement_met" + common + `,requirement="` + string(must) + `",level="MUST",verdict="non-conformant"} 0`,
		"conformance_time_to_consistency_seconds_bucket" + common + `,le="0.1"} 1`,
		"conformance_time_to_consistency_seconds_bucket" + common + `,le="0.5"} 2`,
		"conformance_time_to_consistency_seconds_bucket" + common + `,le="60.0"} 2`,
		"conformance_time_to_consistency_seconds_bucket" + common + `,le="+Inf"} 3`,
		"conformance_time_to_consistency_seconds_sum" + common + `} 90.4`,
		"conformance_time_to_consistency_seconds_count" + common + `} 3`,
	} {
		if !strings.Contains(string(data), "\n"+line+"\n") {
			t.Errorf("there is no line %s\n%s", line, data)
		}
	}
	if !strings.HasSuffix(string(data), "\n# EOF\n") {
		t.Error("the text does not end with # EOF")
	}
}
