package apiserver

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// sentObject reads the object in the body, which is also returned as it was sent, with its media type.
func (rq *request) sentObject(options writeOptions) (obj object, data []byte, media string, err error) {
	if media, err = rq.bodyMedia(acceptedMedia...); err != nil {
		return nil, nil, "", err
	}
	if data, err = rq.body(); err != nil {
		return nil, nil, "", err
	}
	obj, err = rq.decode(data, media, options)
	return obj, data, media, err
}

// create handles POST on a collection.
func (rq *request) create() error {
	options, err := rq.createOptions()
	if err != nil {
		return err
	}
	obj, data, media, err := rq.sentObject(options)
	if err != nil {
		return err
	}
	if err := rq.namespaceOfBody(obj); err != nil {
		return err
	}
	made, err := rq.server.create(rq.resource, obj, options, write{manager: options.manager, data: data, media: media})
	if err != nil {
		return err
	}
	rq.warn(rq.resource.strategy.warnings(rq.server, made, "")...)
	rq.answer(http.StatusCreated, made)
	return nil
}

// generateAttempts is how often a name is generated before the client has to try again (KEP-4420).
const generateAttempts = 8

// create stores a decoded object and returns it as readers see it. The error is a Status.
func (s *Server) create(res *resource, obj object, options writeOptions, w write) (object, error) {
	s.faultyNew(res, obj)
	if obj.GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	sent := obj.GetUID()
	newMetadata(obj)
	if sent != "" && s.faulty(res, fault.UIDOfClient) {
		obj.SetUID(sent)
	}
	if res.namespaced {
		if err := s.store.namespaceState(obj.GetNamespace()); err != nil {
			return nil, storeError(err, res, obj.GetNamespace(), obj.GetName())
		}
	}
	if obj.GetName() != "" || obj.GetGenerateName() == "" {
		return s.createNamed(res, obj, options, w)
	}
	for attempt := 1; ; attempt++ {
		candidate := obj.DeepCopyObject().(object)
		generateName(candidate)
		s.faultyGeneratedName(res, candidate)
		made, err := s.createNamed(res, candidate, options, w)
		if err == nil || !apierrors.IsAlreadyExists(err) || attempt == generateAttempts {
			return made, err
		}
	}
}

func (s *Server) createNamed(res *resource, obj object, options writeOptions, w write) (object, error) {
	if s.faulty(res, fault.DryRunStoresNew) {
		options.dryRun = false
	}
	writes, err := s.trackCreate(res, &obj, w)
	if err != nil {
		return nil, err
	}
	tx, err := res.strategy.create(s, obj, options.dryRun)
	if err != nil {
		s.storeRefused(res, obj)
		return nil, err
	}
	if options.dryRun {
		tx.Rollback()
		if s.store.get(res, obj.GetNamespace(), obj.GetName()) != nil {
			return nil, storeError(errExists, res, obj.GetNamespace(), obj.GetName())
		}
		return s.view(res, obj), nil
	}
	e, err := s.store.create(res, obj, s.viewer(res), writes)
	if err != nil {
		tx.Rollback()
		if existing := s.store.get(res, obj.GetNamespace(), obj.GetName()); existing != nil && s.faulty(res, fault.CreateIdempotent) {
			return existing.view, nil
		}
		return nil, storeError(err, res, obj.GetNamespace(), obj.GetName())
	}
	tx.Commit()
	s.control(res, nil, e.stored)
	return e.view, nil
}

// viewer returns how readers see the objects of a resource.
func (s *Server) viewer(res *resource) func(object) object {
	return func(obj object) object { return s.view(res, obj) }
}

// put handles PUT on an object or a subresource.
func (rq *request) put() error {
	options, err := rq.updateOptions()
	if err != nil {
		return err
	}
	sent, _, _, err := rq.sentObject(options)
	if err != nil {
		return err
	}
	if err := rq.nameOfBody(sent); err != nil {
		return err
	}
	if err := rq.namespaceOfBody(sent); err != nil {
		return err
	}
	return rq.modify(modification{
		options: options,
		create:  rq.resource.createOnUpdate && !rq.faulty(fault.PUTNeedsObject) && (rq.subresource == "" || rq.faulty(fault.StatusCreates)),
		next: func(old object) (object, error) {
			obj := sent.DeepCopyObject().(object)
			rq.faultyUpdate(obj, old)
			if uid := obj.GetUID(); uid != "" && old != nil {
				return obj, checkPreconditions(rq.resource, old, &uid, nil)
			}
			return obj, nil
		},
	})
}

// modification is one change of an object, from PUT or PATCH.
type modification struct {
	options writeOptions
	create  bool // an object that does not exist is created
	apply   bool // server-side apply: managed fields are set already
	// next makes the new object from the stored one (nil: there is none), which it must not change. It may be called more
	// than once, when the object changes in between.
	next func(old object) (object, error)
}

