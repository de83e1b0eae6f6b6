package main

import (
	"strings"
	"testing"
)

func TestPageShowsWhatWasMeasured(t *testing.T) {
	f := &File{
		Version: "v1.0.0", Machine: Machine{Processor: "Processor", Cores: 2, Memory: 24, Kernel: "Linux 6.18", Go: "go1.26.8"},
		Runs: []Measurement{
			{Name: "reference", Command: "conformance run", Commit: "abc", N: 3, Wall: Spread{1.9, 1.8, 2.4}, Processor: Spread{3, 3, 3}, Memory: Spread{90, 90, 90}, Checks: 866, Verdict: "conformant", Busy: 0.03},
			{Name: "kind", Command: "conformance run --tier kind", N: 1, Wall: Spread{679, 679, 679}, Changes: 396, P50: 1.47, P99: 9.02, Busy: 0.7},
		},
		Allocators: []Allocator{{99, 36, 13988}},
	}
	text, err := render([]*File{f})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"## Processor, 2 cores, 24 GiB of memory, Linux 6.18, Go 1.26.8\n",
		"| all suites on the reference | 1.9 s (1.8 to 2.4) | 3.0 s | 90 MiB | 866 | conformant | 3 | quiet |\n",
		"| 11 min 19 s | 0.0 s | 0 MiB | - | - | 1 | 70 % busy |\n",
		"| 396 | 1.47 s | 9.02 s |\n",
		"| 99 % | 36 | 13988 | 388.6 |\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "<no value>") || strings.Contains(string(text), "\n\n\n") {
		t.Errorf("the page has gaps:\n%s", text)
	}
}

func TestNewestVersionIsTheLast(t *testing.T) {
	for _, c := range [][2]string{{"v1.9.0", "v1.10.0"}, {"v1.10.0", "devel"}, {"v0.1.0", "v0.2.0"}} {
		if compareVersions(c[0], c[1]) >= 0 || compareVersions(c[1], c[0]) <= 0 {
			t.Errorf("%s is not before %s", c[0], c[1])
		}
	}
}

func TestMachineHasANameThatTellsNothingElse(t *testing.T) {
	m := Machine{Processor: "AMD EPYC (TM) 7B13", Cores: 2, Memory: 24}
	if got := m.name(); got != "amd-epyc-tm-7b13-2-cores-24-gib" {
		t.Error(got)
	}
}

func TestRunsStayInTheOrderOfTheCases(t *testing.T) {
	f := &File{}
	for _, name := range []string{"kind", "reference", "kind", "lab-iptables"} {
		f.put(Measurement{Name: name})
	}
	var names []string
	for _, m := range f.Runs {
		names = append(names, m.Name)
	}
	if got := strings.Join(names, " "); got != "reference lab-iptables kind" {
		t.Error(got)
	}
}
