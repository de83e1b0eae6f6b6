package allocation

import (
	"context"
	"fmt"
	"math/big"
	"net/netip"
	"net/url"
	"slices"

	"github.com/onsi/ginkgo/v2"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// A large range is filled by Services at its edges alone, where IPAddress objects can reserve the rest (KEP-1880). kube-apiserver counts all
// addresses of Services with each create, so that 65,278 Services take it an hour and a half of processor time.
const (
	// freeEdge is how many addresses stay free at each end of the upper band.
	freeEdge = 16
	// freeInside is how many stay free between them, chosen at random.
	freeInside = 128
	// reservedPage is how many reservations one request deletes.
	reservedPage = 500
)

// reserveInside reserves the free addresses of the upper band, but for those at its ends and some between them, until the end of the check.
func (f *fill) reserveInside(ctx context.Context, cp *check.ControlPlane) {
	ginkgo.GinkgoHelper()
	size := int(f.bands.DynamicCount().Int64())
	free := map[int]bool{} // by the distance from the start of the band
	for i := range freeEdge {
		free[i], free[size-1-i] = true, true
	}
	for len(free) < 2*freeEdge+freeInside {
		free[cp.Rand().IntN(size)] = true
	}
	var inside []netip.Addr
	for i := range size {
		addr := check.AddressPlus(f.bands.DynamicFirst, big.NewInt(int64(i)))
		if !free[i] && !f.before[addr] {
			inside = append(inside, addr)
		}
	}
	objects := cp.Client().NetworkingV1().IPAddresses()
	label := map[string]string{candidate.RunLabel: cp.Namespace()}
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) {
		removeReserved(ctx, cp, metav1.FormatLabelSelector(metav1.SetAsLabelSelector(label)))
	}, ginkgo.NodeTimeout(slowFillTimeout))
	check.Concurrently(fillClients, func(client int) {
		for i := client; i < len(inside); i += fillClients {
			ip := &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: inside[i].String(), Labels: label}}
			foreign()(ip)
			_, err := candidate.Create(ctx, objects, ip)
			check.Must(err)
		}
	})
	f.reserved = map[netip.Addr]bool{}
	for _, addr := range inside {
		f.reserved[addr] = true
	}
	check.Record("reserved", "%d addresses inside the upper band of %s, by IPAddress objects; %d at each end and %d between them stayed free", len(inside), f.cidr, freeEdge, freeInside)
}

// removeReserved deletes the IPAddress objects that the selector selects.
func removeReserved(ctx context.Context, cp *check.ControlPlane, selector string) {
	ginkgo.GinkgoHelper()
	for {
		left, err := cp.Client().NetworkingV1().IPAddresses().List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: reservedPage})
		check.Must(err)
		if len(left.Items) == 0 {
			return
		}
		a := cp.Do(ctx, "DELETE", fmt.Sprintf("%s?labelSelector=%s&limit=%d", ipAddresses, url.QueryEscape(selector), reservedPage), "", nil)
		if !a.Accepted() {
			check.Abort("delete reservations: %s", a)
		}
	}
}

// respectReserved ends the check as unknown where a Service has an address that an IPAddress object reserves: that is another requirement's to judge, and the
// numbers mean nothing then.
func (f *fill) respectReserved() {
	ginkgo.GinkgoHelper()
	if i := slices.IndexFunc(f.all(), func(addr netip.Addr) bool { return f.reserved[addr] }); i >= 0 {
		check.Abort("%s was handed out although an IPAddress object reserves it (%s), so the numbers of a range that is reserved in part mean nothing", f.all()[i], spec.AllocIPAddressReserves)
	}
}

// takenBefore tells of a message what was not there to be handed out.
func (f *fill) takenBefore() string {
	if len(f.reserved) == 0 {
		return fmt.Sprintf("%d of them in use before", len(f.before))
	}
	return fmt.Sprintf("%d of them in use before and %d reserved", len(f.before), len(f.reserved))
}
