package endpoints

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// maxMirrored is how many addresses of a subset are mirrored, and how many endpoints a mirrored slice holds.
const maxMirrored = 1000

// leaderAnnotation marks Endpoints objects that are used for leader election: they say nothing of endpoints.
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// mirror returns the endpoints that the Endpoints object of a Service without a selector lists.
func (s *State) mirror() (groups []*group) {
	e := s.Endpoints
	if e == nil || s.Faults.On(fault.MirrorMissing) || e.Labels[discoveryv1.LabelSkipMirror] == "true" && !s.Faults.On(fault.MirrorSkipIgnored) {
		return nil
	}
	if _, leads := e.Annotations[leaderAnnotation]; leads {
		return nil
	}
	if _, mirrored := s.own(); len(mirrored) > 0 && s.Faults.On(fault.MirrorStale) {
		return asTheyAre(mirrored)
	}
	for _, subset := range e.Subsets {
		ports := mirroredPorts(subset.Ports)
		room := maxMirrored
		if s.Faults.On(fault.MirrorUnlimited) {
			room = len(subset.Addresses) + len(subset.NotReadyAddresses)
		}
		for _, part := range []struct {
			addresses []corev1.EndpointAddress
			ready     bool
		}{{subset.Addresses, true}, {subset.NotReadyAddresses, false}} {
			for _, a := range part.addresses {
				ip, err := netip.ParseAddr(a.IP)
				if err != nil || room == 0 {
					continue
				}
				room--
				family := discoveryv1.AddressTypeIPv4
				if ip.Is6() {
					family = discoveryv1.AddressTypeIPv6
				}
				i := slices.IndexFunc(groups, func(g *group) bool { return g.addressType == family && samePorts(g.ports, ports) })
				if i < 0 {
					i = len(groups)
					groups = append(groups, &group{addressType: family, ports: ports, capacity: maxMirrored})
				}
				groups[i].endpoints = append(groups[i].endpoints, mirroredEndpoint(&a, ip, part.ready))
			}
		}
	}
	return groups
}

func mirroredEndpoint(a *corev1.EndpointAddress, ip netip.Addr, ready bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{
		Addresses: []string{ip.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}, NodeName: a.NodeName, TargetRef: a.TargetRef,
	}
	if a.Hostname != "" {
		e.Hostname = &a.Hostname
	}
	return e
}

func mirroredPorts(ports []corev1.EndpointPort) (mirrored []discoveryv1.EndpointPort) {
	for i := range ports {
		p := ports[i]
		mirrored = append(mirrored, discoveryv1.EndpointPort{Name: &p.Name, Protocol: &p.Protocol, Port: &p.Port, AppProtocol: p.AppProtocol})
	}
	return mirrored
}

// asTheyAre are groups that leave slices unchanged, for a fault.
func asTheyAre(existing []*discoveryv1.EndpointSlice) (groups []*group) {
	for _, slice := range existing {
		groups = append(groups, &group{addressType: slice.AddressType, ports: slice.Ports, endpoints: slice.Endpoints, capacity: maxMirrored})
	}
	return groups
}
