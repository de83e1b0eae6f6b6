package service

import (
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// familiesOf returns the families of the addresses that a Service has.
func familiesOf(svc *corev1.Service) (families []corev1.IPFamily) {
	for _, s := range svc.Spec.ClusterIPs {
		if ip, err := netip.ParseAddr(s); err == nil {
			families = append(families, familyOf(ip))
		}
	}
	return families
}

// TestFamiliesOfNewServices holds which families a Service gets on clusters of one family and of two, in either order.
func TestFamiliesOfNewServices(t *testing.T) {
	selectorless := edit(func(s *corev1.ServiceSpec) { s.Selector = nil })
	clusters := map[string][]string{"4": {rangeV4}, "6": {rangeV6}, "46": {rangeV4, rangeV6}, "64": {rangeV6, rangeV4}}
	for _, test := range []struct {
		name, cluster string
		changes       []change
		families      []corev1.IPFamily
		policy        corev1.IPFamilyPolicy
	}{
		{"default", "4", nil, []corev1.IPFamily{v4}, single},
		{"default", "6", nil, []corev1.IPFamily{v6}, single},
		{"default", "46", nil, []corev1.IPFamily{v4}, single},
		{"default", "64", nil, []corev1.IPFamily{v6}, single},
		{"prefer", "4", []change{withPolicy(prefer)}, []corev1.IPFamily{v4}, prefer},
		{"prefer", "46", []change{withPolicy(prefer)}, []corev1.IPFamily{v4, v6}, prefer},
		{"require", "64", []change{withPolicy(dual)}, []corev1.IPFamily{v6, v4}, dual},
		{"second family", "46", []change{withFamilies(v6)}, []corev1.IPFamily{v6}, single},
		{"prefer, second family", "46", []change{withPolicy(prefer), withFamilies(v6)}, []corev1.IPFamily{v6, v4}, prefer},
		{"require, both families", "46", []change{withPolicy(dual), withFamilies(v6, v4)}, []corev1.IPFamily{v6, v4}, dual},
		{"family of the address", "46", []change{withIPs("fd00:96::5")}, []corev1.IPFamily{v6}, single},
		{"prefer, address", "46", []change{withPolicy(prefer), withIPs("fd00:96::5")}, []corev1.IPFamily{v6, v4}, prefer},
		{"require, addresses", "46", []change{withPolicy(dual), withIPs("fd00:96::5", "10.96.0.5")}, []corev1.IPFamily{v6, v4}, dual},
		{"headless", "46", []change{withIPs("None")}, []corev1.IPFamily{v4}, single},
		{"headless, prefer", "46", []change{withIPs("None"), withPolicy(prefer)}, []corev1.IPFamily{v4, v6}, prefer},
		{"headless, prefer", "4", []change{withIPs("None"), withPolicy(prefer)}, []corev1.IPFamily{v4}, prefer},
		{"headless without selector", "4", []change{withIPs("None"), selectorless}, []corev1.IPFamily{v4, v6}, dual},
		{"headless without selector", "6", []change{withIPs("None"), selectorless}, []corev1.IPFamily{v6, v4}, dual},
		{"headless without selector, other family", "4", []change{withIPs("None"), selectorless, withFamilies(v6), withPolicy(single)}, []corev1.IPFamily{v6}, single},
	} {
		t.Run(test.name+" on "+test.cluster, func(t *testing.T) {
			c := newCluster(t, clusters[test.cluster]...)
			svc := c.mustCreate(test.changes...)
			if !slices.Equal(svc.Spec.IPFamilies, test.families) || policyOf(svc) != test.policy {
				t.Errorf("families %v, policy %s; want %v, %s", svc.Spec.IPFamilies, policyOf(svc), test.families, test.policy)
			}
			if svc.Spec.ClusterIP == "None" {
				return
			}
			if got := familiesOf(svc); !slices.Equal(got, test.families) || svc.Spec.ClusterIP != svc.Spec.ClusterIPs[0] {
				t.Errorf("clusterIP %s, clusterIPs %v; want families %v", svc.Spec.ClusterIP, svc.Spec.ClusterIPs, test.families)
			}
		})
	}
}

// TestDualStackCreateRefusals: nothing stays allocated, of either family.
func TestDualStackCreateRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		changes []change
		reason  metav1.CauseType
		path    string
	}{
		"second address in use":       {[]change{withPolicy(dual), withIPs("10.96.0.10", "fd00:96::99")}, invalid, "spec.clusterIPs"},
		"first address in use":        {[]change{withPolicy(dual), withIPs("fd00:96::99", "10.96.0.10")}, invalid, "spec.clusterIPs"},
		"second address out of range": {[]change{withPolicy(dual), withIPs("10.96.0.10", "fd00:97::1")}, invalid, "spec.clusterIPs"},
		"addresses in other order":    {[]change{withPolicy(dual), withIPs("10.96.0.10", "fd00:96::10"), withFamilies(v6, v4)}, invalid, "spec.clusterIPs[0]"},
		"addresses without policy":    {[]change{withIPs("10.96.0.10", "fd00:96::10")}, invalid, "spec.ipFamilyPolicy"},
		"families without policy":     {[]change{withFamilies(v4, v6)}, invalid, "spec.ipFamilyPolicy"},
		"two of one family":           {[]change{withPolicy(dual), withIPs("10.96.0.10", "10.96.0.11")}, invalid, "spec.clusterIPs"},
		"written in another way":      {[]change{withFamilies(v6), withIPs("FD00:96:0::0099")}, invalid, "spec.clusterIPs"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, rangeV4, rangeV6)
			c.mustCreate(named("first"), withFamilies(v6), withIPs("fd00:96::99"))
			_, err := c.create(test.changes...)
			wantRefused(t, err, test.reason, test.path)
			c.wantInUse(0, 1, 0)
		})
	}
}

