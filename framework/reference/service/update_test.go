package service

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestUpdateRefusals holds what an update may not change. Nothing changes then, and nothing is leaked.
func TestUpdateRefusals(t *testing.T) {
	loadBalancer := []change{ofType(typeLoadBalancer), withExternal(policyLocal), withClass("a.example.com/x"), withHealthCheck(30010)}
	nodePort := []change{ofType(typeNodePort), withNodePort(30010)}
	for name, test := range map[string]struct {
		stored, changes []change
		reason          metav1.CauseType
		path            string
	}{
		"other address":              {nil, []change{withIPs("10.96.0.40")}, invalid, "spec.clusterIPs[0]"},
		"other clusterIP":            {nil, []change{edit(func(s *corev1.ServiceSpec) { s.ClusterIP = "10.96.0.40" })}, invalid, "spec.clusterIPs[0]"},
		"other clusterIPs":           {nil, []change{edit(func(s *corev1.ServiceSpec) { s.ClusterIPs = []string{"10.96.0.40"} })}, invalid, "spec.clusterIPs"},
		"to headless":                {nil, []change{withIPs("None")}, invalid, "spec.clusterIPs[0]"},
		"from headless":              {[]change{withIPs("None")}, []change{withIPs("10.96.0.40")}, invalid, "spec.clusterIPs[0]"},
		"headless to NodePort":       {[]change{withIPs("None")}, []change{ofType(typeNodePort)}, invalid, "spec.clusterIPs[0]"},
		"to dual stack":              {nil, []change{withPolicy(dual)}, invalid, "spec.ipFamilyPolicy"},
		"primary family":             {nil, []change{withFamilies(v6)}, invalid, "spec.clusterIPs[0]"},
		"ExternalName, new address":  {nil, []change{ofType(typeExternalName), withIPs("10.96.0.40")}, forbidden, "spec.clusterIPs"},
		"ExternalName, new families": {nil, []change{ofType(typeExternalName), withFamilies(v6)}, forbidden, "spec.ipFamilies"},
		"ExternalName, new policy":   {nil, []change{ofType(typeExternalName), withPolicy(prefer)}, forbidden, "spec.ipFamilyPolicy"},
		"ExternalName, no name":      {nil, []change{ofType(typeExternalName), withExternalName("")}, required, "spec.externalName"},
		"ExternalName, new nodePort": {nodePort, []change{ofType(typeExternalName), withNodePort(30011)}, forbidden, "spec.ports[0].nodePort"},
		"nodePort on ExternalName":   {[]change{ofType(typeExternalName)}, []change{withNodePort(30011)}, forbidden, "spec.ports[0].nodePort"},
		"address in use":             {[]change{ofType(typeExternalName)}, []change{ofType(typeClusterIP), withIPs("10.96.0.99")}, invalid, "spec.clusterIPs"},
		"ClusterIP, new nodePort":    {nodePort, []change{ofType(typeClusterIP), withNodePort(30011)}, forbidden, "spec.ports[0].nodePort"},
		"ClusterIP, new policy":      {nodePort, []change{ofType(typeClusterIP), withExternal(policyLocal)}, invalid, "spec.externalTrafficPolicy"},
		"node port in use":           {nodePort, []change{withNodePort(30050)}, invalid, "spec.ports[0].nodePort"},
		"node port out of range":     {nodePort, []change{withNodePort(80)}, invalid, "spec.ports[0].nodePort"},
		"node port twice":            {nodePort, []change{withPorts(corev1.ServicePort{Name: "a", Port: 80, NodePort: 30012}, corev1.ServicePort{Name: "b", Port: 81, NodePort: 30012})}, duplicate, "spec.ports[1].nodePort"},
		"other class":                {loadBalancer, []change{withClass("a.example.com/y")}, invalid, "spec.loadBalancerClass"},
		"no class":                   {loadBalancer, []change{edit(func(s *corev1.ServiceSpec) { s.LoadBalancerClass = nil })}, invalid, "spec.loadBalancerClass"},
		"class later":                {[]change{ofType(typeLoadBalancer)}, []change{withClass("a.example.com/y")}, invalid, "spec.loadBalancerClass"},
		"class leaves with a change": {loadBalancer, []change{ofType(typeNodePort), withClass("a.example.com/y")}, forbidden, "spec.loadBalancerClass"},
		"health check port":          {loadBalancer, []change{withHealthCheck(30011)}, forbidden, "spec.healthCheckNodePort"},
		"health check port, Cluster": {loadBalancer, []change{withExternal(policyCluster), withHealthCheck(30011)}, invalid, "spec.healthCheckNodePort"},
		"health check port in use":   {[]change{ofType(typeLoadBalancer)}, []change{withExternal(policyLocal), withHealthCheck(30050)}, invalid, "spec.healthCheckNodePort"},
		"node-port choice":           {loadBalancer, []change{ofType(typeNodePort), edit(func(s *corev1.ServiceSpec) { s.AllocateLoadBalancerNodePorts = new(false) })}, forbidden, "spec.allocateLoadBalancerNodePorts"},
		"source ranges, NodePort":    {[]change{ofType(typeLoadBalancer), withSourceRanges("10.0.0.0/8")}, []change{ofType(typeNodePort)}, forbidden, "spec.LoadBalancerSourceRanges"},
		"bad port":                   {nodePort, []change{withPorts(corev1.ServicePort{Port: 0})}, invalid, "spec.ports[0].port"},
		"bad label":                  {nil, []change{func(svc *corev1.Service) { svc.Labels = map[string]string{"a b": ""} }}, invalid, "metadata.labels"},
		"bad finalizer":              {nil, []change{func(svc *corev1.Service) { svc.Finalizers = []string{"a b/c"} }}, invalid, "metadata.finalizers"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.mustCreate(named("first"), ofType(typeNodePort), withIPs("10.96.0.99"), withNodePort(30050))
			stored := c.mustCreate(test.stored...)
			freeIPs, freePorts := c.free()
			_, err := c.patch("web", test.changes...)
			wantRefused(t, err, test.reason, test.path)
			if ips, ports := c.free(); ips[0] != freeIPs[0] || ports != freePorts {
				t.Errorf("free: %d addresses, %d ports; before %d and %d", ips, ports, freeIPs, freePorts)
			}
			if got := c.objects["web"]; got.String() != stored.String() {
				t.Errorf("stored object changed to %s", got)
			}
		})
	}
}

