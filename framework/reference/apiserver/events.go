package apiserver

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// eventStrategy keeps core/v1 Events, so that clients with an event recorder have a place to write to.
type eventStrategy struct{}

func (eventStrategy) defaults(*Server, object) {}

func (eventStrategy) create(_ *Server, obj object, _ bool) (transaction, error) {
	event := obj.(*corev1.Event)
	errs := validateMetadata(events, &event.ObjectMeta, anyName)
	if ns := event.InvolvedObject.Namespace; ns != "" && ns != event.Namespace {
		errs = append(errs, field.Invalid(field.NewPath("involvedObject", "namespace"), ns, "does not match event.namespace"))
	}
	return noTransaction{}, refusal(events, event.Name, errs)
}

func (eventStrategy) update(_ *Server, obj, old object, _ string, _ bool) (transaction, error) {
	event, was := obj.(*corev1.Event), old.(*corev1.Event)
	return noTransaction{}, refusal(events, event.Name, validateMetadataUpdate(&event.ObjectMeta, &was.ObjectMeta))
}

func (eventStrategy) deleted(*Server, object) {}

func (eventStrategy) warnings(_ *Server, _, _ object, _ string) []string { return nil }

func eventFields(o object, set fields.Set) {
	e := o.(*corev1.Event)
	set["involvedObject.kind"] = e.InvolvedObject.Kind
	set["involvedObject.namespace"] = e.InvolvedObject.Namespace
	set["involvedObject.name"] = e.InvolvedObject.Name
	set["involvedObject.uid"] = string(e.InvolvedObject.UID)
	set["involvedObject.apiVersion"] = e.InvolvedObject.APIVersion
	set["involvedObject.resourceVersion"] = e.InvolvedObject.ResourceVersion
	set["involvedObject.fieldPath"] = e.InvolvedObject.FieldPath
	set["reason"] = e.Reason
	set["reportingComponent"] = e.ReportingController
	set["source"] = cmp.Or(e.Source.Component, e.ReportingController)
	set["type"] = e.Type
}
