// Package readers reads what a run writes with the programs that others read it with. It is a module of its own, so that the program does not depend on them.
// `make readers` runs it.
package readers

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joshdk/go-junit"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// file reads a file of the run that the variable REPORT names.
func file(t *testing.T, name string) []byte {
	t.Helper()
	dir := os.Getenv("REPORT")
	if dir == "" {
		t.Fatal("REPORT is not set: run make readers")
	}
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// summary is what the report itself counts.
func summary(t *testing.T) (checks, failing int) {
	t.Helper()
	var r struct {
		Checks  []struct{ Verdict string }
		Summary struct {
			Checks struct{ NonConformant, KnownDeviations int }
		}
	}
	if err := json.Unmarshal(file(t, "report.json"), &r); err != nil {
		t.Fatal(err)
	}
	return len(r.Checks), r.Summary.Checks.NonConformant - r.Summary.Checks.KnownDeviations
}

func TestAReaderOfJUnitCountsWhatTheReportCounts(t *testing.T) {
	suites, err := junit.Ingest(file(t, "junit_01.xml"))
	if err != nil {
		t.Fatal(err)
	}
	tests, failed, errors := 0, 0, 0
	for _, s := range suites {
		tests, failed, errors = tests+s.Totals.Tests, failed+s.Totals.Failed, errors+s.Totals.Error
	}
	checks, failing := summary(t)
	if tests != checks || failed == 0 || failed > failing || errors != 0 {
		t.Errorf("the reader counts %d tests, %d failed, %d errors; the report has %d checks, %d of them not met", tests, failed, errors, checks, failing)
	}
}

func TestPrometheusReadsTheMetrics(t *testing.T) {
	parser := textparse.NewOpenMetricsParser(file(t, "metrics.txt"), labels.NewSymbolTable())
	samples, verdicts := 0, 0.0
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		samples++
		var l labels.Labels
		parser.Labels(&l)
		if _, _, value := parser.Series(); strings.HasPrefix(l.Get(labels.MetricName), "conformance_checks") {
			verdicts += value
		}
	}
	checks, _ := summary(t)
	if samples < 500 || int(verdicts) != checks {
		t.Errorf("%d samples; they count %v checks, the report %d", samples, verdicts, checks)
	}
}