// TestUpdateKeepsAllocatedValues: writing the manifest again, without the values that were allocated, changes nothing.
func TestUpdateKeepsAllocatedValues(t *testing.T) {
	c := newCluster(t, rangeV4, rangeV6)
	manifest := []change{ofType(typeLoadBalancer), withExternal(policyLocal), withPolicy(dual), withPorts(
		corev1.ServicePort{Name: "dns", Port: 53, Protocol: "UDP"}, corev1.ServicePort{Name: "dns-tcp", Port: 53}, corev1.ServicePort{Name: "metrics", Port: 9153})}
	created := c.mustCreate(manifest...)
	c.wantInUse(1, 1, 3)
	again, err := c.put(newService(manifest...))
	if err != nil {
		t.Fatal(err)
	}
	if again.Spec.String() != created.Spec.String() {
		t.Errorf("second write gives %s\nfirst one gave %s", &again.Spec, &created.Spec)
	}
	c.wantInUse(1, 1, 3)

	headless := c.mustCreate(named("headless"), withIPs("None"))
	again, err = c.put(newService(named("headless")))
	if err != nil || again.Spec.String() != headless.Spec.String() {
		t.Errorf("headless Service became %v, %v", again, err)
	}
}

// TestNodePortsOnUpdate follows node ports through updates.
func TestNodePortsOnUpdate(t *testing.T) {
	c := newCluster(t)
	c.mustCreate(ofType(typeNodePort), withPorts(corev1.ServicePort{Name: "a", Port: 80, NodePort: 30001}, corev1.ServicePort{Name: "b", Port: 81, NodePort: 30002}))
	swapped := c.mustPatch("web", withPorts(corev1.ServicePort{Name: "a", Port: 80, NodePort: 30002}, corev1.ServicePort{Name: "b", Port: 81, NodePort: 30001}))
	if swapped.Spec.Ports[0].NodePort != 30002 {
		t.Error("node ports of one Service cannot be swapped")
	}
	c.wantInUse(1, 0, 2)
	taken := c.mustPatch("web", withPorts(corev1.ServicePort{Name: "a", Port: 80, NodePort: 30001}, corev1.ServicePort{Name: "b", Port: 81}))
	if got := taken.Spec.Ports[1].NodePort; got == 30001 || got == 0 {
		t.Errorf("node port of b is %d, want a new one: a has taken the old one", got)
	}
	c.wantInUse(1, 0, 2)
	changed := c.mustPatch("web", withPorts(corev1.ServicePort{Name: "a", Port: 80, NodePort: 30003}))
	if changed.Spec.Ports[0].NodePort != 30003 {
		t.Error("chosen node port is not used")
	}
	c.wantInUse(1, 0, 1)
	renamed := c.mustPatch("web", withPorts(corev1.ServicePort{Name: "z", Port: 80}))
	if got := renamed.Spec.Ports[0].NodePort; got == 0 || got == 30003 {
		t.Errorf("node port of a renamed port is %d, want a new one", got)
	}
	c.mustCreate(named("next"), ofType(typeNodePort), withNodePort(30003))
	c.wantInUse(2, 0, 2)
	both := c.mustPatch("web", withPorts(corev1.ServicePort{Name: "t", Port: 53, NodePort: 30009}, corev1.ServicePort{Name: "u", Port: 53, Protocol: "UDP", NodePort: 30009}))
	if both.Spec.Ports[1].NodePort != 30009 {
		t.Error("two protocols cannot share a node port")
	}
	c.wantInUse(2, 0, 2)
}

