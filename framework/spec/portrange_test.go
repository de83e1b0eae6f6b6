package spec

import "testing"

func TestParsePortRange(t *testing.T) {
	for text, want := range map[string]PortRange{
		"": {30000, 32767}, "31000-31015": {31000, 31015}, "65535-65535": {65535, 65535}, "1-1": {1, 1},
	} {
		r, err := ParsePortRange(text)
		if err != nil || r != want {
			t.Errorf("%q: %v, %v; want %v", text, r, err, want)
		}
		if again, err := ParsePortRange(r.String()); err != nil || again != r {
			t.Errorf("%s is read as %v, %v", r, again, err)
		}
	}
	for _, text := range []string{"30000", "31000-30000", "0-10", "30000-65536", "a-b", "1-2-3", "-1-5", "-", " 1-2"} {
		if r, err := ParsePortRange(text); err == nil {
			t.Errorf("%q is read as %v", text, r)
		}
	}
}
