package endpoints

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// group is what can stand together in EndpointSlices: endpoints of one address type with the same ports.
type group struct {
	addressType discoveryv1.AddressType
	ports       []discoveryv1.EndpointPort
	endpoints   []discoveryv1.Endpoint
	// capacity is how many endpoints a slice holds.
	capacity int
	// placeholder groups have no endpoints, and a slice all the same.
	placeholder bool
}

// maxEndpoints is how many endpoints a generated slice holds (KEP-752).
const maxEndpoints = 100

// generate returns the endpoints that the pods of a Service are.
func (s *State) generate() (groups []*group) {
	for _, family := range s.families() {
		ofFamily := s.generateFamily(family)
		var all []*discoveryv1.Endpoint
		for _, g := range ofFamily {
			for i := range g.endpoints {
				all = append(all, &g.endpoints[i])
			}
		}
		s.hint(all)
		if len(all) == 0 { // an empty slice shows that the Service has been looked at
			ofFamily = []*group{{addressType: discoveryv1.AddressType(family), capacity: maxEndpoints, placeholder: true}}
		}
		groups = append(groups, ofFamily...)
	}
	return groups
}

// families are the IP families of the Service.
func (s *State) families() []corev1.IPFamily {
	families := s.Service.Spec.IPFamilies
	switch {
	case len(families) == 0: // an alias, with the fault that selects for it
		return []corev1.IPFamily{corev1.IPv4Protocol}
	case len(families) > 1 && (s.Faults.On(fault.SlicePrimaryFamily) || s.Faults.On(fault.SliceFamiliesMixed)):
		return families[:1]
	}
	return families
}

func (s *State) generateFamily(family corev1.IPFamily) (groups []*group) {
	for _, pod := range s.endpointPods() {
		endpoint := s.endpoint(pod)
		endpoint.Addresses = s.addresses(pod, family)
		if len(endpoint.Addresses) == 0 {
			continue
		}
		ports := s.ports(pod)
		i := slices.IndexFunc(groups, func(g *group) bool { return samePorts(g.ports, ports) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{addressType: discoveryv1.AddressType(family), ports: ports, capacity: maxEndpoints})
		}
		groups[i].endpoints = append(groups[i].endpoints, endpoint)
	}
	if s.Faults.On(fault.SliceOversized) {
		for _, g := range groups {
			g.capacity = maxMirrored
		}
	}
	return groups
}

// endpointPods are the selected pods that are endpoints: all that run, ready or not.
func (s *State) endpointPods() []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(s.Pods), func(pod *corev1.Pod) bool {
		return hasEnded(pod) || pod.DeletionTimestamp != nil && s.Faults.On(fault.SliceTerminatingRemoved) ||
			!isReady(pod) && s.Faults.On(fault.SliceUnreadyRemoved)
	})
}

// endpoint is a pod as an endpoint, without its addresses.
func (s *State) endpoint(pod *corev1.Pod) discoveryv1.Endpoint {
	serving, terminating := isReady(pod), pod.DeletionTimestamp != nil
	ready := serving && (!terminating || s.Faults.On(fault.SliceTerminatingReady))
	if s.Service.Spec.PublishNotReadyAddresses && !s.Faults.On(fault.SliceNotReadyUnpublished) {
		ready = true
	}
	if s.Faults.On(fault.SliceServingIsReady) {
		serving = ready
	}
	if s.Faults.On(fault.SliceTerminatingUnsaid) {
		terminating = false
	}
	e := discoveryv1.Endpoint{
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}
	if name := pod.Spec.NodeName; name != "" {
		e.NodeName = &name
		if node := s.Node(name); node != nil && node.Labels[corev1.LabelTopologyZone] != "" {
			e.Zone = new(node.Labels[corev1.LabelTopologyZone])
		}
	}
	if host := hostname(s.Service, pod); host != "" {
		e.Hostname = &host
	}
	return e
}

// hostname is the name that a pod has below that of the Service, if it asks for one.
func hostname(svc *corev1.Service, pod *corev1.Pod) string {
	if pod.Spec.Subdomain != svc.Name {
		return ""
	}
	return pod.Spec.Hostname
}

