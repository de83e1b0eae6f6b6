package report

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Time       string          `xml:"time,attr"`
	Timestamp  string          `xml:"timestamp,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
	seconds    float64
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Name      string        `xml:"name,attr"`
	Classname string        `xml:"classname,attr"`
	Time      string        `xml:"time,attr"`
	Failure   *junitMessage `xml:"failure"`
	Error     *junitMessage `xml:"error"`
	Skipped   *junitMessage `xml:"skipped"`
	Output    string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// JUnit renders the report as JUnit XML, with a failure or an error exactly if the exit code of the run is not 0. A check that finds a MUST not met is a
// failure, one that cannot decide a MUST an error. Known deviations, what only SHOULD be met, and what was blocked or does not apply are skipped with the reason.
func (r *Report) JUnit() ([]byte, error) {
	all := junitSuites{Name: "service conformance", Time: seconds(r.Seconds)}
	must := map[spec.ID]bool{}
	for _, v := range r.Requirements {
		must[v.ID] = v.Level == spec.Must
	}
	isMust := func(id spec.ID) bool { return must[id] }
	for i := range r.Checks {
		c := &r.Checks[i]
		if len(all.Suites) == 0 || all.Suites[len(all.Suites)-1].Name != c.Suite {
			all.Suites = append(all.Suites, junitSuite{Name: c.Suite, Timestamp: r.Started.Format("2006-01-02T15:04:05"), Properties: r.properties()})
		}
		s := &all.Suites[len(all.Suites)-1]
		j := c.junit(isMust)
		switch {
		case j.Failure != nil:
			s.Failures++
		case j.Error != nil:
			s.Errors++
		case j.Skipped != nil:
			s.Skipped++
		}
		s.Cases = append(s.Cases, j)
		s.Tests++
		s.seconds += c.Seconds
		s.Time = seconds(s.seconds)
	}
	if len(r.UnexpectedPasses) > 0 {
		all.Suites = append(all.Suites, r.unexpected())
	}
	if whole := r.asAWhole(); whole.Tests > 0 {
		all.Suites = append(all.Suites, whole)
	}
	for _, s := range all.Suites {
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
	}
	data, err := xml.MarshalIndent(all, "", "  ")
	return append([]byte(xml.Header), append(data, '\n')...), err
}

// junit is the test case of a check. Its name and its class stay the same when a sentence is reworded.
func (c *CheckVerdict) junit(isMust func(spec.ID) bool) junitCase {
	j := junitCase{
		Name: c.StableName(), Classname: "conformance." + c.Suite, Time: seconds(c.Seconds), Output: c.propertiesText() + evidenceText(&c.Result),
	}
	if first := spec.Default().Get(c.Requirements[0]); first != nil {
		j.Classname += "." + first.Feature
	}
	skipped := func(why, text string) { j.Skipped = &junitMessage{Message: printable(why), Text: printable(text)} }
	switch must := c.onMusts(isMust); {
	case must == check.NonConformant:
		j.Failure = &junitMessage{Message: printable(c.Line()), Type: string(check.NonConformant), Text: printable(failureText(c))}
	case must == check.Unknown:
		j.Error = &junitMessage{Message: printable(c.Line()), Type: string(check.Unknown)}
	case c.Verdict == check.NonConformant && c.KnownDeviation != nil:
		skipped("known deviation: "+oneLine(c.KnownDeviation.Reason), failureText(c))
	case c.Verdict == check.NonConformant:
		skipped("not met, but only a SHOULD: "+c.Line(), failureText(c))
	case c.Verdict == check.Unknown:
		skipped("undecided, but only a SHOULD: "+c.Reason, "")
	case c.Verdict == check.Blocked:
		skipped(blockedText(c), "")
	case c.Verdict == check.NotJudged:
		skipped("not judged: "+c.Line(), "")
	case c.Verdict == check.NotApplicable:
		skipped("not applicable: "+c.Reason, "")
	}
	return j
}

// propertiesText are properties of the check, in the form in which readers find them in the output of a test case. The schema of Jenkins' xUnit plugin, which refuses
// a whole file for what it does not know, has no properties of test cases.
func (c *CheckVerdict) propertiesText() string {
	var b strings.Builder
	property := func(name, value string) { fmt.Fprintf(&b, "[[PROPERTY|%s=%s]]\n", name, printable(value)) }
	property("check", c.Check)
	for _, id := range c.Requirements {
		known := spec.Default().Get(id)
		if known == nil {
			continue
		}
		property("requirement", string(id))
		property("level", string(known.Level))
		property("statement", known.Statement)
		for _, source := range spec.Default().References(known) {
			property("source", source.URL)
		}
	}
	return b.String()
}

// onMusts is the worst verdict of the check on requirements that MUST be met, known deviations left aside; not applicable if there are none.
func (c *CheckVerdict) onMusts(isMust func(spec.ID) bool) check.Verdict {
	worst := check.NotApplicable
	for _, id := range c.Requirements {
		on := c.VerdictOn(id)
		if isMust(id) && (c.KnownDeviation == nil || on != check.NonConformant) {
			worst = check.Worse(worst, on)
		}
	}
	return worst
}

// Red reports whether the check finds a MUST not met, or cannot decide one, and no known deviation excuses it. Then the
// run cannot end well.
func (c *CheckVerdict) Red() bool {
	worst := c.onMusts(func(id spec.ID) bool {
		r := spec.Default().Get(id)
		return r != nil && r.Level == spec.Must
	})
	return worst == check.NonConformant || worst == check.Unknown
}

// StableName names the check and its range, the same when its title is reworded.
func (c *CheckVerdict) StableName() string {
	name := spec.DefaultCheckNames().Stable(c.Check)
	if c.ServiceCIDR != "" {
		name += " [" + c.ServiceCIDR + "]"
	}
	return name
}

// properties say of what the run was, and what it found.
func (r *Report) properties() []junitProperty {
	return []junitProperty{
		{"implementation", r.Candidate.Implementation}, {"version", r.Candidate.Version}, {"tier", r.Candidate.Tier},
		{"suiteVersion", r.SuiteVersion}, {"seed", fmt.Sprint(r.Seed)}, {"verdict", string(r.Verdict)}, {"judged", r.judged()},
	}
}

// unexpected is a suite of failures, one for each expected failure that passed.
func (r *Report) unexpected() junitSuite {
	s := junitSuite{Name: "expectations", Timestamp: r.Started.Format("2006-01-02T15:04:05"), Time: seconds(0)}
	for _, x := range r.UnexpectedPasses {
		s.Cases = append(s.Cases, junitCase{
			Name: string(x.Requirement) + ": known deviation", Classname: "conformance.expectations", Time: seconds(0),
			Failure: &junitMessage{Message: "an expected failure passed: correct the list of known deviations", Type: "unexpected pass", Text: printable(x.Reason)},
		})
		s.Tests++
		s.Failures++
	}
	return s
}

// asAWhole is a suite of errors of the run itself, without cases if it has none. A run that was cut off, or judged what
// had ended, is no pass, though all that it saw may be.
func (r *Report) asAWhole() junitSuite {
	s := junitSuite{Name: "run", Timestamp: r.Started.Format("2006-01-02T15:04:05"), Time: seconds(0), Properties: r.properties()}
	fail := func(name, message string) {
		s.Cases = append(s.Cases, junitCase{
			Name: name, Classname: "conformance.run", Time: seconds(0), Error: &junitMessage{Message: printable(message), Type: "unknown"},
		})
		s.Tests++
		s.Errors++
	}
	if r.Interrupted {
		fail("judges every check", fmt.Sprintf("interrupted: %d checks were not judged", r.CutOff()))
	}
	for _, e := range r.Ended {
		fail(e.Program+" runs until the end", e.How)
	}
	if r.NotRun > 0 && !r.Interrupted {
		fail("judges every check", fmt.Sprintf("%d checks gave no result", r.NotRun))
	}
	if r.Verdict == check.Blocked {
		fail("finds what blocks", "what blocks other requirements is no failure of this run, so they are undecided")
	}
	if r.Verdict == check.NotApplicable || r.Verdict == check.NotJudged {
		fail("decides something", r.verdictOnMusts())
	}
	return s
}

// DisplayName is the check's name with its range.
func (c *CheckVerdict) DisplayName() string {
	return check.DisplayName(c.Check, c.ServiceCIDR)
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", s) }

// printable drops the characters that XML 1.0 cannot hold.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, s)
}

func evidenceText(r *check.Result) string {
	var b strings.Builder
	for _, e := range r.Evidence {
		fmt.Fprintf(&b, "%s: %s\n", e.Name, e.Value)
	}
	for _, c := range r.Convergence {
		fmt.Fprintf(&b, "%s after %.3f s\n", c.What, c.Seconds)
	}
	return printable(b.String())
}
