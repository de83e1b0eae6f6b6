// Package words has what pages and commands say around the statements of requirements, in each of spec.Languages. It
// has names of verdicts, headings, labels, and sentences with numbers in them. Programs read the English words of
// reports, which do not depend on a language.
package words

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/fixtures"
	"github.com/service-conformance/conformance/framework/spec"
)

// Section is a part of the words: what one kind of page needs.
type Section string

// The sections. Keys are unique over all of them. A key of Verdicts is its English text, with "-" for spaces.
const (
	Verdicts Section = "verdicts"
	Shared   Section = "shared"
	Page     Section = "page"
	Site     Section = "site"
	Phrases  Section = "phrases"
	Explain  Section = "explain"
)

var sections = []Section{Verdicts, Shared, Page, Site, Phrases, Explain}

// Table is all words: by language, section and key.
type Table map[string]map[Section]map[string]string

// Load reads the words of every language from files such as words/ja.yaml. All problems are returned joined. They are
// what is missing in a language or exists in one alone, and keys that stand twice. They are also phrases whose places
// are not those of the English one.
func Load(fsys fs.FS, dir string) (Table, error) {
	all := Table{}
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for _, language := range spec.Languages {
		name := dir + "/" + language + ".yaml"
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("read words: %w", err)
		}
		of := map[Section]map[string]string{}
		if err := yaml.UnmarshalStrict(data, &of); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[language] = of
		in := map[string]Section{}
		for section, texts := range of {
			if !slices.Contains(sections, section) {
				bad("%s: there is no section %q", name, section)
			}
			for key, text := range texts {
				if other, twice := in[key]; twice {
					bad("%s: %s stands in the sections %s and %s", name, key, other, section)
				}
				in[key] = section
				english, there := all[spec.Languages[0]][section][key]
				switch {
				case strings.TrimSpace(text) == "":
					bad("%s: %s has no text", name, key)
				case !there:
					bad("%s: %s is not in %s.yaml", name, key, spec.Languages[0])
				case !slices.Equal(places(text), places(english)):
					bad("%s: %s has the places %v, in English %v", name, key, places(text), places(english))
				case section == Verdicts && language == spec.Languages[0] && Key(text) != key:
					bad("%s: the key of verdict %q is %s", name, text, Key(text))
				}
			}
		}
		for section, texts := range all[spec.Languages[0]] {
			for _, key := range slices.Sorted(maps.Keys(texts)) {
				if _, there := of[section][key]; !there {
					bad("%s: %s is missing", name, key)
				}
			}
		}
	}
	return all, errors.Join(problems...)
}

var place = regexp.MustCompile(`\{(\d+)\}`)

// places are the numbers in a phrase, sorted.
func places(text string) (all []string) {
	for _, m := range place.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return all
}

// embedded are the words of this program, which a test has seen to be sound.
var embedded = sync.OnceValue(func() Table {
	all, err := Load(fixtures.Words, "words")
	if err != nil {
		panic(fmt.Sprintf("embedded words: %v", err))
	}
	return all
})

// In is the text of a key in one of spec.Languages. It panics if there is no such key: keys are written in this program.
func In(language, key string) string {
	for _, texts := range embedded()[language] {
		if text, there := texts[key]; there {
			return text
		}
	}
	panic(fmt.Sprintf("there is no word %q in %q", key, language))
}

// Has reports whether there is a key.
func Has(key string) bool {
	for _, texts := range embedded()[spec.Languages[0]] {
		if _, there := texts[key]; there {
			return true
		}
	}
	return false
}

// Of are the words of some sections by language, for the script of a page.
func Of(some ...Section) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, language := range spec.Languages {
		all[language] = map[string]string{}
		for _, section := range some {
			maps.Copy(all[language], embedded()[language][section])
		}
	}
	return all
}

// Key is the key of a word that programs have in English: "not applicable" has not-applicable.
func Key(english string) string { return strings.ReplaceAll(strings.ToLower(english), " ", "-") }

// Phrase is a sentence with numbers and names in it. Args are in the order of its places; a Phrase among them is said in the same language.
type Phrase struct {
	Key  string
	Args []any
}

// Say makes a phrase.
func Say(key string, args ...any) Phrase { return Phrase{key, args} }

// Count makes a phrase about a number of things, which is its first place. Of one thing it takes the key that ends in -one.
func Count(key string, n int) Phrase {
	if n == 1 {
		return Say(key+"-one", n)
	}
	return Say(key, n)
}

// Named is the name of a verdict that a program has in English. A text that is none of them stays as it is in every
// language.
func Named(english string) Phrase {
	if embedded()[spec.Languages[0]][Verdicts][Key(english)] == english {
		return Say(Key(english))
	}
	return Phrase{Args: []any{english}}
}

// In is the phrase in one of spec.Languages. A phrase without a key is its first argument.
func (p Phrase) In(language string) string {
	if p.Key == "" {
		return fmt.Sprint(p.Args...)
	}
	return place.ReplaceAllStringFunc(In(language, p.Key), func(found string) string {
		i, _ := strconv.Atoi(strings.Trim(found, "{}"))
		switch {
		case i < 1 || i > len(p.Args):
			panic(fmt.Sprintf("phrase %s has %d words for place %d", p.Key, len(p.Args), i))
		default:
			if inner, ok := p.Args[i-1].(Phrase); ok {
				return inner.In(language)
			}
			return fmt.Sprint(p.Args[i-1])
		}
	})
}

// String is the phrase in English.
func (p Phrase) String() string { return p.In(spec.Languages[0]) }
