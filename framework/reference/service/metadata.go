package service

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// validateMetadata: the name is a DNS label, and the rest is valid metadata.
func (r *Rules) validateMetadata(svc *corev1.Service) field.ErrorList {
	name := apivalidation.NameIsDNS1035Label
	if r.version.relaxedNames() && !r.faults.On(fault.NameStartsWithLetter) {
		name = apivalidation.NameIsDNSLabel
	}
	if r.faults.On(fault.NameSubdomain) {
		name = apivalidation.NameIsDNSSubdomain
	}
	metadata := svc.ObjectMeta
	if r.faults.On(fault.LabelsUnchecked) {
		metadata.Labels = nil
	}
	errs := apivalidation.ValidateObjectMeta(&metadata, true, name, metadataPath)
	if len(svc.Name) > 24 && r.faults.On(fault.NameShort) {
		errs = append(errs, field.TooLong(metadataPath.Child("name"), svc.Name, 24))
	}
	if r.faults.On(fault.FinalizersUnqualified) {
		return errs
	}
	return append(errs, validateFinalizers(svc)...)
}

// validateMetadataUpdate: what identifies an object does not change, and the rest is valid metadata.
func (r *Rules) validateMetadataUpdate(svc, old *corev1.Service) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&svc.ObjectMeta, &old.ObjectMeta, metadataPath)
	errs = append(errs, apivalidation.ValidateFinalizers(svc.Finalizers, metadataPath.Child("finalizers"))...)
	return append(errs, validateFinalizers(svc)...)
}

// validateFinalizers: a finalizer has a domain, or is one that Kubernetes defines.
func validateFinalizers(svc *corev1.Service) (errs field.ErrorList) {
	for i, finalizer := range svc.Finalizers {
		switch finalizer {
		case string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
			continue
		}
		if !strings.Contains(finalizer, "/") {
			errs = append(errs, field.Invalid(metadataPath.Child("finalizers").Index(i), finalizer,
				"name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// validateTopologyAnnotations: the annotation for topology and its deprecated form do not contradict each other.
func (r *Rules) validateTopologyAnnotations(svc *corev1.Service) field.ErrorList {
	mode, set := svc.Annotations[corev1.AnnotationTopologyMode]
	hints, deprecated := svc.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
	if deprecated && r.faults.On(fault.TopologyDeprecatedGone) {
		return field.ErrorList{field.Forbidden(metadataPath.Child("annotations").Key(corev1.DeprecatedAnnotationTopologyAwareHints), "is gone")}
	}
	if set && deprecated && mode != hints && !r.faults.On(fault.TopologyMismatchAccepted) {
		return field.ErrorList{field.Invalid(metadataPath.Child("annotations").Key(corev1.AnnotationTopologyMode), mode,
			"must match annotations["+corev1.DeprecatedAnnotationTopologyAwareHints+"] when both are specified")}
	}
	return nil
}
