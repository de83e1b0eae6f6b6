package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/runner"
)

// TestAnEnvironmentThatRecoversGetsASecondAttempt lets an API server give up some creations of Services, as one with too much to do does.
func TestAnEnvironmentThatRecoversGetsASecondAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		givesUp  int64
		parallel string
		code     int
		verdict  check.Verdict
		first    bool // some result tells of a first attempt
	}{
		"never":              {0, "2", report.ExitConformant, check.Conformant, false},
		"once":               {1, "2", report.ExitConformant, check.Conformant, true},
		"once, in a process": {1, "1", report.ExitConformant, check.Conformant, true},
		"always":             {1 << 40, "2", report.ExitUnknown, check.Unknown, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			creations := atomic.Int64{}
			s := startStandIn(t, standInOptions{cidrs: "10.96.0.0/16", givesUp: func(r *http.Request) bool {
				return r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/conformance-") && strings.HasSuffix(r.URL.Path, "/services") && !r.URL.Query().Has("dryRun") && creations.Add(1) <= c.givesUp
			}})
			dir := t.TempDir()
			out, errs, code := conformance(t, dir, "run", "--tier", "cluster", "--kubeconfig", s.kubeconfig, "--parallel", c.parallel, "--focus", "api-annotation-syntax,api-session-affinity-timeout-*")
			if code != c.code {
				t.Errorf("exit code %d, want %d:\n%s%s", code, c.code, out, errs)
			}
			if got := strings.Count(out, "postponed"); (got > 0) != c.first {
				t.Errorf("%d checks are said to be postponed:\n%s", got, out)
			}
			r, err := report.Open(filepath.Join(dir, "conformance-report", "report.json"))
			if err != nil {
				t.Fatal(err)
			}
			told, worst := false, check.Conformant
			for _, result := range r.Checks {
				if result.Verdict == check.Unknown {
					worst = check.Unknown
				}
				for _, e := range result.Evidence {
					told = told || e.Name == runner.FirstAttempt && strings.Contains(e.Value, "504")
				}
			}
			if told != c.first || worst != c.verdict {
				t.Errorf("the report tells of a first attempt: %t, want %t; verdict %s, want %s", told, c.first, worst, c.verdict)
			}
		})
	}
}
