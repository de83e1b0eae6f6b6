package apischema

import (
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// externalIPsRefused demands that each of the values is refused as an external IP.
func externalIPsRefused(ctx context.Context, cp *check.ControlPlane, values ...string) {
	ginkgo.GinkgoHelper()
	for _, ip := range values {
		a := cp.Create(ctx, check.Service(cp.Name("external"), trafficExternalIPs("192.0.2.10", ip)))
		Expect(a).To(check.BeInvalid("spec.externalIPs[1]"), "external IP %q", ip)
	}
}

var _ = ginkgo.Describe("external IPs", func() {
	check.It(spec.APIExternalIPsUnmanaged, "may be shared and repeated", func(ctx context.Context, cp *check.ControlPlane) {
		Expect(cp.Create(ctx, check.Service("one", trafficExternalIPs("192.0.2.10", "192.0.2.10")))).To(check.BeAccepted(), "an address twice")
		a := cp.Create(ctx, check.Service("other", trafficExternalIPs("192.0.2.10")))
		Expect(a).To(check.BeAccepted(), "an address of another Service")
		Expect(a.Service.Spec.ExternalIPs).To(Equal([]string{"192.0.2.10"}))
	})

	check.It(spec.APIExternalIPsUnmanaged, "may be cluster IPs of other Services", func(ctx context.Context, cp *check.ControlPlane) {
		owner := cp.Arrange(ctx, check.Service("owner"))
		Expect(cp.Create(ctx, check.Service("guest", trafficExternalIPs(owner.Spec.ClusterIP)))).To(check.BeAccepted())
	})

	check.It(spec.APIExternalIPsUnmanaged, "are not taken from the Service range", func(ctx context.Context, cp *check.ControlPlane) {
		var last check.Response
		for i := range 10 { // somebody else may take an address as soon as it is free; that all of them are taken is no accident
			// An address that nobody has: as an external IP, that of another Service would take traffic away from it.
			own := cp.Arrange(ctx, check.Service(fmt.Sprintf("own-%d", i)))
			ip := own.Spec.ClusterIP
			Expect(cp.Delete(ctx, own.Name)).To(check.BeAccepted())
			external := cp.Arrange(ctx, check.Service(fmt.Sprintf("external-%d", i), trafficExternalIPs(ip)))
			if external.Spec.ClusterIP == ip { // the server gives out first what has just become free
				continue
			}
			if last = cp.Create(ctx, check.Service(fmt.Sprintf("cluster-%d", i), check.WithClusterIP(ip))); last.Accepted() {
				return
			}
			Expect(cp.Delete(ctx, fmt.Sprintf("external-%d", i))).To(check.BeAccepted())
		}
		if last.Code == 0 {
			check.Abort("each time the Service with the external IP was given the very address as its cluster IP")
		}
		Expect(last).To(check.BeAccepted(), "the cluster IP is an external IP of another Service")
	})

	check.It(spec.APIExternalIPsValues, "may be addresses of either family", func(ctx context.Context, cp *check.ControlPlane) {
		ips := []string{"192.0.2.10", "2001:db8::10"}
		a := cp.Create(ctx, check.Service("external", trafficExternalIPs(ips...)))
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.ExternalIPs).To(Equal(ips))
	})

	check.It(spec.APIExternalIPsValues, "may be nothing else", func(ctx context.Context, cp *check.ControlPlane) {
		externalIPsRefused(ctx, cp, "", "example.com", "192.0.2.0/24", "192.0.2.256")
	})

	check.It(spec.APIExternalIPsValues, "may be no addresses that never arrive at a node", func(ctx context.Context, cp *check.ControlPlane) {
		externalIPsRefused(ctx, cp, "0.0.0.0", "::", "127.0.0.1", "::1", "169.254.1.1", "fe80::1", "224.0.0.5", "ff02::1")
	})

	check.It(spec.APIExternalIPsStrict, "are written without leading zeros and not as IPv4 in IPv6", func(ctx context.Context, cp *check.ControlPlane) {
		externalIPsRefused(ctx, cp, "192.0.02.10", "::ffff:192.0.2.10")
	})
})
