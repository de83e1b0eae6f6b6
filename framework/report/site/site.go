// Package site makes a static website of published reports. It has an overview, a page for each implementation with its
// history, a page for each requirement, and the reports themselves. Pages link to each other by relative addresses and
// load nothing but the style and the script beside them.
package site

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/report/collection"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/framework/words"
)

// Start is the page to begin with.
const Start = "index.html"

// mark is a file that only this package writes: its folder may be replaced.
const mark = "site.js"

//go:embed page/*
var pageFiles embed.FS

// Is reports whether a folder is a website that this package has made.
func Is(dir string) bool {
	_, errStart := os.Stat(filepath.Join(dir, Start))
	_, errMark := os.Stat(filepath.Join(dir, mark))
	return errStart == nil && errMark == nil
}

// Make makes the files of the website, by slash-separated path. The entries are in the order of collection.Open.
func Make(all []collection.Entry) (map[string][]byte, error) {
	t, err := templates()
	if err != nil {
		return nil, err
	}
	s := &maker{files: map[string][]byte{}, templates: t, newest: newest(all)}
	style, err := report.Style()
	if err != nil {
		return nil, err
	}
	own, err := pageFiles.ReadFile("page/site.css")
	if err != nil {
		return nil, err
	}
	script, err := words.Script(words.Verdicts, words.Shared, words.Site)
	if err != nil {
		return nil, err
	}
	js, err := pageFiles.ReadFile("page/site.js")
	if err != nil {
		return nil, err
	}
	s.files[mark] = append(script, js...)
	s.files["site.css"] = append([]byte(style), own...)
	for i := range all {
		e := &all[i]
		if s.files[reportPage(e)], err = e.Report.HTML(); err != nil {
			return nil, err
		}
		s.files[archive(e)] = e.Archive
	}
	if err := s.write(Start, "overview.html", s.overview()); err != nil {
		return nil, err
	}
	for _, name := range implementations(all) {
		if err := s.write(implementationPage(name), "implementation.html", s.implementation(name, all)); err != nil {
			return nil, err
		}
	}
	verdicts := make([]map[spec.ID]report.RequirementVerdict, len(all))
	for i := range all {
		verdicts[i] = all[i].Report.ByID()
	}
	for i := range spec.Default().Requirements {
		r := &spec.Default().Requirements[i]
		if err := s.write(requirementPage(r.ID), "requirement.html", requirement(r, all, verdicts)); err != nil {
			return nil, err
		}
	}
	return s.files, nil
}

