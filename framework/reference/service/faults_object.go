package service

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// What can be wrong with the metadata, the selector and the topology annotations.
var objectFaults = []wrong{
	{fault.NotRatcheted, func(b *book) { b.storedStays.Off() }},

	{fault.NameStartsWithLetter, func(b *book) { b.nameSyntax.Replace(nameOf(apivalidation.NameIsDNS1035Label)) }},
	{fault.NameSubdomain, func(b *book) { b.nameSyntax.Replace(nameOf(apivalidation.NameIsDNSSubdomain)) }},
	{fault.NameShort, func(b *book) {
		b.createChecks = after(b.createChecks, metadataValid, func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
			if len(svc.Name) > 24 {
				return field.ErrorList{field.TooLong(metadataPath.Child("name"), svc.Name, 24)}
			}
			return nil
		})
	}},
	{fault.LabelsUnchecked, metadataJudgedAs(func(m *metav1.ObjectMeta) { m.Labels = nil })},
	{fault.AnnotationsUnchecked, metadataJudgedAs(func(m *metav1.ObjectMeta) {
		m.Annotations = maps.Clone(m.Annotations)
		maps.DeleteFunc(m.Annotations, func(key, _ string) bool { return len(validation.IsQualifiedName(strings.ToLower(key))) > 0 })
	})},
	{fault.AnnotationsUnlimited, metadataJudgedAs(func(m *metav1.ObjectMeta) {
		m.Annotations = maps.Clone(m.Annotations)
		for key := range m.Annotations {
			m.Annotations[key] = ""
		}
	})},
	{fault.AnnotationsShort, func(b *book) {
		b.createChecks = after(b.createChecks, metadataValid, func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
			for key, value := range svc.Annotations {
				if len(value) > 64<<10 {
					return field.ErrorList{field.TooLong(metadataPath.Child("annotations").Key(key), "", 64<<10)}
				}
			}
			return nil
		})
	}},
	{fault.OwnersUnchecked, metadataJudgedAs(func(m *metav1.ObjectMeta) { m.OwnerReferences = nil })},
	{fault.FinalizersUnqualified, func(b *book) { at(b.createChecks, finalizersQualified).Off() }},

	{fault.TopologyMismatchAccepted, func(b *book) { at(b.checks, topologyAnnotationsAgree).Off() }},
	{fault.TopologyDeprecatedGone, func(b *book) {
		at(b.checks, topologyAnnotationsAgree).Wrap(refusing(func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
			if _, deprecated := svc.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]; deprecated {
				return field.ErrorList{field.Forbidden(metadataPath.Child("annotations").Key(corev1.DeprecatedAnnotationTopologyAwareHints), "is gone")}
			}
			return nil
		}))
	}},

	{fault.SelectorEmptyValue, func(b *book) {
		b.checks = after(b.checks, selectorSyntax, func(_ *Rules, svc, _ *corev1.Service) (errs field.ErrorList) {
			for key, value := range svc.Spec.Selector {
				if value == "" {
					errs = append(errs, field.Required(selectorPath.Key(key), ""))
				}
			}
			return errs
		})
	}},
	{fault.SelectorUnchecked, func(b *book) { at(b.checks, selectorSyntax).Off() }},
	{fault.SelectorNoAlias, func(b *book) {
		at(b.checks, selectorSyntax).Wrap(refusing(func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
			if len(svc.Spec.Selector) > 0 && !hasClusterIP(svc) {
				return field.ErrorList{field.Forbidden(selectorPath, "may not be set for ExternalName services")}
			}
			return nil
		}))
	}},
	{fault.SelectorNeeded, func(b *book) {
		at(b.checks, selectorSyntax).Wrap(refusing(func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
			if len(svc.Spec.Selector) == 0 && hasClusterIP(svc) && svc.Namespace != metav1.NamespaceDefault {
				return field.ErrorList{field.Required(selectorPath, "")}
			}
			return nil
		}))
	}},
}

// metadataJudgedAs has the metadata of a new Service judged as if it were what change makes of it.
func metadataJudgedAs(change func(*metav1.ObjectMeta)) func(*book) {
	return func(b *book) {
		at(b.createChecks, metadataValid).Wrap(func(right checking) checking {
			return func(r *Rules, svc, old *corev1.Service) field.ErrorList {
				changed := &corev1.Service{ObjectMeta: svc.ObjectMeta}
				change(&changed.ObjectMeta)
				return right(r, changed, old)
			}
		})
	}
}

func nameOf(syntax apivalidation.ValidateNameFunc) func(*Rules) apivalidation.ValidateNameFunc {
	return func(*Rules) apivalidation.ValidateNameFunc { return syntax }
}
