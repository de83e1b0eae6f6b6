package proxy

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
)

// sample is one line of the Prometheus text format.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

// metrics are what the proxy of a node told of itself at a time.
type metrics struct {
	samples []sample
	// asked and answered enclose that time, on the candidate's clock.
	asked, answered time.Time
}

// onLoopback is what the proxy of a node itself serves to its own node.
func onLoopback(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
}

// metricsTimeout is how long a loaded machine may take to gather metrics.
const metricsTimeout = 10 * time.Second

// metricsOf reads the metrics of the proxy of a node.
func metricsOf(ctx context.Context, net *check.Network, node string) *metrics {
	ginkgo.GinkgoHelper()
	o := net.Send(ctx, candidate.Probe{
		From: check.Host(node), To: onLoopback(candidate.ProxyMetricsPort), Protocol: corev1.ProtocolTCP, Path: "/metrics", Timeout: metricsTimeout,
	})[0][0]
	if o.HTTP == nil || o.HTTP.Code != http.StatusOK {
		ginkgo.Fail(fmt.Sprintf("the proxy of %s does not serve its metrics: %s", node, o.Result))
	}
	samples, err := parseMetrics(o.HTTP.Body)
	Expect(err).NotTo(HaveOccurred(), "the metrics of %s", node)
	return &metrics{samples: samples, asked: o.Start, answered: o.Start.Add(o.Duration)}
}

// parseMetrics reads the Prometheus text format; comments and timestamps are left out.
func parseMetrics(text string) ([]sample, error) {
	var samples []sample
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s := sample{labels: map[string]string{}}
		end := strings.IndexAny(line, "{ ")
		if end < 0 {
			return nil, fmt.Errorf("line %q of the metrics has no value", line)
		}
		s.name = line[:end]
		rest := line[end:]
		for strings.HasPrefix(rest, "{") || strings.HasPrefix(rest, ",") {
			label, after, found := strings.Cut(rest[1:], "=")
			if strings.HasPrefix(label, "}") { // no labels, or a comma after the last one
				rest = rest[1:]
				break
			}
			value, err := strconv.QuotedPrefix(after)
			if !found || err != nil {
				return nil, fmt.Errorf("line %q of the metrics has a label without a value", line)
			}
			rest = after[len(value):]
			if value, err = strconv.Unquote(value); err != nil {
				return nil, fmt.Errorf("line %q of the metrics: label %s: %w", line, label, err)
			}
			s.labels[strings.TrimSpace(label)] = value
		}
		fields := strings.Fields(strings.TrimPrefix(rest, "}"))
		if len(fields) == 0 {
			return nil, fmt.Errorf("line %q of the metrics has no value", line)
		}
		var err error
		if s.value, err = strconv.ParseFloat(fields[0], 64); err != nil {
			return nil, fmt.Errorf("line %q of the metrics: %w", line, err)
		}
		samples = append(samples, s)
	}
	return samples, nil
}

// Names of metrics. kube-proxy puts its own name before those of the documents.
const (
	syncDuration           = "kubeproxy_sync_proxy_rules_duration_seconds"
	restoreFailures        = "kubeproxy_sync_proxy_rules_iptables_restore_failures_total"
	partialRestoreFailures = "kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total"
	noLocalEndpoints       = "kubeproxy_sync_proxy_rules_no_local_endpoints_total"
	programmingDuration    = "kubeproxy_network_programming_duration_seconds"
)

// total is the sum of a metric over all labels; 0 if there is none.
func (m *metrics) total(name string) float64 {
	sum := 0.
	for _, v := range m.perFamily(name, nil) {
		sum += v
	}
	return sum
}

// perFamily are the sums of a metric for each IP family, of the samples that have these labels. Versions without a label for the family have "".
func (m *metrics) perFamily(name string, labels map[string]string) map[string]float64 {
	sums := map[string]float64{}
	for _, s := range m.samples {
		if s.name == name && hasLabels(s.labels, labels) {
			sums[s.labels["ip_family"]] += s.value
		}
	}
	return sums
}

func hasLabels(all, wanted map[string]string) bool {
	for k, v := range wanted {
		if all[k] != v {
			return false
		}
	}
	return true
}

// of is the sum of a metric in the IP family, of the samples that have these labels.
func (m *metrics) of(family corev1.IPFamily, name string, labels map[string]string) float64 {
	sums := m.perFamily(name, labels)
	return sums[string(family)] + sums[""]
}

// elapsed is the time from before the first reading to after the second one.
func elapsed(first, second *metrics) time.Duration { return second.answered.Sub(first.asked) }
