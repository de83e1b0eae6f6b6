package service

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/allocator"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

// lateHold is how late an address is reserved with the fault AddressHeldLate.
const lateHold = 50 * time.Millisecond

// What can be wrong in who has an address or a node port, and until when.
var allocationFaults = []wrong{
	// What is taken beside what the Service needs.
	{fault.HiddenAddress, takeMore(func(t *Transaction, svc *corev1.Service) error {
		if isHeadless(svc) || !hasClusterIP(svc) {
			if _, err := t.takeNextIP(t.rules.families[0]); err != nil {
				return exhausted(svc, "cluster IP", err)
			}
		}
		return nil
	})},
	{fault.PortRangeForEveryone, takeMore(func(t *Transaction, svc *corev1.Service) error {
		if !t.rules.nodePortsWanted.Do(svc) {
			if _, err := t.takeNextPort(); err != nil {
				return exhausted(svc, "node port", err)
			}
		}
		return nil
	})},
	{fault.ExternalIPsAllocated, takeMore(func(t *Transaction, svc *corev1.Service) error {
		for _, s := range svc.Spec.ExternalIPs {
			if ip, ok := parseIP(s); ok {
				_ = t.takeIP(ip)
			}
		}
		return nil
	})},

	// Updates that are in order, and are refused.
	{fault.UpdateNeedsFree, refuseUpdate(func(r *Rules, svc *corev1.Service) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.ips.anyFull(r.families[0]) {
			return exhausted(svc, "cluster IP", allocator.ErrFull)
		}
		return nil
	})},
	{fault.UpdateNeedsAddress, refuseUpdate(func(_ *Rules, svc *corev1.Service) error {
		if svc.Spec.ClusterIP == "" {
			return refusal(svc, field.ErrorList{field.Required(specPath.Child("clusterIP"), "")})
		}
		return nil
	})},

	// A chosen address that is not to be had.
	{fault.RefusedCreateFreesTaken, onAddressError(func(t *Transaction, ip netip.Addr, err error) error {
		if isInUse(err) {
			t.rules.ips.release(ip)
		}
		return err
	})},
	{fault.RefusedDualStackKeeps, func(b *book) {
		onAddressError(func(t *Transaction, ip netip.Addr, err error) error {
			if ips := t.owner.Spec.ClusterIPs; len(ips) == 2 && ips[0] == ip.String() {
				if other, ok := parseIP(ips[1]); ok {
					_ = t.rules.ips.allocate(other) // as if the secondary address had been the first to be allocated
				}
			}
			return err
		})(b)
		keepTaken(b, func(t *Transaction) bool { return len(t.takenIPs) == 1 && len(t.owner.Spec.IPFamilies) == 2 })
	}},
	{fault.DuplicateAccepted, onAddressError(func(_ *Transaction, _ netip.Addr, err error) error { return unlessIt(isInUse(err), err) })},
	{fault.DryRunDuplicate, onAddressError(func(t *Transaction, _ netip.Addr, err error) error { return unlessIt(t.dryRun && isInUse(err), err) })},
	{fault.StaticOutOfRange, onAddressError(func(_ *Transaction, _ netip.Addr, err error) error { return unlessIt(!isInUse(err), err) })},
	{fault.DryRunOutOfRange, onAddressError(func(t *Transaction, _ netip.Addr, err error) error { return unlessIt(t.dryRun && !isInUse(err), err) })},

	{fault.DryRunOneRange, func(b *book) {
		b.chosenAddressTaken.Wrap(func(right addressTaking) addressTaking {
			return func(t *Transaction, ip netip.Addr) error {
				if ranges := t.rules.ips.ranges; t.dryRun && len(ranges) > 0 && !ranges[len(ranges)-1].Prefix().Contains(ip) {
					return t.rules.ips.inNoRange()
				}
				return right(t, ip)
			}
		})
	}},
	{fault.DryRunLeavingRange, func(b *book) {
		leaving := false
		b.removedRangeGivesNothing.Wrap(func(right rangeRemoving) rangeRemoving {
			return func(a *addresses, name string) {
				leaving = true
				right(a, name)
			}
		})
		b.freeAddressTaken.Wrap(func(right freeAddressTaking) freeAddressTaking {
			return func(t *Transaction, family corev1.IPFamily) (netip.Addr, error) {
				if t.dryRun && leaving {
					return netip.Addr{}, allocator.ErrFull
				}
				return right(t, family)
			}
		})
	}},

	// A chosen node port that is not to be had.
	{fault.PortRangeDuplicate, onPortError(func(_ *Transaction, err error) bool { return isInUse(err) })},
	{fault.DryRunNodePortTaken, onPortError(func(t *Transaction, err error) bool { return t.dryRun && isInUse(err) })},
	{fault.DryRunNodePortOutOfRange, onPortError(func(t *Transaction, err error) bool { return t.dryRun && !isInUse(err) })},

	// Dynamic allocation that does not happen.
	{fault.FullRangeBlocksAll, func(b *book) {
		b.freeAddressTaken.Wrap(func(right freeAddressTaking) freeAddressTaking {
			return func(t *Transaction, family corev1.IPFamily) (netip.Addr, error) {
				if t.rules.ips.anyFull(otherFamily(family)) {
					return netip.Addr{}, allocator.ErrFull
				}
				return right(t, family)
			}
		})
	}},
	{fault.DynamicMissing, func(b *book) {
		b.freeAddressTaken.Replace(func(*Transaction, corev1.IPFamily) (netip.Addr, error) { return netip.Addr{}, errors.New("name one") })
	}},

	// An address that was just taken and is not held, or not yet.
	{fault.UpdateAddressNotHeld, afterTaking(func(t *Transaction, ip netip.Addr, isUpdate bool) {
		if isUpdate {
			t.rules.ips.release(ip)
		}
	})},
	{fault.AddressHeldLate, afterTaking(func(t *Transaction, ip netip.Addr, isUpdate bool) {
		if isUpdate {
			return
		}
		t.rules.ips.release(ip)
		time.AfterFunc(lateHold, func() {
			t.rules.mu.Lock()
			defer t.rules.mu.Unlock()
			_ = t.rules.ips.allocate(ip) // if nobody else has it by now
		})
	})},

	// What is not given back, or too early.
	{fault.UpdateKeepsAddress, func(b *book) { b.droppedAddressFreed.Off() }},
	{fault.FreedTakenAgain, func(b *book) {
		b.freedAddressReleased.Replace(func(t *Transaction, ip netip.Addr) {
			t.rules.onRelease(ip)
			t.rules.onAllocate(ip, t.owner)
		})
	}},
	{fault.NodePortRefusalFrees, func(b *book) {
		b.droppedNodePortFreed.Wrap(func(right nodePortNoting) nodePortNoting {
			return func(t *Transaction, port int) {
				right(t, port)
				if !t.dryRun {
					t.rules.ports.Release(port)
				}
			}
		})
	}},
	{fault.DeleteKeepsAddress, func(b *book) { at(b.releases, deletedAddressesFreed).Off() }},

	// What becomes of a refused request.
	{fault.RefusalKeepsNew, func(b *book) {
		b.failedAllocationUndone.Off()
		b.refusalUndone.Off()
	}},
	{fault.RefusalFreesHeld, func(b *book) { b.refusalUndone.Replace((*Transaction).Commit) }},
	{fault.RefusedCreateKeepsAddress, func(b *book) { keepTaken(b, func(t *Transaction) bool { return t.owner.ResourceVersion == "" }) }},
	{fault.RefusedUpdateKeepsAddress, func(b *book) { keepTaken(b, func(t *Transaction) bool { return t.owner.ResourceVersion != "" }) }},
	{fault.RefusedUpdateKeepsNodePort, func(b *book) {
		b.takenNodePortsReturned.Wrap(notWhere(func(t *Transaction) bool { return !t.dryRun && t.owner.ResourceVersion != "" }))
	}},
	{fault.PortRangeRefusedKeeps, func(b *book) {
		b.takenNodePortsReturned.Wrap(notWhere(func(t *Transaction) bool { return !t.dryRun && t.owner.ResourceVersion == "" }))
	}},
	{fault.NodePortRefusalLeaks, keepTakenPorts},

	// What becomes of a dry run.
	{fault.DryRunNotValidated, func(b *book) { b.dryRunValidated.Off() }},
	{fault.DryRunFrees, func(b *book) {
		b.takenAddressesReturned.Wrap(func(right returning) returning {
			return func(t *Transaction) {
				if t.dryRun {
					t.takenIPs = append(t.takenIPs, t.freedIPs...)
				}
				right(t)
			}
		})
		b.takenNodePortsReturned.Wrap(func(right returning) returning {
			return func(t *Transaction) {
				if t.dryRun {
					t.takenPorts = append(t.takenPorts, t.freedPorts...)
				}
				right(t)
			}
		})
	}},
	{fault.DryRunReserves, func(b *book) {
		b.takenAddressesReturned.Wrap(notWhere(func(t *Transaction) bool { return t.dryRun }))
		b.takenNodePortsReturned.Wrap(notWhere(func(t *Transaction) bool { return t.dryRun }))
	}},
}

