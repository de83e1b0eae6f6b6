package service

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func withIngress(ingress ...corev1.LoadBalancerIngress) change {
	return func(svc *corev1.Service) { svc.Status.LoadBalancer.Ingress = ingress }
}

func withPortStatus(port corev1.PortStatus) change {
	return withIngress(corev1.LoadBalancerIngress{Hostname: "lb.example.com", Ports: []corev1.PortStatus{port}})
}

func withConditions(conditions ...metav1.Condition) change {
	return func(svc *corev1.Service) { svc.Status.Conditions = conditions }
}

func TestStatusRules(t *testing.T) {
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Done", LastTransitionTime: metav1.Unix(1, 0)}
	bad := ready
	bad.Status = "Maybe"
	const ingress = "status.loadBalancer.ingress"
	for name, test := range map[string]struct {
		typ    corev1.ServiceType
		change change
		reason metav1.CauseType
		path   string
	}{
		"address":                {typeLoadBalancer, withIngress(corev1.LoadBalancerIngress{IP: "192.0.2.1"}), "", ""},
		"address and name":       {typeLoadBalancer, withIngress(corev1.LoadBalancerIngress{IP: "fd00::1", Hostname: "a.example.com"}), "", ""},
		"empty":                  {typeLoadBalancer, withIngress(corev1.LoadBalancerIngress{}), "", ""},
		"ClusterIP":              {typeClusterIP, withIngress(corev1.LoadBalancerIngress{Hostname: "a.example.com"}), forbidden, ingress},
		"bad address":            {typeLoadBalancer, withIngress(corev1.LoadBalancerIngress{IP: "x"}), invalid, ingress + "[0].ip"},
		"leading zeros":          {typeLoadBalancer, withIngress(corev1.LoadBalancerIngress{IP: "192.000.2.1"}), invalid, ingress + "[0].ip"},
		"upper-case name":        {typeLoadBalancer, withIngress(corev1.LoadBalancerIngress{Hostname: "A.example.com"}), invalid, ingress + "[0].hostname"},
		"address as name":        {typeLoadBalancer, withIngress(corev1.LoadBalancerIngress{Hostname: "192.0.2.1"}), invalid, ingress + "[0].hostname"},
		"mode Proxy":             {typeLoadBalancer, withIngress(corev1.LoadBalancerIngress{IP: "192.0.2.1", IPMode: new(corev1.LoadBalancerIPModeProxy)}), "", ""},
		"unknown mode":           {typeLoadBalancer, withIngress(corev1.LoadBalancerIngress{IP: "192.0.2.1", IPMode: new(corev1.LoadBalancerIPMode(""))}), notSupported, ingress + "[0].ipMode"},
		"mode without address":   {typeLoadBalancer, withIngress(corev1.LoadBalancerIngress{Hostname: "a.example.com", IPMode: new(corev1.LoadBalancerIPModeVIP)}), forbidden, ingress + "[0].ipMode"},
		"port":                   {typeLoadBalancer, withPortStatus(corev1.PortStatus{Port: 80, Protocol: "TCP"}), "", ""},
		"port missing":           {typeLoadBalancer, withPortStatus(corev1.PortStatus{Protocol: "TCP"}), invalid, ingress + "[0].ports[0].port"},
		"protocol missing":       {typeLoadBalancer, withPortStatus(corev1.PortStatus{Port: 80}), required, ingress + "[0].ports[0].protocol"},
		"unknown protocol":       {typeLoadBalancer, withPortStatus(corev1.PortStatus{Port: 80, Protocol: "ICMP"}), notSupported, ingress + "[0].ports[0].protocol"},
		"built-in error":         {typeLoadBalancer, withPortStatus(corev1.PortStatus{Port: 80, Protocol: "TCP", Error: new("MixedProtocolNotSupported")}), "", ""},
		"error of a provider":    {typeLoadBalancer, withPortStatus(corev1.PortStatus{Port: 80, Protocol: "TCP", Error: new("foo.example.com/CamelCase")}), "", ""},
		"bad error":              {typeLoadBalancer, withPortStatus(corev1.PortStatus{Port: 80, Protocol: "TCP", Error: new("not camel case")}), invalid, ingress + "[0].ports[0].error"},
		"long error":             {typeLoadBalancer, withPortStatus(corev1.PortStatus{Port: 80, Protocol: "TCP", Error: new(strings.Repeat("A", 317))}), "FieldValueTooLong", ingress + "[0].ports[0].error"},
		"condition":              {typeClusterIP, withConditions(ready), "", ""},
		"bad condition":          {typeClusterIP, withConditions(bad), notSupported, "status.conditions[0].status"},
		"condition twice":        {typeClusterIP, withConditions(ready, ready), duplicate, "status.conditions[1]"},
		"bad label through here": {typeClusterIP, func(svc *corev1.Service) { svc.Labels = map[string]string{"a b": ""} }, invalid, "metadata.labels"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			stored := c.mustCreate(ofType(test.typ))
			svc := c.objects["web"].DeepCopy()
			test.change(svc)
			svc.Spec.Selector = map[string]string{"other": "one"}
			c.rules.Default(svc)
			err := c.rules.UpdateStatus(svc, c.objects["web"])
			if test.path != "" {
				wantRefused(t, err, test.reason, test.path)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if svc.Spec.String() != stored.Spec.String() {
				t.Error("an update of the status changes the specification")
			}
		})
	}
}

// TestStoredStatusMayStay: ingress points and conditions that older rules let pass do not block an update of something else.
func TestStoredStatusMayStay(t *testing.T) {
	c := newCluster(t)
	stored := c.mustCreate(ofType(typeLoadBalancer), withConditions())
	withIngress(corev1.LoadBalancerIngress{IP: "192.000.2.1"})(stored)
	withConditions(metav1.Condition{Type: "Old"})(stored)
	c.rules.Default(stored)
	svc := stored.DeepCopy()
	svc.Labels = map[string]string{"a": "b"}
	if err := c.rules.UpdateStatus(svc, stored); err != nil {
		t.Error(err)
	}
}
