package differential

import (
	"fmt"
	"strings"
)

// Markdown is the page that shows all cases.
func Markdown(cases []Case) string {
	count := map[Decision]int{}
	for _, c := range cases {
		count[c.Decided]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# Differential cases

A random tester sent the same requests to the reference and to kube-apiserver v1.37.1. This page lists
the classes of answers that differed, and how each was decided. Classes W were found as mistakes of the
reference, classes K as deviations of Kubernetes. The requests are in `+"`fixtures/differential/`"+`.

%d classes: the reference was corrected in %d, Kubernetes deviates in %d, and %d are tolerated.

`+"```console"+`
$ conformance differential replay
$ conformance differential replay --kubeconfig FILE
`+"```"+`

The first command replays all cases against the reference, the second against another API server.

| class | operation | reference before | reference now | Kubernetes | decision |
|---|---|---|---|---|---|
`, len(cases), count[Corrected], count[Deviation], count[Tolerated])
	for _, c := range cases {
		decision := fmt.Sprintf("%s. %s", c.Decided, c.Why)
		if c.Requirement != "" {
			decision += fmt.Sprintf(" (`%s`)", c.Requirement)
		}
		fmt.Fprintf(&b, "| %s: %s | %s | %s | %s | %s | %s |\n", c.Class, c.Name, cell(c.Operation), cell(c.Before), cell(c.AnswerNow()), cell(c.Kubernetes), cell(decision))
	}
	return b.String()
}

// cell is a text that does not end its cell.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
