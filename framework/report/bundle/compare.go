package bundle

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
)

// Compare finds what keeps two reports from being runs of the same claim with the same outcome. It shows a reviewer who
// repeats a run whether the outcome is the same.
func Compare(a, b *report.Report) (findings []string) {
	find := func(format string, args ...any) { findings = append(findings, printable(fmt.Sprintf(format, args...))) }
	same := func(what string, x, y any) {
		if !reflect.DeepEqual(x, y) {
			find("%s: %v and %v", what, x, y)
		}
	}
	same("submitters", a.Submitter, b.Submitter)
	same("catalogues", a.Catalogue, b.Catalogue)
	same("control planes", a.Candidate.Implementation+" "+a.Candidate.Version, b.Candidate.Implementation+" "+b.Candidate.Version)
	same("service proxies", a.Candidate.DataPlane.String(), b.Candidate.DataPlane.String())
	same("proxy modes", a.Candidate.ProxyMode, b.Candidate.ProxyMode)
	for _, d := range slices.Sorted(maps.Keys(spec.Declarables)) {
		same("declaration "+string(d), a.Candidate.Declarations[d], b.Candidate.Declarations[d])
	}
	if a.Selection != nil && b.Selection != nil {
		same("suites claimed", a.Selection.ClaimedSuites, b.Selection.ClaimedSuites)
		same("features", a.Selection.Features, b.Selection.Features)
		same("profiles", a.Selection.Profiles, b.Selection.Profiles)
		same("slow checks", a.Selection.Slow, b.Selection.Slow)
	}
	for _, c := range report.Changes(a, b) {
		find("%s is %s and %s", c.Requirement, c.Old, c.New)
	}
	return findings
}
