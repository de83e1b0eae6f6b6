package service

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

func nodePortPath(i int) *field.Path { return portsPath.Index(i).Child("nodePort") }

// Ports without a node port get one. A load balancer may be able to do without; node ports that the client names are honored
// even so.
var nodePortsWanted = rule.New("node-ports-wanted", func(svc *corev1.Service) bool {
	if isLoadBalancer(svc) {
		return svc.Spec.AllocateLoadBalancerNodePorts == nil || *svc.Spec.AllocateLoadBalancerNodePorts
	}
	return hasNodePorts(svc)
}, spec.APITypeNodePort, spec.APITypeLoadBalancer, spec.APILoadBalancerNodePortsDisabled, spec.APILoadBalancerNodePortsDisabledLater)

// nodePortsOf returns the node ports that a Service names, each once.
func nodePortsOf(svc *corev1.Service) (ports []int) {
	for i := range svc.Spec.Ports {
		if port := int(svc.Spec.Ports[i].NodePort); port != 0 && !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports
}

// nodePortsHeld returns the node ports that a stored Service holds: none if there is no Service, or if its type has none.
func nodePortsHeld(svc *corev1.Service) []int {
	if svc == nil || !hasNodePorts(svc) {
		return nil
	}
	return nodePortsOf(svc)
}

// An update that leaves node ports out keeps them. A port is recognized by its name, and a node port is not kept where the
// request uses it for another port.
var nodePortsKept = rule.New("node-ports-kept", func(r *Rules, svc, old *corev1.Service) {
	if !r.nodePortsWanted.Do(old) || !r.nodePortsWanted.Do(svc) {
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
}, spec.APINodePortKept)

// How a Service gets its node ports.
var (
	// Named ones come first, lest a random one collides with them.
	namedNodePortsTaken = rule.New("named-node-ports-taken", func(t *Transaction, svc, old *corev1.Service) error {
		if !hasNodePorts(svc) {
			return nil
		}
		held := nodePortsHeld(old)
		for i := range svc.Spec.Ports {
			number := svc.Spec.Ports[i].NodePort
			if number == 0 || slices.Contains(held, int(number)) || t.rules.nodePortShared.Do(svc, i, old == nil) {
				continue
			}
			if err := t.takePort(int(number)); err != nil {
				if err := t.rules.nodePortRefused.Do(svc, i, err); err != nil {
					return err
				}
			}
		}
		return nil
	}, spec.APINodePortChosen, spec.APINodePortChanged, spec.APILoadBalancerNodePortsExplicit, spec.AllocNodePortStaticAnyBand)

	// Entries of different protocols may share a node port. In a new Service they must have the same port number too, as in
	// kube-apiserver.
	nodePortShared = rule.New("node-port-shared", func(svc *corev1.Service, i int, isNew bool) bool {
		port := &svc.Spec.Ports[i]
		return slices.ContainsFunc(svc.Spec.Ports[:i], func(p corev1.ServicePort) bool {
			return p.NodePort == port.NodePort && (p.Port == port.Port || !isNew)
		})
	}, spec.APINodePortShared)

	// A node port that is out of range or in use makes the request fail.
	nodePortRefused = rule.New("node-port-refused", func(svc *corev1.Service, i int, err error) error {
		number := svc.Spec.Ports[i].NodePort
		return refusal(svc, field.ErrorList{field.Invalid(nodePortPath(i), number, fmt.Sprintf("failed to allocate node port %d: %v", number, err))})
	}, spec.APINodePortOutOfRange, spec.APINodePortInUse, spec.APINodePortClientError)

	missingNodePortsAssigned = rule.New("missing-node-ports-assigned", func(t *Transaction, svc, old *corev1.Service) error {
		if !t.rules.nodePortsWanted.Do(svc) {
			return nil
		}
		for i := range svc.Spec.Ports {
			if err := t.rules.nodePortAssigned.Do(t, svc, old, i); err != nil {
				return err
			}
		}
		return nil
	}, spec.APITypeNodePort, spec.APITypeLoadBalancer, spec.APILoadBalancerNodePortsDefault)

	// A port without a node port gets a random one. In a new Service, entries with the same port number, which differ in their
	// protocol, get the same one.
	nodePortAssigned = rule.New("node-port-assigned", func(t *Transaction, svc, old *corev1.Service, i int) error {
		port := &svc.Spec.Ports[i]
		if port.NodePort != 0 {
			return nil
		}
		if old == nil {
			if port.NodePort = nodePortOf(svc, port.Port); port.NodePort != 0 {
				return nil
			}
		}
		number, err := t.takeNextPort()
		if err != nil {
			return exhausted(svc, "node port", err)
		}
		port.NodePort = int32(number)
		return nil
	}, spec.APINodePortAssigned, spec.APINodePortShared, spec.AllocNodePortExhaustedRefused)
)

// nodePortOf returns the node port of the entries with a port number, or 0 if none of them has one yet.
func nodePortOf(svc *corev1.Service, port int32) int32 {
	for i := range svc.Spec.Ports {
		if p := &svc.Spec.Ports[i]; p.Port == port && p.NodePort != 0 {
			return p.NodePort
		}
	}
	return 0
}

// How node ports become free.
var (
	droppedNodePortsFreed = rule.New("dropped-node-ports-freed", func(t *Transaction, svc, old *corev1.Service) error {
		named := nodePortsHeld(svc)
		for _, port := range nodePortsHeld(old) {
			if !slices.Contains(named, port) {
				t.freePort(port)
			}
		}
		return nil
	}, spec.APINodePortChanged, spec.APINodePortCleared)

	// A deleted Service gives back the node ports that it holds, and no others.
	nodePortsOwned = rule.New("node-ports-owned", nodePortsHeld, spec.APINodePortOwner)

	deletedNodePortsFreed = rule.New("deleted-service-frees-node-ports", func(r *Rules, svc *corev1.Service) {
		for _, port := range r.nodePortsOwned.Do(svc) {
			r.ports.Release(port)
		}
	}, spec.AllocNodePortDeleteReleases)
)

// A change to a type without node ports clears them, unless the request adds one as well.
var nodePortsCleared = rule.New("node-ports-cleared", func(_ *Rules, svc, old *corev1.Service) {
	if !hasNodePorts(old) || hasNodePorts(svc) {
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
}, spec.APINodePortCleared, spec.APIUpdateClearsUnchanged)

// Rules for node ports.
var (
	nodePortsByType = rule.New("node-ports-by-type", func(_ *Rules, svc, _ *corev1.Service) (errs field.ErrorList) {
		if svc.Spec.Type != corev1.ServiceTypeClusterIP && svc.Spec.Type != corev1.ServiceTypeExternalName {
			return nil
		}
		for i := range svc.Spec.Ports {
			if svc.Spec.Ports[i].NodePort != 0 {
				errs = append(errs, field.Forbidden(nodePortPath(i), fmt.Sprintf("may not be used when `type` is '%s'", svc.Spec.Type)))
			}
		}
		return errs
	}, spec.APINodePortUnneeded, spec.APICreateClearsNothing)

	// A node port is used once for each protocol.
	nodePortsDistinct = rule.New("node-ports-distinct", func(_ *Rules, svc, _ *corev1.Service) (errs field.ErrorList) {
		type key struct {
			protocol corev1.Protocol
			nodePort int32
		}
		seen := make(map[key]bool, len(svc.Spec.Ports))
		for i := range svc.Spec.Ports {
			port := &svc.Spec.Ports[i]
			k := key{port.Protocol, port.NodePort}
			if port.NodePort != 0 && seen[k] {
				errs = append(errs, field.Duplicate(nodePortPath(i), port.NodePort))
			}
			seen[k] = true
		}
		return errs
	}, spec.APINodePortDistinct, spec.APINodePortShared)
)
