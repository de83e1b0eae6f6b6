package lab

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/candidate"
)

func prefixes(cidrs ...string) []netip.Prefix {
	var ps []netip.Prefix
	for _, c := range cidrs {
		ps = append(ps, netip.MustParsePrefix(c))
	}
	return ps
}

func TestParseRanges(t *testing.T) {
	for name, c := range map[string]struct {
		request candidate.Request
		cidrs   string
		ports   string
		service string
	}{
		"any":         {candidate.Request{}, "10.96.0.0/16", "30000-32767", "10.96.0.1"},
		"dual-stack":  {candidate.Request{DualStack: true}, "10.96.0.0/16,fd00:10:96::/112", "30000-32767", "10.96.0.1"},
		"one":         {candidate.Request{ServiceCIDRs: prefixes("192.168.7.0/29")}, "192.168.7.0/29", "30000-32767", "192.168.7.1"},
		"two":         {candidate.Request{ServiceCIDRs: prefixes("fd00::/64", "10.0.0.0/24"), DualStack: true}, "fd00::/64,10.0.0.0/24", "30000-32767", "fd00::1"},
		"host bits":   {candidate.Request{ServiceCIDRs: prefixes("10.1.2.3/24")}, "10.1.2.0/24", "30000-32767", "10.1.2.1"},
		"small other": {candidate.Request{ServiceCIDRs: prefixes("10.1.2.0/24", "fd00::/126")}, "10.1.2.0/24,fd00::/126", "30000-32767", "10.1.2.1"},
		"ports":       {candidate.Request{NodePorts: "31000-31015"}, "10.96.0.0/16", "31000-31015", "10.96.0.1"},
		"one port":    {candidate.Request{NodePorts: "65535-65535"}, "10.96.0.0/16", "65535-65535", "10.96.0.1"},
	} {
		r, err := parseRanges(c.request, version{37, 1})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if r.String() != c.cidrs || r.nodePorts.String() != c.ports || r.kubernetesService().String() != c.service {
			t.Errorf("%s: %s, node ports %s, service %s; want %+v", name, r, r.nodePorts, r.kubernetesService(), c)
		}
	}
}

func TestUnavailableRanges(t *testing.T) {
	for name, c := range map[string]struct {
		cidrs   []netip.Prefix
		version version
		want    string
	}{
		"four addresses":        {prefixes("10.0.0.0/30"), version{37, 1}, "fewer than 8"},
		"one address":           {prefixes("10.0.0.0/32"), version{37, 1}, "fewer than 8"},
		"four IPv6 addresses":   {prefixes("fd00::/126"), version{37, 1}, "fewer than 8"},
		"short IPv6 prefix":     {prefixes("fd00::/60"), version{37, 1}, "64"},
		"second too":            {prefixes("10.0.0.0/24", "fd00::/60"), version{37, 1}, "64"},
		"large before v1.34":    {prefixes("10.0.0.0/11"), version{33, 13}, "2^20"},
		"large IPv6 before":     {prefixes("fd00::/64"), version{31, 0}, "2^20"},
		"two of the same kind":  {prefixes("10.0.0.0/24", "10.0.1.0/24"), version{37, 1}, "different families"},
		"three":                 {prefixes("10.0.0.0/24", "fd00::/112", "10.0.1.0/24"), version{37, 1}, "at most two"},
		"second large, earlier": {prefixes("10.0.0.0/24", "fd00::/100"), version{33, 13}, "2^20"},
	} {
		_, err := parseRanges(candidate.Request{ServiceCIDRs: c.cidrs}, c.version)
		if !candidate.IsUnavailable(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want unavailable because of %q", name, err, c.want)
		}
	}
}

func TestLargestRangesByVersion(t *testing.T) {
	for _, c := range []struct {
		cidr    string
		version version
	}{{"10.0.0.0/12", version{31, 0}}, {"10.0.0.0/8", version{34, 4}}, {"fd00::/108", version{33, 13}}, {"fd00::/64", version{37, 1}}} {
		if _, err := parseRanges(candidate.Request{ServiceCIDRs: prefixes(c.cidr)}, c.version); err != nil {
			t.Errorf("%s on %s: %v", c.cidr, c.version, err)
		}
	}
}

func TestMalformedRequestsAreErrors(t *testing.T) {
	for name, q := range map[string]candidate.Request{
		"no prefix":       {ServiceCIDRs: []netip.Prefix{{}}},
		"one number":      {NodePorts: "30000"},
		"backwards":       {NodePorts: "31000-30000"},
		"zero":            {NodePorts: "0-10"},
		"too large":       {NodePorts: "30000-65536"},
		"not numbers":     {NodePorts: "a-b"},
		"three numbers":   {NodePorts: "1-2-3"},
		"negative number": {NodePorts: "-1-5"},
	} {
		if _, err := parseRanges(q, version{37, 1}); err == nil || candidate.IsUnavailable(err) {
			t.Errorf("%s: error %v, want one that is not about availability", name, err)
		}
	}
}
