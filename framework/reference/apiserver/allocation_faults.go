package apiserver

import (
	corev1 "k8s.io/api/core/v1"

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