// takeMore is a fault: a new Service takes more than it needs.
func takeMore(take func(*Transaction, *corev1.Service) error) func(*book) {
	return func(b *book) {
		b.portsTaken = before(b.portsTaken, namedNodePortsTaken, func(t *Transaction, svc, old *corev1.Service) error {
			if old != nil {
				return nil
			}
			return take(t, svc)
		})
	}
}

// refuseUpdate is a fault: an update of a Service that has cluster IPs, and keeps them, is refused.
func refuseUpdate(refuse func(*Rules, *corev1.Service) error) func(*book) {
	return func(b *book) {
		b.update.Wrap(func(right updating) updating {
			return func(r *Rules, svc, old *corev1.Service, dryRun bool) (*Transaction, error) {
				if hasClusterIP(old) && hasClusterIP(svc) {
					if err := refuse(r, svc); err != nil {
						return nil, err
					}
				}
				return right(r, svc, old, dryRun)
			}
		})
	}
}

// chosenBoth is a fault: a new Service that names an address of each family is told that they are taken.
func chosenBoth(b *book) {
	b.chosenAddressTaken.Wrap(func(right addressTaking) addressTaking {
		return func(t *Transaction, ip netip.Addr) error {
			if t.owner.ResourceVersion == "" && len(t.owner.Spec.ClusterIPs) == 2 && t.owner.Spec.ClusterIPs[1] != "" {
				return allocator.ErrAllocated
			}
			return right(t, ip)
		}
	})
}

