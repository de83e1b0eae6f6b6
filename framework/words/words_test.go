package words

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/service-conformance/conformance/fixtures"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

func TestWordsAreThereInEveryLanguage(t *testing.T) {
	all, err := Load(fixtures.Words, "words")
	if err != nil {
		t.Error(err)
	}
	for _, language := range spec.Languages[1:] {
		wide := func(text string) bool { return strings.ContainsFunc(text, func(r rune) bool { return r > 0x2e80 }) }
		for section, texts := range all[language] {
			for key, text := range texts {
				// Names and, in Chinese, the word profile stay as they are.
				if !wide(text) && !slices.Contains([]string{"etcd", "Go", "URL", "Profile"}, text) {
					t.Errorf("%s: %s/%s is not translated: %q", language, section, key, text)
				}
			}
		}
	}
}

func TestEveryVerdictHasItsWord(t *testing.T) {
	for _, v := range []check.Verdict{check.Conformant, check.NonConformant, check.Unknown, check.Blocked, check.NotJudged, check.NotApplicable} {
		if !Has(Key(string(v))) {
			t.Errorf("%s has no word", v)
		}
	}
	for _, b := range []spec.Basis{spec.OnDocument, spec.OnConvention, spec.OnUpstream} {
		if !Has("basis-" + string(b)) {
			t.Errorf("basis %s has no word", b)
		}
	}
}

func TestLoadFindsWhatIsWrong(t *testing.T) {
	const sound = "verdicts: {not-applicable: \"not applicable\"}\nphrases: {p: \"{1} of {2}\"}\n"
	load := func(en, ja string) error {
		files := fstest.MapFS{}
		for _, language := range spec.Languages {
			text := ja
			if language == "en" {
				text = en
			}
			files["w/"+language+".yaml"] = &fstest.MapFile{Data: []byte(text)}
		}
		_, err := Load(files, "w")
		return err
	}
	if err := load(sound, sound); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ en, other, want string }{
		{sound, "phrases: {p: \"{1} of {2}\"}", "w/ja.yaml: not-applicable is missing"},
		{sound, sound + "page: {more: \"x\"}", "w/ja.yaml: more is not in en.yaml"},
		{sound, strings.Replace(sound, "{2}", "{3}", 1), "w/zh.yaml: p has the places [1 3], in English [1 2]"},
		{sound, strings.Replace(sound, "{1} of {2}", " ", 1), "w/ja.yaml: p has no text"},
		{sound + "page: {p: \"x\"}", sound, "w/en.yaml: p stands in the sections"},
		{sound + "more: {q: \"x\"}", sound, `w/en.yaml: there is no section "more"`},
		{strings.Replace(sound, "\"not a", "\"never a", 1), sound, `w/en.yaml: the key of verdict "never applicable" is never-applicable`},
		{"verdicts: [", sound, "w/en.yaml:"},
	} {
		if err := load(c.en, c.other); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// users are the files that say words.
var users = []string{"../report/*.go", "../report/page/*", "../report/site/*.go", "../report/site/page/*", "../../cmd/conformance/*.go", "../spec/requirement.go", "../check/verdict.go"}

func TestEveryWordIsUsed(t *testing.T) {
	var all strings.Builder
	for _, pattern := range users {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no files, %v", pattern, err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
	}
	source := all.String()
	english := embedded()[spec.Languages[0]]
	for section, texts := range english {
		for key, text := range texts {
			names := []string{`"` + key + `"`, `"` + strings.TrimSuffix(key, "-one") + `"`}
			if section == Verdicts { // which code says in English
				names = append(names, `"`+text+`"`)
			}
			if basis, ok := strings.CutPrefix(key, "basis-"); ok {
				names = append(names, `"`+basis+`"`)
			}
			if !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(source, name) }) {
				t.Errorf("%s/%s is used nowhere", section, key)
			}
		}
	}
	for _, m := range regexp.MustCompile(`words\.(?:Say|Count|In)\((?:[a-z]+, )?"([a-z-]+)"`).FindAllStringSubmatch(source, -1) {
		if !Has(m[1]) && !Has(m[1]+"-one") && !strings.HasSuffix(m[1], "-") {
			t.Errorf("there is no word %s", m[1])
		}
	}
}

func TestPhrases(t *testing.T) {
	inner := Say("judged-count-of", 3, 7)
	for _, c := range []struct {
		phrase   Phrase
		language string
		want     string
	}{
		{Say("does-in-part", "x", inner), "en", "What was judged of x is as documented. This is a part of what it claims: 3 of 7 requirements."},
		{inner, "ja", "要件7件中3件"},
		{inner, "zh", "7 项要求中的 3 项"},
		{Count("short-known", 1), "en", "conformant, 1 known deviation"},
		{Count("short-known", 2), "en", "conformant, 2 known deviations"},
		{Count("short-known", 1), "ja", "適合、既知の逸脱1件"},
		{Named("not applicable"), "ja", "対象外"},
		{Named("does"), "ja", "does"}, // a key, but no verdict
		{Named("{1} <b>"), "zh", "{1} <b>"},
		{Say("graph-hidden", "{1}"), "en", "{1} more are not drawn."},
	} {
		if got := c.phrase.In(c.language); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestFillWritesEnglishWords(t *testing.T) {
	got, err := Fill(`<h2 id="h" data-w="counts" class="x"></h2><div data-l="profiles"></div><b data-w="{{key .Words}}">{{.Words}}</b>`)
	if want := `<h2 id="h" data-w="counts" class="x">Counts</h2><div data-l="profiles" aria-label="Profiles"></div><b data-w="{{key .Words}}">{{.Words}}</b>`; err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
	for _, text := range []string{`<b data-w="no-such-word"></b>`, `<b data-l="no-such-word"></b>`} {
		if _, err := Fill(text); err == nil || !strings.Contains(err.Error(), "no-such-word") {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// The script can hold no end of a script element, whatever words are in it.
func TestTheScriptStaysInItsElement(t *testing.T) {
	script, err := Script(Verdicts, Shared, Page)
	if err != nil || strings.Contains(string(script), "</") || !strings.Contains(string(script), "符合") {
		t.Errorf("%v in\n%s", err, script)
	}
}
