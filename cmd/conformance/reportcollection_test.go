package main

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/report/collection"
)

// published puts a bundle into a collection.
func published(t *testing.T, dir, entry, archive string) {
	t.Helper()
	data, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeFiles(dir, map[string][]byte{path.Join(entry, collection.BundleFile): data}); err != nil {
		t.Fatal(err)
	}
}

// TestTheReportsOfThisProjectAreSoundAndTheirIndexIsOfThem is what CI demands of a pull request that adds a report.
func TestTheReportsOfThisProjectAreSoundAndTheirIndexIsOfThem(t *testing.T) {
	const dir = "../../reports"
	all, err := openCollection(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 9 {
		t.Errorf("only %d reports", len(all))
	}
	expected, err := collection.Index(all)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		expected[path.Join(all[i].Path(), collection.BundleFile)] = all[i].Archive
	}
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == "CONTRIBUTING.md" {
			return err
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		if want, known := expected[name]; err == nil && !known {
			t.Errorf("reports/%s belongs to no report", name)
		} else if !bytes.Equal(got, want) {
			t.Errorf("reports/%s is stale: run `make reports`", name)
		}
		delete(expected, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range expected {
		t.Errorf("reports/%s is missing: run `make reports`", name)
	}
}

func TestACollectionIsComparedAndShown(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	archive := certified(t, "one") + ".tar.gz"
	published(t, dir, "reference/v0.1.0/devel", archive)
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"report", "matrix", dir, "--all"}, []string{" 1  reference v0.1.0 devel", "  +  alloc-dynamic-assigned (MUST)", "hairpin: by which addresses"}},
		{[]string{"report", "matrix", dir}, []string{"0 of "}},
		{[]string{"report", "matrix", dir, "--format", "md", "--all"}, []string{"| `alloc-dynamic-assigned` | MUST | conformant |"}},
		{[]string{"report", "matrix", dir, "--format", "json"}, []string{`"reference v0.1.0 devel"`}},
		{[]string{"report", "index", dir}, []string{"1 reports: "}},
		{[]string{"report", "site", dir, "--out", filepath.Join(out, "site")}, []string{"1 reports, "}},
		{[]string{"report", "site", dir, "--out", filepath.Join(out, "site")}, []string{"1 reports, "}},
		{[]string{"report", "badge", filepath.Join(filepath.Dir(archive), "one")}, []string{"<svg ", ">conformant</text>"}},
	} {
		stdout, stderr, code := conformance(t, t.TempDir(), c.args...)
		if code != report.ExitConformant {
			t.Errorf("%q: exit code %d\n%s", c.args, code, stderr)
		}
		for _, say := range c.says {
			if !strings.Contains(stdout, say) {
				t.Errorf("%q does not say %q:\n%.2000s", c.args, say, stdout)
			}
		}
	}
	if index, err := os.ReadFile(filepath.Join(dir, collection.IndexFile)); err != nil || !strings.Contains(string(index), "| reference | v0.1.0 | devel | [![conformant](reference/v0.1.0/devel/badge.svg)]") {
		t.Errorf("the index is %s (%v)", index, err)
	}
	linksOfSiteLead(t, filepath.Join(out, "site"))
}

var links = regexp.MustCompile(`(?:href|src)="([^"]*)"`)

// linksOfSiteLead demands that every relative link of a website leads to a file of it, and every fragment to an element.
func linksOfSiteLead(t *testing.T, dir string) {
	t.Helper()
	pages := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		pages[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 600 {
		t.Errorf("only %d files", len(pages))
	}
	broken := 0
	for name, text := range pages {
		if filepath.Ext(name) != ".html" {
			continue
		}
		for _, m := range links.FindAllStringSubmatch(text, -1) {
			address, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(address, ":") {
				continue
			}
			target := name
			if address != "" {
				target = filepath.Join(filepath.Dir(name), filepath.FromSlash(address))
			}
			page, there := pages[target]
			if !there || fragment != "" && !strings.Contains(page, `id="`+fragment+`"`) {
				if broken++; broken < 10 {
					t.Errorf("%s: the link %q leads nowhere", name, m[1])
				}
			}
		}
	}
}

func TestWhatIsNoCollectionIsRefused(t *testing.T) {
	archive := certified(t, "one") + ".tar.gz"
	elsewhere, hollow, broken, occupied := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	published(t, elsewhere, "kube-proxy/v1/iptables", archive)
	published(t, broken, "reference/v0.1.0/a", archive)
	if err := writeFiles(broken, map[string][]byte{"reference/v0.1.0/b/" + collection.BundleFile: []byte("nothing")}); err != nil {
		t.Fatal(err)
	}
	sound := t.TempDir()
	published(t, sound, "reference/v0.1.0/a", archive)
	if err := os.WriteFile(filepath.Join(occupied, "mine.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, says string }{
		{"report matrix " + elsewhere, "it belongs into the folder reference/v0.1.0"},
		{"report matrix " + hollow, "has no IMPLEMENTATION/VERSION/MODE/bundle.tar.gz"},
		{"report index " + broken, filepath.Join(broken, "reference/v0.1.0/b")},
		{"report matrix " + filepath.Join(hollow, "none"), "no such file or directory"},
		{"report site " + sound, "--out"},
		{"report site " + sound + " --out " + occupied, "no website that this command has made"},
		{"report matrix " + sound + " --format xml", "there are text, md, json"},
		{"report badge " + hollow, "report.json"},
	} {
		stdout, stderr, code := conformance(t, t.TempDir(), strings.Fields(c.args)...)
		if code != report.ExitUsage || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit code %d\n%s%s", c.args, code, stdout, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(broken, collection.IndexFile)); err == nil {
		t.Error("an index was written of a collection that is not sound")
	}
}
