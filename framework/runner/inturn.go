package runner

import (
	"context"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/check"
)

// Turn is one of several runs in this process.
type Turn struct {
	Options
	// Only are the names of the checks that run (check.DisplayName), of those that Options select; nil are all.
	Only map[string]bool
}

// InTurn judges several candidates in this process, one after another, and returns when all are judged or the context has ended. Of Options, it heeds Selection,
// Candidate, RunID, Version and Sink. The seed is that of the first. It may be called once per process, and not beside Run.
func InTurn(ctx context.Context, turns []Turn) {
	silence()
	suite, reporter := ginkgo.GinkgoConfiguration()
	configure(&suite, turns[0].Seed)
	setups := make([]check.Setup, len(turns))
	for i, t := range turns {
		s := t.setup(t.Candidate, t.Sink, t.RunID, t.Version)
		s.Context = ctx
		if t.Only != nil {
			s.SelectRange = func(d check.Declaration, serviceCIDR string) bool {
				return t.Only[check.DisplayName(d.Name, serviceCIDR)]
			}
		}
		setups[i] = s
	}
	check.RunInTurn(&harness{}, setups, suite, reporter)
}
