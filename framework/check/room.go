package check

import (
	"context"
	"math/big"
	"net/netip"

	"github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// room is how many times the need of a check must be free in a range that it shares. Others have to find something at
// the same time. A /24 has room for 64.
const room = 3

// NeedAddresses leaves out a check that takes n addresses at a time of a range that is nearly full. Others could get
// none, and a refusal would be no fault.
func (cp *ControlPlane) NeedAddresses(ctx context.Context, n int) {
	ginkgo.GinkgoHelper()
	if !cp.CIDR().IsValid() {
		return
	}
	free := new(big.Int).Sub(BandsOf(cp.CIDR()).Usable, big.NewInt(int64(len(cp.AddressesInUse(ctx, cp.CIDR())))))
	if free.Cmp(big.NewInt(int64(room*n))) < 0 {
		LeaveUnjudged(ByFreeRange, "the range %s has %s free addresses, and this check takes %d at a time", cp.CIDR(), free, n)
	}
}

// NeedNodePorts is NeedAddresses for node ports.
func (cp *ControlPlane) NeedNodePorts(ctx context.Context, n int) {
	ginkgo.GinkgoHelper()
	first, last := cp.NodePorts()
	if free := last - first + 1 - len(cp.NodePortsInUse(ctx)); free < room*n {
		LeaveUnjudged(ByFreeRange, "the range %d-%d has %d free node ports, and this check takes %d at a time", first, last, free, n)
	}
}

// AddressesInUse are the cluster IPs of all Services, of whomever, that lie in a range.
func (cp *ControlPlane) AddressesInUse(ctx context.Context, cidr netip.Prefix) map[netip.Addr]bool {
	ginkgo.GinkgoHelper()
	used := map[netip.Addr]bool{}
	for addr := range cp.AddressOwners(ctx, cidr) {
		used[addr] = true
	}
	return used
}

// AddressOwners are the Services, of whomever, that have the addresses of a range, as "namespace/name".
func (cp *ControlPlane) AddressOwners(ctx context.Context, cidr netip.Prefix) map[netip.Addr]string {
	ginkgo.GinkgoHelper()
	list, err := cp.client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	Must(err)
	owners := map[netip.Addr]string{}
	for i := range list.Items {
		s := &list.Items[i]
		for _, ip := range s.Spec.ClusterIPs {
			if addr, err := netip.ParseAddr(ip); err == nil && cidr.Contains(addr) {
				owners[addr] = s.Namespace + "/" + s.Name
			}
		}
	}
	return owners
}
