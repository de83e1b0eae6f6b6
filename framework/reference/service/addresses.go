package service

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/reference/allocator"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// addresses is the cluster IPs of all ranges. Ranges may overlap: an address is taken in every range that it belongs to, so
// it is unique whichever of them it came from. The bands are those of each range. It is not safe for concurrent use.
type addresses struct {
	*book
	newAllocator func(netip.Prefix) (allocator.Allocator, error)
	ranges       []serviceRange // in the order in which dynamic allocation uses them
	// inUse holds every address in use, so that a range that is added later knows its own.
	inUse map[netip.Addr]use
}

// serviceRange is one prefix of a ServiceCIDR object.
type serviceRange struct {
	name string
	allocator.Allocator
}

// use says what an address is in use for.
type use int

const (
	byService use = iota
	byHand        // by an IPAddress object that no Service stands behind
)

func (a *addresses) addRange(name string, prefixes []netip.Prefix) error {
	added := []serviceRange{}
	for _, prefix := range prefixes {
		if slices.ContainsFunc(a.ranges, func(r serviceRange) bool { return r.name == name && r.Prefix() == prefix }) {
			continue
		}
		alloc, err := a.rangeDivided.Do(a, name, prefix)
		if err != nil {
			return fmt.Errorf("range %s: %w", name, err)
		}
		for ip := range a.inUse {
			if prefix.Contains(ip) {
				_ = alloc.Allocate(ip) // one that is not usable here, such as a network address, stays outside
			}
		}
		added = append(added, serviceRange{name: name, Allocator: alloc})
	}
	a.ranges = slices.DeleteFunc(a.ranges, func(r serviceRange) bool { return r.name == name && !slices.Contains(prefixes, r.Prefix()) })
	a.ranges = append(a.ranges, added...)
	return nil
}

func (a *addresses) removeRange(name string) { a.removedRangeGivesNothing.Do(a, name) }

// Rules for the ranges.
var (
	rangeDivided = rule.New("each-range-divided", func(a *addresses, _ string, prefix netip.Prefix) (allocator.Allocator, error) {
		return a.newAllocator(prefix)
	}, spec.AllocServiceCIDRAddsRange, spec.AllocServiceCIDROwnBands, spec.AllocRangeIPv6Shorter)

	// Addresses in use stay in use.
	removedRangeGivesNothing = rule.New("removed-range-gives-nothing", func(a *addresses, name string) {
		a.ranges = slices.DeleteFunc(a.ranges, func(r serviceRange) bool { return r.name == name })
	}, spec.AllocServiceCIDRDeletionWaits, spec.AllocOutOfRangeKept)

	chosenAddressTakenInEveryRange = rule.New("chosen-address-taken-in-every-range", func(a *addresses, ip netip.Addr) error {
		taken := 0
		for i, r := range a.ranges {
			err := r.Allocate(ip)
			switch {
			case err == nil:
				taken++
			case isOutOfRange(err):
			default:
				for _, earlier := range a.ranges[:i] {
					earlier.Release(ip)
				}
				return err
			}
		}
		if taken == 0 {
			return a.inNoRange()
		}
		a.inUse[ip] = byService
		return nil
	}, spec.AllocStaticExact, spec.AllocStaticOutOfRange, spec.AllocServiceCIDROverlapUnique)

	// The address is of the first range of a family that has a free one.
	freeAddressOfFirstRange = rule.New("free-address-of-first-range", func(a *addresses, family corev1.IPFamily) (netip.Addr, error) {
		for i, r := range a.ranges {
			if familyOf(r.Prefix().Addr()) != family {
				continue
			}
			ip, err := r.AllocateNext()
			if errors.Is(err, allocator.ErrFull) {
				continue
			}
			if err != nil {
				return netip.Addr{}, err
			}
			a.otherRangesTakeIt.Do(a, i, ip)
			a.inUse[ip] = byService
			return ip, nil
		}
		return netip.Addr{}, allocator.ErrFull
	}, spec.AllocDynamicInRange, spec.AllocDualStackEachFamily, spec.AllocNoRangeNoAddress)

	otherRangesTakeIt = rule.New("other-ranges-take-a-given-address", func(a *addresses, i int, ip netip.Addr) {
		for j, other := range a.ranges {
			if i != j && other.Prefix().Contains(ip) {
				_ = other.Allocate(ip) // it is free there, or not usable
			}
		}
	}, spec.AllocServiceCIDROverlapUnique)
)

// allocate takes a chosen address in every range that has it.
func (a *addresses) allocate(ip netip.Addr) error { return a.chosenAddressTakenInEveryRange.Do(a, ip) }

// allocateNext takes an address of a family.
func (a *addresses) allocateNext(family corev1.IPFamily) (netip.Addr, error) {
	return a.freeAddressOfFirstRange.Do(a, family)
}

func isOutOfRange(err error) bool { return errors.As(err, new(*allocator.NotInRangeError)) }

func (a *addresses) inNoRange() error {
	return fmt.Errorf("it is in none of the service ranges (%s)", a)
}

// release gives an address back to every range that has it.
func (a *addresses) release(ip netip.Addr) {
	for _, r := range a.ranges {
		r.Release(ip)
	}
	delete(a.inUse, ip)
}

func (a *addresses) reserve(ip netip.Addr) error {
	if _, taken := a.inUse[ip]; taken {
		return allocator.ErrAllocated
	}
	for _, r := range a.ranges {
		_ = r.Allocate(ip) // an address outside the ranges can be reserved too: a range may be added
	}
	a.inUse[ip] = byHand
	return nil
}

func (a *addresses) unreserve(ip netip.Addr) {
	if u, taken := a.inUse[ip]; taken && u == byHand {
		a.release(ip)
	}
}

// String lists the ranges.
func (a *addresses) String() string {
	prefixes := make([]string, len(a.ranges))
	for i, r := range a.ranges {
		prefixes[i] = r.Prefix().String()
	}
	return strings.Join(prefixes, ", ")
}
