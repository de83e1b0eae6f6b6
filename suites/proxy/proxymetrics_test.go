package proxy

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestParseMetrics(t *testing.T) {
	samples, err := parseMetrics(`# HELP a_total Things, "quoted" {and} braced
# TYPE a_total counter
a_total{ip_family="IPv4",table="nat"} 3
a_total{ip_family="IPv4",table="filter",} 4 1700000000000
a_total{ip_family="IPv6",table="n,a}t \"\\"} 1e3

a_total_more 5
b{} +Inf
c -0.5
`)
	if err != nil {
		t.Fatal(err)
	}
	m := &metrics{samples: samples}
	if got := m.of(corev1.IPv4Protocol, "a_total", nil); got != 7 {
		t.Errorf("the sum over the IPv4 samples of a_total is %v, want 7", got)
	}
	if got := m.of(corev1.IPv4Protocol, "a_total", map[string]string{"table": "nat"}); got != 3 {
		t.Errorf("a_total of table nat is %v, want 3", got)
	}
	if got := m.of(corev1.IPv6Protocol, "a_total", map[string]string{"table": `n,a}t "\`}); got != 1000 {
		t.Errorf("a_total of the label with special characters is %v, want 1000", got)
	}
	if got := m.total("a_total"); got != 1007 {
		t.Errorf("a_total is %v in all, want 1007", got)
	}
	if got := m.of(corev1.IPv6Protocol, "c", nil); got != -0.5 {
		t.Errorf("c, which has no family, is %v, want -0.5", got)
	}
	if got := m.total("absent_total"); got != 0 {
		t.Errorf("a metric that is absent is %v, want 0", got)
	}
}

func TestParseMetricsRefusesNonsense(t *testing.T) {
	for _, text := range []string{"a", "a b", "a{b} 1", `a{b="c} 1`, `a{b="c"}`} {
		if samples, err := parseMetrics(text); err == nil {
			t.Errorf("%q is read as %v", text, samples)
		}
	}
}
