package words

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"regexp"
	"strings"

	"github.com/service-conformance/conformance/framework/spec"
)

//go:embed script.js
var script string

var (
	textOf  = regexp.MustCompile(`data-w="([a-z-]+)"[^>]*>`)
	labelOf = regexp.MustCompile(`data-l="([a-z-]+)"`)
)

// Fill writes English words into the text of a template: data-w="KEY" names the text of an element, which is empty there, data-l="KEY" its aria-label. Script (script.js) puts
// those of another language in their place. A key that there is not is an error.
func Fill(text string) (string, error) {
	var err error
	english := func(found, key string) string {
		if !Has(key) {
			err = fmt.Errorf("%s: there is no such word", found)
			return ""
		}
		return html.EscapeString(In(spec.Languages[0], key))
	}
	text = textOf.ReplaceAllStringFunc(text, func(found string) string { return found + english(found, textOf.FindStringSubmatch(found)[1]) })
	text = labelOf.ReplaceAllStringFunc(text, func(found string) string {
		return fmt.Sprintf(`%s aria-label="%s"`, found, english(found, labelOf.FindStringSubmatch(found)[1]))
	})
	return text, err
}

// InAll is a text in every language, of which a page shows one: the attribute data-language of its root names it. The element around it has the class t.
func InAll(text func(language string) string) template.HTML {
	var b strings.Builder
	for _, language := range spec.Languages {
		fmt.Fprintf(&b, "<span lang=\"%s\">%s</span>", language, template.HTMLEscapeString(text(language)))
	}
	return template.HTML(b.String()) //nolint:gosec // it is escaped above
}

// Functions are what templates say words with: say for a phrase, key for the key of an English word.
var Functions = template.FuncMap{
	"say": func(p Phrase) template.HTML { return `<span class="t">` + InAll(p.In) + "</span>" },
	"key": Key,
}

// Script is what speaks other languages on a page, with the words of some sections in it. The page calls speak(LANGUAGE).
func Script(some ...Section) ([]byte, error) {
	data, err := json.Marshal(Of(some...)) // which escapes "<"
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "var words = %s;\n%s", data, script), nil
}
