package service

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

var serviceTypes = []corev1.ServiceType{
	corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort,
}

var typePath = specPath.Child("type")

var (
	typeDefault = rule.New("type-default", defaultTypeOf(corev1.ServiceTypeClusterIP), spec.APITypeDefault)

	typeKnown = rule.New("type-known", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		switch {
		case svc.Spec.Type == "":
			return field.ErrorList{field.Required(typePath, "")}
		case !slices.Contains(serviceTypes, svc.Spec.Type):
			return unknownType(svc)
		}
		return nil
	}, spec.APITypeValues)

	// An alias has neither cluster IPs nor IP families; every other type has.
	typeHasClusterIPs = rule.New("type-has-cluster-ips", hasClusterIP,
		spec.APITypeClusterIP, spec.APITypeNodePort, spec.APITypeLoadBalancer, spec.APITypeExternalName)
)

// defaultTypeOf makes a rule: this is the type of a Service that names none.
func defaultTypeOf(typ corev1.ServiceType) defaulting {
	return func(svc *corev1.Service) {
		if svc.Spec.Type == "" {
			svc.Spec.Type = typ
		}
	}
}

func unknownType(svc *corev1.Service) field.ErrorList {
	return field.ErrorList{field.NotSupported(typePath, svc.Spec.Type, serviceTypes)}
}

// hasClusterIP reports whether the type is one that has cluster IPs, of which "None" is one.
func hasClusterIP(svc *corev1.Service) bool { return svc.Spec.Type != corev1.ServiceTypeExternalName }

// isHeadless reports whether the Service asks for no virtual IP.
func isHeadless(svc *corev1.Service) bool {
	return len(svc.Spec.ClusterIPs) == 1 && svc.Spec.ClusterIPs[0] == corev1.ClusterIPNone
}

// isSelectorlessHeadless reports whether the Service asks for no virtual IP and has no selector. Something else looks
// after its endpoints, so the cluster cannot know their IP families.
func isSelectorlessHeadless(svc *corev1.Service) bool {
	return svc.Spec.ClusterIP == corev1.ClusterIPNone && len(svc.Spec.Selector) == 0
}

func isLoadBalancer(svc *corev1.Service) bool { return svc.Spec.Type == corev1.ServiceTypeLoadBalancer }

// hasNodePorts reports whether the type is one that has node ports.
func hasNodePorts(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeNodePort || isLoadBalancer(svc)
}

// isExternallyAccessible reports whether traffic from outside the cluster can reach the Service.
func isExternallyAccessible(svc *corev1.Service) bool {
	return hasNodePorts(svc) || svc.Spec.Type == corev1.ServiceTypeClusterIP && len(svc.Spec.ExternalIPs) > 0
}

// isExternallyLocal reports whether external traffic goes to endpoints of the receiving node only.
func isExternallyLocal(svc *corev1.Service) bool {
	return svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}
