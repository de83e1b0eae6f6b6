package check

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// judgedAfter is the result of a check that failed, and whose context had ended before by the cause.
func judgedAfter(t *testing.T, cause error) Result {
	t.Helper()
	before := setup
	defer func() { setup = before }()
	var result Result
	setup.Sink = func(e Event) {
		if e.Result != nil {
			result = *e.Result
		}
	}
	ctx, end := context.WithCancelCause(t.Context())
	end(cause)
	current = &running{declared: &Declaration{Timeout: time.Minute}, ctx: ctx}
	judge(ginkgo.SpecReport{State: types.SpecStateFailed, Failure: types.Failure{Message: "expected 1, observed 2", FailureNodeType: types.NodeTypeIt}})
	return result
}

func TestWhatACheckSaysAfterItsTimeoutAccusesNobody(t *testing.T) {
	if r := judgedAfter(t, errTimedOut); r.Verdict != Unknown || r.Reason != "timed out after 1m0s" || r.Failure != nil {
		t.Errorf("verdict %s, reason %q, failure %v", r.Verdict, r.Reason, r.Failure)
	}
	if r := judgedAfter(t, errRunEnded); r.Verdict != Unknown || r.Reason != Interrupted {
		t.Errorf("verdict %s, reason %q", r.Verdict, r.Reason)
	}
	if r := judgedAfter(t, nil); r.Verdict != NonConformant {
		t.Errorf("verdict %s of a check that failed in time", r.Verdict)
	}
}
