package candidate

import "testing"

func TestEveryProxyModeIsKnownAndCanBeAskedFor(t *testing.T) {
	seen := map[string]bool{}
	for _, mode := range ProxyModes {
		capability := string(ProxyModeCapability(mode))
		if err := CheckProxyMode(mode); err != nil || capability == "" || seen[capability] {
			t.Errorf("%s: %v, capability %q", mode, err, capability)
		}
		seen[capability] = true
	}
	if CheckProxyMode("") != nil || ProxyModes[0] != DefaultProxyMode {
		t.Error("the default is not the first one")
	}
	const want = `unknown proxy mode "ebpf"; there are iptables, nftables and ipvs`
	if err := CheckProxyMode("ebpf"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
