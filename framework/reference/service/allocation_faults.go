package service

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/allocator"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

// The deliberate bugs in who has an address or a node port, as far as they take more than a condition.

// mendAllocation changes a new Service as an implementation with bugs would.
func (r *Rules) mendAllocation(svc *corev1.Service) {
	if r.faults.On(fault.FamilyIgnored) {
		svc.Spec.IPFamilies = slices.DeleteFunc(slices.Clone(svc.Spec.IPFamilies), func(f corev1.IPFamily) bool { return !slices.Contains(r.families, f) })
	}
}

// takeHidden takes what nobody sees, with bugs.
func (r *Rules) takeHidden(tx *Transaction, svc *corev1.Service) error {
	if r.faults.On(fault.HiddenAddress) && (isHeadless(svc) || !hasClusterIP(svc)) {
		if _, err := tx.takeNextIP(r.families[0]); err != nil {
			return exhausted(svc, "cluster IP", err)
		}
	}
	if r.faults.On(fault.PortRangeForEveryone) && !r.wantsNodePorts(svc) {
		if _, err := tx.takeNextPort(); err != nil {
			return exhausted(svc, "node port", err)
		}
	}
	return nil
}

// refuseByBug refuses requests that are in order. old is nil for a create.
func (r *Rules) refuseByBug(svc, old *corev1.Service) error {
	if r.faults.On(fault.LowPortsOnly) {
		for i := range svc.Spec.Ports {
			if svc.Spec.Ports[i].Port > 32767 {
				return refusal(svc, field.ErrorList{field.Invalid(portsPath.Index(i).Child("port"), svc.Spec.Ports[i].Port, "must be at most 32767")})
			}
		}
	}
	if old == nil || !hasClusterIP(old) || !hasClusterIP(svc) {
		return nil
	}
	if r.faults.On(fault.UpdateNeedsAddress) && svc.Spec.ClusterIP == "" {
		return refusal(svc, field.ErrorList{field.Required(specPath.Child("clusterIP"), "")})
	}
	if r.faults.On(fault.UpdateNeedsFree) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.ips.anyFull(r.families[0]) {
			return exhausted(svc, "cluster IP", allocator.ErrFull)
		}
	}
	return nil
}

// unexplained takes the reason out of a refusal.
func (r *Rules) unexplained(err error) error {
	var status *apierrors.StatusError
	if !r.faults.On(fault.FailureUnexplained) || !errors.As(err, &status) {
		return err
	}
	status.ErrStatus.Message, status.ErrStatus.Details = "the request was refused", nil
	return status
}

// overlooks reports whether a bug lets a chosen address be used that is not to be had.
func (t *Transaction) overlooks(ip netip.Addr, err error) bool {
	faults, taken := t.rules.faults, errors.Is(err, allocator.ErrAllocated)
	if taken && faults.On(fault.RefusedCreateFreesTaken) {
		t.rules.ips.release(ip)
	}
	if ips := t.owner.Spec.ClusterIPs; faults.On(fault.RefusedDualStackKeeps) && len(ips) == 2 && ips[0] == ip.String() {
		if other, ok := parseIP(ips[1]); ok {
			_ = t.rules.ips.allocate(other) // as if the secondary address had been the first to be allocated
		}
	}
	return taken && (faults.On(fault.DuplicateAccepted) || t.dryRun && faults.On(fault.DryRunDuplicate)) ||
		!taken && (faults.On(fault.StaticOutOfRange) || t.dryRun && faults.On(fault.DryRunOutOfRange))
}

// overlooksPort reports whether a bug lets a chosen node port be used that is not to be had.
func (t *Transaction) overlooksPort(err error) bool {
	faults, taken := t.rules.faults, errors.Is(err, allocator.ErrAllocated)
	return taken && (faults.On(fault.PortRangeDuplicate) || t.dryRun && faults.On(fault.DryRunNodePortTaken)) ||
		!taken && t.dryRun && faults.On(fault.DryRunNodePortOutOfRange)
}

// takesNone answers for dynamic allocation where a bug keeps it from happening.
func (t *Transaction) takesNone(family corev1.IPFamily) (ip netip.Addr, decided bool, err error) {
	switch faults := t.rules.faults; {
	case faults.On(fault.DynamicMissing):
		return netip.Addr{}, true, errors.New("name one")
	case faults.On(fault.FullRangeBlocksAll) && t.rules.ips.anyFull(otherFamily(family)):
		return netip.Addr{}, true, allocator.ErrFull
	}
	return netip.Addr{}, false, nil
}

// lateHold is how late an address is reserved with the fault AddressHeldLate.
const lateHold = 50 * time.Millisecond

// letGo frees an address that was just taken where a bug has it not held, or not yet.
func (t *Transaction) letGo(ip netip.Addr) {
	faults, isUpdate := t.rules.faults, t.owner.ResourceVersion != ""
	switch {
	case t.dryRun:
	case faults.On(fault.UpdateAddressNotHeld) && isUpdate:
		t.rules.ips.release(ip)
	case faults.On(fault.AddressHeldLate) && !isUpdate:
		t.rules.ips.release(ip)
		time.AfterFunc(lateHold, func() {
			t.rules.mu.Lock()
			defer t.rules.mu.Unlock()
			_ = t.rules.ips.allocate(ip) // if nobody else has it by now
		})
	}
}

// keepByBug forgets, before the rest is undone, what a bug keeps, and gives back what a bug gives back in a dry run.
func (t *Transaction) keepByBug() {
	faults := t.rules.faults
	if t.dryRun {
		if faults.On(fault.DryRunFrees) {
			t.takenIPs = append(t.takenIPs, t.freedIPs...)
			t.takenPorts = append(t.takenPorts, t.freedPorts...)
		}
		if faults.On(fault.DryRunReserves) {
			t.forget()
		}
		return
	}
	if faults.On(fault.RefusedCreateKeepsAddress) || faults.On(fault.RefusedDualStackKeeps) && len(t.takenIPs) == 1 && len(t.owner.Spec.IPFamilies) == 2 {
		t.takenIPs = nil
	}
	if faults.On(fault.PortRangeRefusedKeeps) {
		t.takenPorts = nil
	}
}

// anyFull reports whether a range of the family has no free address.
func (a *addresses) anyFull(family corev1.IPFamily) bool {
	return slices.ContainsFunc(a.ranges, func(r serviceRange) bool { return familyOf(r.Prefix().Addr()) == family && r.Free() == 0 })
}

// spoil ends allocation from all IPv6 ranges where a bug lets one that is too large do so.
func (a *addresses) spoil(tooLarge netip.Prefix) {
	if a.faults.On(fault.ServiceCIDRIPv6Poison) {
		a.ranges = slices.DeleteFunc(a.ranges, func(r serviceRange) bool { return r.Prefix().Addr().Is6() == tooLarge.Addr().Is6() })
	}
}
