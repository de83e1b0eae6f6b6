package apiserver

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// namespaceStrategy keeps namespaces. Deleting one empties it: what a real cluster leaves to the namespace controller of
// kube-controller-manager happens here as part of the request.
type namespaceStrategy struct{}

func (namespaceStrategy) defaults(_ *Server, obj object) {
	ns := obj.(*corev1.Namespace)
	if ns.Name != "" {
		if ns.Labels == nil {
			ns.Labels = map[string]string{}
		}
		ns.Labels[corev1.LabelMetadataName] = ns.Name
	}
	if ns.Status.Phase == "" {
		ns.Status.Phase = corev1.NamespaceActive
	}
}

func (namespaceStrategy) create(_ *Server, obj object, _ bool) (transaction, error) {
	ns := obj.(*corev1.Namespace)
	ns.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	if !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		ns.Spec.Finalizers = append(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
	}
	if ns.Name != "" { // generated after the defaults
		if ns.Labels == nil {
			ns.Labels = map[string]string{}
		}
		ns.Labels[corev1.LabelMetadataName] = ns.Name
	}
	errs := validateMetadata(namespaces, &ns.ObjectMeta, apivalidation.ValidateNamespaceName)
	errs = append(errs, validateNamespaceFinalizers(ns)...)
	return noTransaction{}, refusal(namespaces, ns.Name, errs)
}

func (namespaceStrategy) update(_ *Server, obj, old object, subresource string, _ bool) (transaction, error) {
	ns, was := obj.(*corev1.Namespace), old.(*corev1.Namespace)
	errs := validateMetadataUpdate(&ns.ObjectMeta, &was.ObjectMeta)
	switch subresource {
	case "status":
		ns.Spec = was.Spec
		expected := corev1.NamespaceActive
		if ns.DeletionTimestamp != nil {
			expected = corev1.NamespaceTerminating
		}
		if ns.Status.Phase != expected {
			errs = append(errs, field.Invalid(field.NewPath("status", "phase"), ns.Status.Phase, fmt.Sprintf("must be %q", expected)))
		}
	case "finalize":
		ns.Status = was.Status
		errs = append(errs, validateNamespaceFinalizers(ns)...)
	default:
		ns.Spec.Finalizers, ns.Status = was.Spec.Finalizers, was.Status
	}
	return noTransaction{}, refusal(namespaces, ns.Name, errs)
}

func (namespaceStrategy) deleted(*Server, object) {}

func (namespaceStrategy) warnings(_ *Server, _, _ object, _ string) []string { return nil }

func validateNamespaceFinalizers(ns *corev1.Namespace) (errs field.ErrorList) {
	for i, f := range ns.Spec.Finalizers {
		if f != corev1.FinalizerKubernetes {
			errs = append(errs, apivalidation.ValidateFinalizerName(string(f), field.NewPath("spec", "finalizers").Index(i))...)
		}
	}
	return errs
}

// mayDeleteNamespace protects the namespaces that a cluster cannot be without.
func mayDeleteNamespace(name string) error {
	switch name {
	case metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic:
		return apierrors.NewForbidden(namespaces.groupResource(), name, errors.New("this namespace may not be deleted"))
	}
	return nil
}

// emptyNamespace deletes everything in a namespace that is being deleted, without grace periods, and then the namespace.
// Objects with finalizers stay, and the namespace with them, until the finalizers go.
func (s *Server) emptyNamespace(name string) {
	atOnce := int64(0)
	for _, res := range resources {
		if !res.namespaced {
			continue
		}
		entries, _ := s.store.list(res, name)
		for _, e := range entries {
			// An object that is gone already is what is wanted.
			_, _, _ = s.delete(res, name, e.stored.GetName(), &metav1.DeleteOptions{GracePeriodSeconds: &atOnce})
		}
	}
	s.finishNamespace(name)
}

// finishNamespace removes a namespace that is being deleted once it is empty.
func (s *Server) finishNamespace(name string) {
	for {
		e := s.store.get(namespaces, "", name)
		if e == nil || e.stored.GetDeletionTimestamp() == nil || s.store.objectsIn(name) > 0 {
			return
		}
		ns := e.stored.DeepCopyObject().(*corev1.Namespace)
		ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
		if len(ns.Spec.Finalizers) == len(e.stored.(*corev1.Namespace).Spec.Finalizers) && !deletable(ns) {
			return // somebody else's finalizer holds it
		}
		if _, err := s.replace(namespaces, e, ns, e.writes, ""); err == nil || !errors.Is(err, errChanged) {
			return
		}
	}
}
