package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// ProfileVerdict is what the run found of one profile.
type ProfileVerdict struct {
	Profile spec.Profile `json:"profile"`
	// Verdict is the worst verdict over its MUST requirements, known deviations left aside.
	Verdict check.Verdict `json:"verdict"`
	// Requirements counts its requirements by verdict.
	Requirements Counts `json:"requirements"`
}

// profiled fills in Profiles. The verdicts of requirements must be known.
func (r *Report) profiled() {
	for _, v := range r.Requirements {
		if v.Profile == "" || v.Verdict == check.NotApplicable {
			continue
		}
		i := slices.IndexFunc(r.Profiles, func(p ProfileVerdict) bool { return p.Profile == v.Profile })
		if i < 0 {
			i = len(r.Profiles)
			r.Profiles = append(r.Profiles, ProfileVerdict{Profile: v.Profile, Verdict: check.Conformant})
		}
		p := &r.Profiles[i]
		p.Requirements.add(v.Verdict, v.KnownDeviation)
		if v.Level == spec.Must && !v.KnownDeviation {
			p.Verdict = check.Worse(p.Verdict, v.Verdict)
		}
	}
	slices.SortFunc(r.Profiles, func(a, b ProfileVerdict) int { return spec.CompareProfiles(a.Profile, b.Profile) })
}

// writeProfiles writes what was found by profile, if there are several, one line for each. Optional features of which
// nothing is wrong share one line.
func (r *Report) writeProfiles(w io.Writer) {
	if len(r.Profiles) < 2 {
		return
	}
	fmt.Fprintln(w, "profiles")
	var well []string
	for _, p := range r.Profiles {
		n := p.Requirements
		if wrong := n.NonConformant + n.Blocked + n.Unknown; wrong == 0 && spec.IsOptional(string(p.Profile)) {
			well = append(well, fmt.Sprintf("%s %d", p.Profile, n.Conformant))
			continue
		}
		line := fmt.Sprintf("  %-26s %-14s %4d conformant", p.Profile, p.Verdict, n.Conformant)
		for _, c := range []struct {
			count int
			what  string
		}{{n.NonConformant - n.KnownDeviations, "non-conformant"}, {n.KnownDeviations, "known"}, {n.Blocked, "blocked"}, {n.Unknown, "unknown"}} {
			if c.count > 0 {
				line += fmt.Sprintf(", %d %s", c.count, c.what)
			}
		}
		fmt.Fprintln(w, line)
	}
	if len(well) > 0 {
		fmt.Fprintf(w, "  features, all conformant: %s\n", wrapped(well, "    ", 100))
	}
}

// wrapped joins texts by commas, in lines of at most so many characters, the first of which is begun already.
func wrapped(texts []string, indent string, width int) string {
	var b strings.Builder
	column := len("  features, all conformant: ")
	for i, text := range texts {
		if i < len(texts)-1 {
			text += ","
		}
		switch {
		case i == 0:
		case column+1+len(text) > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(text)
		column += len(text)
	}
	return b.String()
}
