package service

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/reference/allocator"
)

// TestExhaustion: a full range refuses Services that need an address, with an error of the server, and only those.
func TestExhaustion(t *testing.T) {
	c := newCluster(t, "10.96.0.0/30")
	c.mustCreate(named("a"))
	second := c.mustCreate(named("b"))
	_, err := c.create(named("c"))
	wantExhausted(t, err)
	_, err = c.create(named("c"), withIPs(second.Spec.ClusterIP))
	wantRefused(t, err, invalid, "spec.clusterIPs")
	c.mustCreate(named("headless"), withIPs("None"))
	c.mustCreate(named("name"), ofType(typeExternalName))
	_, err = c.patch("name", ofType(typeClusterIP))
	wantExhausted(t, err)
	c.mustPatch("a", ofType(typeExternalName))
	c.mustPatch("name", ofType(typeClusterIP))
	c.delete("b")
	if again := c.mustCreate(named("b")); again.Spec.ClusterIP != second.Spec.ClusterIP {
		t.Errorf("address is %s, want the one that is left, %s", again.Spec.ClusterIP, second.Spec.ClusterIP)
	}
}

// TestPortExhaustion: the address that was taken for the Service is given back.
func TestPortExhaustion(t *testing.T) {
	c := newCluster(t)
	for i := range freePorts {
		c.mustCreate(named(fmt.Sprintf("np-%d", i)), ofType(typeNodePort))
	}
	c.wantInUse(freePorts, 0, freePorts)
	_, err := c.create(ofType(typeNodePort))
	wantExhausted(t, err)
	_, err = c.create(ofType(typeLoadBalancer), withExternal(policyLocal), edit(func(s *corev1.ServiceSpec) {
		s.AllocateLoadBalancerNodePorts = new(bool)
	}))
	wantExhausted(t, err)
	c.wantInUse(freePorts, 0, freePorts)
}

// TestNamedPortsComeFirst: a random node port never collides with one that the same request names.
func TestNamedPortsComeFirst(t *testing.T) {
	c := newCluster(t)
	for i := range freePorts - 3 {
		c.mustCreate(named(fmt.Sprintf("np-%d", i)), ofType(typeNodePort), withNodePort(int32(firstPort+i)))
	}
	svc := c.mustCreate(ofType(typeLoadBalancer), withExternal(policyLocal), withHealthCheck(lastPort),
		withPorts(corev1.ServicePort{Name: "a", Port: 80}, corev1.ServicePort{Name: "b", Port: 81, NodePort: lastPort - 1}))
	if got := svc.Spec.Ports[0].NodePort; got != lastPort-2 {
		t.Errorf("node port %d, want the one that is left", got)
	}
	c.delete("web")
	c.mustCreate(ofType(typeLoadBalancer))
	svc = c.mustPatch("web", withExternal(policyLocal), withHealthCheck(c.twoFree()[0]),
		withPorts(corev1.ServicePort{Name: "a", Port: 80, NodePort: c.objects["web"].Spec.Ports[0].NodePort}, corev1.ServicePort{Name: "b", Port: 81}))
	if svc.Spec.Ports[1].NodePort == 0 || svc.Spec.Ports[1].NodePort == svc.Spec.HealthCheckNodePort {
		t.Errorf("ports %v, health check %d", svc.Spec.Ports, svc.Spec.HealthCheckNodePort)
	}
}

// twoFree returns the free ports when there are two.
func (c *cluster) twoFree() (free []int32) {
	for port := firstPort; port <= lastPort; port++ {
		if !c.rules.ports.Has(port) {
			free = append(free, int32(port))
		}
	}
	if len(free) != 2 {
		c.t.Fatalf("%d ports are free, want 2", len(free))
	}
	return free
}

