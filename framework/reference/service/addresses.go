package service

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/reference/allocator"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

// addresses is the cluster IPs of all ranges. Ranges may overlap: an address is taken in every range that it belongs to, so
// it is unique whichever of them it came from. The bands are those of each range. It is not safe for concurrent use.
type addresses struct {
	newAllocator func(netip.Prefix) (allocator.Allocator, error)
	faults       fault.Set
	ranges       []serviceRange // in the order in which dynamic allocation uses them
	// inUse holds every address in use, so that a range that is added later knows its own.
	inUse map[netip.Addr]use
	// removed are ranges that a bug goes on taking addresses from.
	removed []serviceRange
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
		alloc, err := a.newAllocator(prefix)
		if err != nil {
			a.spoil(prefix)
			return fmt.Errorf("range %s: %w", name, err)
		}
		if a.faults.On(fault.ServiceCIDROnePool) && name != DefaultRange {
			if alloc, err = allocator.New(prefix, allocator.Options{Faults: fault.Set{fault.OnePool: true}}); err != nil {
				return fmt.Errorf("range %s: %w", name, err)
			}
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

func (a *addresses) removeRange(name string) {
	if a.faults.On(fault.NoRangeKeepsAddress) {
		a.removed = slices.Clone(a.ranges)
	}
	a.freeByBug(name)
	a.ranges = slices.DeleteFunc(a.ranges, func(r serviceRange) bool { return r.name == name })
}

// freeByBug frees what is in use of ranges that are about to go, with a bug.
func (a *addresses) freeByBug(name string) {
	if !a.faults.On(fault.ServiceCIDRGoneFrees) {
		return
	}
	for _, r := range a.ranges {
		if r.name == name {
			maps.DeleteFunc(a.inUse, func(ip netip.Addr, _ use) bool { return r.Prefix().Contains(ip) })
		}
	}
}

// allocate takes a chosen address in every range that has it.
func (a *addresses) allocate(ip netip.Addr) error {
	taken := 0
	for i, r := range a.ranges {
		err := r.Allocate(ip)
		var outside *allocator.NotInRangeError
		switch {
		case err == nil && a.faults.On(fault.ServiceCIDROverlap):
			a.inUse[ip] = byService
			return nil
		case err == nil:
			taken++
		case errors.As(err, &outside):
		default:
			for _, earlier := range a.ranges[:i] {
				earlier.Release(ip)
			}
			return err
		}
	}
	if taken == 0 {
		return fmt.Errorf("it is in none of the service ranges (%s)", a)
	}
	a.inUse[ip] = byService
	return nil
}

// allocateNext takes an address of the first range of a family that has a free one.
func (a *addresses) allocateNext(family corev1.IPFamily) (netip.Addr, error) {
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
		for j, other := range a.ranges {
			if i != j && other.Prefix().Contains(ip) && !a.faults.On(fault.ServiceCIDROverlap) {
				_ = other.Allocate(ip) // it is free there, or not usable
			}
		}
		a.inUse[ip] = byService
		return ip, nil
	}
	for _, r := range a.removed { // fault NoRangeKeepsAddress
		if ip, err := r.AllocateNext(); err == nil && familyOf(ip) == family {
			a.inUse[ip] = byService
			break
		}
	}
	return netip.Addr{}, allocator.ErrFull
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
