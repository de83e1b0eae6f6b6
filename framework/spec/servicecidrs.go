package spec

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// ServiceCIDRs are the Service ranges of an API server: one range, or two of different families with the primary first
// (docs/concepts/services-networking/dual-stack).
type ServiceCIDRs []netip.Prefix

// DefaultServiceCIDRs are one range of each family, for what names none. They are kind's own.
var DefaultServiceCIDRs = ServiceCIDRs{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:10:96::/112")}

// ParseServiceCIDRs reads one range, or two of different families joined by a comma, as --service-cluster-ip-range takes them.
// It does not know which ranges a cluster can have.
func ParseServiceCIDRs(text string) (ServiceCIDRs, error) {
	var ranges ServiceCIDRs
	for c := range strings.SplitSeq(text, ",") {
		p, err := netip.ParsePrefix(c)
		if err != nil {
			return nil, fmt.Errorf("%q is not a range like 10.96.0.0/24 or fd00:10:96::/112", c)
		}
		if p.Masked() != p {
			return nil, fmt.Errorf("%s has bits set beyond the prefix; write %s", c, p.Masked())
		}
		ranges = append(ranges, p)
	}
	if len(ranges) > 2 || len(ranges) == 2 && ranges[0].Addr().Is4() == ranges[1].Addr().Is4() {
		return nil, errors.New("name one range, or two of different IP families")
	}
	return ranges, nil
}

// String is what ParseServiceCIDRs reads.
func (s ServiceCIDRs) String() string {
	texts := make([]string, len(s))
	for i, p := range s {
		texts[i] = p.String()
	}
	return strings.Join(texts, ",")
}
