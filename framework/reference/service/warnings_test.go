package service

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWarnings(t *testing.T) {
	headless := withIPs("None")
	for name, test := range map[string]struct {
		changes []change
		want    []string // a part of each warning
	}{
		"plain":                    {nil, nil},
		"deprecated annotation":    {[]change{withAnnotation("service.kubernetes.io/topology-aware-hints", "Auto")}, []string{"annotation service.kubernetes.io/topology-aware-hints is deprecated"}},
		"unusual cluster IP":       {[]change{withIPs("FD00:96::1")}, []string{`spec.clusterIPs[0]: IPv6 address "FD00:96::1"`}},
		"headless, affinity":       {[]change{headless, affinity("ClientIP", 1)}, []string{"spec.SessionAffinity is ignored"}},
		"headless, external IP":    {[]change{headless, withExternalIP("192.0.2.1")}, []string{"spec.externalIPs is ignored for headless"}},
		"headless, LB IP":          {[]change{headless, edit(func(s *corev1.ServiceSpec) { s.LoadBalancerIP = "192.0.2.1" })}, []string{"spec.loadBalancerIP is ignored"}},
		"external IP":              {[]change{withExternalIP("192.0.2.1")}, []string{"spec.externalIPs is deprecated"}},
		"ExternalName, IP":         {[]change{ofType(typeExternalName), withExternalIP("192.0.2.1")}, []string{`spec.externalIPs is ignored when spec.type is "ExternalName"`}},
		"external name, ClusterIP": {[]change{withExternalName("x")}, []string{"spec.externalName is ignored"}},
		"LB IP of any text":        {[]change{edit(func(s *corev1.ServiceSpec) { s.LoadBalancerIP = "any text" })}, nil},
		"unusual LB IP":            {[]change{edit(func(s *corev1.ServiceSpec) { s.LoadBalancerIP = "192.000.2.1" })}, []string{"spec.loadBalancerIP: non-standard"}},
		"unusual source range":     {[]change{ofType(typeLoadBalancer), withSourceRanges(" FD00::/8 ")}, []string{"spec.loadBalancerSourceRanges[0]: IPv6 CIDR"}},
		"PreferClose":              {[]change{edit(func(s *corev1.ServiceSpec) { s.TrafficDistribution = new("PreferClose") })}, []string{`"PreferClose" is deprecated`}},
	} {
		c := newCluster(t, rangeV4, rangeV6)
		svc := newDefaulted(c, test.changes...)
		if _, err := c.rules.Create(svc, false); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := c.rules.Warnings(svc)
		if len(got) != len(test.want) {
			t.Errorf("%s: warnings %q, want %d", name, got, len(test.want))
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], test.want[i]) {
				t.Errorf("%s: warning %q, want one that says %q", name, got[i], test.want[i])
			}
		}
	}
}

func TestStatusWarnings(t *testing.T) {
	c := newCluster(t)
	svc := newService(withIngress(corev1.LoadBalancerIngress{IP: "FD00::1"}, corev1.LoadBalancerIngress{Hostname: "a.example.com"}))
	if got := c.rules.StatusWarnings(svc); len(got) != 1 || !strings.Contains(got[0], "status.loadBalancer.ingress[0]") {
		t.Errorf("warnings %q, want one about the address", got)
	}
}
