package spec

import (
	"slices"
	"strings"
)

// Profile is a part of the specification that a candidate claims as a whole. Every requirement belongs to exactly one. Each optional feature is a profile of its
// own, of the same name.
type Profile string

// The profiles that are no optional feature.
const (
	// ProfileCore is what every implementation owes: what the documents say, optional features left aside.
	ProfileCore Profile = "core"
	// ProfileAPI is what a drop-in API server does besides: by conventions, or as kube-apiserver is known to.
	ProfileAPI Profile = "kubernetes-api"
	// ProfileProxy is what a drop-in kube-proxy does besides.
	ProfileProxy Profile = "kube-proxy"
	// The rest is what is documented of the modes of kube-proxy.
	ProfileIPTables Profile = "kube-proxy-iptables"
	ProfileNFTables Profile = "kube-proxy-nftables"
	ProfileIPVS     Profile = "kube-proxy-ipvs"
)

// baseProfiles are the profiles that are no optional feature, in the order in which people read of them.
var baseProfiles = []Profile{ProfileCore, ProfileAPI, ProfileProxy, ProfileIPTables, ProfileNFTables, ProfileIPVS}

// profileOfFeature are features that are about kube-proxy and its modes.
var profileOfFeature = map[string]Profile{
	"KubeProxy": ProfileProxy, "KubeProxyIPTables": ProfileIPTables, "KubeProxyNFTables": ProfileNFTables, "KubeProxyIPVS": ProfileIPVS,
}

// optionalFeatures are the features that an implementation may do without.
var optionalFeatures = []string{
	FeatureDryRun, FeatureDualStack, FeatureEndpointControllers, FeatureExternalIPs, FeatureExternalName, FeatureFieldValidation, FeatureHeadlessService,
	FeatureHealthCheckNodePort, FeatureLoadBalancer, FeatureNodePort, FeatureOpenAPI, FeatureSCTP, FeatureServerSideApply, FeatureServiceCIDR, FeatureServiceDNS,
	FeatureServiceEnvironment, FeatureSessionAffinity, FeatureSourceRanges, FeatureTrafficDistribution, FeatureUDP, FeatureWarnings,
}

// IsOptional reports whether an implementation may do without a feature.
func IsOptional(feature string) bool { return slices.Contains(optionalFeatures, feature) }

// profile is the one that a requirement belongs to, whose basis is known.
func (r *Requirement) profile() Profile {
	switch p, ofKubeProxy := profileOfFeature[r.Feature]; {
	case ofKubeProxy:
		return p
	case IsOptional(r.Feature):
		return Profile(r.Feature)
	case r.Basis == OnDocument:
		return ProfileCore
	case r.Area == Proxy:
		return ProfileProxy
	}
	return ProfileAPI
}

// Profiles returns the profiles of all requirements: first those that are no optional feature, then these by name.
func (c *Catalogue) Profiles() []Profile {
	var all []Profile
	for _, r := range c.Requirements {
		if !slices.Contains(all, r.Profile) {
			all = append(all, r.Profile)
		}
	}
	slices.SortFunc(all, CompareProfiles)
	return all
}

// CompareProfiles orders profiles as Profiles does.
func CompareProfiles(a, b Profile) int {
	at := func(p Profile) int {
		if i := slices.Index(baseProfiles, p); i >= 0 {
			return i
		}
		return len(baseProfiles)
	}
	if d := at(a) - at(b); d != 0 {
		return d
	}
	return strings.Compare(string(a), string(b))
}
