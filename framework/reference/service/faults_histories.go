package service

import (
	"errors"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/reference/allocator"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

// aMoment is as long as other clients need for some requests. What is remembered for longerMoment is shorter than what a client waits for that looks again.
const aMoment, longerMoment = 3 * time.Millisecond, 60 * time.Millisecond

// What can be wrong while several clients are at work. What a fault remembers, it remembers of one server.
var historyFaults = []wrong{
	{fault.UpdateTakesLate, func(b *book) {
		b.chosenAddressTaken.Wrap(func(right addressTaking) addressTaking {
			return func(t *Transaction, ip netip.Addr) error {
				err := right(t, ip)
				if err != nil || t.dryRun || t.owner.ResourceVersion == "" {
					return err
				}
				t.rules.ips.release(ip)
				t.rules.letOthersIn()
				_ = t.rules.ips.allocate(ip) // somebody else may have it by now
				return nil
			}
		})
	}},
	{fault.RefusalCached, func(b *book) {
		found := map[netip.Addr]time.Time{} // in use
		b.chosenAddressTaken.Wrap(func(right addressTaking) addressTaking {
			return func(t *Transaction, ip netip.Addr) error {
				if time.Since(found[ip]) < longerMoment {
					return allocator.ErrAllocated
				}
				err := right(t, ip)
				if isInUse(err) {
					found[ip] = time.Now()
				}
				return err
			}
		})
	}},
	{fault.FullCached, func(b *book) {
		found := map[corev1.IPFamily]time.Time{} // full
		b.freeAddressTaken.Wrap(func(right freeAddressTaking) freeAddressTaking {
			return func(t *Transaction, family corev1.IPFamily) (netip.Addr, error) {
				if time.Since(found[family]) < longerMoment {
					return netip.Addr{}, allocator.ErrFull
				}
				ip, err := right(t, family)
				if errors.Is(err, allocator.ErrFull) {
					found[family] = time.Now()
				}
				return ip, err
			}
		})
	}},
	{fault.AddressFreedTwice, func(b *book) {
		b.freedAddressReleased.Wrap(func(right addressNoting) addressNoting {
			return func(t *Transaction, ip netip.Addr) {
				right(t, ip)
				t.rules.letOthersIn()
				right(t, ip)
			}
		})
	}},
	{fault.DroppedNodePortFreedTwice, func(b *book) {
		b.freedNodePortReleased.Wrap(func(right nodePortNoting) nodePortNoting {
			return func(t *Transaction, port int) {
				right(t, port)
				t.rules.letOthersIn()
				right(t, port)
			}
		})
	}},
	{fault.NodePortTakenLate, func(b *book) {
		b.chosenNodePortTaken.Wrap(func(right nodePortTaking) nodePortTaking {
			return func(t *Transaction, port int) error {
				err := right(t, port)
				if err != nil || t.dryRun || t.owner.ResourceVersion == "" {
					return err
				}
				t.rules.ports.Release(port)
				t.rules.letOthersIn()
				_ = t.rules.ports.Allocate(port) // somebody else may have it by now
				return nil
			}
		})
	}},
	{fault.NodePortFreedTwice, func(b *book) {
		at(b.releases, deletedNodePortsFreed).Wrap(func(right releasing) releasing {
			return func(r *Rules, svc *corev1.Service) {
				right(r, svc)
				for _, port := range nodePortsHeld(svc) {
					r.aMomentLater(func() { r.ports.Release(port) })
				}
			}
		})
	}},
	{fault.NodePortRefusalCached, func(b *book) {
		found := map[int]bool{} // in use when somebody asked last
		b.chosenNodePortTaken.Wrap(func(right nodePortTaking) nodePortTaking {
			return func(t *Transaction, port int) error {
				if found[port] {
					delete(found, port)
					return allocator.ErrAllocated
				}
				err := right(t, port)
				found[port] = isInUse(err)
				return err
			}
		})
	}},
}

// letOthersIn leaves the lock to others for a moment.
func (r *Rules) letOthersIn() {
	r.mu.Unlock()
	time.Sleep(aMoment)
	r.mu.Lock()
}

// aMomentLater does something that nobody waits for.
func (r *Rules) aMomentLater(do func()) {
	time.AfterFunc(aMoment, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		do()
	})
}
