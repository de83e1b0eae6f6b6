// Package endpoints is the reference's endpoint controllers, as functions without state. They say what EndpointSlices and which
// Endpoints object a Service should have, given its pods and what is there already.
//
// The package is an independent reading of KEP-752 (EndpointSlices), KEP-1672 (terminating endpoints), KEP-4444 and KEP-3015
// (traffic distribution), KEP-2433 (topology hints) and the documentation of Services. Where the documentation and the
// controllers of Kubernetes differ, the documentation is followed: targetPort is ignored for headless Services.
package endpoints

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// The values of the label endpointslice.kubernetes.io/managed-by of generated EndpointSlices.
const (
	Manager       = "endpointslice-controller.k8s.io"
	MirrorManager = "endpointslicemirroring-controller.k8s.io"
)

// Rules are the rules of endpoints. They are safe for concurrent use.
type Rules struct{ *book }

// State is what the controllers look at. Nothing of it is changed.
type State struct {
	Service *corev1.Service
	// Pods are those of the Service's namespace, selected or not, in an order that does not change from one time to the next.
	Pods []*corev1.Pod
	// Endpoints is the Endpoints object with the name of the Service; nil if there is none.
	Endpoints *corev1.Endpoints
	// Existing are the EndpointSlices that name the Service or are owned by it, by whatever program they were made.
	Existing []*discoveryv1.EndpointSlice
	// Node returns a Node, nil if there is none of that name; Nodes returns all.
	Node  func(name string) *corev1.Node
	Nodes func() []*corev1.Node
}

// task is a Service whose endpoints are being brought up to date. Its Pods are those that are selected.
type task struct {
	*book
	State
	generated, mirror []*discoveryv1.EndpointSlice // that exist
}

// Changes are what is to be done. New slices have a generateName instead of a name; changed ones are copies.
type Changes struct {
	Create, Update, Delete []*discoveryv1.EndpointSlice
	// Endpoints is the desired state of the Endpoints object; nil leaves it as it is.
	Endpoints *corev1.Endpoints
}

// Reconcile says what is to be done so that the EndpointSlices and the Endpoints object of a Service are as they should be. It
// asks for no change where nothing has to change.
func (r *Rules) Reconcile(state *State) *Changes {
	t := &task{book: r.book, State: *state}
	t.Pods = t.selectedPods()
	for _, slice := range t.Existing {
		switch {
		case slice.Labels[discoveryv1.LabelManagedBy] == MirrorManager:
			t.mirror = append(t.mirror, slice)
		case t.ownSlice.Do(t.Service, slice):
			t.generated = append(t.generated, slice)
		}
	}
	c := &Changes{}
	switch {
	case t.aliasHasNothing.Do(t.Service):
		c.Delete = slices.Concat(t.generated, t.mirror)
	case t.selectorNeeded.Do(t.Service):
		t.selected.Do(t, c)
	default:
		t.selectorless.Do(t, c)
	}
	return c
}

// Rules for what becomes of the EndpointSlices of a Service.
var (
	aliasHasNothing = rule.New("endpoints-none-for-external-name", func(svc *corev1.Service) bool {
		return svc.Spec.Type == corev1.ServiceTypeExternalName
	}, spec.ProxyExternalNameNoEndpoints)

	// A Service with a selector has EndpointSlices and an Endpoints object of the pods that it selects.
	selected = rule.New("endpoints-of-selected-pods", func(t *task, c *Changes) {
		c.settle(t.generated, t.generate(), t.formOf(Manager))
		c.Delete = append(c.Delete, t.mirror...)
		c.Endpoints = t.object()
	}, spec.ProxySelectorAllLabels, spec.ProxySliceLabels, spec.ProxySelectorAdded, spec.ProxyOddPodHarmless, spec.ProxyManyPorts, spec.ProxyEndpointsSettle, spec.ProxySlicesRestored)

	// Without a selector only mirrored slices change. Generated ones stay: the selector may have been taken away on purpose.
	selectorless = rule.New("endpoints-without-selector", func(t *task, c *Changes) {
		c.settle(t.mirror, t.mirrorObject(), t.formOf(MirrorManager))
	}, spec.ProxySelectorlessUntouched, spec.ProxySelectorlessEndpointsMirrored)

	// A slice belongs to the controller that its label names.
	ownSlice = rule.New("endpoints-slice-of-controller", func(_ *corev1.Service, slice *discoveryv1.EndpointSlice) bool {
		return slice.Labels[discoveryv1.LabelManagedBy] == Manager
	}, spec.ProxySliceLabels, spec.ProxySelectorlessUntouched)
)

// Generated reports whether one of the controllers has made the slice.
func Generated(slice *discoveryv1.EndpointSlice) bool {
	switch slice.Labels[discoveryv1.LabelManagedBy] {
	case Manager, MirrorManager:
		return true
	}
	return false
}
