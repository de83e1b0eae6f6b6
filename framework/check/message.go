package check

import (
	"regexp"
	"strings"
)

// plainMessage is a failure message of Gomega in the words of this suite: what was expected and what was observed,
// without types, pointers and folders. The description of a demand for true or false says what is true or false. What
// must be true is described as demanded ("the watch goes on"). What must be false is described as observed ("10.96.0.7
// was handed out twice"). What is in other words stays as it is.
func plainMessage(message string) string {
	message = retried.ReplaceAllString(message, "$1 (at $2):\n")
	lines := strings.Split(message, "\n")
	for i, l := range lines {
		said := strings.TrimSpace(strings.Join(lines[:i], "\n"))
		switch l {
		case "Expected":
			observed, demand := indented(lines[i+1:])
			if demand == "" {
				return message
			}
			switch {
			case demand == "to be true" && said != "":
				return "expected that " + said + "\nobserved that it is not so"
			case demand == "to be false" && said != "":
				return "expected that this does not happen\nobserved that " + said
			}
			if value, equal := strings.CutPrefix(demand, "to equal "); equal {
				return described(said, value, observed)
			}
			return described(said, "it "+demand, observed)
		case "Unexpected error:":
			text, demand := indented(lines[i+1:])
			if demand != "occurred" {
				return message
			}
			text, _, _ = strings.Cut(text, "\n{") // the error's own fields
			return described(said, "no error", strings.TrimSpace(text))
		}
	}
	return message
}

// retried is what Gomega says before the message of the last look.
var retried = regexp.MustCompile(`(?m)^Timed out after [0-9.]+s\.\n((?:.|\n)*?)\n?The function passed to Eventually failed at (?:\S*/)?([^/\s]+/[^/\s]+:\d+) with:\n`)

// typed is the type that Gomega puts before a value.
var typed = regexp.MustCompile(`(?m)^(\s*)<[^<>\n]*(?:<[^<>\n]*>[^<>\n]*)*>: ?`)

// indented splits what follows a heading into the indented value and the rest, both without types.
func indented(lines []string) (value, rest string) {
	n := 0
	for n < len(lines) && strings.HasPrefix(lines[n], "    ") {
		n++
	}
	strip := func(lines []string) string {
		text := typed.ReplaceAllString(strings.Join(lines, "\n"), "$1")
		return strings.TrimSpace(strings.ReplaceAll(text, "\n    ", "\n"))
	}
	if n == 0 || n == len(lines) {
		return "", ""
	}
	head, tail := lines[n], strip(lines[n+1:])
	if strings.Contains(tail, "\n") {
		return strip(lines[:n]), head + "\n" + tail
	}
	return strip(lines[:n]), strings.TrimSpace(head + " " + tail)
}

// described puts what was expected and observed below the description of the demand.
func described(said, expected, observed string) string {
	if observed == "" {
		observed = "nothing"
	}
	return strings.TrimSpace(said + "\nexpected " + expected + "\nobserved " + observed)
}
