package service

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/allocator"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

var healthCheckNodePortPath = specPath.Child("healthCheckNodePort")

// needsHealthCheckNodePort reports whether a load balancer has to learn which nodes have endpoints: only if external traffic
// stays on the node that receives it.
func (r *Rules) needsHealthCheckNodePort(svc *corev1.Service) bool {
	if r.faults.On(fault.HealthCheckNever) {
		return false
	}
	return isLoadBalancer(svc) && (isExternallyLocal(svc) || r.faults.On(fault.HealthCheckAlways))
}

// keepHealthCheckNodePort: an update that leaves the port out keeps it.
func (r *Rules) keepHealthCheckNodePort(svc, old *corev1.Service) {
	if r.needsHealthCheckNodePort(old) && r.needsHealthCheckNodePort(svc) && svc.Spec.HealthCheckNodePort == 0 && !r.faults.On(fault.HealthCheckNotKept) {
		svc.Spec.HealthCheckNodePort = old.Spec.HealthCheckNodePort
	}
}

// gainsHealthCheckNodePort reports whether a Service needs the port and does not hold one yet; old is nil for a new Service.
func (r *Rules) gainsHealthCheckNodePort(svc, old *corev1.Service) bool {
	return r.needsHealthCheckNodePort(svc) && (old == nil || !r.needsHealthCheckNodePort(old))
}

// takeNamedHealthCheckNodePort: a port that the client chose is taken if it is in range and free, otherwise the request fails.
func (r *Rules) takeNamedHealthCheckNodePort(tx *Transaction, svc, old *corev1.Service) error {
	port := svc.Spec.HealthCheckNodePort
	if port == 0 || !r.gainsHealthCheckNodePort(svc, old) {
		return nil
	}
	if r.faults.On(fault.HealthCheckNotReserved) {
		return nil
	}
	err := tx.takePort(int(port))
	if outside := new(*allocator.PortNotInRangeError); errors.As(err, outside) && r.faults.On(fault.HealthCheckAnyNumber) {
		return nil
	}
	if err != nil && r.faults.On(fault.HealthCheckServerError) {
		return apierrors.NewInternalError(err)
	}
	if err != nil {
		return refusal(svc, field.ErrorList{field.Invalid(healthCheckNodePortPath, port, fmt.Sprintf("failed to allocate health check node port %d: %v", port, err))})
	}
	return nil
}

// takeMissingHealthCheckNodePort: a port that is needed and not named is allocated.
func (r *Rules) takeMissingHealthCheckNodePort(tx *Transaction, svc, old *corev1.Service) error {
	if svc.Spec.HealthCheckNodePort != 0 || !r.gainsHealthCheckNodePort(svc, old) {
		return nil
	}
	port, err := tx.takeNextPort()
	if err != nil {
		return exhausted(svc, "health check node port", err)
	}
	svc.Spec.HealthCheckNodePort = int32(port)
	if r.faults.On(fault.HealthCheckNotReserved) {
		tx.freePort(port)
	}
	return nil
}

// freeHealthCheckNodePort gives the port back when a change makes it useless.
func (r *Rules) freeHealthCheckNodePort(tx *Transaction, svc, old *corev1.Service) {
	if svc.Spec.Type != old.Spec.Type && r.faults.On(fault.TypeChangeLeaksHealthPort) || r.faults.On(fault.HealthCheckUpdateLeaks) {
		return
	}
	if r.needsHealthCheckNodePort(old) && !r.needsHealthCheckNodePort(svc) {
		tx.freePort(int(old.Spec.HealthCheckNodePort))
	}
}

// clearHealthCheckNodePort: a change that makes the port useless clears it, unless the request changes it as well.
func (r *Rules) clearHealthCheckNodePort(svc, old *corev1.Service) {
	if r.needsHealthCheckNodePort(old) && !r.needsHealthCheckNodePort(svc) && svc.Spec.HealthCheckNodePort == old.Spec.HealthCheckNodePort && !r.faults.On(fault.HealthCheckNotCleared) {
		svc.Spec.HealthCheckNodePort = 0
	}
}

// validateHealthCheckNodePort: the port is set exactly where it is needed.
func (r *Rules) validateHealthCheckNodePort(svc *corev1.Service) (errs field.ErrorList) {
	port := svc.Spec.HealthCheckNodePort
	switch needs := r.needsHealthCheckNodePort(svc); {
	case !needs && r.faults.On(fault.HealthCheckUnneeded):
	case !needs && port != 0:
		errs = append(errs, field.Invalid(healthCheckNodePortPath, port, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
	case needs && port == 0:
		errs = append(errs, field.Required(healthCheckNodePortPath, ""))
	case needs:
		for _, msg := range validation.IsValidPortNum(int(port)) {
			errs = append(errs, field.Invalid(healthCheckNodePortPath, port, msg))
		}
	}
	return errs
}

// validateHealthCheckNodePortUpdate: the port does not change while it is needed.
func (r *Rules) validateHealthCheckNodePortUpdate(svc, old *corev1.Service) field.ErrorList {
	if r.needsHealthCheckNodePort(svc) && r.needsHealthCheckNodePort(old) && svc.Spec.HealthCheckNodePort != old.Spec.HealthCheckNodePort && !r.faults.On(fault.HealthCheckMutable) {
		return field.ErrorList{field.Forbidden(healthCheckNodePortPath, "field is immutable")}
	}
	return nil
}
