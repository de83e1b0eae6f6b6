package main

import (
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/words"
)

func TestExplainShowsHowToRepeatTheChecksByHand(t *testing.T) {
	stdout, stderr, code := conformance(t, t.TempDir(), "explain", "alloc-duplicate-refused", "--requests")
	if code != report.ExitConformant {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, say := range []string{
		"by hand, as the check \"refuses the address in use whatever the type\" does it",
		"\n  kubectl create namespace try-1\n  kubectl create -n try-1 -f - <<<'{\"kind\":\"Service\"",
		"\n  look for: refuses the address in use whatever the type\n",
	} {
		if !strings.Contains(stdout, say) {
			t.Errorf("it does not say %q:\n%s", say, stdout)
		}
	}
	if namespaceOfRun.MatchString(stdout) {
		t.Errorf("it names a namespace of the run:\n%s", stdout)
	}
	for id, say := range map[string]string{
		"alloc-upper-band-first":    "the last 40 requests:",
		"alloc-service-abstraction": "unchecked ",
	} {
		if stdout, stderr, code := conformance(t, t.TempDir(), "explain", id, "--requests"); code != report.ExitConformant || !strings.Contains(stdout, say) {
			t.Errorf("%s: exit code %d: %s%s", id, code, stdout, stderr)
		}
	}
}

func TestExplainSpeaksTheLanguageThatIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		env  []string
		args string
		says string
	}{
		{nil, "--lang ja", "クラスターIP"},
		{nil, "--lang zh", "集群 IP"},
		{[]string{"LC_ALL=", "LC_MESSAGES=", "LANG=ja_JP.UTF-8"}, "", "クラスターIP"},
		{[]string{"LC_ALL=zh_CN.UTF-8", "LANG=ja_JP.UTF-8"}, "", "集群 IP"},
	} {
		stdout, stderr, code := conformanceWith(t, t.TempDir(), c.env, append([]string{"explain", "alloc-duplicate-refused"}, strings.Fields(c.args)...)...)
		if code != report.ExitConformant || !strings.Contains(strings.SplitN(stdout, "\n", 3)[1], c.says) || strings.Contains(stdout, "\nsource ") {
			t.Errorf("%v %s: exit code %d\n%s%s", c.env, c.args, code, stdout, stderr)
		}
	}
	for _, env := range [][]string{{"LC_ALL=C"}, {"LC_ALL=de_DE.UTF-8"}, {"LC_ALL=", "LC_MESSAGES=", "LANG="}} {
		if stdout, _, _ := conformanceWith(t, t.TempDir(), env, "explain", "alloc-duplicate-refused"); strings.ContainsFunc(strings.SplitN(stdout, "\n", 3)[1], func(r rune) bool { return r > 0x2fff }) {
			t.Errorf("%v: %s", env, stdout)
		}
	}
}

// Values stand in one column, whatever the language of the labels.
func TestLabelsOfExplainFitTheirColumn(t *testing.T) {
	for language, texts := range words.Of(words.Explain) {
		for key, text := range texts {
			if strings.HasSuffix(text, ":") || strings.Contains(text, " ") && len(text) > 2*labelWidth || strings.Contains(text, "{") || key == "explain-taken" {
				continue // a sentence
			}
			filled, columns := inColumns(text, labelWidth), 0
			for _, r := range filled {
				if columns++; r >= firstWide {
					columns++
				}
			}
			if columns != labelWidth {
				t.Errorf("%s: the label %q takes %d columns, with what fills it up, of %d", language, text, columns, labelWidth)
			}
		}
	}
}
