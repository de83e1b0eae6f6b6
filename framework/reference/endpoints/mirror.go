package endpoints

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// maxMirrored is how many addresses of a subset are mirrored, and how many endpoints a mirrored slice holds.
const maxMirrored = 1000

// leaderAnnotation marks Endpoints objects that are used for leader election: they say nothing of endpoints.
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// mirrorObject returns the endpoints that the Endpoints object of a Service without a selector lists.
func (t *task) mirrorObject() []*group {
	if t.Endpoints == nil || !t.mirrored.Do(t.Endpoints) || t.skipMirror.Do(t.Endpoints) {
		return nil
	}
	return t.mirroredGroups.Do(t)
}

// Rules for the mirroring of Endpoints.
var (
	// An Endpoints object is mirrored unless it is used for leader election.
	mirrored = rule.New("endpoints-object-mirrored", func(e *corev1.Endpoints) bool {
		_, leads := e.Annotations[leaderAnnotation]
		return !leads
	}, spec.ProxySelectorlessEndpointsMirrored)

	skipMirror = rule.New("endpoints-skip-mirror-heeded", func(e *corev1.Endpoints) bool {
		return e.Labels[discoveryv1.LabelSkipMirror] == "true"
	}, spec.ProxySelectorlessEndpointsMirrored)

	mirroredGroups = rule.New("endpoints-mirrored-as-the-object-is", groupsOfObject, spec.ProxySelectorlessEndpointsMirrored)

	mirroredLimit = rule.New("endpoints-mirrored-limit", func(*corev1.EndpointSubset) int { return maxMirrored }, spec.ProxySelectorlessEndpointsMirrored)
)

// groupsOfObject are the endpoints of the Endpoints object.
func groupsOfObject(t *task) (groups []*group) {
	for i := range t.Endpoints.Subsets {
		subset := &t.Endpoints.Subsets[i]
		ports := mirroredPorts(subset.Ports)
		room := t.mirroredLimit.Do(subset)
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
