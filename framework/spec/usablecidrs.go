package spec

import (
	"fmt"
	"net/netip"
)

// ParseUsableServiceCIDRs is ParseServiceCIDRs that refuses what no cluster can have as its Service range.
func ParseUsableServiceCIDRs(text string) (ServiceCIDRs, error) {
	ranges, err := ParseServiceCIDRs(text)
	if err != nil {
		return nil, err
	}
	for _, p := range ranges {
		if err := servesServices(p); err != nil {
			return nil, err
		}
	}
	return ranges, nil
}

// smallest is how many bits of an address a range must leave. With two addresses, none would be left for a Service
// beside the range's first and last one.
const smallest = 2

// reserved are addresses that no network forwards, by what they are for (RFC 6890).
var reserved = []struct {
	what   string
	ranges []netip.Prefix
}{
	{"this network", []netip.Prefix{netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("::/128")}},
	{"loopback", []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}},
	{"link-local", []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10")}},
	{"multicast", []netip.Prefix{netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("ff00::/8")}},
	{"reserved", []netip.Prefix{netip.MustParsePrefix("240.0.0.0/4")}},
	{"IPv4-mapped", []netip.Prefix{netip.MustParsePrefix("::ffff:0:0/96")}},
}

// servesServices says why a range cannot be a Service range, if so.
func servesServices(p netip.Prefix) error {
	if p.Addr().BitLen()-p.Bits() < smallest {
		return fmt.Errorf("%s is too small: no address of it is left for a Service; name a /%d or a larger range", p, p.Addr().BitLen()-smallest)
	}
	for _, r := range reserved {
		for _, addresses := range r.ranges {
			// netip treats the IPv4-mapped addresses as IPv6, as it should here.
			if p.Overlaps(addresses) {
				return fmt.Errorf("%s holds addresses that no Service can have: %s (%s)", p, addresses, r.what)
			}
		}
	}
	return nil
}
