package service

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

var serviceTypes = []corev1.ServiceType{
	corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort,
}

// defaultType: type is ClusterIP by default.
func (r *Rules) defaultType(svc *corev1.Service) {
	if svc.Spec.Type != "" {
		return
	}
	svc.Spec.Type = corev1.ServiceTypeClusterIP
	if r.faults.On(fault.TypeDefaultNodePort) {
		svc.Spec.Type = corev1.ServiceTypeNodePort
	}
}

// validateType: type is one of four.
func (r *Rules) validateType(svc *corev1.Service) field.ErrorList {
	path := specPath.Child("type")
	switch {
	case svc.Spec.Type == "":
		return field.ErrorList{field.Required(path, "")}
	case r.faults.On(fault.TypeNotValidated):
	case !slices.Contains(serviceTypes, svc.Spec.Type), r.faults.On(fault.TypeIncomplete) && svc.Spec.Type == corev1.ServiceTypeExternalName:
		return field.ErrorList{field.NotSupported(path, svc.Spec.Type, serviceTypes)}
	}
	return nil
}

// hasClusterIP reports whether the type is one that has cluster IPs, of which "None" is one.
func hasClusterIP(svc *corev1.Service) bool { return svc.Spec.Type != corev1.ServiceTypeExternalName }

// getsClusterIP is hasClusterIP where a Service is about to be given addresses and IP families.
func (r *Rules) getsClusterIP(svc *corev1.Service) bool {
	return hasClusterIP(svc) || r.faults.On(fault.ExternalNameAddressed)
}

// isHeadless reports whether the Service asks for no virtual IP.
func isHeadless(svc *corev1.Service) bool {
	return len(svc.Spec.ClusterIPs) == 1 && svc.Spec.ClusterIPs[0] == corev1.ClusterIPNone
}

// isSelectorlessHeadless reports whether the Service asks for no virtual IP and somebody else looks after its endpoints, so
// that the cluster cannot know their IP families.
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
