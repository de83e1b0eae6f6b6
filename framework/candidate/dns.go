package candidate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Question is what the DNS of the cluster is asked. A name below the domain of the cluster is given without that domain
// ("app.default.svc"), here and in records. So no check needs to know the domain. Any other name ends in a dot
// ("www.example.com.").
type Question struct {
	Name string     `json:"name"`
	Type RecordType `json:"type"`
}

func (q Question) String() string { return fmt.Sprintf("%s %s", q.Name, q.Type) }

// RecordType is a type of DNS records.
type RecordType string

// The types that checks look at (RFC 1035, RFC 3596, RFC 2782). PTR records are of names below in-addr.arpa. and ip6.arpa.
const (
	A     RecordType = "A"
	AAAA  RecordType = "AAAA"
	CNAME RecordType = "CNAME"
	SRV   RecordType = "SRV"
	PTR   RecordType = "PTR"
	TXT   RecordType = "TXT"
)

// Record is a DNS record.
type Record struct {
	// Name is what the record is of.
	Name string     `json:"name"`
	Type RecordType `json:"type"`
	// Address is that of an A or AAAA record.
	Address netip.Addr `json:"address,omitzero"`
	// Target is the name that a CNAME, SRV or PTR record leads to, Port the port of an SRV record.
	Target string `json:"target,omitempty"`
	Port   int    `json:"port,omitempty"`
	// Text is that of a TXT record; the strings of one record follow each other without a space.
	Text string `json:"text,omitempty"`
}

func (r Record) String() string {
	switch r.Type {
	case A, AAAA:
		return r.Address.String()
	case SRV:
		return fmt.Sprintf("%s:%d", r.Target, r.Port)
	case TXT:
		return fmt.Sprintf("TXT %q", r.Text)
	}
	return fmt.Sprintf("%s %s", r.Type, r.Target)
}

// ReverseName is the name that has the PTR records of an address (RFC 1035 section 3.5, RFC 3596 section 2.5).
func ReverseName(a netip.Addr) string {
	var b strings.Builder
	if a.Is4() {
		for _, octet := range slices.Backward(a.AsSlice()) {
			fmt.Fprintf(&b, "%d.", octet)
		}
		return b.String() + "in-addr.arpa."
	}
	for _, octet := range slices.Backward(a.AsSlice()) {
		fmt.Fprintf(&b, "%x.%x.", octet&0xf, octet>>4)
	}
	return b.String() + "ip6.arpa."
}

// Said is the kind of answer to a question.
type Said string

// What can be said.
const (
	Found      Said = "found"
	NoName     Said = "no such name" // NXDOMAIN
	NoRecords  Said = "no records"   // the name exists without records of the type
	Failed     Said = "failed"       // another response code, or a message that cannot be read
	Unanswered Said = "no answer"    // silence
)

// Resolution is what the DNS of the cluster says to a question.
type Resolution struct {
	Said Said `json:"said"`
	// Records are those of the answer section that are of a known type.
	Records []Record `json:"records,omitempty"`
	// TTL is for how many seconds a cache may keep what was said (RFC 1035 section 3.2.1; RFC 2308 section 5 where there is nothing). It is 0 where nothing says so.
	TTL int `json:"ttl,omitempty"`
	// Reason says why it Failed.
	Reason string `json:"reason,omitempty"`
}
