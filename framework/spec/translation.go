package spec

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/fixtures"
)

// Languages are the languages that every statement is written in (BCP 47). The English sentence is the one that counts.
var Languages = []string{"en", "ja", "zh"}

// Translations are statements by language and requirement.
type Translations map[string]map[ID]string

// translated is an entry of a file such as allocation.ja.yaml.
type translated struct {
	ID ID `json:"id"`
	// Of is the Fingerprint of the English sentence that was translated.
	Of        string `json:"of"`
	Statement string `json:"statement"`
}

// isTranslation reports whether a file of the catalogue holds translations: its name has the language before the suffix.
func isTranslation(name string) bool { return strings.Count(path.Base(name), ".") > 1 }

// Fingerprint identifies a sentence, so that a translation of an older one is found.
func Fingerprint(sentence string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(sentence)))[:12]
}

// LoadTranslations reads the translations beside the files of the catalogue. It returns what is sound. All problems are returned joined: what is older than its
// English sentence, or of no requirement. A statement without a translation is none, see Untranslated.
func LoadTranslations(fsys fs.FS, dir string, c *Catalogue) (Translations, error) {
	all := Translations{}
	names, err := fs.Glob(fsys, path.Join(dir, "*.yaml"))
	if err != nil {
		return all, err
	}
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for _, language := range Languages[1:] {
		all[language] = map[ID]string{}
	}
	for _, name := range names {
		if !isTranslation(name) {
			continue
		}
		language := strings.Split(path.Base(name), ".")[1]
		of := all[language]
		if of == nil {
			bad("%s: %q is none of the languages %v", name, language, Languages[1:])
			continue
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return all, err
		}
		var f struct {
			Statements []translated `json:"statements"`
		}
		if err := yaml.UnmarshalStrict(data, &f); err != nil {
			bad("%s: %w", name, err)
			continue
		}
		for _, t := range f.Statements {
			switch r := c.Get(t.ID); {
			case r == nil:
				bad("%s: there is no requirement %s", name, t.ID)
			case of[t.ID] != "":
				bad("%s: %s stands there twice", name, t.ID)
			case t.Of != Fingerprint(r.Statement):
				bad("%s: %s is a translation of an older sentence: translate it anew, and write of: %s", name, t.ID, Fingerprint(r.Statement))
			case strings.TrimSpace(t.Statement) == "":
				bad("%s: %s has no statement", name, t.ID)
			default:
				of[t.ID] = t.Statement
			}
		}
	}
	return all, errors.Join(problems...)
}

// Untranslated returns the requirements of the catalogue that each of Languages but English has no statement of, which pages then show in English. A language with
// all of them is left out.
func Untranslated() map[string][]ID {
	missing := map[string][]ID{}
	for _, r := range Default().Requirements {
		for _, language := range Languages[1:] {
			if translations()[language][r.ID] == "" {
				missing[language] = append(missing[language], r.ID)
			}
		}
	}
	return missing
}

// translations are those of this program. A test fails on a problem; a program shows English where there is one.
var translations = sync.OnceValue(func() Translations {
	all, _ := LoadTranslations(fixtures.Spec, "spec", Default())
	return all
})

// In is the statement in one of Languages; in English if the language is another one, or its translation is missing or stale. Safe for concurrent use.
func (r *Requirement) In(language string) string {
	if said := translations()[language][r.ID]; said != "" {
		return said
	}
	return r.Statement
}
