package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// consistencyBuckets are the upper bounds of the histogram of times to consistency, in seconds.
var consistencyBuckets = []float64{0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60}

// Metrics renders the report as OpenMetrics text (https://prometheus.io/docs/specs/om/open_metrics_spec/): verdicts, seconds, and times to consistency. The labels of every
// sample name what was judged, so that the numbers of many runs stay apart.
func (r *Report) Metrics() ([]byte, error) {
	m := metricsWriter{common: []string{
		"control_plane", r.Candidate.Implementation, "control_plane_version", r.Candidate.Version, "data_plane", r.Candidate.DataPlane.Name, "data_plane_version", r.Candidate.DataPlane.Version,
		"proxy_mode", r.Candidate.ProxyMode, "tier", r.Candidate.Tier,
	}}
	m.family("conformance_run", "info", "", "The run, with its verdict and the version of the suite.")
	m.sample("conformance_run_info", 1, "verdict", string(r.Verdict), "suite", r.SuiteVersion)
	m.family("conformance_run_seconds", "gauge", "seconds", "Duration of the run.")
	m.sample("conformance_run_seconds", r.Seconds)
	m.family("conformance_run_timestamp_seconds", "gauge", "seconds", "When the run began, in seconds since 1970.")
	m.sample("conformance_run_timestamp_seconds", float64(r.Started.Unix()))
	m.counts("conformance_requirements", "Requirements by verdict.", r.Summary.Requirements)
	m.counts("conformance_checks", "Checks by verdict.", r.Summary.Checks)

	m.family("conformance_suite_check_seconds", "gauge", "seconds", "Sum of the durations of the checks of a suite, which may run at the same time.")
	bySuite := map[string]float64{}
	for i := range r.Checks {
		bySuite[r.Checks[i].Suite] += r.Checks[i].Seconds
	}
	for _, suite := range slices.Sorted(maps.Keys(bySuite)) {
		m.sample("conformance_suite_check_seconds", bySuite[suite], "suite", suite)
	}
	m.family("conformance_requirement_met", "gauge", "", "1 if the requirement is met or a known deviation, 0 if it is not met, blocked or unknown; none if it was not judged or does not apply.")
	for _, v := range r.Requirements {
		if v.unjudged() {
			continue
		}
		met := 0.0
		if v.Verdict == check.Conformant || v.KnownDeviation {
			met = 1
		}
		m.sample("conformance_requirement_met", met, "requirement", string(v.ID), "level", string(v.Level), "verdict", v.Words())
	}
	m.consistency(r)
	m.b.WriteString("# EOF\n")
	return []byte(m.b.String()), nil
}

// metricsWriter writes samples, each with the labels that all have in common.
type metricsWriter struct {
	b      strings.Builder
	common []string
}

func (m *metricsWriter) family(name, kind, unit, help string) {
	fmt.Fprintf(&m.b, "# TYPE %s %s\n", name, kind)
	if unit != "" {
		fmt.Fprintf(&m.b, "# UNIT %s %s\n", name, unit)
	}
	fmt.Fprintf(&m.b, "# HELP %s %s\n", name, help)
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func (m *metricsWriter) sample(name string, value float64, labels ...string) {
	all := slices.Concat(m.common, labels)
	m.b.WriteString(name)
	for i := 0; i < len(all); i += 2 {
		sign := ","
		if i == 0 {
			sign = "{"
		}
		fmt.Fprintf(&m.b, `%s%s="%s"`, sign, all[i], labelEscapes.Replace(strings.ToValidUTF8(all[i+1], "�")))
	}
	fmt.Fprintf(&m.b, "} %s\n", strconv.FormatFloat(value, 'g', -1, 64))
}

func (m *metricsWriter) counts(name, help string, c Counts) {
	m.family(name, "gauge", "", help)
	for _, v := range []struct {
		verdict string
		n       int
	}{
		{"conformant", c.Conformant}, {"non-conformant", c.Unexcused()}, {"known deviation", c.KnownDeviations}, {"blocked", c.Blocked}, {"unknown", c.Unknown}, {"not judged", c.NotJudged}, {"not applicable", c.NotApplicable},
	} {
		m.sample(name, float64(v.n), "verdict", v.verdict)
	}
}

// consistency writes the histogram of the times in which the data plane followed changes.
func (m *metricsWriter) consistency(r *Report) {
	const name = "conformance_time_to_consistency_seconds"
	var sum float64
	var n int
	under := make([]int, len(consistencyBuckets))
	for i := range r.Checks {
		if r.Checks[i].Suite != string(spec.Proxy) {
			continue
		}
		for _, c := range r.Checks[i].Convergence {
			n++
			sum += c.Seconds
			for b, bound := range consistencyBuckets {
				if c.Seconds <= bound {
					under[b]++
				}
			}
		}
	}
	if n == 0 {
		return
	}
	m.family(name, "histogram", "seconds", "Times until every client that was looked from met a change.")
	for b, bound := range consistencyBuckets {
		m.sample(name+"_bucket", float64(under[b]), "le", canonical(bound))
	}
	m.sample(name+"_bucket", float64(n), "le", "+Inf")
	m.sample(name+"_sum", sum)
	m.sample(name+"_count", float64(n))
}

// canonical is a bound as OpenMetrics writes it: with a point.
func canonical(bound float64) string {
	text := strconv.FormatFloat(bound, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}
