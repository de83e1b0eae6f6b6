package absent

import (
	"slices"
	"testing"

	"github.com/service-conformance/conformance/framework/spec"
)

func TestParse(t *testing.T) {
	for _, name := range Names() {
		if _, err := Parse(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "VirtualIP", "proxy:", "proxy:DryRun", "externalips"} {
		if s, err := Parse(name); err == nil {
			t.Errorf("%q is taken as %v", name, s)
		}
	}
	s, err := Parse("proxy:ExternalIPs", "NodePort")
	if err != nil || s.In(API, spec.FeatureExternalIPs) || !s.In(Proxy, spec.FeatureExternalIPs) || !s.In(API, spec.FeatureNodePort) || s.Has(spec.FeatureUDP) {
		t.Errorf("%v, %v", s, err)
	}
	if got := s.Features(); !slices.Equal(got, []string{spec.FeatureExternalIPs, spec.FeatureNodePort}) {
		t.Errorf("features %q", got)
	}
}

// TestFeatures: what can be absent is a feature of the catalogue or a declaration.
func TestFeatures(t *testing.T) {
	all := spec.Default().FeaturesWithout()
	for name := range parts {
		if _, declared := spec.Declarables[spec.Declarable(name)]; !declared && !slices.Contains(all, name) {
			t.Errorf("%s is neither a feature of the catalogue nor a declaration", name)
		}
	}
	without := spec.Default().FeaturesWithout(spec.FeatureLoadBalancer)
	if slices.Contains(without, spec.FeatureLoadBalancer) || slices.Contains(without, spec.FeatureHealthCheckNodePort) || !slices.Contains(without, spec.FeatureNodePort) {
		t.Errorf("without load balancers there is %q", without)
	}
}
