package service

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestDefaults(t *testing.T) {
	c := newCluster(t)
	for name, test := range map[string]struct {
		changes []change
		holds   func(*corev1.ServiceSpec) bool
	}{
		"type":                    {nil, func(s *corev1.ServiceSpec) bool { return s.Type == typeClusterIP }},
		"protocol":                {nil, func(s *corev1.ServiceSpec) bool { return s.Ports[0].Protocol == corev1.ProtocolTCP }},
		"target port":             {nil, func(s *corev1.ServiceSpec) bool { return s.Ports[0].TargetPort == intstr.FromInt32(80) }},
		"empty target port":       {[]change{withPorts(corev1.ServicePort{Port: 81, TargetPort: intstr.FromString("")})}, func(s *corev1.ServiceSpec) bool { return s.Ports[0].TargetPort == intstr.FromInt32(81) }},
		"named target port stays": {[]change{withPorts(corev1.ServicePort{Port: 81, TargetPort: intstr.FromString("http")})}, func(s *corev1.ServiceSpec) bool { return s.Ports[0].TargetPort.StrVal == "http" }},
		"no affinity": {nil, func(s *corev1.ServiceSpec) bool {
			return s.SessionAffinity == corev1.ServiceAffinityNone && s.SessionAffinityConfig == nil
		}},
		"config without affinity": {[]change{affinity("", 5)}, func(s *corev1.ServiceSpec) bool { return s.SessionAffinityConfig == nil }},
		"affinity timeout":        {[]change{affinity("ClientIP", -1)}, func(s *corev1.ServiceSpec) bool { return *s.SessionAffinityConfig.ClientIP.TimeoutSeconds == 10800 }},
		"affinity timeout stays":  {[]change{affinity("ClientIP", 7)}, func(s *corev1.ServiceSpec) bool { return *s.SessionAffinityConfig.ClientIP.TimeoutSeconds == 7 }},
		"internal traffic": {nil, func(s *corev1.ServiceSpec) bool {
			return *s.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyCluster
		}},
		"internal, ExternalName":      {[]change{ofType(typeExternalName)}, func(s *corev1.ServiceSpec) bool { return s.InternalTrafficPolicy == nil }},
		"external traffic, ClusterIP": {nil, func(s *corev1.ServiceSpec) bool { return s.ExternalTrafficPolicy == "" }},
		"external traffic, NodePort":  {[]change{ofType(typeNodePort)}, func(s *corev1.ServiceSpec) bool { return s.ExternalTrafficPolicy == policyCluster }},
		"external traffic, external IPs": {[]change{func(svc *corev1.Service) { svc.Spec.ExternalIPs = []string{"192.0.2.1"} }},
			func(s *corev1.ServiceSpec) bool { return s.ExternalTrafficPolicy == policyCluster }},
		"load balancer node ports": {[]change{ofType(typeLoadBalancer)}, func(s *corev1.ServiceSpec) bool { return *s.AllocateLoadBalancerNodePorts }},
		"no load balancer":         {[]change{ofType(typeNodePort)}, func(s *corev1.ServiceSpec) bool { return s.AllocateLoadBalancerNodePorts == nil }},
	} {
		svc := newService(test.changes...)
		c.rules.Default(svc)
		if !test.holds(&svc.Spec) {
			t.Errorf("%s: %+v", name, svc.Spec)
		}
	}
}

// affinity sets the affinity with a timeout; a negative one leaves the configuration empty.
func affinity(affinity corev1.ServiceAffinity, seconds int32) change {
	return func(svc *corev1.Service) {
		svc.Spec.SessionAffinity = affinity
		svc.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{}
		if seconds >= 0 {
			svc.Spec.SessionAffinityConfig.ClientIP = &corev1.ClientIPConfig{TimeoutSeconds: new(seconds)}
		}
	}
}

func TestDefaultIPMode(t *testing.T) {
	c := newCluster(t)
	svc := newService(ofType(typeLoadBalancer))
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}, {Hostname: "lb.example.com"}}
	c.rules.Default(svc)
	if mode := svc.Status.LoadBalancer.Ingress[0].IPMode; mode == nil || *mode != corev1.LoadBalancerIPModeVIP {
		t.Errorf("mode of an address is %v, want VIP", mode)
	}
	if mode := svc.Status.LoadBalancer.Ingress[1].IPMode; mode != nil {
		t.Errorf("mode without an address is %v, want none", *mode)
	}
}

func TestViewHidesInternalTrafficPolicyOfExternalName(t *testing.T) {
	c := newCluster(t)
	local := func(svc *corev1.Service) {
		svc.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
	}
	svc := c.mustCreate(ofType(typeExternalName), local)
	c.rules.View(svc)
	if svc.Spec.InternalTrafficPolicy != nil {
		t.Error("internalTrafficPolicy of an ExternalName Service is shown")
	}
	svc = c.mustCreate(named("other"), local)
	c.rules.View(svc)
	if svc.Spec.InternalTrafficPolicy == nil {
		t.Error("internalTrafficPolicy of a ClusterIP Service is hidden")
	}
}
