package report

import (
	"testing"

	"github.com/service-conformance/conformance/framework/check"
)

func TestTimeToConsistencyIsByNearestRankAndOfTrafficOnly(t *testing.T) {
	traffic := check.Result{Suite: "proxy"}
	for i := range 200 {
		traffic.Convergence = append(traffic.Convergence, check.Convergence{Seconds: float64(200 - i)})
	}
	other := check.Result{Suite: "allocation", Convergence: []check.Convergence{{Seconds: 1000}}}
	got := timeToConsistency([]check.Result{other, traffic})
	if got == nil || *got != (TimeToConsistency{Changes: 200, P50: 100, P99: 198, Max: 200}) {
		t.Errorf("got %+v", got)
	}
	if got := timeToConsistency([]check.Result{other}); got != nil {
		t.Errorf("without traffic: %+v", got)
	}
}
