package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// parseServiceCIDR parses one range, or two of different families joined by a comma. It refuses what no cluster can have as its Service range.
func parseServiceCIDR(entry string) ([]netip.Prefix, error) {
	var ranges []netip.Prefix
	for _, c := range strings.Split(entry, ",") {
		p, err := netip.ParsePrefix(c)
		if err != nil {
			return nil, fmt.Errorf("%q is not a range like 10.96.0.0/24 or fd00:10:96::/112", c)
		}
		if p.Masked() != p {
			return nil, fmt.Errorf("%s has bits set beyond the prefix; write %s", c, p.Masked())
		}
		if err := servesServices(p); err != nil {
			return nil, err
		}
		ranges = append(ranges, p)
	}
	if len(ranges) > 2 || len(ranges) == 2 && ranges[0].Addr().Is4() == ranges[1].Addr().Is4() {
		return nil, errors.New("name one range, or two of different IP families")
	}
	return ranges, nil
}

// smallest is how many bits of an address a range must leave: with two addresses, none would be left for a Service beside the range's first and last one.
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
