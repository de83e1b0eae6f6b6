package service

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// shapes are the kinds of Service that a change of type leads from and to, with what each of them holds.
var shapes = map[string]struct {
	changes    []change
	ips, ports int
}{
	"ClusterIP":           {[]change{ofType(typeClusterIP)}, 1, 0},
	"NodePort":            {[]change{ofType(typeNodePort)}, 1, 1},
	"LoadBalancer":        {[]change{ofType(typeLoadBalancer)}, 1, 1},
	"LoadBalancer, Local": {[]change{ofType(typeLoadBalancer), withExternal(policyLocal), withClass("a.example.com/x")}, 1, 2},
	"ExternalName":        {[]change{ofType(typeExternalName)}, 0, 0},
}

// TestTypeChanges goes from each type to each, as a client does that changes only the type in what it has read. It
// looks at what the Service then holds and shows.
func TestTypeChanges(t *testing.T) {
	for fromName, from := range shapes {
		for toName, to := range shapes {
			if fromName == "LoadBalancer" && toName == "LoadBalancer, Local" || toName == "LoadBalancer" && fromName == "LoadBalancer, Local" {
				continue // the class of a load balancer does not change
			}
			t.Run(fmt.Sprintf("%s to %s", fromName, toName), func(t *testing.T) {
				c := newCluster(t, rangeV4, rangeV6)
				before := c.mustCreate(append(from.changes, withPolicyIfAddressed(dual))...)
				c.wantInUse(from.ips, from.ips, from.ports)
				changes := to.changes
				if from.ips == 0 {
					changes = append(slices.Clip(changes), withPolicyIfAddressed(dual))
				}
				keepsPolicy := toName != "NodePort" || fromName != "LoadBalancer, Local" // Local stays with NodePort
				after := c.mustPatch("web", changes...)
				c.wantInUse(to.ips, to.ips, to.ports)
				if from.ips > 0 && to.ips > 0 && after.Spec.ClusterIP != before.Spec.ClusterIP {
					t.Errorf("clusterIP was %s and is %s", before.Spec.ClusterIP, after.Spec.ClusterIP)
				}
				wantShape(t, after, keepsPolicy)
				c.delete("web")
				c.wantInUse(0, 0, 0)
			})
		}
	}
}

// withPolicyIfAddressed sets the policy of a Service that has addresses.
func withPolicyIfAddressed(policy corev1.IPFamilyPolicy) change {
	return func(svc *corev1.Service) {
		if hasClusterIP(svc) {
			withPolicy(policy)(svc)
		}
	}
}

// wantShape checks that exactly the fields that belong to the type are set.
func wantShape(t *testing.T, svc *corev1.Service, defaultPolicy bool) {
	t.Helper()
	spec := &svc.Spec
	addressed := spec.Type != typeExternalName
	balanced := spec.Type == typeLoadBalancer
	external := spec.Type == typeNodePort || balanced
	for name, c := range map[string]struct{ is, want bool }{
		"clusterIP":                     {spec.ClusterIP != "", addressed},
		"clusterIPs":                    {len(spec.ClusterIPs) > 0, addressed},
		"ipFamilies":                    {len(spec.IPFamilies) > 0, addressed},
		"ipFamilyPolicy":                {spec.IPFamilyPolicy != nil, addressed},
		"nodePort":                      {spec.Ports[0].NodePort != 0, external},
		"externalTrafficPolicy":         {spec.ExternalTrafficPolicy != "", external},
		"allocateLoadBalancerNodePorts": {spec.AllocateLoadBalancerNodePorts != nil, balanced},
		"healthCheckNodePort":           {spec.HealthCheckNodePort != 0, balanced && spec.ExternalTrafficPolicy == policyLocal},
		"loadBalancerClass":             {spec.LoadBalancerClass != nil, balanced && spec.ExternalTrafficPolicy == policyLocal},
	} {
		if c.is != c.want {
			t.Errorf("%s set: %v, want %v", name, c.is, c.want)
		}
	}
	if external && !balanced && defaultPolicy && spec.ExternalTrafficPolicy != policyCluster {
		t.Errorf("externalTrafficPolicy is %s", spec.ExternalTrafficPolicy)
	}
}

// TestLoadBalancerPolicyChange: the health check node port comes and goes with policy Local.
func TestLoadBalancerPolicyChange(t *testing.T) {
	c := newCluster(t)
	c.mustCreate(ofType(typeLoadBalancer))
	c.wantInUse(1, 0, 1)
	local := c.mustPatch("web", withExternal(policyLocal), withHealthCheck(30042))
	if local.Spec.HealthCheckNodePort != 30042 {
		t.Errorf("healthCheckNodePort = %d, want the chosen one", local.Spec.HealthCheckNodePort)
	}
	c.wantInUse(1, 0, 2)
	_, err := c.create(named("other"), ofType(typeNodePort), withNodePort(30042))
	wantRefused(t, err, invalid, "spec.ports[0].nodePort")
	if cluster := c.mustPatch("web", withExternal(policyCluster)); cluster.Spec.HealthCheckNodePort != 0 {
		t.Error("healthCheckNodePort stays")
	}
	c.wantInUse(1, 0, 1)
}

// TestTypeChangeClearsLoadBalancerStatus: a Service that is no load balancer any more has no status of one.
func TestTypeChangeClearsLoadBalancerStatus(t *testing.T) {
	c := newCluster(t)
	stored := c.mustCreate(ofType(typeLoadBalancer))
	stored.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "lb.example.com"}}
	c.objects["web"] = stored
	if svc := c.mustPatch("web", named("web")); len(svc.Status.LoadBalancer.Ingress) != 1 {
		t.Error("status is lost")
	}
	if svc := c.mustPatch("web", ofType(typeNodePort)); len(svc.Status.LoadBalancer.Ingress) != 0 {
		t.Error("status stays")
	}
	if len(stored.Status.LoadBalancer.Ingress) != 1 {
		t.Error("the stored object was changed")
	}
}
