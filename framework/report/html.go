package report

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"sync"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/framework/words"
)

//go:embed page/report.html page/page.css page/report.js
var pageFiles embed.FS

// page is the template of report.html, with style and script in it: the page asks for nothing.
var page = sync.OnceValues(func() (*template.Template, error) {
	css, err := pageFiles.ReadFile("page/page.css")
	if err != nil {
		return nil, err
	}
	js, err := pageFiles.ReadFile("page/report.js")
	if err != nil {
		return nil, err
	}
	text, err := pageFiles.ReadFile("page/report.html")
	if err != nil {
		return nil, err
	}
	script, err := words.Script(words.Verdicts, words.Shared, words.Page)
	if err != nil {
		return nil, err
	}
	filled, err := words.Fill(string(text))
	if err != nil {
		return nil, err
	}
	// The lines of the template are for its authors: no text goes over the end of one.
	lines := strings.Split(filled, "\n")
	return template.New("report.html").Funcs(words.Functions).Funcs(template.FuncMap{
		"said": Said,
		"css":  func() template.CSS { return template.CSS(css) },                    //nolint:gosec // a file of this package
		"js":   func() template.JS { return template.JS(script) + template.JS(js) }, //nolint:gosec // files of the program
		"time": shortTime,
		"join": func(texts []string) string { return strings.Join(texts, ", ") },
	}).Parse(strings.Join(lines, ""))
})

// pageView is what the page shows.
type pageView struct {
	*Report
	Name         string
	Words        []words.Phrase
	Class        string
	Red          []spec.ID
	Facts        []fact
	Suites       []string
	Features     []string
	Verdicts     []string
	Requirements []requirementView
	Histogram    *histogram
}

// fact is something that identifies the run; Key is that of its name.
type fact struct{ Key, Name, Value string }

// requirementView is a requirement with its checks.
type requirementView struct {
	RequirementVerdict
	Class      string
	Words      string
	Suite      string
	Feature    string
	Notes      string
	Sources    []spec.Reference
	Deviations []spec.Deviation
	Bugs       []spec.RealBug
	MoreBugs   int // that `conformance explain` and the website name
	Checks     []checkView
}

// shownBugs bounds how many public bugs of a requirement the page names, for it must stay small.
const shownBugs = 1

// checkView is a check under a requirement. Whole is false where the check is shown in full under another one, Under.
type checkView struct {
	*CheckVerdict
	Class string
	Words string
	Title string
	Known string
	Whole bool
	Under spec.ID
	Said  string
	Times string
	Graph *graph
	Bands []bandPicture
	// Timelines are drawn once the page is in its order. NotDrawn says that there is one for which the page has no room.
	Timelines []*timelinePicture
	NotDrawn  bool
}

// classes are the style classes of verdicts.
var classes = map[check.Verdict]string{
	check.Conformant: "good", check.NonConformant: "bad", check.Blocked: "blocked", check.Unknown: "unknown", check.NotJudged: "unjudged", check.NotApplicable: "na", InPart: "unjudged", AsExpected: "known", Unlisted: "bad",
}

// ClassOf is the style class of a verdict in pages.
func ClassOf(v check.Verdict) string { return classes[v] }

func classOf(v check.Verdict, known bool) (class, named string) {
	if known {
		return "known", "known deviation"
	}
	return classes[v], string(v)
}

// HTML renders the report as one page that holds everything it needs. Text of the candidate is escaped by html/template.
func (r *Report) HTML() ([]byte, error) {
	t, err := page()
	if err != nil {
		return nil, err
	}
	v := pageView{Report: r, Name: r.Title(), Red: r.reds(), Words: r.sentences(), Class: classes[r.Verdict], Facts: r.facts(), Histogram: r.histogram()}
	of := map[spec.ID][]*CheckVerdict{}
	for i := range r.Checks {
		c := &r.Checks[i]
		for _, id := range c.Requirements {
			of[id] = append(of[id], c)
		}
	}
	for _, verdict := range r.Requirements {
		q := requirementView{RequirementVerdict: verdict, Suite: "unknown", Feature: "unknown"}
		q.Class, q.Words = classOf(verdict.Verdict, verdict.KnownDeviation)
		if known := spec.Default().Get(verdict.ID); known != nil {
			q.Suite, q.Feature, q.Notes = string(known.Area), known.Feature, known.Notes
			q.Sources, q.Deviations, q.Bugs = spec.Default().References(known), known.Deviations, spec.RealBugs(known.ID)
			q.MoreBugs = max(0, len(q.Bugs)-shownBugs)
			q.Bugs = q.Bugs[:len(q.Bugs)-q.MoreBugs]
		}
		for _, c := range of[verdict.ID] {
			q.Checks = append(q.Checks, r.checkView(c, verdict.ID))
		}
		slices.SortStableFunc(q.Checks, func(a, b checkView) int { return severity(b.Class) - severity(a.Class) })
		v.Suites, v.Features, v.Verdicts = append(v.Suites, q.Suite), append(v.Features, q.Feature), append(v.Verdicts, q.Words)
		v.Requirements = append(v.Requirements, q)
	}
	slices.SortStableFunc(v.Requirements, func(a, b requirementView) int { return severity(b.Class) - severity(a.Class) })
	drawTimelines(v.Requirements)
	for _, names := range []*[]string{&v.Suites, &v.Features, &v.Verdicts} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, v); err != nil {
		return nil, err
	}
	return []byte(printable(out.String())), nil
}

