package apiserver

import (
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dependentFinalizers hold a deleted object until its dependents are orphaned, or deleted.
var dependentFinalizers = []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}

// holdForDependents gives a deleted object the finalizer that its propagation policy asks for. Without a policy it keeps the one that it has.
func holdForDependents(res *resource, obj object, options *metav1.DeleteOptions) {
	if res.noCollector {
		return
	}
	wanted := ""
	switch orphan, policy := options.OrphanDependents, options.PropagationPolicy; { //nolint:staticcheck // clients may still send the deprecated field
	case orphan != nil && *orphan, orphan == nil && policy != nil && *policy == metav1.DeletePropagationOrphan:
		wanted = metav1.FinalizerOrphanDependents
	case orphan == nil && policy != nil && *policy == metav1.DeletePropagationForeground:
		wanted = metav1.FinalizerDeleteDependents
	case orphan == nil && policy == nil:
		return
	}
	kept := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f != wanted && slices.Contains(dependentFinalizers, f) })
	if wanted != "" && !slices.Contains(kept, wanted) {
		kept = append(kept, wanted)
	}
	obj.SetFinalizers(kept)
}

// collectorDelay is how long the garbage collector takes to look at a deleted object.
const collectorDelay = 50 * time.Millisecond

// collectDependents lets a deleted object go some time later, as the garbage collector does. Who made the dependents looks after them here.
func (s *Server) collectDependents(res *resource, obj object) {
	held := func(obj object) bool {
		return slices.ContainsFunc(obj.GetFinalizers(), func(f string) bool { return slices.Contains(dependentFinalizers, f) })
	}
	if res.noCollector || !held(obj) {
		return
	}
	namespace, name, uid := obj.GetNamespace(), obj.GetName(), obj.GetUID()
	time.AfterFunc(collectorDelay, func() {
		s.working.RLock()
		defer s.working.RUnlock()
		for {
			e := s.store.get(res, namespace, name)
			if e == nil || e.stored.GetUID() != uid || !held(e.stored) {
				return
			}
			freed := e.stored.DeepCopyObject().(object)
			freed.SetFinalizers(slices.DeleteFunc(freed.GetFinalizers(), func(f string) bool { return slices.Contains(dependentFinalizers, f) }))
			if _, err := s.replace(res, e, freed, e.writes, ""); !errors.Is(err, errChanged) {
				return
			}
		}
	})
}
