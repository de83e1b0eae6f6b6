package service

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// Transaction is what one create or update took from the ranges and is to give back to them. What it took is taken at once;
// what it gives back is given back only when the write has succeeded. Exactly one of Commit and Rollback is called, once the
// store has accepted or refused the write; both are safe to call more than once.
type Transaction struct {
	rules  *Rules
	dryRun bool
	owner  *corev1.Service

	takenIPs, freedIPs     []netip.Addr
	takenPorts, freedPorts []int
}

// transact allocates under the lock and validates after it. Anything taken is given back if either fails, and in a dry run
// before the lock is.
func (r *Rules) transact(dryRun bool, owner *corev1.Service, allocate func(*Transaction) error, validate func() field.ErrorList) (*Transaction, error) {
	tx := &Transaction{rules: r, dryRun: dryRun, owner: owner}
	r.mu.Lock()
	err := allocate(tx)
	switch {
	case dryRun:
		tx.undo()
	case err != nil:
		r.failedAllocationUndone.Do(tx)
	}
	r.mu.Unlock()
	if err == nil && (!dryRun || r.dryRunValidated.Do()) {
		err = refusal(owner, validate())
	}
	if err != nil {
		r.refusalUndone.Do(tx)
		return nil, err
	}
	return tx, nil
}

// What becomes of a transaction.
var (
	failedAllocationUndone = rule.New("failed-allocation-undone", (*Transaction).undo,
		spec.AllocRefusedCreateLeaksNothing, spec.AllocRefusedDualStackCreateLeaksNothing, spec.AllocRefusedUpdateLeaksNothing, spec.AllocNodePortRefusedUpdateLeaksNothing,
		spec.APIDualStackUpgradeRefused)

	refusalUndone = rule.New("refusal-undone", (*Transaction).Rollback,
		spec.AllocRefusedCreateLeaksNothing, spec.AllocRefusedUpdateLeaksNothing, spec.AllocNodePortRefusedUpdateLeaksNothing, spec.APIUpdateRefusedWhole,
		spec.APINodePortRefusedWhole)

	dryRunValidated = rule.New("dry-run-validated", func() bool { return true }, spec.APIDryRunValidation)

	freedAddressReleased = rule.New("freed-address-released", func(t *Transaction, ip netip.Addr) {
		t.rules.onRelease(ip)
		t.rules.ips.release(ip)
	}, spec.AllocFreedStaysFree, spec.AllocUpdateFreesOwn)

	freedNodePortReleased = rule.New("freed-node-port-released", func(t *Transaction, port int) { t.rules.ports.Release(port) }, spec.AllocUpdateFreesOwn)

	takenAddressesReturned = rule.New("taken-addresses-returned", func(t *Transaction) {
		for _, ip := range t.takenIPs {
			t.rules.ips.release(ip)
			if !t.dryRun {
				t.rules.onRelease(ip)
			}
		}
	}, spec.AllocRefusedCreateLeaksNothing, spec.AllocDryRunCreateKeepsNothing, spec.AllocDryRunUpdateKeepsNothing)

	takenNodePortsReturned = rule.New("taken-node-ports-returned", func(t *Transaction) {
		for _, port := range t.takenPorts {
			t.rules.ports.Release(port)
		}
	}, spec.AllocNodePortRefusedCreateLeaksNothing, spec.APIHealthCheckNodePortRefusedWhole, spec.AllocDryRunCreateKeepsNothing, spec.AllocDryRunUpdateKeepsNothing)
)

// Commit gives back what the write made superfluous.
func (t *Transaction) Commit() {
	t.rules.mu.Lock()
	defer t.rules.mu.Unlock()
	for _, ip := range t.freedIPs {
		t.rules.freedAddressReleased.Do(t, ip)
	}
	for _, port := range t.freedPorts {
		t.rules.freedNodePortReleased.Do(t, port)
	}
	t.forget()
}

// Rollback gives back what the refused write had taken.
func (t *Transaction) Rollback() {
	t.rules.mu.Lock()
	defer t.rules.mu.Unlock()
	t.undo()
}

