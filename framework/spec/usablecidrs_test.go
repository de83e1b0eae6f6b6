package spec

import (
	"strings"
	"testing"
)

func TestRangesThatNoClusterCanHaveAreRefused(t *testing.T) {
	for entry, want := range map[string]string{
		"10.96.0.0/31":              "too small",
		"10.96.0.0/32":              "too small",
		"fd00::/127":                "name a /126",
		"0.0.0.0/0":                 "this network",
		"0.0.0.0/8":                 "this network",
		"::/0":                      "this network",
		"127.0.0.0/24":              "loopback",
		"169.254.1.0/24":            "link-local",
		"fe80::/64":                 "link-local",
		"224.0.0.0/24":              "multicast",
		"ff02::/112":                "multicast",
		"255.255.255.0/24":          "reserved",
		"::ffff:10.96.0.0/120":      "IPv4-mapped",
		"10.96.0.1/24":              "write 10.96.0.0/24",
		"10.96.0.0/24,10.97.0.0/24": "different IP families",
		"10.96.0.0/24,":             "is not a range",
		"":                          "is not a range",
	} {
		if ranges, err := ParseUsableServiceCIDRs(entry); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want an error with %q", entry, ranges, err, want)
		}
	}
	for _, entry := range []string{DefaultServiceCIDRs.String(), "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/30", "fc00::/7", "fd00::/126", "10.96.0.0/24,fd00:10:96::/112"} {
		if _, err := ParseUsableServiceCIDRs(entry); err != nil {
			t.Errorf("%q: %v", entry, err)
		}
	}
}
