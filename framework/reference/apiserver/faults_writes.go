package apiserver

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/reference/rule"
)

// What can be wrong with creates.
var createFaults = []requestWrong{
	{fault.ResourceVersionDropped, func(b *requestBook) {
		rule.Find(b.creates, versionUnset.Name).Replace(func(_ *Server, _ *resource, obj object) error {
			obj.SetResourceVersion("")
			return nil
		})
	}},
	{fault.UIDOfClient, func(b *requestBook) {
		rule.Find(b.creates, systemMetadata.Name).Wrap(func(right making) making {
			return func(s *Server, res *resource, obj object) error {
				sent := obj.GetUID()
				err := right(s, res, obj)
				if sent != "" {
					obj.SetUID(sent)
				}
				return err
			}
		})
	}},
	{fault.NamespaceDefaulted, func(b *requestBook) {
		rule.Find(b.creates, namespaceExists.Name).Wrap(func(right making) making {
			return func(s *Server, res *resource, obj object) error {
				if right(s, res, obj) != nil {
					obj.SetNamespace(metav1.NamespaceDefault)
				}
				return right(s, res, obj)
			}
		})
	}},
	{fault.OwnersDropped, made(func(obj object) { obj.SetOwnerReferences(nil) })},
	{fault.NameOptional, made(func(obj object) {
		if obj.GetName() == "" && obj.GetGenerateName() == "" {
			obj.SetGenerateName("service-")
		}
	})},
	{fault.NotReadyLost, made(func(obj object) { obj.(*corev1.Service).Spec.PublishNotReadyAddresses = false })},
	{fault.GenerateNameConstant, generate(func(obj object, suffix string) {
		obj.SetName(strings.TrimSuffix(obj.GetName(), suffix) + "00000")
	})},
	{fault.GenerateNameLong, generate(func(obj object, suffix string) { obj.SetName(obj.GetGenerateName() + suffix) })},
	{fault.RefusedCreateStored, func(b *requestBook) {
		b.createAccepted.Wrap(func(right accepting) accepting {
			return func(s *Server, res *resource, obj object, dryRun bool) (transaction, error) {
				tx, err := right(s, res, obj, dryRun)
				if err != nil {
					_, _ = s.store.create(res, obj, s.viewer(res), nil) // a name that exists is left alone
				}
				return tx, err
			}
		})
	}},
	{fault.CreateIdempotent, func(b *requestBook) {
		b.nameUnique.Wrap(func(right conflicting) conflicting {
			return func(s *Server, res *resource, obj object, err error) (object, error) {
				if existing := s.store.get(res, obj.GetNamespace(), obj.GetName()); existing != nil {
					return existing.view, nil
				}
				return right(s, res, obj, err)
			}
		})
	}},
	{fault.PUTNeedsObject, func(b *requestBook) { b.putCreates.Off() }},
	{fault.StatusCreates, func(b *requestBook) {
		b.putCreates.Replace(func(rq *request) bool { return rq.resource.createOnUpdate })
	}},
}

// made is a fault: something of a new object is changed.
func made(change func(object)) func(*requestBook) {
	return func(b *requestBook) {
		b.creates = append(b.creates, bug(func(_ *Server, _ *resource, obj object) error {
			change(obj)
			return nil
		}))
	}
}

// generate is a fault: a name that was made from generateName, with a suffix, is changed.
func generate(change func(obj object, suffix string)) func(*requestBook) {
	return func(b *requestBook) {
		b.nameGenerated.Wrap(func(right func(object)) func(object) {
			return func(obj object) {
				right(obj)
				change(obj, obj.GetName()[len(obj.GetName())-generatedSuffix:])
			}
		})
	}
}

// failing is a fault: some changes of a Service end in an error of the server.
func failing(some func(rq *request, svc, old *corev1.Service) bool) func(*requestBook) {
	return func(b *requestBook) {
		b.updates = append(b.updates, bug(func(rq *request, obj, old object) error {
			svc, is := obj.(*corev1.Service)
			if is && rq.subresource == "" && some(rq, svc, old.(*corev1.Service)) {
				return apierrors.NewInternalError(errors.New("runtime error: invalid memory address or nil pointer dereference"))
			}
			return nil
		}))
	}
}