func (t *Transaction) undo() {
	t.rules.takenAddressesReturned.Do(t)
	t.rules.takenNodePortsReturned.Do(t)
	t.forget()
}

func (t *Transaction) forget() {
	t.takenIPs, t.freedIPs, t.takenPorts, t.freedPorts = nil, nil, nil, nil
}

// What a transaction takes, and how it notes that.
var (
	chosenAddressTaken = rule.New("chosen-address-taken", func(t *Transaction, ip netip.Addr) error {
		if err := t.rules.ips.allocate(ip); err != nil {
			return err
		}
		t.rules.takenAddressHeld.Do(t, ip)
		return nil
	}, spec.AllocDuplicateRefused, spec.AllocStaticOutOfRange, spec.AllocUnique, spec.AllocHistoryExplained, spec.AllocDryRunDuplicateRefused, spec.AllocDryRunOutOfRangeRefused,
		spec.AllocServiceCIDRDryRun)

	freeAddressTaken = rule.New("free-address-taken", func(t *Transaction, family corev1.IPFamily) (netip.Addr, error) {
		ip, err := t.rules.ips.allocateNext(family)
		if err != nil {
			return netip.Addr{}, err
		}
		t.rules.takenAddressHeld.Do(t, ip)
		return ip, nil
	}, spec.AllocDynamicAssigned, spec.AllocDynamicFree, spec.AllocExhaustedRefused, spec.AllocHistoryExplained, spec.AllocServiceCIDRDryRun)

	// Others are told of the address, unless the request is a dry run.
	takenAddressHeld = rule.New("taken-address-held", func(t *Transaction, ip netip.Addr) {
		t.takenIPs = append(t.takenIPs, ip)
		if !t.dryRun {
			t.rules.onAllocate(ip, t.owner)
		}
	}, spec.AllocAddressBeforeService, spec.AllocUpdateToClusterIP, spec.AllocUpgradeSecondaryUnique)

	// An address is given back when the write has succeeded.
	droppedAddressFreed = rule.New("dropped-address-freed", func(t *Transaction, ip netip.Addr) {
		t.freedIPs = append(t.freedIPs, ip)
	}, spec.AllocExternalNameReleases, spec.AllocDowngradeReleasesSecondary)

	chosenNodePortTaken = rule.New("chosen-node-port-taken", func(t *Transaction, port int) error {
		if err := t.rules.ports.Allocate(port); err != nil {
			return err
		}
		t.takenPorts = append(t.takenPorts, port)
		return nil
	}, spec.APINodePortInUse, spec.AllocNodePortConcurrentStatic, spec.AllocDryRunNodePortInUseRefused, spec.AllocDryRunNodePortOutOfRangeRefused)

	// A node port is given back when the write has succeeded.
	droppedNodePortFreed = rule.New("dropped-node-port-freed", func(t *Transaction, port int) {
		t.freedPorts = append(t.freedPorts, port)
	}, spec.APINodePortRefusedWhole, spec.APIUpdateRefusedWhole)
)

// takeIP takes the address that the client chose.
func (t *Transaction) takeIP(ip netip.Addr) error { return t.rules.chosenAddressTaken.Do(t, ip) }

// takeNextIP takes an address of a family.
func (t *Transaction) takeNextIP(family corev1.IPFamily) (netip.Addr, error) {
	return t.rules.freeAddressTaken.Do(t, family)
}

// freeIP gives an address back when the write has succeeded.
func (t *Transaction) freeIP(ip netip.Addr) { t.rules.droppedAddressFreed.Do(t, ip) }

// takePort takes the node port that the client chose.
func (t *Transaction) takePort(port int) error { return t.rules.chosenNodePortTaken.Do(t, port) }

// takeNextPort takes any node port.
func (t *Transaction) takeNextPort() (int, error) {
	port, err := t.rules.ports.AllocateNext()
	if err == nil {
		t.takenPorts = append(t.takenPorts, port)
	}
	return port, err
}

// freePort gives a node port back when the write has succeeded.
func (t *Transaction) freePort(port int) { t.rules.droppedNodePortFreed.Do(t, port) }
