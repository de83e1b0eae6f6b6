package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// deleteOptions reads the options of a deletion from the body or, where there is none, from the query.
func (rq *request) deleteOptions() (*metav1.DeleteOptions, error) {
	data, err := rq.body()
	if err != nil {
		return nil, err
	}
	options := &metav1.DeleteOptions{}
	if len(data) > 0 {
		media, err := rq.bodyMedia(acceptedMedia...)
		if err != nil {
			return nil, err
		}
		// Clients send the options of any group and version: they are not looked at.
		_, gvk, err := codecs().untyped[media].Decode(data, nil, options)
		if err == nil && gvk.Kind != "" && gvk.Kind != "DeleteOptions" {
			err = fmt.Errorf("the body is of kind %q, and not DeleteOptions", gvk.Kind)
		}
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	} else if err := rq.query(options); err != nil {
		return nil, err
	}
	others := *options
	others.DryRun = nil // there is a rule for it
	errs := append(rq.book.dryRunValue.Do(options.DryRun), metav1validation.ValidateDeleteOptions(&others)...)
	return options, invalidOptions("DeleteOptions", errs)
}

// delete handles DELETE on an object.
func (rq *request) delete() error {
	options, err := rq.deleteOptions()
	if err != nil {
		return err
	}
	obj, gone, err := rq.server.delete(rq.resource, rq.namespace, rq.name, options)
	if err != nil {
		return err
	}
	if gone && !rq.resource.returnsDeleted {
		rq.encoding.as = ""
		rq.server.write(rq.w, rq.encoding, http.StatusOK, &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusSuccess,
			Details:  &metav1.StatusDetails{Name: rq.name, Group: rq.resource.gvk.Group, Kind: rq.resource.name, UID: obj.GetUID()},
		})
		return nil
	}
	rq.answer(http.StatusOK, obj)
	return nil
}

// delete removes an object, or marks it as being deleted while finalizers or a grace period hold it. It returns the
// last state that it reached and whether it is gone. The error is a Status.
func (s *Server) delete(res *resource, namespace, name string, options *metav1.DeleteOptions) (object, bool, error) {
	book := s.book(res)
	dryRun := book.dryRunDelete.Do(len(options.DryRun) > 0)
	for {
		e := s.store.get(res, namespace, name)
		if e == nil {
			obj, err := book.missingNotDeleted.Do(s, res, namespace, name)
			return obj, err == nil, err
		}
		if p := options.Preconditions; p != nil {
			if err := book.preconditionsMet.Do(res, e.stored, p); err != nil {
				return nil, false, err
			}
		}
		if res == namespaces {
			if err := mayDeleteNamespace(name); err != nil {
				return nil, false, err
			}
		}
		obj, gone, err := s.deleteEntry(res, e, options, dryRun)
		if errors.Is(err, errChanged) || errors.Is(err, errNotFound) {
			continue
		}
		return obj, gone, err
	}
}

// Rules for deletions.
var (
	dryRunDelete = rule.New("dry-run-delete", asked, spec.APIDryRunDelete, spec.APIDryRunSilent, spec.AllocDryRunDeleteKeepsAddress)

	missingNotDeleted = rule.New("missing-not-deleted", func(_ *Server, res *resource, namespace, name string) (object, error) {
		return nil, storeError(errNotFound, res, namespace, name)
	}, spec.APINotFound, spec.APIDeleteRemoves)

	preconditionsMet = rule.New("preconditions-met", func(res *resource, obj object, p *metav1.Preconditions) error {
		return checkPreconditions(res, obj, p.UID, p.ResourceVersion)
	}, spec.APIDeletePreconditions)

	nothingHolds = rule.New("nothing-holds", deletable, spec.APIFinalizerHolds, spec.APIDeleteRemoves)

	dryRunDeleted = rule.New("dry-run-deleted", func(_ *Server, e *entry) object { return e.view }, spec.APIDryRunDelete, spec.AllocDryRunDeleteKeepsAddress)

	// What an object holds is free when nobody sees the object any more.
	goneBeforeFreed = rule.New("gone-before-freed", func(s *Server, res *resource, e *entry) (object, error) {
		view, err := s.store.remove(res, e, nil, s.viewer(res))
		if err != nil {
			return nil, err
		}
		s.afterRemoval(res, e.stored)
		return view, nil
	}, spec.AllocHistoryExplained, spec.APIDeleteRemoves)

	// What is held keeps all that it has.
	deletionMarked = rule.New("deletion-marked", func(s *Server, res *resource, e *entry, marked object) (*entry, error) {
		updated, err := s.store.update(res, e, marked, s.viewer(res), e.writes)
		if err != nil {
			return nil, err
		}
		s.control(res, e.stored, marked)
		return updated, nil
	}, spec.APIFinalizerHolds, spec.APINodePortOwner, spec.AllocFinalizerKeeps)

	collectionSelected = rule.New("collection-selected", (*request).matcher, spec.APIDeleteCollection)

	collectionDeleted = rule.New("collection-deleted", func(rq *request, e *entry, options *metav1.DeleteOptions) (object, error) {
		obj, _, err := rq.server.delete(rq.resource, e.stored.GetNamespace(), e.stored.GetName(), options)
		return obj, err
	}, spec.APIDeleteCollection, spec.AllocDeleteCollectionReleases)
)