// modify runs a modification until the store takes it: read, change, compare and swap. A change that names no
// resource version is tried again when another one wins; every failed try means that somebody else made progress.
func (rq *request) modify(m modification) error {
	for {
		if err := rq.r.Context().Err(); err != nil {
			return apierrors.NewTimeoutError("the request was cancelled before the change was made", 0)
		}
		result, code, err := rq.tryModify(m)
		if errors.Is(err, errChanged) || errors.Is(err, errNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		rq.answer(code, result)
		return nil
	}
}

// tryModify tries once. The error errChanged or errNotFound means that the stored object is no longer the one it started from.
func (rq *request) tryModify(m modification) (object, int, error) {
	s, res := rq.server, rq.resource
	old := s.store.get(res, rq.namespace, rq.name)
	if old == nil {
		if !m.create {
			return nil, 0, storeError(errNotFound, res, rq.namespace, rq.name)
		}
		return rq.createByModify(m)
	}
	start := old.stored
	if m.apply {
		start = s.tracked(res, old)
	}
	if rq.faulty(fault.DryRunStoresChange) {
		m.options.dryRun = false
	}
	obj, err := m.next(rq.faultyPatchBase(start))
	if err != nil {
		return nil, 0, err
	}
	rq.faultyPatched(obj, old.stored)
	if err := rq.checkIdentity(obj); err != nil {
		return nil, 0, err
	}
	if err := rq.successorMetadata(obj, old.stored); err != nil {
		return nil, 0, err
	}
	var writes []write
	if !m.apply {
		if writes, err = s.trackUpdate(res, old, &obj, rq.subresource, m.options.manager); err != nil {
			return nil, 0, err
		}
	}
	tx, err := res.strategy.update(s, obj, old.stored, rq.subresource, m.options.dryRun)
	if err != nil {
		return nil, 0, err
	}
	warnings := res.strategy.warnings(s, obj, rq.subresource)
	switch {
	case m.options.dryRun:
		tx.Rollback()
		rq.warn(warnings...)
		return s.view(res, obj), http.StatusOK, nil
	case equality.Semantic.DeepEqual(obj, old.stored) && !rq.faulty(fault.UnchangedWritten): // nothing to write: the resource version stays
		tx.Rollback()
		rq.warn(warnings...)
		return old.view, http.StatusOK, nil
	}
	result, err := s.replace(res, old, obj, writes)
	if err != nil {
		tx.Rollback()
		return nil, 0, err
	}
	tx.Commit()
	if res == services {
		s.collectServiceCIDRs() // an address may have been given back
	}
	rq.warn(warnings...)
	return result, http.StatusOK, nil
}

// replace stores the successor of an object. One that is being deleted and has lost its last finalizer is gone instead.
// The error is errChanged or errNotFound.
func (s *Server) replace(res *resource, old *entry, obj object, writes []write) (object, error) {
	if !deletable(obj) {
		e, err := s.store.update(res, old, obj, s.faultyViewer(res, old.stored, s.viewer(res)), writes)
		if err != nil {
			return nil, err
		}
		s.control(res, old.stored, e.stored)
		return e.view, nil
	}
	view, err := s.store.remove(res, old, obj, s.viewer(res))
	if err != nil {
		return nil, err
	}
	s.afterRemoval(res, obj)
	return view, nil
}

// checkIdentity keeps a patch from renaming an object.
func (rq *request) checkIdentity(obj object) error {
	if err := rq.nameOfBody(obj); err != nil {
		return err
	}
	return rq.namespaceOfBody(obj)
}

// createByModify creates the object that PUT or apply names.
func (rq *request) createByModify(m modification) (object, int, error) {
	obj, err := m.next(nil)
	if err != nil {
		return nil, 0, err
	}
	if err := rq.checkIdentity(obj); err != nil {
		return nil, 0, err
	}
	if uid := obj.GetUID(); uid != "" {
		return nil, 0, apierrors.NewConflict(rq.resource.groupResource(), rq.name,
			fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	}
	obj.SetResourceVersion("") // of an object that is gone
	w := write{manager: m.options.manager, object: obj.DeepCopyObject().(object)}
	if m.apply {
		w = write{}
	}
	made, err := rq.server.create(rq.resource, obj, m.options, w)
	if apierrors.IsAlreadyExists(err) {
		return nil, 0, errChanged
	}
	if err != nil {
		return nil, 0, err
	}
	rq.warn(rq.resource.strategy.warnings(rq.server, made, "")...)
	return made, http.StatusCreated, nil
}

// answer writes an object in the shape that the client asked for.
func (rq *request) answer(code int, obj runtime.Object) {
	shaped, err := rq.shape(obj)
	if err != nil {
		rq.server.writeError(rq.w, rq.r, err)
		return
	}
	rq.server.write(rq.w, rq.r, rq.encoding, code, shaped)
}
