package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// quietShare is how much of the processors others may take on a quiet machine.
const quietShare = 0.1

// page is what writePage writes.
var page = filepath.Join("..", "docs", "performance.md")

// writePage writes docs/performance.md from what was measured of the newest version.
func writePage() error {
	files, err := latest()
	if err != nil {
		return err
	}
	text, err := render(files)
	if err != nil {
		return err
	}
	return os.WriteFile(page, text, 0o644)
}

func render(files []*File) ([]byte, error) {
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, files)
	return b.Bytes(), err
}

var pageTemplate = template.Must(template.New("performance").Funcs(template.FuncMap{
	"what": func(m Measurement) string {
		if c := find(m.Name); c != nil {
			return c.What
		}
		return m.Name
	},
	"seconds":      seconds,
	"percent":      func(a Allocator) string { return fmt.Sprintf("%d %%", a.Full) },
	"ratio":        func(a Allocator) string { return fmt.Sprintf("%.1f", a.Kubernetes/a.Reference) },
	"times":        func(each float64, n int) float64 { return each * float64(n) },
	"milliseconds": func(s float64) string { return fmt.Sprintf("%.1f ms", 1000*s) },
	"quiet": func(m Measurement) string {
		if m.Busy <= quietShare {
			return "quiet"
		}
		return fmt.Sprintf("%.0f %% busy", 100*m.Busy)
	},
	"consistent": func(ms []Measurement) (out []Measurement) {
		for _, m := range ms {
			if m.Changes > 0 && m.Name != "reference" { // whose clock is virtual
				out = append(out, m)
			}
		}
		return out
	},
	"or": func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	},
	"checks": func(m Measurement) string {
		if m.Checks == 0 {
			return "-"
		}
		return fmt.Sprint(m.Checks)
	},
}).Parse(`# Performance

<!-- Written by bench page from bench/results. Do not edit. -->

This page has the figures of this release. [bench](../bench) measured them and wrote this page. Each
figure is a median, with the smallest and the largest value where there was more than one run.
Processor time is that of the whole machine, so it counts containers too. That of a build is its
own.
{{range .}}
## {{.Machine}}
{{with .Runs}}
| what | wall time | processor time | memory | checks | verdict | runs | machine |
|---|--:|--:|--:|--:|---|--:|---|
{{- range .}}
| {{what .}} | {{seconds .Wall}} | {{seconds .Processor}} | {{printf "%.0f MiB" .Memory.Median}} | {{checks .}} | {{or .Verdict}} | {{.N}} | {{quiet .}} |
{{- end}}

The commands:

| what | command | commit |
|---|---|---|
{{- range .}}
| {{what .}} | ` + "`{{.Command}}`" + ` | {{or .Commit}} |
{{- end}}

Memory is the largest resident set of one process. The last column says whether something else kept
the processors busy when the first run began.
{{with consistent .}}
### Time to consistency

This is the time from a change until every client of the check meets it.

| run | changes | p50 | p99 |
|---|--:|--:|--:|
{{- range .}}
| {{what .}} | {{.Changes}} | {{printf "%.2f s" .P50}} | {{printf "%.2f s" .P99}} |
{{- end}}
{{end}}{{end}}
{{- with .Servers}}
### Real API servers beside a bare client

` + "`{{.Command}}`" + ` takes {{printf "%.0f" .Processor}} s of processor time. It starts {{.Starts}} kube-apiservers. A bare
client that sends as many requests takes {{printf "%.0f" .Bare}} s, with the starts of these servers. The ratio is
**{{printf "%.2f" .Ratio}}**. The commit is {{or .Commit}}.

| program | processes | processor time |
|---|--:|--:|
{{- range .Programs}}
| {{.Program}} | {{.Processes}} | {{printf "%.1f s" .ProcessorSeconds}} |
{{- end}}

| what the bare client takes | number | each | all |
|---|--:|--:|--:|
| start of a kube-apiserver | {{.Starts}} | {{printf "%.2f s" .Start}} | {{printf "%.1f s" (times .Start .Starts)}} |
{{- range .Requests}}
| {{.Kind}} | {{.N}} | {{milliseconds .Each}} | {{printf "%.1f s" (times .Each .N)}} |
{{- end}}
{{end}}
{{- with .Allocators}}
### The reference allocator beside that of Kubernetes

Allocate and release on a /16.

| full | reference, ns | Kubernetes, ns | ratio |
|--:|--:|--:|--:|
{{- range .}}
| {{percent .}} | {{printf "%.0f" .Reference}} | {{printf "%.0f" .Kubernetes}} | {{ratio .}} |
{{- end}}
{{end}}{{end}}`))

// seconds shows a spread: "1.9 s", or "1.9 s (1.8 to 2.4)".
func seconds(s Spread) string {
	show := func(v float64) string {
		switch {
		case v >= 600:
			return fmt.Sprintf("%d min %02d s", int(v)/60, int(v)%60)
		case v >= 100:
			return fmt.Sprintf("%.0f s", v)
		}
		return fmt.Sprintf("%.1f s", v)
	}
	if s.Min == s.Max {
		return show(s.Median)
	}
	return fmt.Sprintf("%s (%s to %s)", show(s.Median), strings.TrimSuffix(show(s.Min), " s"), strings.TrimSuffix(show(s.Max), " s"))
}
