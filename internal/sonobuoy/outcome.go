package sonobuoy

import (
	"encoding/xml"
	"io"
	"path/filepath"

	"github.com/service-conformance/conformance/internal/wholefile"
)

// outcomeFile stands beside the JUnit file of the checks. Sonobuoy reads every XML file of the results.
const outcomeFile = "junit_run.xml"

// Outcome is how a run ended as a whole.
type Outcome struct {
	// Failed says that the candidate is not conformant; Broken, that the run decided nothing or not all. Neither is a pass.
	Failed, Broken bool
	// Text says why, or what the verdict is.
	Text string
}

type (
	outcomeSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suite   outcomeSuite `xml:"testsuite"`
	}
	outcomeSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Time     string      `xml:"time,attr"`
		Case     outcomeCase `xml:"testcase"`
	}
	outcomeCase struct {
		Name      string          `xml:"name,attr"`
		Classname string          `xml:"classname,attr"`
		Failure   *outcomeMessage `xml:"failure"`
		Error     *outcomeMessage `xml:"error"`
		Output    string          `xml:"system-out,omitempty"`
	}
	outcomeMessage struct {
		Message string `xml:"message,attr"`
	}
)

// WriteOutcome writes the outcome as one test case into ReportDir and returns the path of the file. Without it Sonobuoy
// would call a run passed that was interrupted before a check failed. It would know nothing of one that could not
// begin. It counts test cases, and does not see how the process ended.
func (r *Results) WriteOutcome(o Outcome) (path string, err error) {
	all := outcomeSuites{Suite: outcomeSuite{Name: "run", Tests: 1, Time: "0", Case: outcomeCase{Name: "the run as a whole", Classname: "conformance"}}}
	switch s := &all.Suite; {
	case o.Failed:
		s.Failures, s.Case.Failure = 1, &outcomeMessage{o.Text}
	case o.Broken:
		s.Errors, s.Case.Error = 1, &outcomeMessage{o.Text}
	default:
		s.Case.Output = o.Text
	}
	path = filepath.Join(r.ReportDir(), outcomeFile)
	return path, wholefile.Stream(path, worldReadable, func(w io.Writer) error {
		if _, err := io.WriteString(w, xml.Header); err != nil {
			return err
		}
		encoder := xml.NewEncoder(w)
		encoder.Indent("", "  ")
		return encoder.Encode(all)
	})
}
