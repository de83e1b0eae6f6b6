package service

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/fault"
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
	if dryRun || err != nil && !r.faults.On(fault.RefusalKeepsNew) {
		tx.undo()
	}
	r.mu.Unlock()
	if err == nil && !(dryRun && r.faults.On(fault.DryRunNotValidated)) {
		err = refusal(owner, validate())
	}
	if err != nil {
		switch {
		case r.faults.On(fault.RefusalFreesHeld):
			tx.Commit()
		case !r.faults.On(fault.RefusalKeepsNew):
			tx.Rollback()
		}
		return nil, err
	}
	return tx, nil
}

// Commit gives back what the write made superfluous.
func (t *Transaction) Commit() {
	t.rules.mu.Lock()
	defer t.rules.mu.Unlock()
	for _, ip := range t.freedIPs {
		t.rules.onRelease(ip)
		if t.rules.faults.On(fault.FreedTakenAgain) {
			t.rules.onAllocate(ip, t.owner)
			continue
		}
		t.rules.ips.release(ip)
	}
	for _, port := range t.freedPorts {
		t.rules.ports.Release(port)
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
	t.keepByBug()
	for _, ip := range t.takenIPs {
		t.rules.ips.release(ip)
		if !t.dryRun {
			t.rules.onRelease(ip)
		}
	}
	for _, port := range t.takenPorts {
		if t.dryRun || !t.rules.faults.On(fault.NodePortRefusalLeaks) {
			t.rules.ports.Release(port)
		}
	}
	t.forget()
}

func (t *Transaction) forget() {
	t.takenIPs, t.freedIPs, t.takenPorts, t.freedPorts = nil, nil, nil, nil
}

// takeIP takes the address that the client chose.
func (t *Transaction) takeIP(ip netip.Addr) error {
	if err := t.rules.ips.allocate(ip); err != nil {
		if t.overlooks(ip, err) {
			return nil
		}
		return err
	}
	t.tookIP(ip)
	return nil
}

// takeNextIP takes an address of a family.
func (t *Transaction) takeNextIP(family corev1.IPFamily) (netip.Addr, error) {
	if ip, decided, err := t.takesNone(family); decided {
		return ip, err
	}
	ip, err := t.rules.ips.allocateNext(family)
	if err != nil {
		return netip.Addr{}, err
	}
	t.tookIP(ip)
	return ip, nil
}

func (t *Transaction) tookIP(ip netip.Addr) {
	t.takenIPs = append(t.takenIPs, ip)
	if !t.dryRun {
		t.rules.onAllocate(ip, t.owner)
	}
	t.letGo(ip)
}

// freeIP gives an address back when the write has succeeded.
func (t *Transaction) freeIP(ip netip.Addr) {
	if !t.rules.faults.On(fault.UpdateKeepsAddress) {
		t.freedIPs = append(t.freedIPs, ip)
	}
}

// takePort takes the node port that the client chose.
func (t *Transaction) takePort(port int) error {
	if err := t.rules.ports.Allocate(port); err != nil {
		if t.overlooksPort(err) {
			return nil
		}
		return err
	}
	t.takenPorts = append(t.takenPorts, port)
	return nil
}

// takeNextPort takes any node port.
func (t *Transaction) takeNextPort() (int, error) {
	port, err := t.rules.ports.AllocateNext()
	if err == nil {
		t.takenPorts = append(t.takenPorts, port)
	}
	return port, err
}

// freePort gives a node port back when the write has succeeded.
func (t *Transaction) freePort(port int) {
	t.freedPorts = append(t.freedPorts, port)
	if !t.dryRun && t.rules.faults.On(fault.NodePortRefusalFrees) {
		t.rules.ports.Release(port)
	}
}
