package programs

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseVersion(t *testing.T) {
	for in, want := range map[string]string{
		"": DefaultVersion, "v1.37.1": "v1.37.1", "1.31.0": "v1.31.0", "v1.28.15": "v1.28.15", "v1.99.0": "v1.99.0",
	} {
		v, err := ParseVersion(in)
		if err != nil || v.String() != want {
			t.Errorf("parseVersion(%q) = %v, %v; want %s", in, v, err, want)
		}
	}
	for _, in := range []string{
		"v1", "1.37", "v1.37", "v2.0.0", "v1.37.1-rc.0", "v1.037.1", "v1.37.01", "latest", "v1.37.1 ", "v1.37.99999", "v1.27.3", "vv1.37.1", "v1.37.-1", "v1.37.1\n",
	} {
		if v, err := ParseVersion(in); err == nil {
			t.Errorf("parseVersion(%q) = %s; want an error", in, v)
		} else if !strings.Contains(err.Error(), `"`) || !strings.Contains(err.Error(), "v1.") {
			t.Errorf("parseVersion(%q): the error %q names neither the input nor what is possible", in, err)
		}
	}
}

func TestParseVersionNeverAcceptsAnythingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.StringMatching(`v?[0-9]{1,2}\.[0-9]{1,3}\.[0-9]{1,3}.{0,2}`).Draw(t, "in")
		v, err := ParseVersion(in)
		if err == nil && strings.TrimPrefix(v.String(), "v") != strings.TrimPrefix(in, "v") {
			t.Fatalf("%q was read as %s", in, v)
		}
	})
}

func TestSupportedVersions(t *testing.T) {
	if !slices.Contains(SupportedVersions, DefaultVersion) {
		t.Errorf("the default %s is not among the supported versions", DefaultVersion)
	}
	for _, s := range SupportedVersions {
		v, err := ParseVersion(s)
		if err != nil || v.String() != s {
			t.Errorf("supported version %q: %v", s, err)
		}
	}
}

func TestVersionFacts(t *testing.T) {
	for _, c := range []struct {
		version               string
		staging               string
		serviceCIDRs, largest bool
	}{
		{"v1.31.0", "v0.31.0", false, false},
		{"v1.33.13", "v0.33.13", true, false},
		{"v1.34.4", "v0.34.4", true, true},
		{"v1.37.1", "v0.37.1", true, true},
	} {
		v, err := ParseVersion(c.version)
		if err != nil {
			t.Fatal(err)
		}
		if v.staging() != c.staging || v.ServiceCIDRAPI() != c.serviceCIDRs || v.LargeRanges() != c.largest {
			t.Errorf("%s: staging %s, ServiceCIDR API %t, large ranges %t; want %+v", v, v.staging(), v.ServiceCIDRAPI(), v.LargeRanges(), c)
		}
		if s := v.stamps(); !strings.Contains(s, "gitVersion="+c.version+" ") || !strings.Contains(s, "gitMinor="+c.version[3:5]+" ") {
			t.Errorf("%s: stamps %q", v, s)
		}
	}
}