// What can be wrong with updates and patches.
var changeFaults = []requestWrong{
	{fault.StatusFinalizerKeeps, func(b *requestBook) {
		b.lastFinalizerFrees.Wrap(func(right func(*Server, *resource, object, string)) func(*Server, *resource, object, string) {
			return func(s *Server, res *resource, obj object, subresource string) {
				if subresource == "" {
					right(s, res, obj, subresource)
				}
			}
		})
	}},
	{fault.SameNumberPatchFails, failing(func(rq *request, svc, old *corev1.Service) bool {
		ports := old.Spec.Ports
		return rq.r.Method == http.MethodPatch && len(ports) == 2 && ports[0].NodePort != 0 && ports[0].NodePort == ports[1].NodePort && equality.Semantic.DeepEqual(svc.Spec, old.Spec)
	})},
	{fault.NumberlessPortFails, failing(func(rq *request, svc, old *corev1.Service) bool {
		return rq.r.Method == http.MethodPut && old.Spec.Type == corev1.ServiceTypeNodePort && len(svc.Spec.Ports) > len(old.Spec.Ports) && svc.Spec.Ports[0].NodePort == 0
	})},
	{fault.TypeAlonePatchFails, failing(func(rq *request, svc, old *corev1.Service) bool {
		was := old.Spec
		was.Type = corev1.ServiceTypeLoadBalancer
		return rq.r.Header.Get("Content-Type") == "application/strategic-merge-patch+json" && old.Spec.Type == corev1.ServiceTypeClusterIP && len(was.Ports) > 1 &&
			svc.Spec.Type == was.Type && len(svc.Spec.Ports) == len(was.Ports)
	})},
	{fault.UIDIgnored, changed(func(_ *request, obj, old object) { obj.SetUID(old.GetUID()) })},
	{fault.StaleWriteWins, func(b *requestBook) {
		rule.Find(b.updates, versionCurrent.Name).Replace(func(rq *request, obj, _ object) error {
			_, err := rq.book.versionRead.Do(obj.GetResourceVersion())
			return err
		})
	}},
	{fault.ResourceVersionServerError, func(b *requestBook) {
		b.versionRead.Wrap(func(right func(string) (uint64, error)) func(string) (uint64, error) {
			return func(version string) (uint64, error) {
				v, err := right(version)
				if err != nil {
					return 0, apierrors.NewInternalError(err)
				}
				return v, nil
			}
		})
	}},
	{fault.InternalPolicyOfStatusWrites, func(b *requestBook) {
		b.changeAnswered.Replace(func(rq *request, view object) object {
			svc, ok := view.(*corev1.Service)
			if !ok || rq.subresource != "status" || svc.Spec.Type != corev1.ServiceTypeExternalName {
				return view
			}
			shown := svc.DeepCopy()
			shown.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyCluster)
			return shown
		})
	}},
	{fault.ResourceVersionRequired, func(b *requestBook) {
		rule.Find(b.updates, versionCurrent.Name).Wrap(func(right changing) changing {
			return func(rq *request, obj, old object) error {
				if obj.GetResourceVersion() == "" {
					return refusal(rq.resource, rq.name, field.ErrorList{field.Required(field.NewPath("metadata", "resourceVersion"), "must be specified for an update")})
				}
				return right(rq, obj, old)
			}
		})
	}},
	{fault.ResourceVersionOfSpec, func(b *requestBook) {
		b.changeStored.Replace(func(s *Server, res *resource, old *entry, obj object, writes []write) (*entry, error) {
			return s.store.update(res, old, obj, func(obj object) object {
				if equality.Semantic.DeepEqual(obj.(*corev1.Service).Spec, old.stored.(*corev1.Service).Spec) {
					obj.SetResourceVersion(old.stored.GetResourceVersion())
				}
				return s.view(res, obj)
			}, writes)
		})
	}},
	{fault.UnchangedWritten, func(b *requestBook) { b.unchangedStays.Off() }},
	{fault.UpdatesUnowned, func(b *requestBook) {
		b.updateOwned.Replace(func(_ *Server, _ *resource, old *entry, obj *object, _, _ string) error {
			(*obj).SetManagedFields(old.stored.GetManagedFields())
			return nil
		})
	}},
	{fault.UpdateMerges, func(b *requestBook) {
		b.putReplaces.Wrap(func(right func(sent, old object) object) func(sent, old object) object {
			return func(sent, old object) object {
				svc := right(sent, old).(*corev1.Service)
				if was, ok := old.(*corev1.Service); ok && len(svc.Spec.Selector) == 0 {
					svc.Spec.Selector = was.Spec.Selector
				}
				if was, ok := old.(*corev1.Service); ok && len(svc.Spec.ExternalIPs) == 0 {
					svc.Spec.ExternalIPs = was.Spec.ExternalIPs
				}
				return svc
			}
		})
	}},
}

