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
	// Verdict is the worst verdict over its MUST requirements, known deviations left aside. It is InPart where all that was judged is met, and a MUST was not judged.
	Verdict check.Verdict `json:"verdict"`
	// Requirements counts its requirements by verdict. Those that do not apply are not among them: see NotApplicableOf.
	Requirements Counts `json:"requirements"`
	// MustsNotJudged is how many of its MUST requirements bind the candidate and were not judged.
	MustsNotJudged int `json:"mustsNotJudged,omitempty"`
}

// profiled fills in Profiles. The verdicts of requirements must be known.
func (r *Report) profiled(catalogue *spec.Catalogue) {
	for _, v := range r.Requirements {
		if v.Profile == "" || v.Verdict == check.NotApplicable {
			continue
		}
		p := r.profile(v.Profile)
		p.Requirements.add(v.Verdict, v.KnownDeviation)
		if v.Level == spec.Must && v.Verdict == check.NotJudged {
			p.MustsNotJudged++
		}
		if v.Level == spec.Must && !v.KnownDeviation {
			p.Verdict = check.Worse(p.Verdict, v.Verdict)
		}
	}
	for _, id := range r.unasked(catalogue) {
		q := catalogue.Get(id)
		p := r.profile(q.Profile)
		p.Requirements.add(check.NotJudged, false)
		if q.Level == spec.Must {
			p.MustsNotJudged++
		}
	}
	for i := range r.Profiles {
		switch p := &r.Profiles[i]; {
		case p.Requirements.Decided()+p.Requirements.Undecided() == 0:
			p.Verdict = check.NotJudged
		case p.Verdict == check.NotJudged || p.Verdict == check.NotApplicable: // all of its MUSTs are, and others were judged
			p.Verdict = check.Conformant
		}
		if p := &r.Profiles[i]; p.Verdict == check.Conformant && p.MustsNotJudged > 0 {
			p.Verdict = InPart
		}
	}
	slices.SortFunc(r.Profiles, func(a, b ProfileVerdict) int { return spec.CompareProfiles(a.Profile, b.Profile) })
}

// profile is the entry of a profile, which it makes.
func (r *Report) profile(name spec.Profile) *ProfileVerdict {
	i := slices.IndexFunc(r.Profiles, func(p ProfileVerdict) bool { return p.Profile == name })
	if i < 0 {
		i = len(r.Profiles)
		r.Profiles = append(r.Profiles, ProfileVerdict{Profile: name, Verdict: check.NotApplicable})
	}
	return &r.Profiles[i]
}

// writeProfiles writes what was found by profile, if there are several, one line for each. Optional features of which
// nothing is wrong share one line.
func (r *Report) writeProfiles(w io.Writer) {
	if len(r.Profiles) < 2 {
		return
	}
	fmt.Fprintln(w, "profiles")
	var well, unjudged []string
	for _, p := range r.Profiles {
		n := p.Requirements
		if p.Verdict == check.NotJudged {
			unjudged = append(unjudged, fmt.Sprintf("%s %d", p.Profile, n.NotJudged))
			continue
		}
		outside := r.NotApplicableOf(p.Profile)
		if wrong := n.NonConformant + n.Blocked + n.Unknown + n.NotJudged; wrong == 0 && spec.IsOptional(string(p.Profile)) {
			text := fmt.Sprintf("%s %d", p.Profile, n.Conformant)
			if outside > 0 {
				text += fmt.Sprintf(" (%d not applicable)", outside)
			}
			well = append(well, text)
			continue
		}
		verdict := string(p.Verdict)
		if p.Verdict == InPart {
			verdict = "in part"
		}
		line := fmt.Sprintf("  %-26s %-14s %4d met", p.Profile, verdict, n.Conformant)
		for _, c := range []struct {
			count int
			what  string
		}{{n.NonConformant - n.KnownDeviations, "not met"}, {n.KnownDeviations, "known deviations"}, {n.Blocked, "blocked"}, {n.Unknown, "unknown"}, {n.NotJudged, "not judged"}, {outside, "not applicable"}} {
			if c.count > 0 {
				line += fmt.Sprintf(", %d %s", c.count, c.what)
			}
		}
		fmt.Fprintln(w, line)
	}
	if len(well) > 0 {
		fmt.Fprintf(w, "  features, all conformant: %s\n", wrapped(well, "    ", 100))
	}
	if len(unjudged) > 0 {
		fmt.Fprintf(w, "  nothing of it was judged: %s\n", wrapped(unjudged, "    ", 100))
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
