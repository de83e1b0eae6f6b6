package report

import (
	"errors"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

func TestADefectIsToldToItsMaintainers(t *testing.T) {
	r := &Report{Candidate: candidate.Description{Implementation: "kubernetes", Version: "v1.37.1", Tier: "lab", DataPlane: candidate.Implementation{Name: "kube-proxy", Version: "v1.37.1"}, ProxyMode: "nftables",
		Components: map[string]string{"etcd": "3.7.0"}}, Seed: 7, Checks: []CheckVerdict{
		{Result: check.Result{Check: "reaches itself", Requirements: []spec.ID{spec.ProxyHairpin}, Verdict: check.NonConformant, Failure: &check.Failure{
			Message: "not met\n  ```\x1b[31m", Reproduce: []string{"kubectl create -n conformance-abc123-lent-1 -f x", "kubectl get -n conformance-abc123-6-2-again services"},
		}}, KnownDeviation: &Expectation{Reason: "It is dropped.", Source: "proxier.go 12", Link: "https://example.org/1"}},
		{Result: check.Result{Check: "is served", Requirements: []spec.ID{spec.ProxyClusterIPReachable}, Verdict: check.Conformant}},
	}}
	text, err := r.Defect(spec.ProxyHairpin)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# kube-proxy v1.37.1 in nftables mode does not meet: ", "](https://", "reaches itself", "It is dropped.", "Source: proxier.go 12", "https://example.org/1",
		"kubectl create namespace defect\nkubectl create -n defect -f x\nkubectl get -n defect services\n", "--focus proxy-hairpin", "- etcd: 3.7.0", "- seed: 7",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if n := strings.Count(string(text), "\n```"); n%2 != 0 {
		t.Errorf("a code block is left open:\n%s", text)
	}
	if strings.Contains(string(text), "\x1b") {
		t.Errorf("the text moves a terminal:\n%s", text)
	}
	if _, err := r.Defect(spec.ProxyClusterIPReachable); !errors.Is(err, ErrNoDefect) {
		t.Errorf("a requirement that is met: %v", err)
	}
	if _, err := r.Defect("nonsense"); err == nil {
		t.Error("there is no requirement nonsense")
	}
}

func TestADefectIsToldToThoseWhoseItIs(t *testing.T) {
	r := &Report{Candidate: candidate.Description{Implementation: "kubernetes", Version: "v1.37.1", DataPlane: candidate.Implementation{Name: "cilium", Version: "v1"}, Components: map[string]string{"coredns": "1.14.6"}}}
	for id, want := range map[spec.ID]string{
		spec.ProxyHairpin: "cilium v1", spec.ProxySelectorAllLabels: "kubernetes v1.37.1", spec.ProxyDNSHeadless: "CoreDNS v1.14.6", spec.AllocDuplicateRefused: "kubernetes v1.37.1",
	} {
		if got := r.accused(id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	r.Submitter = &Submitter{Project: "metallb", Version: "v0.16.2"}
	if got := r.accused(spec.ProxyLoadBalancerLocal); got != "cilium v1" {
		t.Errorf("nobody says what makes load balancers: %s", got)
	}
	r.Candidate.Declarations = map[spec.Declarable]string{spec.LoadBalancers: "another-way"}
	if got := r.accused(spec.ProxyLoadBalancerLocal); got != "metallb v0.16.2" {
		t.Errorf("a maker of load balancers beside a proxy: %s", got)
	}
	r.Submitter, r.Candidate.Components = nil, nil
	if got := r.accused(spec.ProxyDNSHeadless); got != "kubernetes v1.37.1" {
		t.Errorf("the DNS of nobody knows whom: %s", got)
	}
}

func TestARequestGoesToAnotherClusterWithoutWhatItsServerHadSet(t *testing.T) {
	const read = `kubectl replace -n n -f - <<<'{"kind":"Service","apiVersion":"v1","metadata":{"name":"a","uid":"1-2","resourceVersion":"7","managedFields":[{"manager":"it'\''s"}]},"spec":{"clusterIP":"10.96.1.2","clusterIPs":["10.96.1.2"],"ports":[{"port":80}]}}'`
	const sent = `kubectl replace -n n -f - <<<'{"metadata":{"name":"a","resourceVersion":"0"},"spec":{"clusterIP":"10.96.1.2"}}'`
	for _, c := range []struct {
		what     string
		requests []string
		want     string
	}{
		{"an object that was read", []string{read}, `kubectl replace -n n -f - <<<'{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":80}]}}'`},
		{"an address that the client has named", []string{sent, read}, `kubectl replace -n n -f - <<<'{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"clusterIP":"10.96.1.2","clusterIPs":["10.96.1.2"],"ports":[{"port":80}]}}'`},
		{"a body of the check's own", []string{sent}, sent},
		{"no object", []string{"kubectl get service a"}, "kubectl get service a"},
	} {
		if got := elsewhere(c.requests); got[len(got)-1] != c.want {
			t.Errorf("%s: got %s, want %s", c.what, got[len(got)-1], c.want)
		}
	}
}
