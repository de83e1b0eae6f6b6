// Package collection is a folder of published reports, such as reports/ of this project: IMPLEMENTATION/VERSION/MODE/bundle.tar.gz. It reads and verifies them, and
// makes what compares them: an index and a matrix.
package collection

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/report/bundle"
)

// BundleFile is the name of a bundle in its folder.
const BundleFile = "bundle.tar.gz"

// Entry is a published report.
type Entry struct {
	// Implementation, Version and Mode are the names of its folders.
	Implementation, Version, Mode string
	Report                        *report.Report
	Manifest                      bundle.Manifest
	// Archive is the bundle as it was published.
	Archive []byte
}

// Path is the slash-separated path of the entry in the collection.
func (e *Entry) Path() string { return path.Join(e.Implementation, e.Version, e.Mode) }

// Name is the entry in words.
func (e *Entry) Name() string { return e.Implementation + " " + e.Version + " " + e.Mode }

var folderName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Open reads and verifies all bundles of a collection: by implementation, the newest version first, then by mode. The error tells the first thing that is
// wrong with each bundle, one line for each.
func Open(dir string, suite bundle.Suite) (all []Entry, err error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("read collection: %w", err)
	}
	names, err := fs.Glob(os.DirFS(dir), "*/*/*/"+BundleFile)
	if err != nil {
		return nil, fmt.Errorf("read collection: %w", err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("read collection: %s has no IMPLEMENTATION/VERSION/MODE/%s", dir, BundleFile)
	}
	var wrong []string
	for _, name := range names {
		e, err := read(dir, name, suite)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", filepath.Join(dir, filepath.FromSlash(name)), err))
			continue
		}
		all = append(all, *e)
	}
	if len(wrong) > 0 {
		return nil, errors.New(strings.Join(wrong, "\n"))
	}
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(strings.Compare(a.Implementation, b.Implementation), -compareVersions(a.Version, b.Version), strings.Compare(a.Mode, b.Mode))
	})
	return all, nil
}

func read(dir, name string, suite bundle.Suite) (*Entry, error) {
	parts := strings.Split(path.Dir(name), "/")
	for _, part := range parts {
		if !folderName.MatchString(part) {
			return nil, fmt.Errorf("the folder %q has characters other than letters, digits, dots, hyphens and underscores", part)
		}
	}
	file := filepath.Join(dir, filepath.FromSlash(name))
	files, err := bundle.Open(file)
	if err != nil {
		return nil, err
	}
	archive, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r, findings, _ := bundle.Verify(files, suite)
	if len(findings) > 0 {
		return nil, errors.New(findings[0])
	}
	m, err := files.Manifest()
	if err != nil {
		return nil, err
	}
	e := &Entry{Implementation: parts[0], Version: parts[1], Mode: parts[2], Report: r, Manifest: *m, Archive: archive}
	if s := r.Submitter; s.Project != e.Implementation || s.Version != e.Version {
		return nil, fmt.Errorf("the bundle is of %s %s: it belongs into the folder %s/%s", s.Project, s.Version, s.Project, s.Version)
	}
	return e, nil
}

// compareVersions orders v1.9 before v1.10, and by letters what is no version.
func compareVersions(a, b string) int {
	left, noVersion := semver.ParseTolerant(a)
	right, err := semver.ParseTolerant(b)
	if noVersion == nil && err == nil {
		return left.Compare(right)
	}
	return strings.Compare(a, b)
}
