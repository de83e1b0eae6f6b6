package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"unicode"

	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
)

// Verify finds everything that is wrong with a bundle, one line for each finding. It returns the report as far as it could be read, else nil. The verdict of the
// report is no finding: an implementation that is not conformant can have a sound bundle. A bundle of another published catalogue is verified as far as this program
// can; notes say what only the program of that suite can tell.
func Verify(files Files, suite Suite) (r *report.Report, findings, notes []string) {
	find := func(format string, args ...any) { findings = append(findings, printable(fmt.Sprintf(format, args...))) }
	for _, finding := range files.verifySums() {
		find("%s", finding)
	}
	for _, name := range []string{report.JSONFile, ImplementationFile, ManifestFile} {
		if _, there := files[name]; !there {
			find("%s is missing", name)
		}
	}
	if data, there := files[report.JSONFile]; there {
		var err error
		if r, err = decodeStrictly(data); err != nil {
			find("%s: %v", report.JSONFile, err)
		}
	}
	if r == nil {
		return nil, findings, nil
	}
	m, all := ofManifest(files, r)
	all = append(all, ofSelection(r)...)
	all = append(all, ofClaim(files, r, suite)...)
	switch published := spec.Published(r.Catalogue); {
	case r.Catalogue == spec.Digest():
		all = slices.Concat(all, ofCompleteness(files, r, suite), ofDeviations(r))
	case published != nil:
		notes = append(notes, fmt.Sprintf("the catalogue is that of %s: suite %s verifies that nothing is missing and that excuses are published", published.Published, published.Suite))
	default:
		find("the report is of another catalogue (%s) than this program, and of none that was published", r.Catalogue)
	}
	if m != nil && m.Program == suite.Program {
		all = append(all, ofFaces(files, r)...)
	} else {
		notes = append(notes, fmt.Sprintf("another program than this one rendered the faces: read what `conformance report render` makes of %s", report.JSONFile))
	}
	for _, finding := range all {
		find("%s", finding)
	}
	return r, findings, notes
}

// decodeStrictly reads report.json, and refuses fields that the schema does not have.
func decodeStrictly(data []byte) (*report.Report, error) {
	r, err := report.Decode(data)
	if err != nil {
		return nil, err
	}
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	var again report.Report
	if err := strict.Decode(&again); err != nil {
		return nil, err
	}
	if strict.More() {
		return nil, fmt.Errorf("something follows the report")
	}
	return r, nil
}

// ofFaces compares the faces with what this program renders.
func ofFaces(files Files, r *report.Report) (findings []string) {
	for _, face := range report.Faces {
		data, there := files[face.File]
		if !there {
			continue // they can be rendered at any time
		}
		rendered, err := face.Render(r)
		switch {
		case err != nil:
			findings = append(findings, fmt.Sprintf("%s cannot be rendered: %v", face.File, err))
		case !bytes.Equal(data, rendered):
			findings = append(findings, fmt.Sprintf("%s is not what this program renders from %s", face.File, report.JSONFile))
		}
	}
	return findings
}

// ofManifest reads the manifest, which is nil if it is missing or cannot be read.
func ofManifest(files Files, r *report.Report) (m *Manifest, findings []string) {
	if _, there := files[ManifestFile]; !there {
		return nil, nil
	}
	find := func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) }
	m, err := files.Manifest()
	switch {
	case err != nil:
		find("%v", err)
		return nil, findings
	case m.Catalogue != r.Catalogue:
		find("%s names another catalogue than %s", ManifestFile, report.JSONFile)
	case m.Suite != r.SuiteVersion:
		find("%s names another suite than %s", ManifestFile, report.JSONFile)
	case m.Reproduce == "":
		find("%s does not say how to make the bundle again", ManifestFile)
	}
	return m, findings
}

// ofSelection finds what a certification may not leave out.
func ofSelection(r *report.Report) (findings []string) {
	find := func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) }
	s := r.Selection
	if s == nil {
		return []string{"the report does not say what was selected"}
	}
	switch {
	case len(s.Suites) > 0:
		find("only suites %v ran", s.Suites)
	case len(s.Focus) > 0:
		find("only %v was judged (--focus)", s.Focus)
	case len(s.Skip) > 0:
		find("%v was left out (--skip)", s.Skip)
	case s.Shard != nil:
		find("only shard %s was judged", s.Shard)
	case len(s.LeftOut) > 0:
		find("checks of %v were left out, because they are about other ranges", s.LeftOut)
	}
	if s.MaxWaitSeconds != 0 {
		find("the implementation had less time than the documents give it (--max-wait)")
	}
	if s.Expectations != "published" {
		find("the list of known deviations is not the published one: %s", s.Expectations)
	}
	if r.Interrupted || r.NotRun > 0 {
		find("%d checks were not judged", r.CutOff())
	}
	for _, e := range r.Ended {
		find("%s ended by itself", e.Program)
	}
	if len(r.Candidate.Faults) > 0 {
		find("faults were switched on: %v", r.Candidate.Faults)
	}
	return findings
}