// onAddressError is a fault: something else happens where a chosen address is not to be had.
func onAddressError(then func(*Transaction, netip.Addr, error) error) func(*book) {
	return func(b *book) {
		b.chosenAddressTaken.Wrap(func(right addressTaking) addressTaking {
			return func(t *Transaction, ip netip.Addr) error {
				if err := right(t, ip); err != nil {
					return then(t, ip, err)
				}
				return nil
			}
		})
	}
}

// unlessIt returns the error, unless a bug overlooks it.
func unlessIt(overlooked bool, err error) error {
	if overlooked {
		return nil
	}
	return err
}

// onPortError is a fault: a chosen node port is used although it is not to be had.
func onPortError(overlooked func(*Transaction, error) bool) func(*book) {
	return func(b *book) {
		b.chosenNodePortTaken.Wrap(func(right nodePortTaking) nodePortTaking {
			return func(t *Transaction, port int) error {
				err := right(t, port)
				return unlessIt(err != nil && overlooked(t, err), err)
			}
		})
	}
}

// afterTaking is a fault: something else happens to an address that was just taken, unless in a dry run.
func afterTaking(then func(t *Transaction, ip netip.Addr, isUpdate bool)) func(*book) {
	return func(b *book) {
		b.takenAddressHeld.Wrap(func(right addressNoting) addressNoting {
			return func(t *Transaction, ip netip.Addr) {
				right(t, ip)
				if !t.dryRun {
					then(t, ip, t.owner.ResourceVersion != "")
				}
			}
		})
	}
}

