package report

import (
	"math"
	"slices"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// TimeToConsistency is how long it took from changes until every client that a check looked from saw their effect, in seconds on the
// candidate's clock. It holds what polling adds: at most a fifth of a second, and a second where silence is demanded beside.
type TimeToConsistency struct {
	Changes int     `json:"changes"`
	P50     float64 `json:"p50Seconds"`
	P99     float64 `json:"p99Seconds"`
	Max     float64 `json:"maxSeconds"`
}

// timeToConsistency sums up what the checks of the proxy suite measured; nil if they measured nothing.
func timeToConsistency(results []check.Result) *TimeToConsistency {
	var seconds []float64
	for _, r := range results {
		if r.Suite != string(spec.Proxy) {
			continue
		}
		for _, c := range r.Convergence {
			seconds = append(seconds, c.Seconds)
		}
	}
	if len(seconds) == 0 {
		return nil
	}
	slices.Sort(seconds)
	rank := func(p float64) float64 { return seconds[max(0, int(math.Ceil(p*float64(len(seconds))))-1)] } // nearest rank
	return &TimeToConsistency{Changes: len(seconds), P50: rank(0.5), P99: rank(0.99), Max: seconds[len(seconds)-1]}
}