// severity orders classes: what needs somebody comes first.
func severity(class string) int {
	return slices.Index([]string{"na", "good", "known", "unjudged", "blocked", "unknown", "bad"}, class)
}

func (r *Report) checkView(c *CheckVerdict, id spec.ID) checkView {
	_, title, _ := strings.Cut(c.Check, ": ")
	x := checkView{CheckVerdict: c, Title: title, Under: c.home()}
	x.Whole = x.Under == id
	on := c.VerdictOn(id)
	x.Class, x.Words = classOf(on, on == check.NonConformant && c.KnownDeviation != nil)
	if !x.Whole {
		return x
	}
	if c.KnownDeviation != nil {
		x.Known = c.KnownDeviation.Reason
	}
	x.Times = timesOf(c.Convergence)
	if c.Failure != nil {
		x.Said = failureText(c)
		x.Graph = graphOf(c.Failure.Cases)
	}
	for _, e := range c.Evidence {
		if e.Addresses != nil {
			x.Bands = append(x.Bands, bandsOf(e.Name, e.Addresses))
		}
	}
	return x
}

// home is the requirement under which the check is shown in full: of those that it is worst for, the first. One that it did not come to is the last.
func (c *CheckVerdict) home() spec.ID {
	rank := func(id spec.ID) int {
		on := c.VerdictOn(id)
		if on == check.NotJudged && c.endedAtKnownDeviation() {
			return -1
		}
		return severity(classes[on])
	}
	home := c.Requirements[0]
	for _, id := range c.Requirements[1:] {
		if rank(id) > rank(home) {
			home = id
		}
	}
	return home
}

// timesOf are times to consistency in one line.
func timesOf(all []check.Convergence) string {
	var texts []string
	for _, c := range all {
		texts = append(texts, fmt.Sprintf("%s: %.2f s", c.What, c.Seconds))
	}
	return strings.Join(texts, "; ")
}

// reds are the requirements that the failures go back to.
func (r *Report) reds() (ids []spec.ID) {
	for _, root := range r.Roots {
		ids = append(ids, root.Requirement)
	}
	return ids
}

// facts are what identifies the run.
func (r *Report) facts() (all []fact) {
	add := func(name, value string) { // name is the key of a word
		if value != "" {
			all = append(all, fact{name, words.In(spec.Languages[0], name), value})
		}
	}
	c := &r.Candidate
	if s := r.Submitter; s != nil {
		add("organization", s.Organization)
		add("project", strings.TrimSpace(s.Project+" "+s.Version))
		add("address", s.URL)
		add("contact", strings.Join(s.Contact, ", "))
	}
	add("control-plane", strings.TrimSpace(c.Implementation+" "+c.Version))
	add("service-proxy", c.DataPlane.String())
	add("proxy-mode", c.ProxyMode)
	add("tier", c.Tier)
	for _, name := range []string{"etcd", "go", "kernel"} {
		add(name, c.Components[name])
	}
	add("suite", r.SuiteVersion)
	add("started", r.Started.Format("2006-01-02 15:04:05 MST"))
	add("duration", fmt.Sprintf("%.1f s", r.Seconds))
	add("seed", fmt.Sprint(r.Seed))
	add("residue", r.ResidueLine())
	if r.Selection.ofShard() {
		add("shard", r.Selection.Shard.String())
	}
	if s := r.Selection; s != nil && len(s.Arguments) > 0 {
		add("command", "conformance "+strings.Join(s.Arguments, " "))
	}
	add("catalogue", r.Catalogue)
	return all
}

// Said is the statement of a requirement in every language, of which a page shows one: the attribute data-language of its root names it.
func Said(id spec.ID) template.HTML {
	r := spec.Default().Get(id)
	if r == nil {
		return ""
	}
	return words.InAll(r.In)
}

// Style is the style sheet of pages, for pages beside this one.
func Style() (string, error) {
	css, err := pageFiles.ReadFile("page/page.css")
	return string(css), err
}
