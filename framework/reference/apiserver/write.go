package apiserver

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
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
	options, err := rq.writeOptions("CreateOptions")
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
	rq.answer(http.StatusCreated, made)
	return nil
}

// generateAttempts is how often a name is generated before the client has to try again (KEP-4420).
const generateAttempts = 8

// create stores a decoded object and returns it as readers see it. The error is a Status.
func (s *Server) create(res *resource, obj object, options writeOptions, w write) (object, error) {
	for _, r := range s.book(res).creates {
		if err := r.Do(s, res, obj); err != nil {
			return nil, err
		}
	}
	if obj.GetName() != "" || obj.GetGenerateName() == "" {
		return s.createNamed(res, obj, options, w)
	}
	for attempt := 1; ; attempt++ {
		candidate := obj.DeepCopyObject().(object)
		s.book(res).nameGenerated.Do(candidate)
		made, err := s.createNamed(res, candidate, options, w)
		if err == nil || !apierrors.IsAlreadyExists(err) || attempt == generateAttempts {
			return made, err
		}
	}
}

func (s *Server) createNamed(res *resource, obj object, options writeOptions, w write) (object, error) {
	dryRun := s.book(res).dryRunCreate.Do(options.dryRun)
	writes, err := s.trackCreate(res, &obj, w)
	if err != nil {
		return nil, err
	}
	tx, err := s.book(res).createAccepted.Do(s, res, obj, dryRun)
	if err != nil {
		return nil, err
	}
	options.tell(res.strategy.warnings(s, obj, nil, ""))
	if dryRun {
		tx.Rollback()
		if s.store.get(res, obj.GetNamespace(), obj.GetName()) != nil {
			return nil, nameTaken(res, obj)
		}
		return s.view(res, obj), nil
	}
	e, err := s.store.create(res, obj, s.viewer(res), writes)
	if err != nil {
		tx.Rollback()
		return s.book(res).nameUnique.Do(s, res, obj, err)
	}
	tx.Commit()
	s.control(res, nil, e.stored)
	return e.view, nil
}

// Rules for creates.
var (
	dryRunCreate = rule.New("dry-run-create", asked, spec.APIDryRunCreate, spec.APIDryRunSilent, spec.AllocDryRunCreateKeepsNothing)

	createAccepted = rule.New("create-accepted", func(s *Server, res *resource, obj object, dryRun bool) (transaction, error) {
		return res.strategy.create(s, obj, dryRun)
	}, spec.AllocRefusedCreateLeaksNothing, spec.AllocExhaustedRefused)

	nameUnique = rule.New("name-unique", func(_ *Server, res *resource, obj object, err error) (object, error) {
		if errors.Is(err, errExists) {
			return nil, nameTaken(res, obj)
		}
		return nil, storeError(err, res, obj.GetNamespace(), obj.GetName())
	}, spec.APINameUnique)

	putCreates = rule.New("put-creates", func(rq *request) bool {
		return rq.resource.createOnUpdate && rq.subresource == ""
	}, spec.APIPUTCreates, spec.APIStatusNotCreated)
)

// nameTaken is the refusal of a new object whose name another one has. A client whose object has a generateName is told to try again, as
// the name counts as generated.
func nameTaken(res *resource, obj object) error {
	if obj.GetGenerateName() != "" {
		return apierrors.NewGenerateNameConflict(res.groupResource(), obj.GetName(), 1)
	}
	return storeError(errExists, res, obj.GetNamespace(), obj.GetName())
}

// asked says that a request is a dry run if the client asks for one.
func asked(dryRun bool) bool { return dryRun }

// viewer returns how readers see the objects of a resource.
func (s *Server) viewer(res *resource) func(object) object {
	return func(obj object) object { return s.view(res, obj) }
}

