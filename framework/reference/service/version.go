package service

import (
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// version is the minor version of Kubernetes 1 whose rules are followed.
type version int

// newest is the version that is followed where none is named.
const newest version = 37

func parseVersion(s string) (version, error) {
	if s == "" {
		return newest, nil
	}
	v, err := spec.ParseVersion(s)
	return version(v.Minor), err
}

// relaxedNames: a Service may have any RFC 1123 label as its name (KEP-5311); before, an RFC 1035 label, which starts with a letter.
func (v version) relaxedNames() bool { return v >= 36 }

// strictIPs: leading zeros, IPv4-mapped IPv6 addresses and CIDRs with host bits are refused in new values (KEP-4858).
func (r *Rules) strictIPs() bool { return r.version >= 36 && !r.looseIPs }

// storedStays: of the stored values, these may stay as they are written.
var storedStays = rule.New("stored-stays", func(stored []string) []string { return stored }, spec.APIRatcheting)

// preferSame: trafficDistribution may be PreferSameZone or PreferSameNode (KEP-3015).
func (v version) preferSame() bool { return v >= 34 }

// externalIPsDeprecated: the use of externalIPs is answered with a warning (KEP-5707).
func (v version) externalIPsDeprecated() bool { return v >= 36 }

// headlessWarnings: what has no effect for a headless Service is answered with a warning.
func (v version) headlessWarnings() bool { return v >= 34 }

// preferCloseDeprecated: trafficDistribution PreferClose is answered with a warning (KEP-3015).
func (v version) preferCloseDeprecated() bool { return v >= 35 }
