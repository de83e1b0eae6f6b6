package apiserver

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// The deliberate bugs in the objects behind allocation, as far as they take more than a condition.

// storeRefused stores an object that was refused, with a bug.
func (s *Server) storeRefused(res *resource, obj object) {
	if res == services && s.options.Faults.On(fault.RefusedCreateStored) {
		_, _ = s.store.create(res, obj, s.viewer(res), nil) // a name that exists is left alone
	}
}

// freeByBug frees what a Service has when its deletion is only tried, with a bug.
func (s *Server) freeByBug(obj object) {
	if svc, ok := obj.(*corev1.Service); ok && s.options.Faults.On(fault.DryRunDeleteFrees) {
		s.rules.Load().Delete(svc)
	}
}

// repairByBug frees the addresses of all Services that have just been created, with a bug: as if their creation had failed half-way.
func (s *Server) repairByBug() {
	if !s.options.Faults.On(fault.RepairFreesNew) {
		return
	}
	all, _ := s.store.list(services, "")
	for _, e := range all {
		if svc := e.stored.(*corev1.Service); time.Since(svc.CreationTimestamp.Time) < time.Minute {
			s.rules.Load().Delete(svc)
		}
	}
}

// ignoresReservation reports whether an IPAddress that is being made reserves nothing because of a bug, which may also take the
// one of a Service away first.
func (s *Server) ignoresReservation(ip netip.Addr) bool {
	if s.options.Faults.On(fault.IPAddressTakenOver) {
		s.addressReleased(ip)
		return true
	}
	return s.options.Faults.On(fault.IPAddressIgnored)
}

// ipAddressName returns the rule for the names of IPAddresses.
func (s *Server) ipAddressName() validation.ValidateNameFunc {
	if s.options.Faults.On(fault.IPAddressAnyName) {
		return func(string, bool) []string { return nil }
	}
	return canonicalIPName
}

// maskedCIDRs clears the host bits of the CIDRs of a ServiceCIDR, with a bug.
func (s *Server) maskedCIDRs(texts []string) []string {
	if !s.options.Faults.On(fault.ServiceCIDRHostBits) {
		return texts
	}
	masked := make([]string, len(texts))
	for i, text := range texts {
		masked[i] = text
		if p, err := netip.ParsePrefix(text); err == nil {
			masked[i] = p.Masked().String()
		}
	}
	return masked
}