// put handles PUT on an object or a subresource.
func (rq *request) put() error {
	options, err := rq.writeOptions("UpdateOptions")
	if err != nil {
		return err
	}
	sent, _, _, err := rq.sentObject(options)
	if err != nil {
		return err
	}
	if err := rq.checkIdentity(sent); err != nil {
		return err
	}
	return rq.modify(modification{
		options: options,
		create:  rq.book.putCreates.Do(rq),
		next:    func(old object) (object, error) { return rq.book.putReplaces.Do(sent, old), nil },
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
		rq.answer(code, rq.book.changeAnswered.Do(rq, result))
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
	dryRun := rq.book.dryRunUpdate.Do(m.options.dryRun)
	obj, err := m.next(rq.book.changeOfLatest.Do(rq, start))
	if err != nil {
		return nil, 0, err
	}
	if err := rq.checkIdentity(obj); err != nil { // a patch may have renamed it
		return nil, 0, err
	}
	for _, r := range rq.book.updates {
		if err := r.Do(rq, obj, old.stored); err != nil {
			return nil, 0, err
		}
	}
	var writes []write
	if !m.apply {
		if writes, err = s.trackUpdate(res, old, &obj, rq.subresource, m.options.manager); err != nil {
			return nil, 0, err
		}
	}
	tx, err := res.strategy.update(s, obj, old.stored, rq.subresource, dryRun)
	if err != nil {
		return nil, 0, err
	}
	rq.warn(res.strategy.warnings(s, obj, old.stored, rq.subresource)...)
	switch {
	case dryRun:
		tx.Rollback()
		return s.view(res, obj), http.StatusOK, nil
	case rq.book.unchangedStays.Do(obj, old.stored):
		tx.Rollback()
		return old.view, http.StatusOK, nil
	}
	result, err := rq.book.storedBeforeFreed.Do(rq, old, tx, func() (object, error) { return s.replace(res, old, obj, writes, rq.subresource) })
	if err != nil {
		return nil, 0, err
	}
	if res == services {
		s.collectServiceCIDRs() // an address may have been given back
	}
	return result, http.StatusOK, nil
}

// Rules for updates and patches.
var (
	dryRunUpdate = rule.New("dry-run-update", asked, spec.APIDryRunUpdate, spec.APIDryRunSilent, spec.AllocDryRunUpdateKeepsNothing)

	putReplaces = rule.New("put-replaces", func(sent, _ object) object { return sent.DeepCopyObject().(object) }, spec.APIUpdateReplaces)

	// Of several patches at a time, each starts from what the one before it has stored.
	changeOfLatest = rule.New("change-of-latest", func(_ *request, stored object) object { return stored }, spec.APIConcurrentPatches)

	// The answer to a change shows the object as a get does.
	changeAnswered = rule.New("change-answered", func(_ *request, view object) object { return view }, spec.APIInternalTrafficPolicyExternalName)

	// What an update gives back is free when readers see the object without it.
	storedBeforeFreed = rule.New("stored-before-freed", func(_ *request, _ *entry, tx transaction, store func() (object, error)) (object, error) {
		result, err := store()
		if err != nil {
			tx.Rollback()
			return nil, err
		}
		tx.Commit()
		return result, nil
	}, spec.AllocUpdateFreesWhenStored, spec.AllocCutUpdateLeaksNothing)

	unchangedStays = rule.New("unchanged-stays", func(obj, old object) bool {
		return equality.Semantic.DeepEqual(obj, old)
	}, spec.APIResourceVersionChanges)

	// Whichever request takes the last finalizer away, what the object held is free.
	lastFinalizerFrees = rule.New("last-finalizer-frees", func(s *Server, res *resource, obj object, _ string) {
		s.afterRemoval(res, obj)
	}, spec.AllocFinalizerKeeps, spec.AllocDeleteReleases, spec.AllocNodePortDeleteReleases)

	// The store sets the resource version.
	changeStored = rule.New("change-stored", func(s *Server, res *resource, old *entry, obj object, writes []write) (*entry, error) {
		return s.store.update(res, old, obj, s.viewer(res), writes)
	}, spec.APIResourceVersionChanges)
)

// replace stores the successor of an object. One that is being deleted and has lost its last finalizer is gone instead.
// The error is errChanged or errNotFound.
func (s *Server) replace(res *resource, old *entry, obj object, writes []write, subresource string) (object, error) {
	if !deletable(obj) {
		e, err := s.book(res).changeStored.Do(s, res, old, obj, writes)
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
	s.book(res).lastFinalizerFrees.Do(s, res, obj, subresource)
	return view, nil
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
	if _, err := rq.book.versionRead.Do(obj.GetResourceVersion()); err != nil {
		return nil, 0, err
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
	return made, http.StatusCreated, nil
}

// answer writes an object in the shape that the client asked for.
func (rq *request) answer(code int, obj runtime.Object) {
	shaped, err := rq.shape(obj)
	if err != nil {
		rq.server.writeError(rq.w, rq.r, err)
		return
	}
	rq.server.write(rq.w, rq.encoding, code, shaped)
}
