package allocation

import (
	"context"
	"fmt"
	"math/big"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
)

// primaryRange is the Service range of the control plane. A check that has to name addresses is not judged where it is not known.
func primaryRange(cp *check.ControlPlane) netip.Prefix {
	if !cp.CIDR().IsValid() {
		check.LeaveUnjudged("--service-cidr, with the range of the cluster", "the Service range is not known")
	}
	return cp.CIDR()
}

// choices bounds the part of the upper band that addresses are chosen from; allocators that keep a bitmap end at 65536.
const choices = 1 << 15

// randomAddress chooses an address of the upper band. On a control plane that others use as well it is free in all
// likelihood. Checks name addresses there, and dynamic allocation hits a given one of a /16 in 1 of 65278 cases.
func randomAddress(cp *check.ControlPlane, cidr netip.Prefix) netip.Addr {
	b := check.BandsOf(cidr)
	n := b.DynamicCount()
	if n.Cmp(big.NewInt(choices)) > 0 {
		n = big.NewInt(choices)
	}
	return check.AddressPlus(b.DynamicFirst, big.NewInt(cp.Rand().Int64N(n.Int64())))
}

// attempts is how many addresses are tried before a check gives up finding a free one.
const attempts = 16

// createOnChosen creates a Service on an address of the range that the check chose and was free. No other check uses the
// address then, so that what happens to it later is the control plane's doing.
func createOnChosen(ctx context.Context, cp *check.ControlPlane, cidr netip.Prefix, options ...check.ServiceOption) *corev1.Service {
	ginkgo.GinkgoHelper()
	var last check.Response
	var tried []netip.Addr
	for range attempts {
		ip := randomAddress(cp, cidr)
		last = cp.Create(ctx, check.Service(cp.Name("chosen"), slices.Concat([]check.ServiceOption{check.WithClusterIP(ip.String())}, options)...))
		if last.Accepted() {
			return last.Service
		}
		tried = append(tried, ip)
	}
	used := cp.AddressesInUse(ctx, cidr)
	if !slices.ContainsFunc(tried, func(ip netip.Addr) bool { return !used[ip] }) {
		check.Abort("%d addresses of %s chosen at random are all in use: the range has no room for this check", attempts, cidr)
	}
	ginkgo.Fail(fmt.Sprintf("none of %d addresses of %s chosen at random could be named: %s", attempts, cidr, last))
	return nil
}

// freeAddress returns an address of the primary range that nobody has.
func freeAddress(ctx context.Context, cp *check.ControlPlane) string {
	ginkgo.GinkgoHelper()
	return freeAddressOf(ctx, cp, primaryRange(cp))
}

// freeAddressOf returns an address of a range that no Service and no IPAddress has. It is none that was just given
// back. kube-apiserver's repair may take such an address once more, see alloc-freed-stays-free, and its check alone may
// accuse that.
func freeAddressOf(ctx context.Context, cp *check.ControlPlane, cidr netip.Prefix) string {
	ginkgo.GinkgoHelper()
	used := cp.AddressesInUse(ctx, cidr)
	for range attempts {
		if ip := randomAddress(cp, cidr); !used[ip] && cp.AddressObject(ctx, ip.String()) == "" {
			return ip.String()
		}
	}
	check.Abort("%d addresses of %s chosen at random are all in use: the range has no room for this check", attempts, cidr)
	return ""
}

// momentary is how many refusals of a free address in a row are no longer by chance. Another client may have had the address for a moment only, so that it is seen to
// have nothing.
const momentary = 3

// onFreeAddress has a free address used, and returns the address and the response. If the response is a refusal and another client has taken the address
// since it was found free, another address is tried; so it is if nobody is seen to have it, up to momentary times.
func onFreeAddress(ctx context.Context, cp *check.ControlPlane, use func(ip string) check.Response) (ip string, answer check.Response) {
	ginkgo.GinkgoHelper()
	unseen := 0
	for range attempts {
		ip = freeAddress(ctx, cp)
		if answer = use(ip); answer.Accepted() {
			break
		}
		if cp.AddressesInUse(ctx, primaryRange(cp))[netip.MustParseAddr(ip)] {
			continue
		}
		if unseen++; unseen == momentary {
			break
		}
	}
	return ip, answer
}

// atFreeAddress is onFreeAddress of an address that is named: found is false if others have it.
func atFreeAddress(ctx context.Context, cp *check.ControlPlane, cidr netip.Prefix, address netip.Addr, use func() check.Response) (answer check.Response, found bool) {
	ginkgo.GinkgoHelper()
	for range momentary {
		if cp.AddressesInUse(ctx, cidr)[address] {
			return check.Response{}, false
		}
		if answer = use(); answer.Accepted() {
			return answer, true
		}
	}
	return answer, !cp.AddressesInUse(ctx, cidr)[address]
}
