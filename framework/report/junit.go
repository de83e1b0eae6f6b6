package report

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
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

// JUnit renders the report as JUnit XML: non-conformant is a failure (of type "known deviation" where an expectation covers
// it), unknown an error, blocked and not applicable skipped with their reasons.
func (r *Report) JUnit() ([]byte, error) {
	all := junitSuites{Name: "service conformance", Time: seconds(r.Seconds)}
	for _, c := range r.Checks {
		if len(all.Suites) == 0 || all.Suites[len(all.Suites)-1].Name != c.Suite {
			all.Suites = append(all.Suites, junitSuite{Name: c.Suite, Timestamp: r.Started.Format("2006-01-02T15:04:05"), Properties: r.properties()})
		}
		s := &all.Suites[len(all.Suites)-1]
		j := junitCase{Name: c.DisplayName(), Classname: "conformance." + c.Suite, Time: seconds(c.Seconds), Output: evidenceText(&c.Result)}
		switch c.Verdict {
		case check.NonConformant:
			kind := "non-conformant"
			if c.KnownDeviation != nil {
				kind = "known deviation"
			}
			j.Failure = &junitMessage{Message: printable(c.Line()), Type: kind, Text: printable(failureText(&c))}
			s.Failures++
		case check.Blocked:
			j.Skipped = &junitMessage{Message: blockedText(&c)}
			s.Skipped++
		case check.Unknown:
			j.Error = &junitMessage{Message: printable(c.Reason), Type: "unknown"}
			s.Errors++
		case check.NotApplicable:
			j.Skipped = &junitMessage{Message: printable(c.Reason)}
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
		all.Skipped += s.Skipped
	}
	data, err := xml.MarshalIndent(all, "", "  ")
	return append([]byte(xml.Header), append(data, '\n')...), err
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

// asAWhole is a suite of errors of the run itself, without cases if it has none: one that was cut off, or judged what had ended, is no pass, though all that it saw may be.
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
		fail("judges every check", fmt.Sprintf("interrupted: %d checks were not judged", r.NotJudged()))
	}
	for _, e := range r.Ended {
		fail(e.Program+" runs until the end", e.How)
	}
	return s
}

// DisplayName is the check's name with its range.
func (c *CheckVerdict) DisplayName() string {
	if c.ServiceCIDR == "" {
		return c.Check
	}
	return c.Check + " [" + c.ServiceCIDR + "]"
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
