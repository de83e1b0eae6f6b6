package spec

import (
	"slices"
	"testing"
)

func TestServiceCIDRsAreReadAndWritten(t *testing.T) {
	for _, text := range []string{"10.96.0.0/24", "fd00:10:96::/112", "10.96.0.0/16,fd00:10:96::/112", "fd00:10:96::/112,10.96.0.0/16", DefaultServiceCIDRs.String()} {
		if ranges, err := ParseServiceCIDRs(text); err != nil || ranges.String() != text {
			t.Errorf("%q: %s, %v", text, ranges, err)
		}
	}
	for text, want := range map[string]string{
		"":                             `"" is not a range like 10.96.0.0/24 or fd00:10:96::/112`,
		"10.96.0.0":                    `"10.96.0.0" is not a range like 10.96.0.0/24 or fd00:10:96::/112`,
		"10.96.0.0/24, fd00::/112":     `" fd00::/112" is not a range like 10.96.0.0/24 or fd00:10:96::/112`,
		"10.96.0.1/24":                 "10.96.0.1/24 has bits set beyond the prefix; write 10.96.0.0/24",
		"10.96.0.0/24,10.97.0.0/24":    "name one range, or two of different IP families",
		"10.0.0.0/24,fd00::/112,::/64": "name one range, or two of different IP families",
	} {
		if _, err := ParseServiceCIDRs(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzParseServiceCIDRs(f *testing.F) {
	f.Add("10.96.0.0/24,fd00::/112")
	f.Fuzz(func(t *testing.T, text string) {
		ranges, err := ParseServiceCIDRs(text)
		if err != nil {
			return
		}
		if again, err := ParseServiceCIDRs(ranges.String()); err != nil || !slices.Equal(again, ranges) {
			t.Errorf("%q is %s, which is read as %s, %v", text, ranges, again, err)
		}
	})
}
