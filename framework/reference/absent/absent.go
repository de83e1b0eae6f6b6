// Package absent names what the reference can be started without. An implementation without a feature owes nothing of
// it, and everything else. The ablation starts the reference without each feature in turn. It finds the checks that use
// the feature for something else.
package absent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/spec"
)

// Part is where a feature is missing.
type Part uint8

// The parts. Some features are all in one part.
const (
	API Part = 1 << iota
	Proxy
)

// What is no feature of the catalogue, but a declaration of an implementation.
const (
	Hairpin    = string(spec.Hairpin)
	HostAccess = string(spec.HostAccess)
)

var parts = map[string]Part{
	spec.FeatureDryRun:              API,
	spec.FeatureDualStack:           API,
	spec.FeatureExternalIPs:         API | Proxy,
	spec.FeatureExternalName:        API,
	spec.FeatureFieldValidation:     API,
	spec.FeatureHeadlessService:     API,
	spec.FeatureHealthCheckNodePort: API | Proxy,
	spec.FeatureLoadBalancer:        API | Proxy,
	spec.FeatureNodePort:            API | Proxy,
	spec.FeatureOpenAPI:             API,
	spec.FeatureSCTP:                Proxy,
	spec.FeatureServerSideApply:     API,
	spec.FeatureServiceCIDR:         API,
	spec.FeatureServiceDNS:          Proxy,
	spec.FeatureServiceEnvironment:  Proxy,
	spec.FeatureSessionAffinity:     API | Proxy,
	spec.FeatureSourceRanges:        API | Proxy,
	spec.FeatureTrafficDistribution: API | Proxy,
	spec.FeatureUDP:                 Proxy,
	spec.FeatureWarnings:            API,
	Hairpin:                         Proxy,
	HostAccess:                      Proxy,
}

// Claimable reports whether a candidate can claim what it is without. What the environment of a candidate offers cannot be claimed without being there; of
// declarations the faults of the reference tell.
func Claimable(feature string) bool {
	switch feature {
	case spec.FeatureDualStack, spec.FeatureServiceCIDR, spec.FeatureServiceDNS, spec.FeatureServiceEnvironment, Hairpin, HostAccess:
		return false
	}
	return parts[feature] != 0
}

// proxyOnly marks a feature that the API has and the proxy has not.
const proxyOnly = "proxy:"

// Names returns what Parse takes, sorted: each feature, and "proxy:" before those that the proxy alone can be without.
func Names() []string {
	var names []string
	for name, p := range parts {
		names = append(names, name)
		if p == API|Proxy {
			names = append(names, proxyOnly+name)
		}
	}
	slices.Sort(names)
	return names
}

// Set is what is missing, and where. The nil Set misses nothing. It is immutable and safe for concurrent use.
type Set map[string]Part

// Parse makes a Set of names.
func Parse(names ...string) (Set, error) {
	s := Set{}
	for _, name := range names {
		feature, onlyProxy := strings.CutPrefix(name, proxyOnly)
		p, known := parts[feature]
		if !known || onlyProxy && p&Proxy == 0 {
			return nil, fmt.Errorf("the reference cannot be without %q; it can be without %s", name, strings.Join(Names(), ", "))
		}
		if onlyProxy {
			p = Proxy
		}
		s[feature] |= p
	}
	return s, nil
}

// In reports whether the feature is missing in the part.
func (s Set) In(p Part, feature string) bool { return s[feature]&p != 0 }

// Has reports whether the feature is missing anywhere.
func (s Set) Has(feature string) bool { return s[feature] != 0 }

// Features returns what is missing, sorted, wherever that is.
func (s Set) Features() []string { return slices.Sorted(maps.Keys(s)) }
