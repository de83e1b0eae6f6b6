// Package endpoints is the reference's endpoint controllers, as functions without state: what EndpointSlices and which Endpoints
// object a Service should have, given its pods and what is there already. It is an independent reading of KEP-752 (EndpointSlices), KEP-1672
// (terminating endpoints), KEP-4444 and KEP-3015 (traffic distribution), KEP-2433 (topology hints) and the documentation of Services.
//
// Where the documentation and the controllers of Kubernetes differ, the documentation is followed: targetPort is ignored for
// headless Services.
package endpoints

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// The values of the label endpointslice.kubernetes.io/managed-by of generated EndpointSlices.
const (
	Manager       = "endpointslice-controller.k8s.io"
	MirrorManager = "endpointslicemirroring-controller.k8s.io"
)

// State is what the controllers look at. Nothing of it is changed.
type State struct {
	Service *corev1.Service
	// Pods are those of the Service's namespace, selected or not, in an order that does not change from one time to the next.
	Pods []*corev1.Pod
	// Endpoints is the Endpoints object with the name of the Service; nil if there is none.
	Endpoints *corev1.Endpoints
	// Existing are the EndpointSlices that name the Service or are owned by it, whoever made them.
	Existing []*discoveryv1.EndpointSlice
	// Node returns a Node, nil if there is none of that name; Nodes returns all.
	Node  func(name string) *corev1.Node
	Nodes func() []*corev1.Node
	// Faults are the deliberate bugs that are switched on.
	Faults fault.Set
}

// Changes are what is to be done. New slices have a generateName instead of a name; changed ones are copies.
type Changes struct {
	Create, Update, Delete []*discoveryv1.EndpointSlice
	// Endpoints is the desired state of the Endpoints object; nil leaves it as it is.
	Endpoints *corev1.Endpoints
}

// Reconcile says what is to be done so that the EndpointSlices and the Endpoints object of a Service are as they should be. It asks
// for no change where nothing has to change.
func Reconcile(state *State) *Changes {
	s := *state
	s.Pods = state.selected()
	changes := &Changes{}
	generated, mirrored := s.own()
	switch {
	case s.Service.Spec.Type == corev1.ServiceTypeExternalName && !s.Faults.On(fault.ExternalNameSelects):
		changes.Delete = append(generated, mirrored...)
	case !s.selects(): // generated slices stay: they are the business of whoever took the selector away
		changes.settle(mirrored, s.mirror(), s.formOf(MirrorManager))
		if s.Faults.On(fault.SelectorlessEmptied) {
			changes.Delete = append(changes.Delete, s.foreign()...)
		}
	default:
		changes.settle(generated, s.generate(), s.formOf(Manager))
		changes.Delete = append(changes.Delete, mirrored...)
		changes.Endpoints = s.object()
	}
	return changes
}

// selects reports whether the Service has a selector.
func (s *State) selects() bool {
	return len(s.Service.Spec.Selector) > 0 || s.Faults.On(fault.SelectorlessSelects)
}

// Generated reports whether one of the controllers has made the slice.
func Generated(slice *discoveryv1.EndpointSlice) bool {
	switch slice.Labels[discoveryv1.LabelManagedBy] {
	case Manager, MirrorManager:
		return true
	}
	return false
}

// own are the existing slices that the controllers have made.
func (s *State) own() (generated, mirrored []*discoveryv1.EndpointSlice) {
	for _, slice := range s.Existing {
		switch {
		case slice.Labels[discoveryv1.LabelManagedBy] == MirrorManager:
			mirrored = append(mirrored, slice)
		case slice.Labels[discoveryv1.LabelManagedBy] == Manager, s.Faults.On(fault.SliceWithoutManager) && ownedBy(slice, s.Service):
			generated = append(generated, slice)
		}
	}
	return generated, mirrored
}

// foreign are the existing slices that others have made.
func (s *State) foreign() (foreign []*discoveryv1.EndpointSlice) {
	for _, slice := range s.Existing {
		if !Generated(slice) {
			foreign = append(foreign, slice)
		}
	}
	return foreign
}

func ownedBy(slice *discoveryv1.EndpointSlice, svc *corev1.Service) bool {
	for _, o := range slice.OwnerReferences {
		if o.UID == svc.UID {
			return true
		}
	}
	return false
}