// TestSharedNodePort: entries with the same port number and different protocols get the same node port.
func TestSharedNodePort(t *testing.T) {
	dns := func(tcp, udp int32) change {
		return withPorts(corev1.ServicePort{Name: "tcp", Port: 53, NodePort: tcp}, corev1.ServicePort{Name: "udp", Port: 53, Protocol: "UDP", NodePort: udp})
	}
	for name, ports := range map[string][2]int32{"allocated": {0, 0}, "named": {30053, 30053}, "first named": {30053, 0}, "second named": {0, 30053}} {
		c := newCluster(t)
		svc := c.mustCreate(ofType(typeNodePort), dns(ports[0], ports[1]))
		if a, b := svc.Spec.Ports[0].NodePort, svc.Spec.Ports[1].NodePort; a != b || a == 0 || ports != [2]int32{} && a != 30053 {
			t.Errorf("%s: node ports %d and %d", name, a, b)
		}
		c.wantInUse(1, 0, 1)
		c.delete("web")
		c.wantInUse(0, 0, 0)
	}
	c := newCluster(t)
	c.mustCreate(ofType(typeNodePort), dns(30053, 30054))
	c.wantInUse(1, 0, 2)
}

// TestRollback: what a write took is given back when the store refuses it, and what it would give back stays.
func TestRollback(t *testing.T) {
	c := newCluster(t, rangeV4, rangeV6)
	svc := newService(ofType(typeLoadBalancer), withExternal(policyLocal), withPolicy(dual))
	c.rules.Default(svc)
	tx, err := c.rules.Create(svc, false)
	if err != nil {
		t.Fatal(err)
	}
	c.wantInUse(1, 1, 2)
	tx.Rollback()
	tx.Rollback()
	tx.Commit()
	c.wantInUse(0, 0, 0)

	old := c.mustCreate(ofType(typeLoadBalancer), withExternal(policyLocal), withPolicy(dual))
	changed := old.DeepCopy()
	changed.Spec.Type, changed.Spec.ExternalName = typeExternalName, "db.example.com"
	c.rules.Default(changed)
	if tx, err = c.rules.Update(changed, old, false); err != nil {
		t.Fatal(err)
	}
	c.wantInUse(1, 1, 2)
	tx.Rollback()
	c.wantInUse(1, 1, 2)
}

// TestDryRun: a dry run shows what would be allocated and leaves everything as it is.
func TestDryRun(t *testing.T) {
	c := newCluster(t, rangeV4, rangeV6)
	svc := newService(ofType(typeLoadBalancer), withExternal(policyLocal), withPolicy(dual))
	c.rules.Default(svc)
	tx, err := c.rules.Create(svc, true)
	if err != nil {
		t.Fatal(err)
	}
	upper := netip.MustParseAddr("10.96.0.17")
	if ip, err := netip.ParseAddr(svc.Spec.ClusterIP); err != nil || ip.Less(upper) {
		t.Errorf("clusterIP %q, want an address of the upper band", svc.Spec.ClusterIP)
	}
	if port := svc.Spec.Ports[0].NodePort; port < firstPort || port > lastPort {
		t.Errorf("node port %d", port)
	}
	tx.Commit()
	c.wantInUse(0, 0, 0)
	old := c.mustCreate(ofType(typeNodePort))
	for _, change := range []change{ofType(typeExternalName), withPolicy(dual), withNodePort(30011)} {
		changed := old.DeepCopy()
		change(changed)
		c.rules.Default(changed)
		if tx, err = c.rules.Update(changed, old, true); err != nil {
			t.Fatal(err)
		}
		tx.Commit()
		c.wantInUse(1, 0, 1)
	}
}