// ofCompleteness finds checks without a result, and claimed requirements without a verdict. A selection or a claim that is missing is a finding of others.
func ofCompleteness(files Files, r *report.Report, suite Suite) (findings []string) {
	find := func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) }
	if claim, err := suite.ReadClaim(files[ImplementationFile]); err == nil {
		decided := map[spec.ID]bool{}
		for _, v := range r.Requirements {
			decided[v.ID] = true
		}
		for _, id := range slices.Sorted(maps.Keys(suite.Claimed(claim))) {
			if !decided[id] {
				find("%s is claimed, but has no verdict", id)
			}
		}
	}
	for _, line := range Uncovered(r) {
		find("%s", line)
	}
	s := r.Selection
	if s == nil {
		return findings
	}
	judged := map[string]bool{}
	for _, c := range r.Checks {
		judged[c.Check] = true
	}
	missing := slices.DeleteFunc(suite.Checks(s), func(name string) bool { return judged[name] })
	for i, name := range missing {
		if i == 5 {
			find("and %d more checks have no result", len(missing)-i)
			break
		}
		find("check %q has no result", name)
	}
	return findings
}

// Uncovered says of each profile that is claimed and not certified, for a MUST of it was not judged, how many were not and what would judge one.
func Uncovered(r *report.Report) (lines []string) {
	for _, p := range r.Profiles {
		if p.MustsNotJudged > 0 {
			lines = append(lines, fmt.Sprintf("profile %s is claimed, and %d of its MUST requirements were not judged%s", p.Profile, p.MustsNotJudged, firstUnjudged(r, p.Profile)))
		}
	}
	return lines
}

// firstUnjudged names a MUST of the profile that was not judged, with the reason and with what would decide it.
func firstUnjudged(r *report.Report, profile spec.Profile) string {
	for _, u := range r.NotJudged() {
		q := spec.Default().Get(u.ID)
		if q == nil || q.Profile != profile || q.Level != spec.Must {
			continue
		}
		text := fmt.Sprintf(", such as %s: %s", u.ID, u.Why)
		if u.By != "" {
			text += " (judged by: " + u.By + ")"
		}
		return text
	}
	return ""
}

// ofClaim compares the report with the implementation file.
func ofClaim(files Files, r *report.Report, suite Suite) (findings []string) {
	data, there := files[ImplementationFile]
	if !there {
		return nil
	}
	claim, err := suite.ReadClaim(data)
	if err != nil {
		return []string{err.Error()}
	}
	find := func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) }
	if r.Submitter == nil || !reflect.DeepEqual(*r.Submitter, claim.Submitter) {
		find("the report names another organization, project, version, URL or contact than %s", ImplementationFile)
	}
	if r.Selection != nil {
		if !slices.Equal(r.Selection.Features, claim.Features) {
			find("the report is of the features %v, %s claims %v", r.Selection.Features, ImplementationFile, claim.Features)
		}
		if !slices.Equal(r.Selection.ClaimedSuites, claim.Suites) {
			find("the report is of the suites %v, %s claims %v", r.Selection.ClaimedSuites, ImplementationFile, claim.Suites)
		}
		var profiles []string
		for _, p := range r.Selection.Profiles {
			profiles = append(profiles, string(p))
		}
		if !slices.Equal(profiles, claim.Profiles) {
			find("the report is of the profiles %v, %s claims %v", profiles, ImplementationFile, claim.Profiles)
		}
	}
	declared := map[string]string{}
	for name, value := range r.Candidate.Declarations {
		declared[string(name)] = value
	}
	if claim.Declarations != nil && !maps.Equal(declared, claim.Declarations) {
		find("the report has other declarations than %s", ImplementationFile)
	}
	return findings
}

// ofDeviations finds excuses that are in no published list of this program.
func ofDeviations(r *report.Report) (findings []string) {
	published, err := report.PublishedExpectations(&r.Candidate)
	if err != nil {
		return []string{err.Error()}
	}
	told := map[string]bool{}
	for i, c := range r.Checks {
		x := c.KnownDeviation
		if x == nil {
			continue
		}
		text := ""
		listed := slices.IndexFunc(published.Deviations, func(p report.Expectation) bool {
			return p == *x || r.Catalogue != spec.Digest() && p.Excuses(x) // lists are reworded with the catalogue
		})
		switch {
		case listed < 0:
			text = fmt.Sprintf("the known deviation of %s is in no published list", x.Requirement)
		case !r.Checks[i].CoveredBy(&published.Deviations[listed], &r.Candidate, r.Started):
			text = fmt.Sprintf("the known deviation of %s does not cover check %q", x.Requirement, c.Check)
		}
		if text != "" && !told[text] {
			told[text] = true
			findings = append(findings, text)
		}
	}
	return findings
}

// printable is text of others without what moves the cursor of a terminal.
func printable(text string) string {
	runes := []rune(text)
	for i, r := range runes {
		if !unicode.IsPrint(r) {
			runes[i] = '�'
		}
	}
	return string(runes)
}
