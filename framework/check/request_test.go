package check

import "testing"

func TestMakesLoadBalancer(t *testing.T) {
	for body, want := range map[string]bool{
		`{"spec":{"type":"LoadBalancer"}}`:                                                      true,
		"spec:\n  type: LoadBalancer\n":                                                         true,
		"k8s\x00\n\x0eLoadBalancer":                                                             true,
		`[{"op":"replace","path":"/spec/type","value":"LoadBalancer"}]`:                         true,
		`{"spec":{"type":"LoadBalancer","loadBalancerClass":"service-conformance/nobody"}}`:     false,
		`{"spec":{"type":"NodePort"},"status":{"loadBalancer":{"ingress":[{"ip":"1.1.1.1"}]}}}`: false,
		"": false,
	} {
		if got := makesLoadBalancer([]byte(body), nil); got != want {
			t.Errorf("%q: %t", body, got)
		}
	}
	if makesLoadBalancer([]byte(`{"spec":{"type":"LoadBalancer"}}`), []RequestOption{DryRun()}) {
		t.Error("a dry run makes nothing")
	}
}
