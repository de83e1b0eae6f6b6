package allocator

import (
	"testing"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/gotest"
	"github.com/service-conformance/conformance/framework/reference"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/runner"
	"github.com/service-conformance/conformance/framework/spec"

	_ "github.com/service-conformance/conformance/suites/allocation" // the suite to judge with
)

// bands are the requirements that an allocator without bands cannot meet. Some checks of others fill bands, too.
var bands = []string{
	"alloc-upper-band-*", "alloc-lower-band-*", "alloc-band-*", "alloc-example-*", "alloc-range-*", "alloc-dual-stack-each-family", "alloc-service-cidr-own-bands",
	"alloc-dns-address-*", "alloc-dynamic-random", "alloc-history-explained",
}

func TestHostLocal(t *testing.T) {
	server, err := reference.New(reference.Options{NewAllocator: NewHostLocal})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close(t.Context())
	r := gotest.Run(t, server, gotest.Options{
		Selection: runner.Selection{ServiceCIDRs: []string{"10.96.0.0/24"}, Skip: bands},
		ReportDir: t.TempDir(), // junit_01.xml and report.json
	})
	if r.Verdict != report.InPart {
		t.Errorf("the verdict is %q; who leaves requirements out is conformant in what was judged at best", r.Verdict)
	}
	for _, v := range r.Requirements {
		if v.ID == spec.AllocDuplicateRefused && v.Verdict != check.Conformant {
			t.Errorf("host-local refuses an address that is taken, yet %s is %s", v.ID, v.Verdict)
		}
	}
}
