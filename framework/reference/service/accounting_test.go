package service

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/service-conformance/conformance/framework/spec"
)

// TestAccounting drives a small cluster through random creates, updates and deletes, many of which are refused. After
// every step it compares what is free with what the stored objects hold. Nothing is leaked, and nothing is given out
// twice.
func TestAccounting(t *testing.T) {
	layouts := [][]string{{"10.96.0.0/29"}, {"10.96.0.0/28", "fd00:96::/124"}, {"fd00:96::/125", "10.96.0.0/27"}}
	rapid.Check(t, func(rt *rapid.T) {
		config := Config{NodePorts: spec.PortRange{First: 30000, Last: 30011}, Seed: rapid.Uint64().Draw(rt, "seed")}
		for _, s := range rapid.SampledFrom(layouts).Draw(rt, "ranges") {
			config.ServiceCIDRs = append(config.ServiceCIDRs, netip.MustParsePrefix(s))
		}
		rules, err := New(config)
		if err != nil {
			rt.Fatal(err)
		}
		c := &cluster{t: t, rules: rules, objects: map[string]*corev1.Service{}}
		size := totalFree(rules)
		ports := rules.ports.Free()
		pick := func(rt *rapid.T) string {
			names := slices.Sorted(maps.Keys(c.objects))
			if len(names) == 0 {
				rt.Skip("no Service")
			}
			return rapid.SampledFrom(names).Draw(rt, "name")
		}
		next := 0
		rt.Repeat(map[string]func(*rapid.T){
			"": func(rt *rapid.T) {
				held, portsHeld := map[netip.Addr]string{}, map[int]string{}
				for name, svc := range c.objects {
					for _, ip := range clusterIPsOf(svc) {
						if other, ok := held[ip]; ok {
							rt.Fatalf("%s and %s both have %s", name, other, ip)
						}
						held[ip] = name
					}
					all := nodePortsHeld(svc)
					if p := int(svc.Spec.HealthCheckNodePort); p != 0 {
						all = append(all, p)
					}
					for _, port := range all {
						if other, ok := portsHeld[port]; ok {
							rt.Fatalf("%s and %s both have node port %d", name, other, port)
						}
						portsHeld[port] = name
					}
				}
				if got := totalFree(rules); got != size-uint64(len(held)) {
					rt.Fatalf("%d addresses are free, want %d of %d less %v", got, size-uint64(len(held)), size, held)
				}
				if got := rules.ports.Free(); got != ports-len(portsHeld) {
					rt.Fatalf("%d ports are free, want %d of %d less %v", got, ports-len(portsHeld), ports, portsHeld)
				}
			},
			"create": func(rt *rapid.T) {
				next++
				_, _ = c.create(named(fmt.Sprintf("s%d", next)), drawChange(rt))
			},
			"patch": func(rt *rapid.T) { _, _ = c.patch(pick(rt), drawChange(rt)) },
			"put": func(rt *rapid.T) {
				_, _ = c.put(newService(named(pick(rt)), drawChange(rt)))
			},
			"dry run": func(rt *rapid.T) {
				old := c.objects[pick(rt)]
				svc := old.DeepCopy()
				drawChange(rt)(svc)
				rules.Default(svc)
				if tx, err := rules.Update(svc, old, true); err == nil {
					tx.Commit()
				}
			},
			"lost write": func(rt *rapid.T) {
				old := c.objects[pick(rt)]
				svc := old.DeepCopy()
				drawChange(rt)(svc)
				rules.Default(svc)
				if tx, err := rules.Update(svc, old, false); err == nil {
					tx.Rollback()
				}
			},
			"delete": func(rt *rapid.T) { c.delete(pick(rt)) },
		})
	})
}

func totalFree(r *Rules) (free uint64) {
	for _, each := range r.ips.ranges {
		free += each.Free()
	}
	return free
}

// drawChange draws a change of every field that has to do with allocation, valid or not.
func drawChange(rt *rapid.T) change {
	var changes []change
	draw := func(label string, options ...change) {
		if rapid.IntRange(0, 2).Draw(rt, label) == 0 {
			changes = append(changes, rapid.SampledFrom(options).Draw(rt, label))
		}
	}
	draw("type", ofType(typeClusterIP), ofType(typeNodePort), ofType(typeLoadBalancer), ofType(typeExternalName), ofType("Bogus"))
	draw("policy", withPolicy(single), withPolicy(prefer), withPolicy(dual), edit(func(s *corev1.ServiceSpec) { s.IPFamilyPolicy = nil }))
	draw("families", withFamilies(), withFamilies(v4), withFamilies(v6), withFamilies(v4, v6), withFamilies(v6, v4), withFamilies(v4, v4))
	draw("addresses", withIPs("None"), withIPs("10.96.0.3"), withIPs("10.96.0.0"), withIPs("fd00:96::3"), withIPs("10.96.0.4", "fd00:96::4"), withIPs("fd00:96::5", "10.96.0.5"),
		withIPs("x"), withIPs(""), edit(func(s *corev1.ServiceSpec) { s.ClusterIP, s.ClusterIPs = "", nil }),
		edit(func(s *corev1.ServiceSpec) { s.ClusterIP = "" }), edit(func(s *corev1.ServiceSpec) { s.ClusterIPs = s.ClusterIPs[:min(1, len(s.ClusterIPs))] }),
		edit(func(s *corev1.ServiceSpec) { s.ClusterIPs = append(slices.Clone(s.ClusterIPs), "fd00:96::6") }))
	draw("external policy", withExternal(policyLocal), withExternal(policyCluster), withExternal(""))
	draw("health check", withHealthCheck(0), withHealthCheck(30001), withHealthCheck(80))
	draw("allocation of node ports", edit(func(s *corev1.ServiceSpec) { s.AllocateLoadBalancerNodePorts = nil }),
		edit(func(s *corev1.ServiceSpec) { s.AllocateLoadBalancerNodePorts = new(false) }))
	draw("selector", edit(func(s *corev1.ServiceSpec) { s.Selector = nil }))
	nodePort := rapid.SampledFrom([]int32{0, 0, 0, 30000, 30001, 30002, 29999})
	draw("ports", withPorts(), withPorts(corev1.ServicePort{Port: 80, NodePort: nodePort.Draw(rt, "node port")}),
		withPorts(corev1.ServicePort{Name: "a", Port: 80, NodePort: nodePort.Draw(rt, "node port")}, corev1.ServicePort{Name: "b", Port: 81, NodePort: nodePort.Draw(rt, "node port")}),
		withPorts(corev1.ServicePort{Name: "a", Port: 80, NodePort: nodePort.Draw(rt, "node port")}, corev1.ServicePort{Name: "b", Port: 80, Protocol: "UDP", NodePort: nodePort.Draw(rt, "node port")}),
		withPorts(corev1.ServicePort{Name: "a", Port: 80, NodePort: 30003}, corev1.ServicePort{Name: "b", Port: 81, NodePort: 30003}))
	return func(svc *corev1.Service) {
		for _, c := range changes {
			c(svc)
		}
	}
}
