package proxy

import (
	"context"
	"math/big"
	"net/netip"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/check"
)

// allocated are the virtual IPs that Services have.
func allocated(ctx context.Context, net *check.Network) map[string]bool {
	ginkgo.GinkgoHelper()
	all, err := net.Client().CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	check.Must(err)
	taken := map[string]bool{}
	for _, s := range all.Items {
		for _, a := range s.Spec.ClusterIPs {
			taken[a] = true
		}
	}
	return taken
}

// unallocated returns an address of a Service range that no Service has. It is one that the server does not choose by itself while others
// are left.
func unallocated(ctx context.Context, net *check.Network, cidr netip.Prefix) netip.Addr {
	ginkgo.GinkgoHelper()
	bands, taken := check.BandsOf(cidr), allocated(ctx, net)
	if bands.Offset == 0 {
		check.Abort("the Service range %s has no static band", cidr)
	}
	for range 100 {
		if a := check.AddressPlus(bands.First, big.NewInt(net.Rand().Int64N(int64(bands.Offset)))); !taken[a.String()] {
			return a
		}
	}
	check.Abort("no address of the static band of %s is free", cidr)
	return netip.Addr{}
}

// onStaticAddress gives a Service an address of the static band, where the Service range has one. One that the server
// has chosen may be another check's a moment after the Service is deleted, on a small range. What proxies do for that
// check's Service would then be taken for what they did at the end of this one.
func onStaticAddress(ctx context.Context, net *check.Network) check.ServiceOption {
	ginkgo.GinkgoHelper()
	ranges := net.Plane().ServiceCIDRs()
	if len(ranges) == 0 || check.BandsOf(ranges[0]).Offset == 0 {
		return check.With(func(*corev1.Service) {})
	}
	return check.WithClusterIP(unallocated(ctx, net, ranges[0]).String())
}
