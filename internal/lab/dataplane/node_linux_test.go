package dataplane

import "testing"

func TestASyncIsReadFromMetrics(t *testing.T) {
	for text, want := range map[string]bool{
		"":                                false,
		"# TYPE " + lastSync + " gauge\n": false,
		lastSync + " 0\n":                 false,
		lastSync + " 1.7637e+09\n":        true,
		lastSync + `{ip_family="IPv4"} 1.7637e+09` + "\n" + lastSync + `{ip_family="IPv6"} 0`: false,
		lastSync + `{ip_family="IPv4"} 1.7637e+09` + "\n" + lastSync + `{ip_family="IPv6"} 3`: true,
		lastSync + " soon\n": false,
	} {
		if got := hasSynced(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