// keepTaken makes a refused request keep its addresses, where the condition holds. A dry run gives them back.
func keepTaken(b *book, where func(*Transaction) bool) {
	b.takenAddressesReturned.Wrap(notWhere(func(t *Transaction) bool { return !t.dryRun && where(t) }))
}

// keepTakenPorts makes a refused request keep its node ports. A dry run gives them back.
func keepTakenPorts(b *book) {
	b.takenNodePortsReturned.Wrap(notWhere(func(t *Transaction) bool { return !t.dryRun }))
}

// notWhere wraps a rule: it gives nothing back where the condition holds.
func notWhere(condition func(*Transaction) bool) func(returning) returning {
	return func(right returning) returning {
		return func(t *Transaction) {
			if !condition(t) {
				right(t)
			}
		}
	}
}

// anyFull reports whether a range of the family has no free address.
func (a *addresses) anyFull(family corev1.IPFamily) bool {
	return slices.ContainsFunc(a.ranges, func(r serviceRange) bool { return familyOf(r.Prefix().Addr()) == family && r.Free() == 0 })
}

// What can be wrong with the ranges.
var addressFaults = []wrong{
	{fault.ChosenBothRefused, chosenBoth},
	{fault.ServiceCIDRIPv6Poison, func(b *book) {
		b.rangeDivided.Wrap(func(right dividing) dividing {
			return func(a *addresses, name string, prefix netip.Prefix) (allocator.Allocator, error) {
				alloc, err := right(a, name, prefix)
				if err != nil {
					a.ranges = slices.DeleteFunc(a.ranges, func(r serviceRange) bool { return r.Prefix().Addr().Is6() == prefix.Addr().Is6() })
				}
				return alloc, err
			}
		})
	}},
	{fault.ServiceCIDROnePool, func(b *book) {
		b.rangeDivided.Wrap(func(right dividing) dividing {
			return func(a *addresses, name string, prefix netip.Prefix) (allocator.Allocator, error) {
				alloc, err := right(a, name, prefix)
				if err != nil || name == DefaultRange {
					return alloc, err
				}
				return allocator.New(prefix, allocator.Options{Faults: fault.Of(fault.OnePool)})
			}
		})
	}},
	{fault.ServiceCIDROverlap, func(b *book) {
		b.chosenAddressTakenInEveryRange.Replace(func(a *addresses, ip netip.Addr) error {
			for _, r := range a.ranges {
				switch err := r.Allocate(ip); {
				case err == nil:
					a.inUse[ip] = byService
					return nil
				case !isOutOfRange(err):
					return err
				}
			}
			return a.inNoRange()
		})
		b.otherRangesTakeIt.Off()
	}},
	{fault.ServiceCIDRGoneFrees, func(b *book) {
		b.removedRangeGivesNothing.Wrap(func(right rangeRemoving) rangeRemoving {
			return func(a *addresses, name string) {
				for _, r := range a.ranges {
					if r.name == name {
						maps.DeleteFunc(a.inUse, func(ip netip.Addr, _ use) bool { return r.Prefix().Contains(ip) })
					}
				}
				right(a, name)
			}
		})
	}},
	{fault.NoRangeKeepsAddress, func(b *book) {
		var removed []serviceRange
		b.removedRangeGivesNothing.Wrap(func(right rangeRemoving) rangeRemoving {
			return func(a *addresses, name string) {
				removed = slices.Clone(a.ranges)
				right(a, name)
			}
		})
		b.freeAddressOfFirstRange.Wrap(func(right rangeGiving) rangeGiving {
			return func(a *addresses, family corev1.IPFamily) (netip.Addr, error) {
				ip, err := right(a, family)
				if !errors.Is(err, allocator.ErrFull) {
					return ip, err
				}
				for _, r := range removed {
					if ip, err := r.AllocateNext(); err == nil && familyOf(ip) == family {
						a.inUse[ip] = byService
						break
					}
				}
				return ip, err
			}
		})
	}},
}
