package service

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/allocator"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

func nodePortPath(i int) *field.Path { return portsPath.Index(i).Child("nodePort") }

// wantsNodePorts reports whether ports without a node port get one. A load balancer may be able to do without; node ports
// that the client names are honored even so.
func (r *Rules) wantsNodePorts(svc *corev1.Service) bool {
	if isLoadBalancer(svc) && !r.faults.On(fault.BalancerNodePortsAlways) {
		return svc.Spec.AllocateLoadBalancerNodePorts == nil || *svc.Spec.AllocateLoadBalancerNodePorts
	}
	return hasNodePorts(svc)
}

// nodePortsOf returns the node ports that a Service names, each once.
func nodePortsOf(svc *corev1.Service) (ports []int) {
	for i := range svc.Spec.Ports {
		if port := int(svc.Spec.Ports[i].NodePort); port != 0 && !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports
}

// nodePortsHeld returns the node ports that a stored Service holds: none if its type has none.
func nodePortsHeld(svc *corev1.Service) []int {
	if !hasNodePorts(svc) {
		return nil
	}
	return nodePortsOf(svc)
}

// keepNodePorts: an update that leaves node ports out keeps them. A port is recognized by its name, and a node port is not
// kept where the request uses it for another port.
func (r *Rules) keepNodePorts(svc, old *corev1.Service) {
	if !r.wantsNodePorts(old) || !r.wantsNodePorts(svc) || r.faults.On(fault.NodePortReassigned) {
		return
	}
	named := nodePortsOf(svc)
	for i := range svc.Spec.Ports {
		port := &svc.Spec.Ports[i]
		if port.NodePort != 0 {
			continue
		}
		for j := range old.Spec.Ports {
			if before := &old.Spec.Ports[j]; before.Name == port.Name && !slices.Contains(named, int(before.NodePort)) {
				port.NodePort = before.NodePort
			}
		}
	}
}

// allocateNodePorts takes the node ports and the health check node port that a Service needs and does not hold yet; old is
// nil for a new one. Those that the client named come first, lest a random one collides with them. Node ports that an update
// drops are given back.
func (r *Rules) allocateNodePorts(tx *Transaction, svc, old *corev1.Service) error {
	if old != nil && svc.Spec.Type != old.Spec.Type && r.faults.On(fault.TypeChangeNewNodePorts) {
		for i := range svc.Spec.Ports {
			svc.Spec.Ports[i].NodePort = 0
		}
	}
	r.dropNodePorts(svc, old)
	if hasNodePorts(svc) {
		if err := r.takeNamedNodePorts(tx, svc, old); err != nil {
			return err
		}
	}
	if err := r.takeNamedHealthCheckNodePort(tx, svc, old); err != nil {
		return err
	}
	if r.wantsNodePorts(svc) && !r.faults.On(fault.TypeNoNodePorts) {
		if err := r.takeMissingNodePorts(tx, svc, old); err != nil {
			return err
		}
	}
	if err := r.takeMissingHealthCheckNodePort(tx, svc, old); err != nil {
		return err
	}
	if old != nil {
		r.freeNodePorts(tx, svc, old)
		r.freeHealthCheckNodePort(tx, svc, old)
	}
	return nil
}

// dropNodePorts is where faults forget node ports that the client chose.
func (r *Rules) dropNodePorts(svc, old *corev1.Service) {
	var held []int
	if old != nil {
		held = nodePortsHeld(old)
	}
	for i := range svc.Spec.Ports {
		chosen := !slices.Contains(held, int(svc.Spec.Ports[i].NodePort))
		if chosen && hasNodePorts(svc) && r.faults.On(fault.NodePortIgnored) ||
			isLoadBalancer(svc) && !r.wantsNodePorts(svc) && r.faults.On(fault.BalancerNodePortsDropped) {
			svc.Spec.Ports[i].NodePort = 0
		}
	}
}

// takeNamedNodePorts takes the node ports that the client chose.
func (r *Rules) takeNamedNodePorts(tx *Transaction, svc, old *corev1.Service) error {
	var held []int
	if old != nil {
		held = nodePortsHeld(old)
	}
	for i := range svc.Spec.Ports {
		number := svc.Spec.Ports[i].NodePort
		if number == 0 || slices.Contains(held, int(number)) || sharesNodePort(svc, i, old == nil && !r.faults.On(fault.NodePortForTwo)) {
			continue
		}
		err := tx.takePort(int(number))
		if outside := new(*allocator.PortNotInRangeError); errors.As(err, outside) && r.faults.On(fault.NodePortAnyNumber) {
			continue
		}
		if errors.Is(err, allocator.ErrAllocated) && r.faults.On(fault.NodePortTwice) {
			continue
		}
		if err != nil && r.faults.On(fault.NodePortServerError) {
			return apierrors.NewInternalError(err)
		}
		if err != nil {
			return refuseNodePort(svc, i, err)
		}
	}
	return nil
}

// sharesNodePort reports whether an earlier entry has the node port of entry i, and rightly: entries of different protocols
// may share one. In a new Service they must have the same port number too, as in kube-apiserver.
func sharesNodePort(svc *corev1.Service, i int, isNew bool) bool {
	port := &svc.Spec.Ports[i]
	return slices.ContainsFunc(svc.Spec.Ports[:i], func(p corev1.ServicePort) bool {
		return p.NodePort == port.NodePort && (p.Port == port.Port || !isNew)
	})
}

// takeMissingNodePorts gives a random node port to each entry without one. In a new Service, entries with the same port
// number, which differ in their protocol, get the same one.
func (r *Rules) takeMissingNodePorts(tx *Transaction, svc, old *corev1.Service) error {
	for i := range svc.Spec.Ports {
		port := &svc.Spec.Ports[i]
		if port.NodePort != 0 || i > 0 && r.faults.On(fault.NodePortFirstOnly) {
			continue
		}
		if old == nil {
			if port.NodePort = nodePortOf(svc, port.Port); port.NodePort != 0 {
				continue
			}
		}
		number, err := tx.takeNextPort()
		if err != nil {
			return exhausted(svc, "node port", err)
		}
		port.NodePort = int32(number)
	}
	return nil
}

// nodePortOf returns the node port of the entries with a port number, or 0 if none of them has one yet.
func nodePortOf(svc *corev1.Service, port int32) int32 {
	for i := range svc.Spec.Ports {
		if p := &svc.Spec.Ports[i]; p.Port == port && p.NodePort != 0 {
			return p.NodePort
		}
	}
	return 0
}

// freeNodePorts gives back the node ports that an update drops.
func (r *Rules) freeNodePorts(tx *Transaction, svc, old *corev1.Service) {
	if !hasNodePorts(svc) && r.faults.On(fault.TypeChangeLeaksNodePorts) || r.faults.On(fault.NodePortLeaks) {
		return
	}
	named := nodePortsHeld(svc)
	for _, port := range nodePortsHeld(old) {
		if !slices.Contains(named, port) {
			tx.freePort(port)
		}
	}
}

// nodePortsFreedWith returns the node ports that are free when a Service is deleted.
func (r *Rules) nodePortsFreedWith(svc *corev1.Service) []int {
	if r.faults.On(fault.NodePortOnAlias) || r.faults.On(fault.NodePortNotCleared) {
		return nodePortsOf(svc)
	}
	return nodePortsHeld(svc)
}

// refuseNodePort: a node port that is out of range or in use makes the request fail.
func refuseNodePort(svc *corev1.Service, i int, err error) error {
	number := svc.Spec.Ports[i].NodePort
	return refusal(svc, field.ErrorList{field.Invalid(nodePortPath(i), number, fmt.Sprintf("failed to allocate node port %d: %v", number, err))})
}

// clearNodePorts: a change to a type without node ports clears them, unless the request adds one as well.
func (r *Rules) clearNodePorts(svc, old *corev1.Service) {
	if !hasNodePorts(old) || hasNodePorts(svc) || r.faults.On(fault.NodePortNotCleared) {
		return
	}
	held := nodePortsOf(old)
	for _, port := range nodePortsOf(svc) {
		if !slices.Contains(held, port) {
			return
		}
	}
	for i := range svc.Spec.Ports {
		svc.Spec.Ports[i].NodePort = 0
	}
}

// validateNodePortsNeeded: only a type with node ports may name one.
func (r *Rules) validateNodePortsNeeded(svc *corev1.Service) (errs field.ErrorList) {
	if svc.Spec.Type != corev1.ServiceTypeClusterIP && svc.Spec.Type != corev1.ServiceTypeExternalName || r.faults.On(fault.NodePortNotCleared) {
		return nil
	}
	if hasClusterIP(svc) && r.faults.On(fault.NodePortOnClusterIP) || !hasClusterIP(svc) && r.faults.On(fault.NodePortOnAlias) {
		return nil
	}
	for i := range svc.Spec.Ports {
		if svc.Spec.Ports[i].NodePort != 0 {
			errs = append(errs, field.Forbidden(nodePortPath(i), fmt.Sprintf("may not be used when `type` is '%s'", svc.Spec.Type)))
		}
	}
	return errs
}

// validateNodePortsUnique: a node port is used once for each protocol.
func (r *Rules) validateNodePortsUnique(svc *corev1.Service) (errs field.ErrorList) {
	type key struct {
		protocol corev1.Protocol
		nodePort int32
	}
	seen := make(map[key]bool, len(svc.Spec.Ports))
	for i := range svc.Spec.Ports {
		port := &svc.Spec.Ports[i]
		k := key{port.Protocol, port.NodePort}
		if r.faults.On(fault.NodePortNotShared) {
			k.protocol = ""
		}
		if port.NodePort != 0 && seen[k] && !r.faults.On(fault.NodePortForTwo) {
			errs = append(errs, field.Duplicate(nodePortPath(i), port.NodePort))
		}
		seen[k] = true
	}
	return errs
}
