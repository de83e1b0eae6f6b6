package spec

import (
	"fmt"
	"slices"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/service-conformance/conformance/fixtures"
)

// Publication is a catalogue with which a release, or a published report, was made.
type Publication struct {
	// Digest is what Digest was.
	Digest string `yaml:"digest"`
	// Suite is the version of the suite, Published the day, as "2026-11-24".
	Suite     string `yaml:"suite"`
	Published string `yaml:"published"`
}

// Published is the publication of the catalogue with a digest, or nil. Safe for concurrent use.
func Published(digest string) *Publication {
	all := publications()
	i := slices.IndexFunc(all, func(p Publication) bool { return p.Digest == digest })
	if i < 0 {
		return nil
	}
	return &all[i]
}

var publications = sync.OnceValue(func() (all []Publication) {
	if err := yaml.Unmarshal(fixtures.Publications, &all); err != nil {
		panic(fmt.Sprintf("embedded publications: %v", err))
	}
	return all
})
