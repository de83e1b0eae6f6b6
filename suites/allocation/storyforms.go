package allocation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// plot is what the clients of a story do: which forms their Services take, and what of these is followed.
type plot struct {
	forms []*form
	pools []*pool
	// holds are the registers that a Service has, and without says what one that has none is.
	holds   func(*corev1.Service) []string
	without string
	// crowd is how many Services a client has at most. All clients together want more than there is.
	crowd int
	// further is whether a further Service range comes and goes.
	further bool
}

// pool is what one allocator of the server hands out.
type pool struct {
	has func(register string) bool
	// named are what clients name. Names beyond it may be refused for another reason.
	named, beyond []string
	// upper are the registers of the upper band, nil if there are so many that they never end.
	upper []string
}

// form is what a Service can be.
type form struct {
	pools []*pool // of each of which it has one
	named *pool   // of which a client may name one if the Service has none
	next  []*form // what it can be changed to
	// weight is how many of the creates make one.
	weight int
	// set is the specification that makes a Service of this form, from one that holds something or nothing.
	set func(holds []string, wanted string) string
}

// nameable is the pool of which a client may name one, where the Service holds something already.
func (f *form) nameable(holds []string) *pool {
	if len(holds) == 0 {
		return f.named
	}
	for _, p := range f.pools {
		if !slices.ContainsFunc(holds, p.has) || p == f.named && slices.Contains(f.next, f) { // it gets one, or another one
			return p
		}
	}
	return nil
}

// gains are the pools of which a Service gets one when it becomes one of this form.
func (f *form) gains(holds []string) (gains []*pool) {
	for _, p := range f.pools {
		if !slices.ContainsFunc(holds, p.has) {
			gains = append(gains, p)
		}
	}
	return gains
}

// wish is what a client names of a pool, or nothing.
func (p *pool) wish(random *rand.Rand) string {
	switch n := random.IntN(20); {
	case p == nil || n < 11:
		return ""
	case n < 12 && len(p.beyond) > 0:
		return p.beyond[random.IntN(len(p.beyond))]
	}
	return p.named[random.IntN(len(p.named))]
}

// addressesOf are those of a range that lie in given bounds, both included.
func addressesOf(first, last netip.Addr) (all []string) {
	for ip := first; ip.Compare(last) <= 0; ip = ip.Next() {
		all = append(all, ip.String())
	}
	return all
}

// rangePool is a Service range that is small enough to be followed as a whole.
func rangePool(cidr netip.Prefix, further ...netip.Prefix) *pool {
	bands := check.BandsOf(cidr)
	ranges := append([]netip.Prefix{cidr}, further...)
	p := &pool{named: addressesOf(bands.First, bands.Last), upper: []string{}}
	p.has = func(register string) bool {
		ip, err := netip.ParseAddr(register)
		return err == nil && slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(ip) })
	}
	for _, text := range p.named {
		if bands.InDynamic(netip.MustParseAddr(text)) {
			p.upper = append(p.upper, text)
		}
	}
	for _, r := range further {
		first := r.Addr().Next()
		p.beyond = append(p.beyond, addressesOf(first, first.Next().Next().Next().Next().Next())...)
	}
	return p
}

// vastPool is a Service range that never ends. Clients name a few addresses of its lower band.
func vastPool(cidr netip.Prefix) *pool {
	const few = 12
	p := &pool{has: func(register string) bool {
		ip, err := netip.ParseAddr(register)
		return err == nil && cidr.Contains(ip)
	}}
	ip := check.BandsOf(cidr).First.Next() // not that of the Service "kubernetes"
	for range few {
		p.named = append(p.named, ip.String())
		ip = ip.Next()
	}
	return p
}

// addressesHeld are the cluster IPs of a Service.
func addressesHeld(svc *corev1.Service) []string {
	switch {
	case svc.Spec.Type == corev1.ServiceTypeExternalName || svc.Spec.ClusterIP == corev1.ClusterIPNone:
		return nil
	case len(svc.Spec.ClusterIPs) > 0:
		return slices.Clone(svc.Spec.ClusterIPs)
	case svc.Spec.ClusterIP == "":
		return []string{"without an address"}
	}
	return []string{svc.Spec.ClusterIP}
}

// withAddress is the specification of a Service that has an address, with or without naming it.
func withAddress(ip, more string) string {
	named := ""
	if ip != "" {
		named = fmt.Sprintf(`"clusterIP":%q,`, ip)
	}
	return fmt.Sprintf(`%s%s"type":"ClusterIP","externalName":null,"ports":[{"port":80}]`, named, more)
}

// asAlias is the form of a Service that has no address.
func asAlias() *form {
	return &form{weight: 1, set: func([]string, string) string { return `"type":"ExternalName","externalName":"example.org"` }}
}

