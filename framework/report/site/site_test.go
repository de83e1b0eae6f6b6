package site

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/report/collection"
	"github.com/service-conformance/conformance/framework/spec"
)

// entry is a report with these verdicts, of the first requirements of the catalogue.
func entry(name, version string, verdicts ...check.Verdict) collection.Entry {
	e := collection.Entry{Implementation: name, Version: version, Mode: "m", Report: &report.Report{}}
	for i, v := range verdicts {
		e.Report.Requirements = append(e.Report.Requirements, report.RequirementVerdict{ID: spec.Default().Requirements[i].ID, Verdict: v})
	}
	return e
}

const (
	met, broken, silent = check.Conformant, check.NonConformant, check.NotApplicable
)

func TestOverviewBeginsWithWhatDiffersTheWorstFirst(t *testing.T) {
	all := []collection.Entry{
		entry("a", "v1", met, check.Unknown, met, broken, broken),
		entry("b", "v1", met, met, silent, met, broken),
		entry("c", "v1", met, met, met, met, check.NotJudged),
	}
	o := (&maker{newest: newest(all)}).overview()
	var got []string
	for _, row := range o.Differing {
		for _, f := range row.Found {
			got = append(got, fmt.Sprint(row.ID, " ", f.Verdict, " ", strings.Join(f.Names, ",")))
		}
	}
	ids := spec.Default().Requirements
	want := []string{
		fmt.Sprint(ids[3].ID, " non-conformant a v1 m"), fmt.Sprint(ids[3].ID, " conformant b v1 m,c v1 m"),
		fmt.Sprint(ids[1].ID, " unknown a v1 m"), fmt.Sprint(ids[1].ID, " conformant b v1 m,c v1 m"),
	}
	if !slices.Equal(got, want) {
		t.Errorf("they differ on\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if o.Requirements != len(ids) || len(o.Agreed)+len(o.Differing) != len(ids) {
		t.Errorf("%d requirements, %d differ, %d agree", o.Requirements, len(o.Differing), len(o.Agreed))
	}
}

func TestTimelineHasTheOldestVersionFirstAndOnlyWhatDiffers(t *testing.T) {
	newer, older, alone := entry("a", "v2", met, met, silent), entry("a", "v1", met, broken, met), entry("a", "v2", met)
	alone.Mode = "other"
	all := timelines([]*collection.Entry{&newer, &alone, &older})
	if len(all) != 1 || !slices.Equal(all[0].Versions, []string{"v1", "v2"}) {
		t.Fatalf("timelines %+v, want one of v1 and v2", all)
	}
	rows := all[0].Rows
	if len(rows) != 1 || rows[0].ID != spec.Default().Requirements[1].ID || rows[0].Cells[0].Class != "bad" || rows[0].Cells[1].Class != "good" {
		t.Errorf("rows %+v, want the second requirement, not met and then met", rows)
	}
}
