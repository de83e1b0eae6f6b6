package proxy

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// perSlice is how many endpoints the controllers put into an EndpointSlice.
const perSlice = 100

// testAddress is the i-th address of a network for tests, where nobody is (RFC 2544, RFC 3849).
func testAddress(family corev1.IPFamily, i int) netip.Addr {
	bytes := netip.MustParseAddr("198.19.100.0").AsSlice()
	if family == corev1.IPv6Protocol {
		bytes = netip.MustParseAddr("2001:db8:100::").AsSlice()
	}
	last := bytes[len(bytes)-2:]
	binary.BigEndian.PutUint16(last, binary.BigEndian.Uint16(last)+uint16(i)+1)
	a, _ := netip.AddrFromSlice(bytes)
	return a
}

var _ = ginkgo.Describe("a Service with a thousand endpoints", func() {
	check.It(spec.ProxyManyEndpoints, "is served on the node of one, and keeps no other Service from its changes", check.Long(),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			callers := []candidate.Client{net.ClientPod(ctx, net.Node(0)), check.Host(net.Node(0))}
			each, near := check.AnsweredByEach(pods...), check.AnsweredBy(pods[0])
			// Its policy leads clients to the endpoint of their node. So all others may be addresses that nobody has.
			big := exposeSelectorless(ctx, net, "big", check.With(func(s *corev1.Service) {
				s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
			}))
			check.Concurrently(thousand/perSlice, func(k int) {
				slice := net.Slice(big)
				for i := range perSlice {
					slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
						Addresses: []string{testAddress(net.PrimaryFamily(), k*perSlice+i).String()}, NodeName: new(net.Node(1)),
					})
				}
				if k == thousand/perSlice-1 { // what a proxy may see last
					slice.Endpoints[perSlice-1] = check.Endpoint(pods[0], net.PrimaryFamily())
				}
				net.CreateSlice(ctx, slice)
			})
			changes := func(when string) {
				ginkgo.GinkgoHelper()
				other := net.Expose(ctx, exposed(net.Name("other"), selecting("app")))
				net.Expect(ctx, fmt.Sprintf("a Service is created %s", when), toClusterIP(other, each, callers...)...)
				net.Unexpose(ctx, other.Name)
				net.Expect(ctx, fmt.Sprintf("it is deleted %s", when), once(toClusterIP(other, check.NotBy(pods...), callers...))...)
			}
			net.Expect(ctx, "a Service has a thousand endpoints", toClusterIP(big, near, callers...)...)
			changes("beside it")
			net.Unexpose(ctx, big.Name)
			changes("when it has gone")
		})
})
