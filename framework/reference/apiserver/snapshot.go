package apiserver

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// ProxySnapshot returns the Services and EndpointSlices of all namespaces, and a number that grows with every change of anything. The
// objects must not be changed.
func (s *Server) ProxySnapshot() (version uint64, svcs []*corev1.Service, slices []*discoveryv1.EndpointSlice) {
	version = s.store.current() // before the lists: what changes in between is seen again
	all, _ := s.store.list(services, "")
	for _, e := range all {
		svcs = append(svcs, e.stored.(*corev1.Service))
	}
	all, _ = s.store.list(endpointSlices, "")
	for _, e := range all {
		slices = append(slices, e.stored.(*discoveryv1.EndpointSlice))
	}
	return version, svcs, slices
}

// ServiceRanges are those of the ServiceCIDRs that there are: those that the server was started with, where it serves no such objects.
func (s *Server) ServiceRanges() (ranges []netip.Prefix) {
	all, _ := s.store.list(serviceCIDRs, "")
	for _, e := range all {
		for _, text := range e.stored.(*networkingv1.ServiceCIDR).Spec.CIDRs {
			if r, err := netip.ParsePrefix(text); err == nil {
				ranges = append(ranges, r)
			}
		}
	}
	if len(all) == 0 {
		return s.ServiceCIDRs()
	}
	return ranges
}

// Version is a number that grows with every change of anything.
func (s *Server) Version() uint64 { return s.store.current() }

// Node returns a Node, nil if there is none of that name. It must not be changed.
func (s *Server) Node(name string) *corev1.Node { return s.node(name) }

// Pod returns a Pod, nil if there is none of that name. It must not be changed.
func (s *Server) Pod(namespace, name string) *corev1.Pod {
	if e := s.store.get(pods, namespace, name); e != nil {
		return e.stored.(*corev1.Pod)
	}
	return nil
}
