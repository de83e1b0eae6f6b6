package spec

import (
	"maps"
	"slices"
	"testing"
)

// TestBasisAndProfile: the strongest source decides the basis, basis and feature decide the profile.
func TestBasisAndProfile(t *testing.T) {
	const documents = `documents:
- {id: page, title: A page, url: 'https://example.com/', basis: document, asOf: v1.37}
- {id: kep, title: Proposals, url: 'https://example.com/', basis: convention, asOf: v1.37}
- {id: source, title: Source, url: 'https://example.com/', basis: upstream, asOf: v1.37}
`
	for name, test := range map[string]struct {
		fields  map[string]string
		basis   Basis
		profile Profile
	}{
		"document":                   {map[string]string{"sources": "[source#x, page#part, kep#1]"}, OnDocument, ProfileCore},
		"convention of an API":       {map[string]string{"sources": "[source#x, kep#1]"}, OnConvention, ProfileAPI},
		"source of an API":           {map[string]string{"sources": "[source#x]"}, OnUpstream, ProfileAPI},
		"source of a proxy":          {map[string]string{"sources": "[source#x]", "area": "proxy", "id": "proxy-one"}, OnUpstream, ProfileProxy},
		"mode of kube-proxy":         {map[string]string{"feature": "KubeProxyIPVS", "area": "proxy", "id": "proxy-one"}, OnDocument, ProfileIPVS},
		"optional feature":           {map[string]string{"feature": FeatureNodePort}, OnDocument, Profile(FeatureNodePort)},
		"optional feature by source": {map[string]string{"feature": FeatureNodePort, "sources": "[source#x]"}, OnUpstream, Profile(FeatureNodePort)},
	} {
		c := mustLoad(t, map[string]string{"documents.yaml": documents, "x.yaml": requirement(test.fields)})
		if r := c.Requirements[0]; r.Basis != test.basis || r.Profile != test.profile {
			t.Errorf("%s: basis %s, profile %s, want %s and %s", name, r.Basis, r.Profile, test.basis, test.profile)
		}
	}
}

// TestProfilesOfTheCatalogue: optional features are features of the catalogue, and the order of profiles does not depend on that of requirements.
func TestProfilesOfTheCatalogue(t *testing.T) {
	features := map[string]bool{}
	for _, r := range Default().Requirements {
		features[r.Feature] = true
		if r.Profile == "" || r.Basis == "" {
			t.Errorf("%s has basis %q and profile %q", r.ID, r.Basis, r.Profile)
		}
	}
	for _, f := range slices.Concat(optionalFeatures, slices.Sorted(maps.Keys(featureNeeds)), slices.Sorted(maps.Keys(profileOfFeature))) {
		if !features[f] {
			t.Errorf("%s is no feature of the catalogue", f)
		}
	}
	profiles := Default().Profiles()
	if len(profiles) < len(baseProfiles) || !slices.Equal(profiles[:len(baseProfiles)], baseProfiles) || !slices.IsSorted(profiles[len(baseProfiles):]) {
		t.Errorf("profiles are %q", profiles)
	}
}