// changed is a fault: something of the successor of an object is changed first.
func changed(change func(rq *request, obj, old object)) func(*requestBook) {
	return func(b *requestBook) {
		b.updates = rule.Before(b.updates, uidOfUpdate.Name, bug(func(rq *request, obj, old object) error {
			change(rq, obj, old)
			return nil
		}))
	}
}

// What can be wrong with dry runs.
var dryRunFaults = []requestWrong{
	{fault.DryRunStoresNew, func(b *requestBook) { b.dryRunCreate.Off() }},
	{fault.DryRunStoresChange, func(b *requestBook) { b.dryRunUpdate.Off() }},
	{fault.DryRunDeletes, func(b *requestBook) { b.dryRunDelete.Off() }},
	{fault.DryRunDeleteFrees, func(b *requestBook) {
		b.dryRunDeleted.Wrap(func(right func(*Server, *entry) object) func(*Server, *entry) object {
			return func(s *Server, e *entry) object {
				s.rules.Load().Delete(e.stored.(*corev1.Service))
				return right(s, e)
			}
		})
	}},
}

// aMoment is as long as other clients need for some requests.
const aMoment = 3 * time.Millisecond

// What can be wrong with deletions.
var deleteFaults = []requestWrong{
	{fault.DeleteOfMissing, func(b *requestBook) {
		b.missingNotDeleted.Replace(func(s *Server, res *resource, _, _ string) (object, error) { return s.empty(res), nil })
	}},
	{fault.PreconditionsIgnored, func(b *requestBook) { b.preconditionsMet.Off() }},
	{fault.FinalizersIgnored, func(b *requestBook) { b.nothingHolds.Replace(func(object) bool { return true }) }},
	{fault.NodePortFreedEarly, func(b *requestBook) {
		b.deletionMarked.Wrap(func(right marking) marking {
			return func(s *Server, res *resource, e *entry, marked object) (*entry, error) {
				updated, err := right(s, res, e, marked)
				if err == nil {
					s.rules.Load().Delete(marked.(*corev1.Service))
				}
				return updated, err
			}
		})
	}},
	{fault.FreedBeforeGone, func(b *requestBook) {
		b.goneBeforeFreed.Replace(func(s *Server, res *resource, e *entry) (object, error) {
			s.rules.Load().Delete(e.stored.(*corev1.Service))
			time.Sleep(aMoment)
			view, err := s.store.remove(res, e, nil, s.viewer(res))
			if err != nil {
				return nil, err
			}
			s.collectServiceCIDRs()
			s.control(res, e.stored, nil)
			s.finishNamespace(e.stored.GetNamespace())
			return view, nil
		})
	}},
	{fault.UpdateFreesEarly, func(b *requestBook) {
		var updates sync.Mutex // one after another, so that none is made again, and frees something again
		b.storedBeforeFreed.Wrap(func(right committing) committing {
			return func(rq *request, old *entry, tx transaction, store func() (object, error)) (object, error) {
				updates.Lock()
				defer updates.Unlock()
				if rq.server.store.get(rq.resource, old.stored.GetNamespace(), old.stored.GetName()) != old {
					return right(rq, old, tx, store)
				}
				tx.Commit()
				time.Sleep(aMoment)
				return store()
			}
		})
	}},
	{fault.CutUpdateKeeps, func(b *requestBook) {
		b.storedBeforeFreed.Wrap(func(right committing) committing {
			return func(rq *request, old *entry, tx transaction, store func() (object, error)) (object, error) {
				time.Sleep(aMoment)
				if err := rq.r.Context().Err(); err != nil {
					return nil, apierrors.NewTimeoutError("the client has gone: "+err.Error(), 0)
				}
				return right(rq, old, tx, store)
			}
		})
	}},
	{fault.CollectionUnselected, func(b *requestBook) {
		b.collectionSelected.Wrap(selectedBy(func(options *internalversion.ListOptions) { options.LabelSelector, options.FieldSelector = nil, nil }))
	}},
	{fault.CollectionLeaks, func(b *requestBook) {
		b.collectionDeleted.Wrap(func(right deleting) deleting {
			return func(rq *request, e *entry, options *metav1.DeleteOptions) (object, error) {
				obj, err := right(rq, e, options)
				if err != nil {
					return nil, err
				}
				for _, ip := range clusterIPs(obj.(*corev1.Service)) {
					_ = rq.server.rules.Load().Reserve(ip) // one that is in use again has leaked all the same
				}
				return obj, nil
			}
		})
	}},
}
