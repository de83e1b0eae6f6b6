package spec

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"sync"

	"github.com/service-conformance/conformance/fixtures"
)

// Digest is the SHA-256 digest of the embedded catalogue, "sha256:…": of the names and contents of its files, translations left aside, and of the titles of the
// checks. Two programs with the same digest judge by the same requirements and have the same checks. Safe for concurrent use.
var Digest = sync.OnceValue(func() string {
	names, err := fs.Glob(fixtures.Spec, "spec/*.yaml")
	h := sha256.New()
	for _, name := range names {
		if isTranslation(name) {
			continue
		}
		data, readErr := fs.ReadFile(fixtures.Spec, name)
		if err == nil {
			err = readErr
		}
		fmt.Fprintf(h, "%s %d\n", name, len(data))
		h.Write(data)
	}
	fmt.Fprintf(h, "checks %d\n", len(fixtures.CheckNames))
	h.Write(fixtures.CheckNames)
	if err != nil {
		panic(fmt.Sprintf("embedded specification: %v", err))
	}
	return fmt.Sprintf("sha256:%x", h.Sum(nil))
})