// deleteEntry tries once to delete what the entry holds. The error errChanged or errNotFound means that it is no longer current.
func (s *Server) deleteEntry(res *resource, e *entry, options *metav1.DeleteOptions, dryRun bool) (object, bool, error) {
	book := s.book(res)
	marked := e.stored.DeepCopyObject().(object)
	holdForDependents(res, marked, options)
	markDeleted(res, marked, options.GracePeriodSeconds)
	if book.nothingHolds.Do(marked) {
		if dryRun {
			return book.dryRunDeleted.Do(s, e), true, nil
		}
		view, err := book.goneBeforeFreed.Do(s, res, e)
		return view, err == nil, err
	}
	if dryRun {
		return s.view(res, marked), false, nil
	}
	if !sameDeletion(marked, e.stored) {
		var err error
		if e, err = book.deletionMarked.Do(s, res, e, marked); err != nil {
			return nil, false, err
		}
		s.collectDependents(res, marked)
	}
	switch res {
	case namespaces:
		s.emptyNamespace(marked.GetName())
	case serviceCIDRs:
		s.cluster.leavingGivesNothing.Do(s, marked.GetName())
		s.collectServiceCIDRs()
	}
	return e.view, false, nil
}

// markDeleted sets what an object carries while it is being deleted.
func markDeleted(res *resource, obj object, grace *int64) {
	seconds := int64(0)
	if res == pods {
		seconds = podGracePeriod(obj.(*corev1.Pod), grace)
	}
	if generation := obj.GetGeneration(); obj.GetDeletionTimestamp() == nil && generation > 0 { // a deletion is a change of what is wanted
		obj.SetGeneration(generation + 1)
	}
	if held := obj.GetDeletionGracePeriodSeconds(); obj.GetDeletionTimestamp() == nil || held != nil && seconds < *held {
		at := metav1.Time{Time: now().Add(secondsOf(seconds))}
		obj.SetDeletionTimestamp(&at)
		obj.SetDeletionGracePeriodSeconds(&seconds)
	}
	switch obj := obj.(type) {
	case *corev1.Namespace:
		obj.Status.Phase = corev1.NamespaceTerminating
	case *networkingv1.ServiceCIDR:
		setReady(obj, metav1.ConditionFalse, networkingv1.ServiceCIDRReasonTerminating, "There are still IPAddresses referencing the ServiceCIDR or it is being deleted")
	}
}

// deletable reports whether nothing holds an object any more whose deletion has been asked for.
func deletable(obj object) bool {
	if obj.GetDeletionTimestamp() == nil || len(obj.GetFinalizers()) > 0 {
		return false
	}
	if ns, ok := obj.(*corev1.Namespace); ok {
		return len(ns.Spec.Finalizers) == 0
	}
	grace := obj.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

func sameDeletion(a, b object) bool {
	x, y := a.GetDeletionGracePeriodSeconds(), b.GetDeletionGracePeriodSeconds()
	return b.GetDeletionTimestamp() != nil && x != nil && y != nil && *x == *y && slices.Equal(a.GetFinalizers(), b.GetFinalizers())
}

// afterRemoval does what the departure of an object sets off.
func (s *Server) afterRemoval(res *resource, obj object) {
	res.strategy.deleted(s, obj)
	s.control(res, obj, nil)
	if res.namespaced {
		s.finishNamespace(obj.GetNamespace())
	}
}

// deleteCollection handles DELETE on a collection. It deletes what a list with the same parameters holds, and answers with that list.
func (rq *request) deleteCollection() error {
	listOptions := &internalversion.ListOptions{}
	if err := rq.listOptions(listOptions); err != nil {
		return err
	}
	options, err := rq.deleteOptions()
	if err != nil {
		return err
	}
	match, err := rq.book.collectionSelected.Do(rq, listOptions)
	if err != nil {
		return err
	}
	entries, meta, err := rq.listed(listOptions, match, rq.namespace)
	if err != nil {
		return err
	}
	deleted := make([]object, len(entries))
	for i, e := range entries {
		deleted[i] = e.view
		if _, err := rq.book.collectionDeleted.Do(rq, e, options); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	rq.answer(http.StatusOK, rq.resource.newList(meta, deleted))
	return nil
}
