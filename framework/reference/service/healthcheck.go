package service

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

var healthCheckNodePortPath = specPath.Child("healthCheckNodePort")

// A load balancer has to learn which nodes have endpoints only if external traffic stays on the node that receives it.
var healthCheckNeeded = rule.New("health-check-node-port-needed", func(svc *corev1.Service) bool {
	return isLoadBalancer(svc) && isExternallyLocal(svc)
}, spec.APIHealthCheckNodePortApplies)

// An update that leaves the port out keeps it.
var healthCheckPortKept = rule.New("health-check-node-port-kept", func(r *Rules, svc, old *corev1.Service) {
	if r.healthCheckNeeded.Do(old) && r.healthCheckNeeded.Do(svc) && svc.Spec.HealthCheckNodePort == 0 {
		svc.Spec.HealthCheckNodePort = old.Spec.HealthCheckNodePort
	}
}, spec.APIHealthCheckNodePortImmutable)

// gainsHealthCheckNodePort reports whether a Service needs the port and does not hold one yet; old is nil for a new Service.
func (r *Rules) gainsHealthCheckNodePort(svc, old *corev1.Service) bool {
	return r.healthCheckNeeded.Do(svc) && (old == nil || !r.healthCheckNeeded.Do(old))
}

// losesHealthCheckNodePort reports whether a change makes the port useless.
func (r *Rules) losesHealthCheckNodePort(svc, old *corev1.Service) bool {
	return r.healthCheckNeeded.Do(old) && !r.healthCheckNeeded.Do(svc)
}

// How a Service gets the port, and how it gives it back.
var (
	namedHealthCheckPortTaken = rule.New("named-health-check-node-port-taken", func(t *Transaction, svc, old *corev1.Service) error {
		port := svc.Spec.HealthCheckNodePort
		if port == 0 || !t.rules.gainsHealthCheckNodePort(svc, old) {
			return nil
		}
		if err := t.takePort(int(port)); err != nil {
			return t.rules.healthCheckPortRefused.Do(svc, err)
		}
		return nil
	}, spec.APIHealthCheckNodePortChosen)

	// A port that is out of range or in use makes the request fail.
	healthCheckPortRefused = rule.New("health-check-node-port-refused", func(svc *corev1.Service, err error) error {
		port := svc.Spec.HealthCheckNodePort
		return refusal(svc, field.ErrorList{field.Invalid(healthCheckNodePortPath, port, fmt.Sprintf("failed to allocate health check node port %d: %v", port, err))})
	}, spec.APIHealthCheckNodePortOutOfRange, spec.APIHealthCheckNodePortInUse, spec.APIHealthCheckNodePortClientError)

	missingHealthCheckPortAssigned = rule.New("missing-health-check-node-port-assigned", func(t *Transaction, svc, old *corev1.Service) error {
		if svc.Spec.HealthCheckNodePort != 0 || !t.rules.gainsHealthCheckNodePort(svc, old) {
			return nil
		}
		port, err := t.takeNextPort()
		if err != nil {
			return exhausted(svc, "health check node port", err)
		}
		svc.Spec.HealthCheckNodePort = int32(port)
		return nil
	}, spec.APIHealthCheckNodePortAssigned)

	uselessHealthCheckPortFreed = rule.New("useless-health-check-node-port-freed", func(t *Transaction, svc, old *corev1.Service) error {
		if t.rules.losesHealthCheckNodePort(svc, old) {
			t.freePort(int(old.Spec.HealthCheckNodePort))
		}
		return nil
	}, spec.APIHealthCheckNodePortCleared)

	deletedHealthCheckPortFreed = rule.New("deleted-service-frees-health-check-node-port", func(r *Rules, svc *corev1.Service) {
		if r.healthCheckNeeded.Do(svc) {
			r.ports.Release(int(svc.Spec.HealthCheckNodePort))
		}
	}, spec.APIHealthCheckNodePortReleased)
)

// A change that makes the port useless clears it, unless the request changes it as well.
var healthCheckPortCleared = rule.New("health-check-node-port-cleared", func(r *Rules, svc, old *corev1.Service) {
	if r.losesHealthCheckNodePort(svc, old) && svc.Spec.HealthCheckNodePort == old.Spec.HealthCheckNodePort {
		svc.Spec.HealthCheckNodePort = 0
	}
}, spec.APIHealthCheckNodePortCleared, spec.APIUpdateClearsUnchanged)

// Rules for the port.
var (
	healthCheckPortByType = rule.New("health-check-node-port-by-type", func(r *Rules, svc, _ *corev1.Service) field.ErrorList {
		if port := svc.Spec.HealthCheckNodePort; port != 0 && !r.healthCheckNeeded.Do(svc) {
			return field.ErrorList{field.Invalid(healthCheckNodePortPath, port, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'")}
		}
		return nil
	}, spec.APIHealthCheckNodePortUnneeded, spec.APIHealthCheckNodePortApplies)

	healthCheckPortValid = rule.New("health-check-node-port-valid", func(r *Rules, svc, _ *corev1.Service) (errs field.ErrorList) {
		if !r.healthCheckNeeded.Do(svc) {
			return nil
		}
		port := svc.Spec.HealthCheckNodePort
		if port == 0 {
			return field.ErrorList{field.Required(healthCheckNodePortPath, "")}
		}
		for _, msg := range validation.IsValidPortNum(int(port)) {
			errs = append(errs, field.Invalid(healthCheckNodePortPath, port, msg))
		}
		return errs
	}, spec.APIHealthCheckNodePortApplies, spec.APIHealthCheckNodePortOutOfRange)

	// The port does not change while it is needed.
	healthCheckPortImmutable = rule.New("health-check-node-port-immutable", func(r *Rules, svc, old *corev1.Service) field.ErrorList {
		if r.healthCheckNeeded.Do(svc) && r.healthCheckNeeded.Do(old) && svc.Spec.HealthCheckNodePort != old.Spec.HealthCheckNodePort {
			return field.ErrorList{field.Forbidden(healthCheckNodePortPath, "field is immutable")}
		}
		return nil
	}, spec.APIHealthCheckNodePortImmutable)
)