// addresses are those of a pod in a family.
func (s *State) addresses(pod *corev1.Pod, family corev1.IPFamily) (addresses []string) {
	for _, text := range podAddresses(pod) {
		a, err := netip.ParseAddr(text)
		if err == nil && (a.Is4() == (family == corev1.IPv4Protocol) || s.Faults.On(fault.SliceFamiliesMixed) && len(s.Service.Spec.IPFamilies) > 1) {
			addresses = append(addresses, a.String())
		}
	}
	return addresses
}

// podAddresses are all addresses of a pod. status.podIP is the first of them, and may be the only one that is set.
func podAddresses(pod *corev1.Pod) (addresses []string) {
	for _, ip := range pod.Status.PodIPs {
		addresses = append(addresses, ip.IP)
	}
	if len(addresses) == 0 && pod.Status.PodIP != "" {
		addresses = []string{pod.Status.PodIP}
	}
	return addresses
}

// ports are the ports of the Service as the pod has them.
func (s *State) ports(pod *corev1.Pod) (ports []discoveryv1.EndpointPort) {
	for i := range s.Service.Spec.Ports {
		p := s.Service.Spec.Ports[i]
		number := s.targetPort(&p, pod)
		if number == 0 {
			continue
		}
		port := discoveryv1.EndpointPort{Name: &p.Name, Protocol: &p.Protocol, Port: &number, AppProtocol: p.AppProtocol}
		switch {
		case s.Faults.On(fault.SlicePortsUnnamed) && len(s.Service.Spec.Ports) == 1:
			port.Name = new("")
		case s.Faults.On(fault.SlicePortsNamedByTarget) && p.TargetPort.Type == intstr.String:
			port.Name = &p.TargetPort.StrVal
		}
		if s.Faults.On(fault.SliceAppProtocolDropped) {
			port.AppProtocol = nil
		}
		ports = append(ports, port)
	}
	return ports
}

// targetPort is the number of a Service port at a pod; 0 if the pod does not have the port.
func (s *State) targetPort(p *corev1.ServicePort, pod *corev1.Pod) int32 {
	switch target := p.TargetPort; {
	case target.Type == intstr.Int && target.IntVal == 0:
		return p.Port
	case target.Type == intstr.Int:
		return target.IntVal
	case s.Faults.On(fault.SliceTargetPortUnread):
		return p.Port
	case s.Faults.On(fault.SliceTargetPortOfFirst):
		return containerPort(s.Pods[0], target.StrVal, p.Protocol)
	default:
		return containerPort(pod, target.StrVal, p.Protocol)
	}
}

// containerPort is the number of the port that a container of the pod, or a sidecar, gives the name; 0 if none does.
func containerPort(pod *corev1.Pod, name string, protocol corev1.Protocol) int32 {
	containers := slices.Clone(pod.Spec.Containers)
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, c)
		}
	}
	for _, c := range containers {
		for _, p := range c.Ports {
			if p.Name == name && cmp.Or(p.Protocol, corev1.ProtocolTCP) == cmp.Or(protocol, corev1.ProtocolTCP) {
				return p.ContainerPort
			}
		}
	}
	return 0
}

// samePorts reports whether two lists hold the same ports in any order.
func samePorts(a, b []discoveryv1.EndpointPort) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !slices.ContainsFunc(b, func(p discoveryv1.EndpointPort) bool { return samePort(&a[i], &p) }) {
			return false
		}
	}
	return true
}

func samePort(a, b *discoveryv1.EndpointPort) bool {
	return same(a.Name, b.Name) && same(a.Protocol, b.Protocol) && same(a.Port, b.Port) && same(a.AppProtocol, b.AppProtocol)
}

func same[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// identity tells endpoints apart: the pod, or the address where there is none.
func identity(e *discoveryv1.Endpoint) string {
	if e.TargetRef != nil && e.TargetRef.UID != "" {
		return string(e.TargetRef.UID)
	}
	return strings.Join(e.Addresses, ",")
}
