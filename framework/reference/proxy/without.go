package proxy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/reference/absent"
	"github.com/service-conformance/conformance/framework/spec"
)

// Without returns Services and EndpointSlices as a proxy reads them that is without features: what it does not know is not there.
func Without(without absent.Set, services []*corev1.Service, endpoints []*discoveryv1.EndpointSlice) ([]*corev1.Service, []*discoveryv1.EndpointSlice) {
	lacks := func(feature string) bool { return without.In(absent.Proxy, feature) }
	if !slices.ContainsFunc(without.Features(), lacks) {
		return services, endpoints
	}
	services, endpoints = slices.Clone(services), slices.Clone(endpoints)
	for i, svc := range services {
		svc = svc.DeepCopy()
		services[i] = svc
		svc.Spec.Ports = slices.DeleteFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool {
			return p.Protocol == corev1.ProtocolUDP && lacks(spec.FeatureUDP) || p.Protocol == corev1.ProtocolSCTP && lacks(spec.FeatureSCTP)
		})
		if lacks(spec.FeatureExternalIPs) {
			svc.Spec.ExternalIPs = nil
		}
		if lacks(spec.FeatureNodePort) {
			for k := range svc.Spec.Ports {
				svc.Spec.Ports[k].NodePort = 0
			}
		}
		if lacks(spec.FeatureLoadBalancer) {
			svc.Status.LoadBalancer.Ingress = nil
		}
		if lacks(spec.FeatureSourceRanges) {
			svc.Spec.LoadBalancerSourceRanges = nil
		}
		if lacks(spec.FeatureHealthCheckNodePort) {
			svc.Spec.HealthCheckNodePort = 0
		}
		if lacks(spec.FeatureSessionAffinity) {
			svc.Spec.SessionAffinity, svc.Spec.SessionAffinityConfig = corev1.ServiceAffinityNone, nil
		}
		if lacks(spec.FeatureTrafficDistribution) {
			svc.Spec.TrafficDistribution = nil
		}
	}
	if lacks(spec.FeatureTrafficDistribution) {
		for i := range endpoints {
			endpoints[i] = endpoints[i].DeepCopy()
			for k := range endpoints[i].Endpoints {
				endpoints[i].Endpoints[k].Hints = nil
			}
		}
	}
	return services, endpoints
}
