package programs

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestOfficialAddresses pins where the projects publish their programs.
func TestOfficialAddresses(t *testing.T) {
	all := published(OfficialSources(), Version{37, 1}, "v3.7.0", "arm64")
	var got []string
	for _, p := range all {
		got = append(got, p.address().String(), p.source.JoinPath(p.sums).String())
	}
	want := []string{
		"https://dl.k8s.io/release/v1.37.1/bin/linux/arm64/kube-apiserver", "https://dl.k8s.io/release/v1.37.1/bin/linux/arm64/kube-apiserver.sha256",
		"https://dl.k8s.io/release/v1.37.1/bin/linux/arm64/kube-controller-manager", "https://dl.k8s.io/release/v1.37.1/bin/linux/arm64/kube-controller-manager.sha256",
		"https://dl.k8s.io/release/v1.37.1/bin/linux/arm64/kube-proxy", "https://dl.k8s.io/release/v1.37.1/bin/linux/arm64/kube-proxy.sha256",
		"https://github.com/etcd-io/etcd/releases/download/v3.7.0/etcd-v3.7.0-linux-arm64.tar.gz", "https://github.com/etcd-io/etcd/releases/download/v3.7.0/SHA256SUMS",
		"https://github.com/coredns/coredns/releases/download/v1.14.6/coredns_1.14.6_linux_arm64.tgz", "https://github.com/coredns/coredns/releases/download/v1.14.6/coredns_1.14.6_linux_arm64.tgz.sha256",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// ofNodes are the programs of a lab with nodes.
var ofNodes = []Component{Etcd, APIServer, ControllerManager, CoreDNS, ServiceController, KubeProxy}

// TestAllThatALabRunsIsPublishedOrOptional demands that a fetched lab lacks nothing that it cannot do without.
func TestAllThatALabRunsIsPublishedOrOptional(t *testing.T) {
	var there []Component
	for _, p := range published(OfficialSources(), Version{37, 1}, "v3.7.0", "amd64") {
		if !p.optional {
			there = append(there, p.component)
		}
	}
	for _, c := range withoutOptional(ofNodes) {
		if !slices.Contains(there, c) {
			t.Errorf("%s is not published", c)
		}
	}
}

func TestEtcdFitsTheRelease(t *testing.T) {
	for v, want := range map[Version]string{{28, 15}: "v3.5.9", {31, 0}: "v3.5.13", {34, 4}: "v3.6.4", {37, 1}: "v3.7.0", {99, 0}: "v3.7.0"} {
		if got := etcdFor(v); got != want {
			t.Errorf("%s: etcd %s, want %s", v, got, want)
		}
	}
	if newest, err := ParseVersion(DefaultVersion); err != nil || newest.Minor-oldestMinor != len(etcdOfMinor)-1 {
		t.Errorf("etcd is pinned up to v1.%d, and the newest release is %s", oldestMinor+len(etcdOfMinor)-1, DefaultVersion)
	}
}

func TestParseEtcd(t *testing.T) {
	for s, want := range map[string]string{"3.7.0": "v3.7.0", "v3.5.13": "v3.5.13", "": "", "3.7": "", "v2.3.8": "", "v3.07.0": "", "v3.7.0/..": "", "latest": ""} {
		if got, err := parseEtcd(s); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, error %v", s, got, err)
		}
	}
}

func TestParseSources(t *testing.T) {
	const mirror = "https://mirror.example/a"
	official := OfficialSources()
	for _, c := range []struct {
		mirrors            []string
		kubernetes, github string
	}{
		{nil, official.Kubernetes.String(), official.GitHub.String()},
		{[]string{mirror}, mirror, mirror},
		{[]string{"http://127.0.0.1:1"}, "http://127.0.0.1:1", "http://127.0.0.1:1"},
		{[]string{"github.com=" + mirror}, official.Kubernetes.String(), mirror},
		{[]string{"dl.k8s.io=" + mirror, "github.com=" + mirror + "/b=c"}, mirror, mirror + "/b=c"},
		{[]string{mirror + "/b=c", "github.com=" + mirror}, mirror + "/b=c", mirror},
	} {
		s, err := ParseSources(c.mirrors)
		if err != nil || s.Kubernetes.String() != c.kubernetes || s.GitHub.String() != c.github {
			t.Errorf("%q: %v, error %v", c.mirrors, s, err)
		}
	}
	for _, wrong := range []string{"", "mirror.example", "ftp://mirror.example", "https://", "https://mirror.example?x=y", "https://mirror.example#x", "example.com=" + mirror, "dl.k8s.io=", "://"} {
		if _, err := ParseSources([]string{wrong}); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}

func FuzzParseSources(f *testing.F) {
	f.Add("https://mirror.example/k8s")
	f.Add("github.com=http://[::1]:8080")
	f.Fuzz(func(t *testing.T, s string) {
		sources, err := ParseSources([]string{s})
		if err != nil {
			return
		}
		for _, u := range []*url.URL{sources.Kubernetes, sources.GitHub} {
			if u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				t.Errorf("%q: %s", s, u)
			}
		}
	})
}
