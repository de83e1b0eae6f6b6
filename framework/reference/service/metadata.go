package service

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

var (
	// A name is an RFC 1123 label (KEP-5311), and in older versions an RFC 1035 label.
	nameSyntax = rule.New("name-syntax", func(r *Rules) apivalidation.ValidateNameFunc {
		if r.version.relaxedNames() {
			return apivalidation.NameIsDNSLabel
		}
		return apivalidation.NameIsDNS1035Label
	}, spec.APINameLabel, spec.APINameLeadingDigit)

	metadataValid = rule.New("metadata-valid", func(r *Rules, svc, _ *corev1.Service) field.ErrorList {
		return apivalidation.ValidateObjectMeta(&svc.ObjectMeta, true, r.nameSyntax.Do(r), metadataPath)
	}, spec.APINameRequired, spec.APINameLabel, spec.APILabelSyntax, spec.APIAnnotationSyntax, spec.APIAnnotationsSize, spec.APIOwnerOneController)

	// What identifies an object does not change, and the rest is valid metadata.
	metadataUpdateValid = rule.New("metadata-update-valid", func(_ *Rules, svc, old *corev1.Service) field.ErrorList {
		errs := apivalidation.ValidateObjectMetaUpdate(&svc.ObjectMeta, &old.ObjectMeta, metadataPath)
		return append(errs, apivalidation.ValidateFinalizers(svc.Finalizers, metadataPath.Child("finalizers"))...)
	}, spec.APIUidImmutable, spec.APILabelSyntax, spec.APIAnnotationSyntax, spec.APIAnnotationsSize, spec.APIOwnerOneController)

	finalizersQualified       = rule.New("finalizers-qualified", validateFinalizers, spec.APIFinalizerQualified)
	updateFinalizersQualified = rule.New("finalizers-of-an-update-qualified", validateFinalizers, spec.APIFinalizerQualified)

	// The annotation for topology and its deprecated form do not contradict each other.
	topologyAnnotationsAgree = rule.New("topology-annotations-agree", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		mode, set := svc.Annotations[corev1.AnnotationTopologyMode]
		hints, deprecated := svc.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
		if set && deprecated && mode != hints {
			return field.ErrorList{field.Invalid(metadataPath.Child("annotations").Key(corev1.AnnotationTopologyMode), mode,
				"must match annotations["+corev1.DeprecatedAnnotationTopologyAwareHints+"] when both are specified")}
		}
		return nil
	}, spec.APITopologyAnnotationMismatch, spec.APITopologyAnnotation)
)

func validateFinalizers(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
	return ValidateFinalizers(svc.Finalizers, metadataPath.Child("finalizers"))
}

// ValidateFinalizers accepts finalizers with a domain, and those that Kubernetes defines.
func ValidateFinalizers(finalizers []string, path *field.Path) (errs field.ErrorList) {
	for i, finalizer := range finalizers {
		switch finalizer {
		case string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
			continue
		}
		if !strings.Contains(finalizer, "/") {
			errs = append(errs, field.Invalid(path.Index(i), finalizer,
				"name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}
