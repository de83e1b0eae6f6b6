package dataplane

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"

	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/ownproxy"
)

func TestKubeProxyConfiguration(t *testing.T) {
	pods := fakes.Prefixes("10.244.0.0/16", "fd00::/48")
	changes := ""
	read := func(mode string, p candidate.ProxyConfiguration) map[string]any {
		t.Helper()
		content, err := kubeProxyConfiguration("node-1", "/kubeconfig", ProxyOptions{Mode: mode, Configuration: changes}, pods, p)
		fakes.Must(t, err)
		var out map[string]any
		fakes.Must(t, yaml.UnmarshalStrict(content, &out))
		return out
	}
	section := func(c map[string]any, mode string) map[string]any { s, _ := c[mode].(map[string]any); return s }

	shared := read("nftables", SharedProxy())
	if shared["mode"] != "nftables" || shared["hostnameOverride"] != "node-1" || shared["clusterCIDR"] != "10.244.0.0/16,fd00::/48" {
		t.Errorf("shared nodes: %v", shared)
	}
	if got := section(shared, "nftables")["minSyncPeriod"]; got != sharedSyncPeriod {
		t.Errorf("minSyncPeriod of shared nodes: %v", got)
	}
	if got := section(read("nftables", candidate.ProxyConfiguration{}), "nftables")["minSyncPeriod"]; got != ownSyncPeriod {
		t.Errorf("minSyncPeriod of a node of a check's own: %v", got)
	}
	own := read("iptables", candidate.ProxyConfiguration{
		Mode: "ipvs", Scheduler: "lc", MinSyncPeriod: "3s", SyncPeriod: "9s", NodePortAddresses: []string{"primary"}, FeatureGates: map[string]bool{"A": false},
	})
	if s := section(own, "ipvs"); own["mode"] != "ipvs" || s["scheduler"] != "lc" || s["minSyncPeriod"] != "3s" || s["syncPeriod"] != "9s" || own["iptables"] != nil {
		t.Errorf("a node of a check's own: %v", own)
	}
	if gates, _ := own["featureGates"].(map[string]any); gates["A"] != false || len(own["nodePortAddresses"].([]any)) != 1 {
		t.Errorf("gates and addresses: %v", own)
	}
	if s := section(read("iptables", candidate.ProxyConfiguration{MinSyncPeriod: ownproxy.Default, SyncPeriod: ownproxy.Default}), "iptables"); len(s) != 0 {
		t.Errorf("what is left to kube-proxy is not written: %v", s)
	}

	changes = "nodePortAddresses: [192.0.2.0/24]\nconntrack: {udpTimeout: 7s}\niptables: {masqueradeBit: 11}\n"
	changed := read("iptables", candidate.ProxyConfiguration{MinSyncPeriod: "3s"})
	if s := section(changed, "iptables"); s["masqueradeBit"] != 11.0 || s["minSyncPeriod"] != "3s" {
		t.Errorf("the user's and the check's part of a section: %v", changed)
	}
	if s := section(changed, "conntrack"); s["udpTimeout"] != "7s" || s["min"] != 0.0 {
		t.Errorf("a section with fields of the lab: %v", changed)
	}
	if got := read("iptables", candidate.ProxyConfiguration{NodePortAddresses: []string{"primary"}})["nodePortAddresses"].([]any); len(got) != 1 || got[0] != "primary" {
		t.Errorf("what a check configures comes last: %v", got)
	}
}

func TestProxyCommandFillsItsPlaceholders(t *testing.T) {
	got := proxyCommand("proxy --kc={kubeconfig} {node} {pod-cidr} {cgroup} {other}", "n1", "/k", "/c", []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/48")})
	if want := "proxy --kc=/k n1 10.0.0.0/8,fd00::/48 /c {other}"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAModeWhoseProgramsAreMissingSaysWhatToInstall(t *testing.T) {
	proxyPrograms["fantasy"] = map[string]string{"no-such-program": "no-such-package"}
	defer delete(proxyPrograms, "fantasy")
	if err := CheckPrograms(ProxyOptions{Mode: "fantasy"}); err == nil || !strings.Contains(err.Error(), "apt-get install no-such-package") {
		t.Errorf("got %v", err)
	}
	if err := CheckPrograms(ProxyOptions{Mode: "fantasy", Command: "mine"}); err != nil {
		t.Errorf("a proxy of its own needs none of kube-proxy's programs: %v", err)
	}
}

func TestNeedsGuest(t *testing.T) {
	if (ProxyOptions{Mode: candidate.NFTables}).NeedsGuest() {
		t.Error("a proxy without IPVS runs on any kernel")
	}
	if of, command := (ProxyOptions{Mode: candidate.IPVS}).NeedsGuest(), (ProxyOptions{Command: "x", UsesIPVS: true}).NeedsGuest(); of != command {
		t.Errorf("mode ipvs needs a guest: %v; another program that uses IPVS: %v", of, command)
	}
}