// oneAddress is what becomes of Services that have an address or are an alias.
func oneAddress(cp *check.ControlPlane) *plot {
	further := netip.MustParsePrefix(storiedFurther)
	addresses := rangePool(cp.CIDR(), further)
	address := &form{
		weight: 11, pools: []*pool{addresses}, named: addresses,
		set: func(_ []string, wanted string) string { return withAddress(wanted, "") },
	}
	p := &plot{forms: []*form{address}, pools: []*pool{addresses}, holds: addressesHeld, without: "an alias", crowd: 12, further: true}
	if cp.Claims(spec.FeatureExternalName) {
		alias := asAlias()
		alias.next, address.next = []*form{address}, []*form{alias}
		p.forms = append(p.forms, alias)
	}
	return p
}

// twoFamilies is what becomes of Services that have an address of either family, or of both. The range of the first family is small. Whoever names an address asks for
// it before all others, so a request that is refused has held none that somebody names.
func twoFamilies(cp *check.ControlPlane) *plot {
	small, vast := rangePool(cp.CIDRs()[0]), vastPool(cp.CIDRs()[1])
	families := func(policy corev1.IPFamilyPolicy, families ...corev1.IPFamily) string {
		var quoted []string
		for _, f := range families {
			quoted = append(quoted, fmt.Sprintf("%q", f))
		}
		return fmt.Sprintf(`"ipFamilyPolicy":%q,"ipFamilies":[%s],`, policy, strings.Join(quoted, ","))
	}
	single := func(family corev1.IPFamily, of *pool) *form {
		return &form{weight: 4, pools: []*pool{of}, named: of, set: func(holds []string, wanted string) string {
			if len(holds) > 0 {
				return fmt.Sprintf(`"ipFamilyPolicy":%q`, corev1.IPFamilyPolicySingleStack)
			}
			return withAddress(wanted, families(corev1.IPFamilyPolicySingleStack, family))
		}}
	}
	dual := func(named *pool, of []*pool, order ...corev1.IPFamily) *form {
		return &form{weight: 4, pools: of, named: named, set: func(holds []string, wanted string) string {
			both := families(corev1.IPFamilyPolicyRequireDualStack, order...)
			switch {
			case len(holds) == 0:
				return withAddress(wanted, both)
			case wanted == "":
				return strings.TrimSuffix(both, ",")
			}
			return fmt.Sprintf(`%s"clusterIPs":[%q,%q]`, both, holds[0], wanted)
		}}
	}
	first, second := cp.PrimaryFamily(), cp.OtherFamily()
	oneFirst, oneSecond := single(first, small), single(second, vast)
	firstOfTwo, secondOfTwo := dual(small, []*pool{small, vast}, first, second), dual(nil, []*pool{vast, small}, second, first)
	p := &plot{forms: []*form{oneFirst, oneSecond, firstOfTwo, secondOfTwo}, pools: []*pool{small, vast}, holds: addressesHeld, without: "an alias", crowd: 16}
	oneFirst.next, firstOfTwo.next = []*form{firstOfTwo}, []*form{oneFirst}
	oneSecond.next, secondOfTwo.next = []*form{secondOfTwo}, []*form{oneSecond}
	if cp.Claims(spec.FeatureExternalName) {
		alias := asAlias()
		for _, f := range p.forms {
			f.next = append(f.next, alias)
		}
		alias.next = slices.Clone(p.forms)
		p.forms = append(p.forms, alias)
	}
	return p
}

// portPrefix begins the register of a node port.
const portPrefix = "node port "

// oneNodePort is what becomes of Services that get, change and lose a node port.
func oneNodePort(cp *check.ControlPlane) *plot {
	first, last := cp.NodePorts()
	ports := &pool{has: func(register string) bool { return strings.HasPrefix(register, portPrefix) }, upper: []string{}}
	for port := first; port <= last; port++ {
		ports.named = append(ports.named, fmt.Sprint(portPrefix, port))
		if port >= first+check.NodePortBand(first, last) {
			ports.upper = append(ports.upper, fmt.Sprint(portPrefix, port))
		}
	}
	open := &form{weight: 11, pools: []*pool{ports}, named: ports, set: func(_ []string, wanted string) string {
		named := ""
		if wanted != "" {
			named = `,"nodePort":` + strings.TrimPrefix(wanted, portPrefix)
		}
		return fmt.Sprintf(`"type":"NodePort","ports":[{"port":80%s}]`, named)
	}}
	inside := &form{weight: 1, set: func([]string, string) string { return `"type":"ClusterIP","ports":[{"port":80}]` }}
	open.next, inside.next = []*form{inside, open}, []*form{open}
	return &plot{forms: []*form{open, inside}, pools: []*pool{ports}, without: "without a node port", crowd: 20, holds: func(svc *corev1.Service) (held []string) {
		for _, p := range svc.Spec.Ports {
			if p.NodePort != 0 {
				held = append(held, fmt.Sprint(portPrefix, p.NodePort))
			}
		}
		return held
	}}
}

// initially are the registers that Services have already.
func (p *plot) initially(ctx context.Context, cp *check.ControlPlane) map[string]string {
	ginkgo.GinkgoHelper()
	held := map[string]string{}
	all, err := cp.Client().CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	check.Must(err)
	for i := range all.Items {
		for _, register := range p.holds(&all.Items[i]) {
			held[register] = "somebody else"
		}
	}
	return held
}
