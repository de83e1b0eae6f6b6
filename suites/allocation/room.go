package allocation

import (
	"context"
	"fmt"
	"math/big"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/check"
)

// room is how many times as many as a check takes have to be free in a range that it shares: others have to find something at the same time. A /24 has room for 64.
const room = 3

// needAddresses leaves out a check that takes n addresses at a time of a range that is nearly full: others could get none, and a refusal would be no fault.
func needAddresses(ctx context.Context, cp *check.ControlPlane, n int) {
	ginkgo.GinkgoHelper()
	if !cp.CIDR().IsValid() {
		return
	}
	free := new(big.Int).Sub(check.BandsOf(cp.CIDR()).Usable, big.NewInt(int64(len(addressesInUse(ctx, cp, cp.CIDR())))))
	if free.Cmp(big.NewInt(int64(room*n))) < 0 {
		ginkgo.Skip(fmt.Sprintf("the range %s has %s free addresses, and this check takes %d at a time", cp.CIDR(), free, n))
	}
}

// needNodePorts is needAddresses for node ports.
func needNodePorts(ctx context.Context, cp *check.ControlPlane, n int) {
	ginkgo.GinkgoHelper()
	first, last := cp.NodePorts()
	if free := last - first + 1 - len(cp.NodePortsInUse(ctx)); free < room*n {
		ginkgo.Skip(fmt.Sprintf("the range %d-%d has %d free node ports, and this check takes %d at a time", first, last, free, n))
	}
}