// TestLoadBalancerWithoutNodePorts demands that node ports that are named are honored, and that others are not
// allocated. If allocation is turned off, those that exist stay until the client leaves them out.
func TestLoadBalancerWithoutNodePorts(t *testing.T) {
	c := newCluster(t)
	off := edit(func(s *corev1.ServiceSpec) { s.AllocateLoadBalancerNodePorts = new(false) })
	none := c.mustCreate(named("none"), ofType(typeLoadBalancer), off)
	if none.Spec.Ports[0].NodePort != 0 {
		t.Error("node port allocated")
	}
	c.wantInUse(1, 0, 0)
	one := c.mustCreate(named("one"), ofType(typeLoadBalancer), off, withPorts(corev1.ServicePort{Name: "a", Port: 80, NodePort: 30005}, corev1.ServicePort{Name: "b", Port: 81}))
	if one.Spec.Ports[0].NodePort != 30005 || one.Spec.Ports[1].NodePort != 0 {
		t.Errorf("ports %v", one.Spec.Ports)
	}
	local := c.mustPatch("none", withExternal(policyLocal))
	if local.Spec.HealthCheckNodePort == 0 {
		t.Error("health check node port is not allocated")
	}
	c.wantInUse(2, 0, 2)
	c.mustCreate(ofType(typeLoadBalancer))
	kept := c.mustPatch("web", off)
	if kept.Spec.Ports[0].NodePort == 0 {
		t.Error("turning allocation off drops the node port")
	}
	c.wantInUse(3, 0, 3)
	dropped := c.mustPatch("web", withNodePort(0))
	if dropped.Spec.Ports[0].NodePort != 0 {
		t.Error("node port cannot be dropped")
	}
	c.wantInUse(3, 0, 2)
}

func TestAffinityConfigLeavesWithAffinity(t *testing.T) {
	c := newCluster(t)
	c.mustCreate(affinity("ClientIP", 7))
	if svc := c.mustPatch("web", edit(func(s *corev1.ServiceSpec) { s.SessionAffinity = corev1.ServiceAffinityNone })); svc.Spec.SessionAffinityConfig != nil {
		t.Error("affinity None keeps a configuration")
	}
}

// TestMainResourceIgnoresStatus: status is written through its subresource only.
func TestMainResourceIgnoresStatus(t *testing.T) {
	status := func(svc *corev1.Service) {
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	}
	c := newCluster(t)
	if svc := c.mustCreate(ofType(typeLoadBalancer), status); len(svc.Status.LoadBalancer.Ingress) > 0 {
		t.Error("create sets the status")
	}
	if svc := c.mustPatch("web", status); len(svc.Status.LoadBalancer.Ingress) > 0 {
		t.Error("update sets the status")
	}
}
