package spec

import (
	"slices"
	"strings"
)

// Reference is a source of a requirement: a section of a document.
type Reference struct {
	Document Document
	// Section is a heading, a field or a file; empty for the document as a whole.
	Section string
	// URL leads as close to the section as the document allows.
	URL string
}

// References are the sources of a requirement, in the order of the catalogue.
func (c *Catalogue) References(r *Requirement) (all []Reference) {
	for _, s := range r.Sources {
		id, section, _ := strings.Cut(s, "#")
		i := slices.IndexFunc(c.Documents, func(d Document) bool { return d.ID == id })
		if i < 0 {
			continue
		}
		d := c.Documents[i]
		all = append(all, Reference{d, section, d.link(section)})
	}
	return all
}

// link is the address of a section. Pages have anchors for their headings, and the source of Kubernetes has an address for each file.
func (d *Document) link(section string) string {
	switch {
	case section == "":
	case d.Basis == OnUpstream && strings.HasPrefix(section, "k8s.io/"):
		return d.URL + "/blob/" + d.AsOf + "/staging/src/" + section
	case d.Basis == OnUpstream && strings.Contains(section, "/"):
		return d.URL + "/blob/" + d.AsOf + "/" + section
	case d.ID != "service-v1" && (strings.HasPrefix(d.URL, "https://kubernetes.io/") || strings.HasSuffix(d.URL, ".md")):
		return d.URL + "#" + section
	}
	return d.URL
}
