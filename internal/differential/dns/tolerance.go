package dns

import (
	"strings"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Tolerance is a difference that is known and decided.
type Tolerance struct {
	// Name is short, Why says what differs and why it stays, and Source is where the real one does it.
	Name, Why, Source string
	covers            func(*Difference) bool
}

// Tolerances are all of them.
var Tolerances = []Tolerance{
	{
		Name:   "names-below-virtual",
		Why:    "CoreDNS has names for the endpoints of a Service with a virtual address, too. The document has none, and lets a DNS have more than it says.",
		Source: "plugin/kubernetes/kubernetes.go of github.com/coredns/coredns (v1.14.6) lines 510-534",
		covers: func(d *Difference) bool {
			return d.Kind == Virtual && d.Question.Below != "" && !strings.HasPrefix(d.Question.Below, "_") && d.Reference == string(candidate.NoName)
		},
	},
	{
		Name:   "dangling-alias",
		Why:    "CoreDNS does not tell an alias for a name of the cluster that has no address. That is a known deviation of proxy-dns-externalname-dangling.",
		Source: "plugin/backend_lookup.go of github.com/coredns/coredns (v1.14.6) lines 46-61",
		covers: func(d *Difference) bool {
			return d.Kind == Alias && (d.Question.Type == candidate.A || d.Question.Type == candidate.AAAA) && strings.HasPrefix(d.Reference, "CNAME ") && d.Real == string(candidate.NoRecords)
		},
	},
}

// toleranceOf is what covers a difference; nil if nothing does.
func toleranceOf(d *Difference) *Tolerance {
	for i := range Tolerances {
		if Tolerances[i].covers(d) {
			return &Tolerances[i]
		}
	}
	return nil
}