func TestSecondaryFamilyComesAndGoes(t *testing.T) {
	c := newCluster(t, rangeV4, rangeV6)
	c.mustCreate()
	for _, policy := range []corev1.IPFamilyPolicy{prefer, dual} {
		primary := c.objects["web"].Spec.ClusterIP
		both := c.mustPatch("web", withPolicy(policy))
		if !slices.Equal(familiesOf(both), []corev1.IPFamily{v4, v6}) || !slices.Equal(both.Spec.IPFamilies, []corev1.IPFamily{v4, v6}) || both.Spec.ClusterIP != primary {
			t.Errorf("%s: %v, %v", policy, both.Spec.ClusterIPs, both.Spec.IPFamilies)
		}
		c.wantInUse(1, 1, 0)
		one := c.mustPatch("web", withPolicy(single))
		if len(one.Spec.ClusterIPs) != 1 || len(one.Spec.IPFamilies) != 1 || one.Spec.ClusterIP != primary {
			t.Errorf("SingleStack: %v, %v", one.Spec.ClusterIPs, one.Spec.IPFamilies)
		}
		c.wantInUse(1, 0, 0)
	}
	chosen := c.mustPatch("web", withPolicy(dual), edit(func(s *corev1.ServiceSpec) { s.ClusterIPs = append(s.ClusterIPs, "fd00:96::7") }))
	if chosen.Spec.ClusterIPs[1] != "fd00:96::7" {
		t.Errorf("clusterIPs %v, want the chosen secondary address", chosen.Spec.ClusterIPs)
	}
	if same := c.mustPatch("web", withPolicy(prefer)); len(same.Spec.ClusterIPs) != 2 {
		t.Errorf("from RequireDualStack to PreferDualStack: %v", same.Spec.ClusterIPs)
	}
	_, err := c.create(named("thief"), withFamilies(v6), withIPs("fd00:96::7"))
	wantRefused(t, err, invalid, "spec.clusterIPs")
	c.wantInUse(1, 1, 0)
}

func TestDualStackUpdateRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		stored, changes []change
		path            string
	}{
		"secondary address changes":      {[]change{withPolicy(dual)}, []change{edit(func(s *corev1.ServiceSpec) { s.ClusterIPs[1] = "fd00:96::8" })}, "spec.clusterIPs[1]"},
		"families change places":         {[]change{withPolicy(dual)}, []change{edit(func(s *corev1.ServiceSpec) { slices.Reverse(s.IPFamilies) })}, "spec.clusterIPs[0]"},
		"secondary address dropped":      {[]change{withPolicy(dual)}, []change{edit(func(s *corev1.ServiceSpec) { s.ClusterIPs = s.ClusterIPs[:1] })}, "spec.ipFamilyPolicy"},
		"secondary family dropped":       {[]change{withPolicy(prefer)}, []change{withFamilies(v4)}, "spec.ipFamilyPolicy"},
		"family added under SingleStack": {nil, []change{withFamilies(v4, v6)}, "spec.ipFamilyPolicy"},
		"secondary address in use":       {nil, []change{withPolicy(dual), edit(func(s *corev1.ServiceSpec) { s.ClusterIPs = append(s.ClusterIPs, "fd00:96::99") })}, "spec.clusterIPs"},
		"primary address changes":        {nil, []change{withPolicy(dual), withIPs("10.96.0.200", "fd00:96::8")}, "spec.clusterIPs[0]"},
		"primary family changes":         {nil, []change{withPolicy(dual), withFamilies(v6, v4)}, "spec.clusterIPs[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, rangeV4, rangeV6)
			c.mustCreate(named("first"), withFamilies(v6), withIPs("fd00:96::99"))
			c.mustCreate(append(test.stored, edit(func(*corev1.ServiceSpec) {}))...)
			freeIPs, _ := c.free()
			_, err := c.patch("web", test.changes...)
			wantRefused(t, err, invalid, test.path)
			if ips, _ := c.free(); !slices.Equal(ips, freeIPs) {
				t.Errorf("free %v, before %v", ips, freeIPs)
			}
		})
	}
}

// TestHeadlessFamilies: a headless Service keeps its primary family, although it holds no address of it; the secondary one
// comes and goes with the policy.
func TestHeadlessFamilies(t *testing.T) {
	c := newCluster(t, rangeV4, rangeV6)
	c.mustCreate(withIPs("None"), withFamilies(v6))
	_, err := c.patch("web", withFamilies(v4))
	wantRefused(t, err, invalid, "spec.ipFamilies[0]")
	families := func(svc *corev1.Service, err error, want ...corev1.IPFamily) {
		t.Helper()
		if err != nil || !slices.Equal(svc.Spec.IPFamilies, want) {
			t.Errorf("families %v, %v, want %v", svc.Spec.IPFamilies, err, want)
		}
	}
	svc, err := c.put(newService(withIPs("None")))
	families(svc, err, v6)
	families(c.mustPatch("web", withPolicy(dual)), nil, v6, v4)
	families(c.mustPatch("web", withPolicy(single)), nil, v6)
}

// TestPreferDualStackStays: when the cluster gains a family, a PreferDualStack Service keeps its one address until the client
// asks for more.
func TestPreferDualStackStays(t *testing.T) {
	before := newCluster(t, rangeV4)
	stored := before.mustCreate(withPolicy(prefer))
	c := newCluster(t, rangeV4, rangeV6)
	if err := c.rules.Adopt(stored); err != nil {
		t.Fatal(err)
	}
	c.objects["web"] = stored
	if svc := c.mustPatch("web", func(svc *corev1.Service) { svc.Labels = map[string]string{"a": "b"} }); len(svc.Spec.ClusterIPs) != 1 {
		t.Errorf("clusterIPs %v", svc.Spec.ClusterIPs)
	}
	if svc := c.mustPatch("web", withFamilies(v4, v6)); len(svc.Spec.ClusterIPs) != 2 {
		t.Errorf("clusterIPs %v, want one of the added family too", svc.Spec.ClusterIPs)
	}
	c.wantInUse(1, 1, 0)
}
