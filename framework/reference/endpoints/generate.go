package endpoints

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
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
func (t *task) generate() (groups []*group) {
	for _, family := range t.sliceFamilies.Do(t.Service) {
		ofFamily := t.generateFamily(family)
		var all []*discoveryv1.Endpoint
		for _, g := range ofFamily {
			for i := range g.endpoints {
				all = append(all, &g.endpoints[i])
			}
		}
		t.hint(all)
		if len(all) == 0 { // an empty slice shows that the Service has been looked at
			ofFamily = []*group{{addressType: discoveryv1.AddressType(family), capacity: t.sliceCapacity.Do(), placeholder: true}}
		}
		groups = append(groups, ofFamily...)
	}
	return groups
}

func (t *task) generateFamily(family corev1.IPFamily) (groups []*group) {
	for _, pod := range t.Pods {
		if !t.podIsEndpoint.Do(t.Service, pod) {
			continue
		}
		endpoint := t.endpoint(pod)
		endpoint.Addresses = t.addresses(pod, family)
		if len(endpoint.Addresses) == 0 {
			continue
		}
		ports := t.ports(pod)
		i := slices.IndexFunc(groups, func(g *group) bool { return samePorts(g.ports, ports) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{addressType: discoveryv1.AddressType(family), ports: ports, capacity: t.sliceCapacity.Do()})
		}
		groups[i].endpoints = append(groups[i].endpoints, endpoint)
	}
	return groups
}

// Rules for how endpoints are divided into slices.
var (
	// There are slices for each family of the Service. One that says nothing of families is of IPv4.
	sliceFamilies = rule.New("endpoints-slices-of-each-family", func(svc *corev1.Service) []corev1.IPFamily {
		if len(svc.Spec.IPFamilies) == 0 {
			return []corev1.IPFamily{corev1.IPv4Protocol}
		}
		return svc.Spec.IPFamilies
	}, spec.ProxySliceFamilies)

	addressFits = rule.New("endpoints-addresses-of-one-family", func(_ *corev1.Service, family corev1.IPFamily, a netip.Addr) bool {
		return a.Is4() == (family == corev1.IPv4Protocol)
	}, spec.ProxySliceFamilies)

	sliceCapacity = rule.New("endpoints-slice-capacity", func() int { return maxEndpoints }, spec.ProxySliceSize)
)

// endpoint is a pod as an endpoint, without its addresses.
func (t *task) endpoint(pod *corev1.Pod) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}
	for i := range t.conditions {
		t.conditions[i].Do(t.Service, pod, &e.Conditions)
	}
	if name := pod.Spec.NodeName; name != "" {
		e.NodeName = &name
		if zone := t.endpointZone.Do(t, pod); zone != "" {
			e.Zone = &zone
		}
	}
	if host := hostname(t.Service, pod); host != "" {
		e.Hostname = &host
	}
	return e
}

// Rules for the zone and the conditions of an endpoint.
var (
	endpointZone = rule.New("endpoints-zone-of-node", func(t *task, pod *corev1.Pod) string {
		if node := t.Node(pod.Spec.NodeName); node != nil {
			return node.Labels[corev1.LabelTopologyZone]
		}
		return ""
	}, spec.ProxySliceZoneFollowed)

	servingCondition = rule.New("endpoints-serving-as-pod-is-ready", func(_ *corev1.Service, pod *corev1.Pod, c *discoveryv1.EndpointConditions) {
		c.Serving = new(isReady(pod))
	}, spec.ProxySliceConditions)

	terminatingCondition = rule.New("endpoints-terminating-as-pod-is", func(_ *corev1.Service, pod *corev1.Pod, c *discoveryv1.EndpointConditions) {
		c.Terminating = new(isTerminating(pod))
	}, spec.ProxySliceConditions)

	readyCondition = rule.New("endpoints-ready-unless-terminating", func(_ *corev1.Service, pod *corev1.Pod, c *discoveryv1.EndpointConditions) {
		c.Ready = new(isReady(pod) && !isTerminating(pod))
	}, spec.ProxySliceConditions)

	// A Service may have its endpoints published as ready whatever their pods are.
	publishedReady = rule.New("endpoints-published-not-ready", func(svc *corev1.Service, _ *corev1.Pod, c *discoveryv1.EndpointConditions) {
		if svc.Spec.PublishNotReadyAddresses {
			c.Ready = new(true)
		}
	}, spec.ProxyPublishNotReadySlices, spec.ProxyPublishNotReadyTraffic)
)

func isTerminating(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

// hostname is the name that a pod has below that of the Service, if it asks for one.
func hostname(svc *corev1.Service, pod *corev1.Pod) string {
	if pod.Spec.Subdomain != svc.Name {
		return ""
	}
	return pod.Spec.Hostname
}

// addresses are those of a pod in a family.
func (t *task) addresses(pod *corev1.Pod, family corev1.IPFamily) (addresses []string) {
	for _, text := range podAddresses(pod) {
		if a, err := netip.ParseAddr(text); err == nil && t.addressFits.Do(t.Service, family, a) {
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

// identity tells endpoints apart: the pod, or the address where there is none.
func identity(e *discoveryv1.Endpoint) string {
	if e.TargetRef != nil && e.TargetRef.UID != "" {
		return string(e.TargetRef.UID)
	}
	return strings.Join(e.Addresses, ",")
}
