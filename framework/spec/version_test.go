package spec

import "testing"

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]Version{
		"v1.37.1": {37, 1}, "1.37.1": {37, 1}, "1.37": {37, 0}, "v1.34.4-gke.100": {34, 4}, "v1.33.13+k3s1": {33, 13}, "v1.38.0-alpha.1": {38, 0},
	} {
		if v, err := ParseVersion(text); err != nil || v != want {
			t.Errorf("%q: %v, %v; want %v", text, v, err, want)
		}
	}
	for _, text := range []string{"", "latest", "v2.0.0", "0.37.1", "v1.x", "v1.37.99999", "v1.-1.0", "vv1.37.1"} {
		if v, err := ParseVersion(text); err == nil {
			t.Errorf("%q is read as %v", text, v)
		}
	}
}