// TestHooks: every address that is taken and given back is told, in order, and a dry run tells nothing.
func TestHooks(t *testing.T) {
	var log []string
	rules, err := New(Config{
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix(rangeV4)},
		OnAllocate:   func(ip netip.Addr, owner *corev1.Service) { log = append(log, "+"+ip.String()+" "+owner.Name) },
		OnRelease:    func(ip netip.Addr) { log = append(log, "-"+ip.String()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, rules: rules, objects: map[string]*corev1.Service{}}
	c.mustCreate(withIPs("10.96.0.5"))
	if _, err := rules.Create(newDefaulted(c, withIPs("10.96.0.6")), true); err != nil {
		t.Fatal(err)
	}
	_, err = c.create(named("bad"), withIPs("10.96.0.7"), withPorts())
	wantRefused(t, err, required, "spec.ports")
	c.mustPatch("web", ofType(typeExternalName))
	c.mustPatch("web", ofType(typeClusterIP), withIPs("10.96.0.8"))
	c.delete("web")
	want := []string{"+10.96.0.5 web", "+10.96.0.7 bad", "-10.96.0.7", "-10.96.0.5", "+10.96.0.8 web", "-10.96.0.8"}
	if !slices.Equal(log, want) {
		t.Errorf("told %q, want %q", log, want)
	}
}

func newDefaulted(c *cluster, changes ...change) *corev1.Service {
	svc := newService(changes...)
	c.rules.Default(svc)
	return svc
}

func prefixes(s ...string) (out []netip.Prefix) {
	for _, p := range s {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// TestRanges: ranges come and go, and an address is unique whichever of them it came from.
func TestRanges(t *testing.T) {
	c := newCluster(t, "10.96.0.0/30")
	c.mustCreate(named("a"))
	c.mustCreate(named("b"))
	if err := c.rules.AddRange("more", prefixes("10.96.0.0/29")); err != nil {
		t.Fatal(err)
	}
	if ips, _ := c.free(); !slices.Equal(ips, []uint64{0, 4}) {
		t.Errorf("free %v: want the addresses in use to be taken in the new range", ips)
	}
	_, err := c.create(named("c"), withIPs(c.objects["a"].Spec.ClusterIP))
	wantRefused(t, err, invalid, "spec.clusterIPs")
	third := c.mustCreate(named("c"))
	if !netip.MustParsePrefix("10.96.0.0/29").Contains(netip.MustParseAddr(third.Spec.ClusterIP)) {
		t.Errorf("clusterIP %s, want one of the new range", third.Spec.ClusterIP)
	}
	// .3 is the broadcast address of the first range, and an address like any other of the second.
	static := c.mustCreate(named("d"), withIPs("10.96.0.3"))
	if third.Spec.ClusterIP == static.Spec.ClusterIP {
		t.Error("an address is given out twice")
	}
	c.delete("a")
	if ips, _ := c.free(); ips[0] != 1 {
		t.Errorf("free %v: want the address free in both ranges", ips)
	}
	c.rules.RemoveRange("more")
	_, err = c.create(named("e"), withIPs("10.96.0.5"))
	wantRefused(t, err, invalid, "spec.clusterIPs")
	if err := c.rules.AddRange("more", prefixes("10.96.0.0/29")); err != nil {
		t.Fatal(err)
	}
	if ips, _ := c.free(); !slices.Equal(ips, []uint64{1, 3}) {
		t.Errorf("free %v after the range came back", ips)
	}
	if err := c.rules.AddRange("bad", prefixes("fd00::/60")); err == nil {
		t.Error("a range that is too large is accepted")
	}
	c.rules.RemoveRange("more")
	c.rules.RemoveRange(DefaultRange)
	_, err = c.create(named("f"))
	wantExhausted(t, err)
}

// TestOverlappingRanges fills two ranges that share half of their addresses: the union is given out, each address once.
func TestOverlappingRanges(t *testing.T) {
	c := newCluster(t, "10.96.0.0/28")
	if err := c.rules.AddRange("overlapping", prefixes("10.96.0.0/27")); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i := range 30 {
		svc := c.mustCreate(named(fmt.Sprintf("s%d", i)))
		if seen[svc.Spec.ClusterIP] {
			t.Errorf("%s is given out twice", svc.Spec.ClusterIP)
		}
		seen[svc.Spec.ClusterIP] = true
	}
	_, err := c.create(named("one-more"))
	wantExhausted(t, err)
}

// TestChangedRange: the prefixes of a range can change.
func TestChangedRange(t *testing.T) {
	c := newCluster(t, "10.96.0.0/30", "fd00:96::/126")
	if err := c.rules.AddRange(DefaultRange, prefixes("10.96.0.0/30", "fd00:97::/126")); err != nil {
		t.Fatal(err)
	}
	_, err := c.create(withFamilies(v6), withIPs("fd00:96::1"))
	wantRefused(t, err, invalid, "spec.clusterIPs")
	c.mustCreate(withFamilies(v6), withIPs("fd00:97::1"))
}

// TestReserve: an address that somebody holds by hand is not given out, and a Service's address cannot be given back by hand.
func TestReserve(t *testing.T) {
	c := newCluster(t, "10.96.0.0/30")
	svc := c.mustCreate(withIPs("10.96.0.1"))
	used, other := netip.MustParseAddr(svc.Spec.ClusterIP), netip.MustParseAddr("10.96.0.2")
	if err := c.rules.Reserve(used); !errors.Is(err, allocator.ErrAllocated) {
		t.Errorf("Reserve(%s) = %v, want ErrAllocated", used, err)
	}
	c.rules.Unreserve(used)
	if err := c.rules.Reserve(other); err != nil {
		t.Fatal(err)
	}
	_, err := c.create(named("static"), withIPs("10.96.0.2"))
	wantRefused(t, err, invalid, "spec.clusterIPs")
	_, err = c.create(named("dynamic"))
	wantExhausted(t, err)
	outside := netip.MustParseAddr("10.97.0.1")
	if err := c.rules.Reserve(outside); err != nil {
		t.Fatal(err)
	}
	if err := c.rules.AddRange("more", prefixes("10.97.0.0/30")); err != nil {
		t.Fatal(err)
	}
	_, err = c.create(named("static"), withIPs("10.97.0.1"))
	wantRefused(t, err, invalid, "spec.clusterIPs")
	c.rules.Unreserve(outside)
	c.rules.Unreserve(other)
	c.mustCreate(named("static"), withIPs("10.97.0.1"))
	c.mustCreate(named("dynamic"), withIPs("10.96.0.2"))
}

// TestAdopt takes what stored Services hold, and says what it cannot take.
func TestAdopt(t *testing.T) {
	before := newCluster(t, rangeV4, rangeV6)
	svc := before.mustCreate(ofType(typeLoadBalancer), withExternal(policyLocal), withPolicy(dual))
	headless := before.mustCreate(named("headless"), withIPs("None"))
	c := newCluster(t, rangeV4, rangeV6)
	for _, stored := range []*corev1.Service{svc, headless} {
		if err := c.rules.Adopt(stored); err != nil {
			t.Error(err)
		}
	}
	c.wantInUse(1, 1, 2)
	if err := c.rules.Adopt(svc); !errors.Is(err, allocator.ErrAllocated) {
		t.Errorf("Adopt of the same Service = %v, want ErrAllocated", err)
	}
	c.rules.Delete(svc)
	c.wantInUse(0, 0, 0)
}

// TestConcurrentUse: of many clients that want one address one gets it, and no address or port is given out twice.
func TestConcurrentUse(t *testing.T) {
	c := newCluster(t, "10.96.0.0/24")
	const clients = 32
	var mu sync.Mutex
	var wait sync.WaitGroup
	seen := map[string]int{}
	for i := range clients {
		wait.Go(func() {
			for j := range 5 {
				changes := []change{named(fmt.Sprintf("s-%d-%d", i, j)), ofType(typeNodePort)}
				if j == 0 {
					changes = append(changes, withIPs("10.96.0.5"))
				}
				if j >= 3 {
					changes = append(changes, withPorts()) // refused after its address was taken
				}
				svc := newDefaulted(c, changes...)
				tx, err := c.rules.Create(svc, j == 1)
				if err != nil || j == 1 {
					continue
				}
				tx.Commit()
				mu.Lock()
				seen[svc.Spec.ClusterIP]++
				seen[fmt.Sprint(svc.Spec.Ports[0].NodePort)]++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	for what, n := range seen {
		if n > 1 {
			t.Errorf("%s was given out %d times", what, n)
		}
	}
	if seen["10.96.0.5"] != 1 {
		t.Errorf("10.96.0.5 was given out %d times, want once", seen["10.96.0.5"])
	}
	c.wantInUse(clients+1, 0, clients+1)
}
