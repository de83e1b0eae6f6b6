package apiservers

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"
	"github.com/service-conformance/conformance/internal/lab/programs"

	"github.com/service-conformance/conformance/framework/candidate"
)

func TestParseRanges(t *testing.T) {
	for name, c := range map[string]struct {
		request candidate.Request
		cidrs   string
		ports   string
		service string
	}{
		"any":         {candidate.Request{}, "10.96.0.0/16", "30000-32767", "10.96.0.1"},
		"dual-stack":  {candidate.Request{DualStack: true}, "10.96.0.0/16,fd00:10:96::/112", "30000-32767", "10.96.0.1"},
		"one":         {candidate.Request{ServiceCIDRs: fakes.Prefixes("192.168.7.0/29")}, "192.168.7.0/29", "30000-32767", "192.168.7.1"},
		"two":         {candidate.Request{ServiceCIDRs: fakes.Prefixes("fd00::/64", "10.0.0.0/24"), DualStack: true}, "fd00::/64,10.0.0.0/24", "30000-32767", "fd00::1"},
		"host bits":   {candidate.Request{ServiceCIDRs: fakes.Prefixes("10.1.2.3/24")}, "10.1.2.0/24", "30000-32767", "10.1.2.1"},
		"small other": {candidate.Request{ServiceCIDRs: fakes.Prefixes("10.1.2.0/24", "fd00::/126")}, "10.1.2.0/24,fd00::/126", "30000-32767", "10.1.2.1"},
		"ports":       {candidate.Request{NodePorts: "31000-31015"}, "10.96.0.0/16", "31000-31015", "10.96.0.1"},
		"one port":    {candidate.Request{NodePorts: "65535-65535"}, "10.96.0.0/16", "65535-65535", "10.96.0.1"},
	} {
		r, err := ParseRanges(c.request, programs.Version{Minor: 37, Patch: 1})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if r.String() != c.cidrs || r.NodePorts.String() != c.ports || r.KubernetesService().String() != c.service {
			t.Errorf("%s: %s, node ports %s, service %s; want %+v", name, r, r.NodePorts, r.KubernetesService(), c)
		}
	}
}

func TestUnavailableRanges(t *testing.T) {
	for name, c := range map[string]struct {
		cidrs   []netip.Prefix
		version programs.Version
		want    string
	}{
		"four addresses":        {fakes.Prefixes("10.0.0.0/30"), programs.Version{Minor: 37, Patch: 1}, "fewer than 8"},
		"one address":           {fakes.Prefixes("10.0.0.0/32"), programs.Version{Minor: 37, Patch: 1}, "fewer than 8"},
		"four IPv6 addresses":   {fakes.Prefixes("fd00::/126"), programs.Version{Minor: 37, Patch: 1}, "fewer than 8"},
		"short IPv6 prefix":     {fakes.Prefixes("fd00::/60"), programs.Version{Minor: 37, Patch: 1}, "64"},
		"second too":            {fakes.Prefixes("10.0.0.0/24", "fd00::/60"), programs.Version{Minor: 37, Patch: 1}, "64"},
		"large before v1.34":    {fakes.Prefixes("10.0.0.0/11"), programs.Version{Minor: 33, Patch: 13}, "2^20"},
		"large IPv6 before":     {fakes.Prefixes("fd00::/64"), programs.Version{Minor: 31, Patch: 0}, "2^20"},
		"two of the same kind":  {fakes.Prefixes("10.0.0.0/24", "10.0.1.0/24"), programs.Version{Minor: 37, Patch: 1}, "different families"},
		"three":                 {fakes.Prefixes("10.0.0.0/24", "fd00::/112", "10.0.1.0/24"), programs.Version{Minor: 37, Patch: 1}, "at most two"},
		"second large, earlier": {fakes.Prefixes("10.0.0.0/24", "fd00::/100"), programs.Version{Minor: 33, Patch: 13}, "2^20"},
	} {
		_, err := ParseRanges(candidate.Request{ServiceCIDRs: c.cidrs}, c.version)
		if !candidate.IsUnavailable(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want unavailable because of %q", name, err, c.want)
		}
	}
}

func TestLargestRangesByVersion(t *testing.T) {
	for _, c := range []struct {
		cidr    string
		version programs.Version
	}{{"10.0.0.0/12", programs.Version{Minor: 31, Patch: 0}}, {"10.0.0.0/8", programs.Version{Minor: 34, Patch: 4}}, {"fd00::/108", programs.Version{Minor: 33, Patch: 13}}, {"fd00::/64", programs.Version{Minor: 37, Patch: 1}}} {
		if _, err := ParseRanges(candidate.Request{ServiceCIDRs: fakes.Prefixes(c.cidr)}, c.version); err != nil {
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
		if _, err := ParseRanges(q, programs.Version{Minor: 37, Patch: 1}); err == nil || candidate.IsUnavailable(err) {
			t.Errorf("%s: error %v, want one that is not about availability", name, err)
		}
	}
}