// templates are those of the pages, with their words in English.
func templates() (*template.Template, error) {
	t := template.New("").Funcs(words.Functions).Funcs(template.FuncMap{"said": report.Said, "under": func(up string, row requirementRow) any {
		return struct {
			Up  string
			Row requirementRow
		}{up, row}
	}})
	names, err := fs.Glob(pageFiles, "page/*.html")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := pageFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		filled, err := words.Fill(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if _, err := t.New(path.Base(name)).Parse(filled); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Paths of pages, from the folder of the site on.
func reportPage(e *collection.Entry) string { return "reports/" + e.Path() + ".html" }
func archive(e *collection.Entry) string    { return "reports/" + e.Path() + ".tar.gz" }
func implementationPage(name string) string { return "implementations/" + name + ".html" }
func requirementPage(id spec.ID) string     { return "requirements/" + string(id) + ".html" }

// maker makes the pages.
type maker struct {
	files     map[string][]byte
	templates *template.Template
	newest    []*collection.Entry
}

// frame is what every page has around it.
type frame struct {
	Title string
	// Word is the key of the title, if it is a word.
	Word string
	// Up leads from the page to the folder of the site: "" or "../".
	Up   string
	Page any
}

type titled interface{ title() string }

func (s *maker) write(name, of string, page titled) error {
	var out bytes.Buffer
	f := frame{Title: page.title(), Up: strings.Repeat("../", strings.Count(name, "/")), Page: page}
	if _, ok := page.(*overview); ok {
		f.Word = overviewTitle
	}
	if err := s.templates.ExecuteTemplate(&out, of, f); err != nil {
		return fmt.Errorf("make %s: %w", name, err)
	}
	s.files[name] = out.Bytes()
	return nil
}

// newest are the entries of the newest version of each implementation and mode.
func newest(all []collection.Entry) (picked []*collection.Entry) {
	for i := range all {
		e := &all[i]
		if !slices.ContainsFunc(picked, func(p *collection.Entry) bool { return p.Implementation == e.Implementation && p.Mode == e.Mode }) {
			picked = append(picked, e)
		}
	}
	return picked
}

func implementations(all []collection.Entry) (names []string) {
	for i := range all {
		names = append(names, all[i].Implementation)
	}
	return slices.Compact(names)
}

// line is a report in a table.
type line struct {
	Name, Version, Mode  string
	Class                string
	Verdict              words.Phrase
	Report, Archive, Own string
	Counts               report.Counts
	Date, Tier, Suite    string
	Reproduce            string
	// NotMet and Unjudged are set on the page of the implementation; Newest is of the newest version there.
	NotMet   []notMet
	Unjudged []report.Unjudging
	Newest   bool
}

// notMet is a requirement that a report finds not met, with what was found.
type notMet struct {
	ID    spec.ID
	Level spec.Level
	Why   string
}

func lineOf(e *collection.Entry) line {
	return line{
		Name: e.Implementation, Version: e.Version, Mode: e.Mode, Class: report.ClassOf(e.Report.Standing()), Verdict: e.Report.ShortPhrase(), Report: reportPage(e), Archive: archive(e),
		Own: implementationPage(e.Implementation), Counts: e.Report.Summary.Requirements, Date: e.Report.Started.Format("2006-01-02"), Tier: e.Report.Candidate.Tier,
		Suite: e.Report.SuiteVersion, Reproduce: e.Manifest.Reproduce,
	}
}

// cell is the verdict of a report on something.
type cell struct{ Class, Verdict, Text, Column string }

// overview is the page that one comes to.
type overview struct {
	Newest   []line
	Columns  []string
	Profiles []profileRow
	// Requirements are all of the catalogue: Differing, on which the reports do not all find the same, and Agreed.
	Requirements      int
	Differing, Agreed []requirementRow
}

type profileRow struct {
	Name  spec.Profile
	Cells []cell
}

type requirementRow struct {
	ID      spec.ID
	Level   spec.Level
	Feature string
	Page    string
	Cells   []cell
	// Found is what a requirement was found to be, by whom, where that differs; worst first.
	Found []found
}

// found is what several reports find alike.
type found struct {
	Class, Verdict, Why string
	Names               []string
}

// overviewTitle is the key of its title.
const overviewTitle = "overview"

func (o *overview) title() string { return words.In(spec.Languages[0], overviewTitle) }

func (s *maker) overview() *overview {
	o := &overview{}
	byID := make([]map[spec.ID]report.RequirementVerdict, len(s.newest))
	for i, e := range s.newest {
		o.Newest = append(o.Newest, lineOf(e))
		o.Columns = append(o.Columns, e.Name())
		byID[i] = e.Report.ByID()
	}
	for _, p := range spec.Default().Profiles() {
		row, judged := profileRow{Name: p}, false
		for i, e := range s.newest {
			c := cell{Class: "na", Text: "–", Verdict: "not claimed", Column: o.Columns[i]}
			for _, v := range e.Report.Profiles {
				if n := v.Requirements; v.Profile == p {
					judged = true
					c.Text, c.Verdict = fmt.Sprintf("%d/%d", n.Conformant, n.Binding()), string(v.Verdict)
					c.Class = report.ClassOf(v.Verdict)
					if c.Class == "good" && n.KnownDeviations > 0 {
						c.Class, c.Verdict = "known", "known deviations"
					}
					if outside := e.Report.NotApplicableOf(p); outside > 0 {
						c.Text, c.Verdict = fmt.Sprintf("%s (%d)", c.Text, outside), fmt.Sprintf("%s, %d not applicable", c.Verdict, outside)
					}
				}
			}
			row.Cells = append(row.Cells, c)
		}
		if judged {
			o.Profiles = append(o.Profiles, row)
		}
	}
	for i := range spec.Default().Requirements {
		r := &spec.Default().Requirements[i]
		row := requirementRow{ID: r.ID, Level: r.Level, Feature: r.Feature, Page: requirementPage(r.ID)}
		decided := map[string]bool{}
		for i, e := range s.newest {
			v, judged := byID[i][r.ID]
			if !judged || v.Class() == "na" {
				continue
			}
			row.Cells = append(row.Cells, cell{Class: v.Class(), Verdict: v.Words(), Column: o.Columns[i]})
			if v.Class() == "unjudged" {
				continue
			}
			decided[v.Words()] = true
			why := ""
			if v.Class() != "good" {
				why = e.Report.Why(r.ID, v.Verdict)
			}
			row.find(v.Class(), v.Words(), why, o.Columns[i])
		}
		o.Requirements++
		if len(decided) > 1 {
			slices.SortStableFunc(row.Found, func(a, b found) int { return worst[a.Class] - worst[b.Class] })
			o.Differing = append(o.Differing, row)
			continue
		}
		row.Found = nil
		o.Agreed = append(o.Agreed, row)
	}
	slices.SortStableFunc(o.Differing, func(a, b requirementRow) int { return worst[a.Found[0].Class] - worst[b.Found[0].Class] })
	return o
}

// worst orders classes of verdicts.
var worst = map[string]int{"bad": 0, "blocked": 1, "unknown": 2, "known": 3, "good": 4}

// find adds what a report finds.
func (r *requirementRow) find(class, verdict, why, name string) {
	i := slices.IndexFunc(r.Found, func(f found) bool { return f.Verdict == verdict && f.Why == why })
	if i < 0 {
		i = len(r.Found)
		r.Found = append(r.Found, found{Class: class, Verdict: verdict, Why: why})
	}
	r.Found[i].Names = append(r.Found[i].Names, name)
}

// implementation is the page of an implementation.
type implementation struct {
	Name         string
	Organization string
	URL          string
	Lines        []line
	History      []history
	Timelines    []timeline
	Declarations []declared
}

// timeline is the versions of an implementation in one mode beside each other, the oldest first, and the requirements on which they differ.
type timeline struct {
	Mode     string
	Versions []string
	Rows     []requirementRow
}

// history is what changed between two versions in one mode.
type history struct {
	Mode, Old, New string
	Counted        words.Phrase
	Changes        []change
}

type change struct {
	report.Change
	Page string
}

type declared struct {
	Name         spec.Declarable
	About, Value string
}

// timelines are those of the modes that have several versions. The entries are of one implementation, the newest version of each mode first.
func timelines(entries []*collection.Entry) (all []timeline) {
	var modes []string
	for _, e := range entries {
		if !slices.Contains(modes, e.Mode) {
			modes = append(modes, e.Mode)
		}
	}
	for _, mode := range modes {
		t := timeline{Mode: mode}
		var verdicts []map[spec.ID]report.RequirementVerdict
		for _, e := range slices.Backward(entries) {
			if e.Mode == mode {
				t.Versions = append(t.Versions, e.Version)
				verdicts = append(verdicts, e.Report.ByID())
			}
		}
		if len(t.Versions) < 2 {
			continue
		}
		for i := range spec.Default().Requirements {
			r := &spec.Default().Requirements[i]
			row, decided := requirementRow{ID: r.ID, Level: r.Level, Page: requirementPage(r.ID)}, map[string]bool{}
			for k, version := range t.Versions {
				c := cell{Class: "na", Verdict: collection.NotClaimed, Text: "–", Column: version}
				if v, judged := verdicts[k][r.ID]; judged {
					c.Class, c.Verdict = v.Class(), v.Words()
					if c.Class != "na" && c.Class != "unjudged" {
						c.Text, decided[v.Words()] = "", true
					}
				}
				row.Cells = append(row.Cells, c)
			}
			if len(decided) > 1 {
				t.Rows = append(t.Rows, row)
			}
		}
		all = append(all, t)
	}
	return all
}

func (i *implementation) title() string { return i.Name }

func (s *maker) implementation(name string, all []collection.Entry) *implementation {
	page := &implementation{Name: name}
	of := map[string]*collection.Entry{} // the newer entry of the mode
	var own []*collection.Entry
	for i := range all {
		e := &all[i]
		if e.Implementation != name {
			continue
		}
		own = append(own, e)
		l := lineOf(e)
		l.Unjudged, l.Newest = e.Report.WhyNotJudged(), len(page.Lines) == 0 || e.Version == page.Lines[0].Version
		for _, v := range e.Report.Requirements {
			if v.Class() == "bad" || v.Class() == "blocked" {
				l.NotMet = append(l.NotMet, notMet{v.ID, v.Level, e.Report.Why(v.ID, v.Verdict)})
			}
		}
		page.Lines = append(page.Lines, l)
		if page.Organization == "" {
			page.Organization, page.URL = e.Report.Submitter.Organization, e.Report.Submitter.URL
			for _, d := range slices.Sorted(maps.Keys(spec.Declarables)) {
				if value := e.Report.Candidate.Declarations[d]; value != "" {
					page.Declarations = append(page.Declarations, declared{d, spec.About(d), value})
				}
			}
		}
		if newer := of[e.Mode]; newer != nil {
			changes := report.Changes(e.Report, newer.Report)
			h := history{Mode: e.Mode, Old: e.Version, New: newer.Version, Counted: report.CountedPhrase(changes)}
			for _, c := range changes {
				h.Changes = append(h.Changes, change{c, requirementPage(c.Requirement)})
			}
			page.History = append(page.History, h)
		}
		of[e.Mode] = e
	}
	page.Timelines = timelines(own)
	return page
}

// requirementView is the page of a requirement.
type requirementView struct {
	*spec.Requirement
	Sources []spec.Reference
	Bugs    []spec.RealBug
	Rows    []verdictRow
	// Silent are the reports that have not judged it.
	Silent []string
}

type verdictRow struct {
	line
	Class, Verdict, Why string
}

func (r *requirementView) title() string { return string(r.ID) }

func requirement(r *spec.Requirement, all []collection.Entry, verdicts []map[spec.ID]report.RequirementVerdict) *requirementView {
	page := &requirementView{Requirement: r, Sources: spec.Default().References(r), Bugs: spec.RealBugs(r.ID)}
	for i := range all {
		e := &all[i]
		v, judged := verdicts[i][r.ID]
		if !judged {
			page.Silent = append(page.Silent, e.Name())
			continue
		}
		row := verdictRow{line: lineOf(e), Class: v.Class(), Verdict: v.Words()}
		if row.Class != "good" {
			row.Why = e.Report.Why(r.ID, v.Verdict)
		}
		page.Rows = append(page.Rows, row)
	}
	return page
}
