package endpoints

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// form is what all slices of one controller have in common.
type form struct {
	namespace, prefix string
	labels            map[string]string
	annotations       map[string]string
	owners            []metav1.OwnerReference
}

// formOf is the form of the slices of a controller.
func (t *task) formOf(manager string) *form {
	f := &form{namespace: t.Service.Namespace, prefix: namePrefix(t.Service.Name), labels: map[string]string{}}
	rules := t.generatedForm
	if manager == MirrorManager {
		rules = t.mirroredForm
	}
	for _, list := range [][]rule.Rule[forming]{rules, t.form} {
		for i := range list {
			list[i].Do(t, manager, f)
		}
	}
	return f
}

// Rules for the metadata of slices.
var (
	serviceMetadata = rule.New("endpoints-slice-has-labels-of-service", func(t *task, _ string, f *form) {
		maps.Copy(f.labels, t.Service.Labels)
	}, spec.ProxySliceLabels)

	// Slices say whether the Service is headless. What a label of the Service says of that is not copied.
	headlessLabel = rule.New("endpoints-slice-headless-label", func(t *task, _ string, f *form) {
		delete(f.labels, corev1.IsHeadlessService)
		if t.Service.Spec.ClusterIP == corev1.ClusterIPNone {
			f.labels[corev1.IsHeadlessService] = ""
		}
	}, spec.ProxySliceHeadlessLabel)

	// Mirrored slices have the labels and the annotations of the Endpoints object, but for those about its own changes.
	objectMetadata = rule.New("endpoints-slice-has-metadata-of-object", func(t *task, _ string, f *form) {
		if e := t.Endpoints; e != nil {
			maps.Copy(f.labels, e.Labels)
			f.annotations = maps.Clone(e.Annotations)
			delete(f.annotations, corev1.LastAppliedConfigAnnotation)
			delete(f.annotations, corev1.EndpointsLastChangeTriggerTime)
		}
	}, spec.ProxySelectorlessEndpointsMirrored)

	// Slices belong to the Service or, if they are mirrored, to its Endpoints object.
	sliceOwned = rule.New("endpoints-slice-owned", func(t *task, manager string, f *form) {
		switch {
		case manager == Manager:
			f.owners = []metav1.OwnerReference{*metav1.NewControllerRef(t.Service, corev1.SchemeGroupVersion.WithKind("Service"))}
		case t.Endpoints != nil:
			f.owners = []metav1.OwnerReference{*metav1.NewControllerRef(t.Endpoints, corev1.SchemeGroupVersion.WithKind("Endpoints"))}
		}
	}, spec.ProxySliceLabels)

	serviceLabel = rule.New("endpoints-slice-names-service", func(t *task, _ string, f *form) {
		f.labels[discoveryv1.LabelServiceName] = t.Service.Name
	}, spec.ProxySliceLabels)

	managerLabel = rule.New("endpoints-slice-names-controller", func(_ *task, manager string, f *form) {
		f.labels[discoveryv1.LabelManagedBy] = manager
	}, spec.ProxySliceLabels)
)

// shape gives a slice the metadata that it should have.
func (f *form) shape(slice *discoveryv1.EndpointSlice) {
	slice.TypeMeta = metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"}
	slice.Namespace = f.namespace
	if slice.Name == "" {
		slice.GenerateName = f.prefix
	}
	slice.Labels, slice.Annotations, slice.OwnerReferences = maps.Clone(f.labels), maps.Clone(f.annotations), slices.Clone(f.owners)
}

// namePrefix is what the names of a Service's slices begin with.
func namePrefix(service string) string { return strings.TrimRight(service, "-.") + "-" }
