package candidate

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ServiceAt returns the Service that traffic to an address and port concerns. It is the one that has the address or, if
// none has, the one with the port as its node port or health-check node port. It is nil if there is none.
func ServiceAt(services []corev1.Service, to netip.AddrPort) *corev1.Service {
	i := slices.IndexFunc(services, func(s corev1.Service) bool { return HasAddress(&s, to.Addr()) })
	if i < 0 {
		i = slices.IndexFunc(services, func(s corev1.Service) bool {
			port := int32(to.Port())
			return s.Spec.HealthCheckNodePort == port || slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == port })
		})
	}
	if i < 0 {
		return nil
	}
	return &services[i]
}

// HasAddress reports whether an address is a cluster IP, an external IP or a load-balancer address of the Service.
func HasAddress(s *corev1.Service, a netip.Addr) bool {
	address := a.Unmap().String()
	return slices.Contains(s.Spec.ClusterIPs, address) || slices.Contains(s.Spec.ExternalIPs, address) ||
		slices.ContainsFunc(s.Status.LoadBalancer.Ingress, func(in corev1.LoadBalancerIngress) bool { return in.IP == address })
}
