package apiserver

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controller "github.com/service-conformance/conformance/framework/reference/endpoints"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// The endpoint controllers run inside the request that changes what they look at, before its response. A client that
// has the response finds EndpointSlices that are up to date. Where a real control plane is asynchronous, this one never
// is.

// StorePod creates or replaces a Pod with the given status and deletion timestamp, and runs the endpoint controllers.
// The scheduler and the kubelet of a node would leave it so. It takes ownership of the pod. The error is a Status.
func (s *Server) StorePod(pod *corev1.Pod) error { return s.storeObject(pods, pod) }

// StoreNode is StorePod for a Node.
func (s *Server) StoreNode(node *corev1.Node) error { return s.storeObject(nodes, node) }

// RemovePod removes a Pod at once, without a grace period. That there is none is no error.
func (s *Server) RemovePod(namespace, name string) error {
	return s.removeObject(pods, namespace, name)
}

// RemoveNode removes a Node. That there is none is no error.
func (s *Server) RemoveNode(name string) error { return s.removeObject(nodes, "", name) }

func (s *Server) storeObject(res *resource, obj object) error {
	s.working.RLock()
	defer s.working.RUnlock()
	obj.GetObjectKind().SetGroupVersionKind(res.gvk)
	res.strategy.defaults(s, obj)
	for {
		old := s.store.get(res, obj.GetNamespace(), obj.GetName())
		if old == nil {
			deletion, grace := obj.GetDeletionTimestamp(), obj.GetDeletionGracePeriodSeconds()
			newMetadata(obj)
			obj.SetDeletionTimestamp(deletion)
			obj.SetDeletionGracePeriodSeconds(grace)
			obj.SetGeneration(1)
			e, err := s.store.create(res, obj, s.viewer(res), nil)
			if errors.Is(err, errExists) {
				continue
			}
			if err != nil {
				return storeError(err, res, obj.GetNamespace(), obj.GetName())
			}
			s.control(res, nil, e.stored)
			return nil
		}
		obj.SetUID(old.stored.GetUID())
		obj.SetCreationTimestamp(old.stored.GetCreationTimestamp())
		obj.SetGeneration(old.stored.GetGeneration())
		e, err := s.store.update(res, old, obj, s.viewer(res), old.writes)
		if errors.Is(err, errChanged) || errors.Is(err, errNotFound) {
			continue
		}
		if err != nil {
			return storeError(err, res, obj.GetNamespace(), obj.GetName())
		}
		s.control(res, old.stored, e.stored)
		return nil
	}
}

func (s *Server) removeObject(res *resource, namespace, name string) error {
	s.working.RLock()
	defer s.working.RUnlock()
	for {
		e := s.store.get(res, namespace, name)
		if e == nil {
			return nil
		}
		if _, err := s.store.remove(res, e, nil, s.viewer(res)); err == nil {
			s.afterRemoval(res, e.stored)
			return nil
		}
	}
}

// control runs the endpoint controllers after an object has been stored (was is nil for a new one) or removed (is is nil).
func (s *Server) control(res *resource, was, is object) {
	if !s.options.Controllers || s.controllersDown.Load() {
		return
	}
	changed := is
	if is == nil {
		changed = was
	}
	namespace := changed.GetNamespace()
	if res.namespaced && s.store.namespaceState(namespace) != nil {
		return // it is being emptied
	}
	switch res {
	case services:
		if is == nil {
			s.collectEndpoints(was.(*corev1.Service))
			return
		}
		s.controlService(namespace, is.GetName())
	case pods:
		before, _ := was.(*corev1.Pod)
		after, _ := is.(*corev1.Pod)
		if before != nil && after != nil && !controller.Concerns(before, after) {
			return
		}
		s.controlServices(s.cluster.podsInReach.Do(namespace), func(svc *corev1.Service) bool {
			return before != nil && s.endpointRules.Selects(svc, before) || after != nil && s.endpointRules.Selects(svc, after)
		})
	case nodes:
		before, _ := was.(*corev1.Node)
		after, _ := is.(*corev1.Node)
		if before == nil || after == nil || controller.ConcernsTopology(before, after) {
			s.controlServices("", func(*corev1.Service) bool { return true })
		}
	case endpoints:
		s.controlService(namespace, changed.GetName())
	case endpointSlices: // somebody has changed or removed what the controllers have made
		if slice := changed.(*discoveryv1.EndpointSlice); s.cluster.slicesRestored.Do(slice) {
			s.controlService(namespace, slice.Labels[discoveryv1.LabelServiceName])
		}
	}
}

// RunControllers starts the endpoint controllers, or stops them as a crash would. Those that start look at everything.
func (s *Server) RunControllers(run bool) {
	if s.controllersDown.Swap(!run) && run {
		s.cluster.controllersCatchUp.Do(s)
	}
}

// Controllers that start find what has changed while none ran.
var controllersCatchUp = rule.New("controllers-catch-up", func(s *Server) {
	s.controlServices("", func(*corev1.Service) bool { return true })
}, spec.ProxyEndpointsSettle)

// controlServices runs the controllers for the Services of a namespace (of all if it is empty) that match.
func (s *Server) controlServices(namespace string, match func(*corev1.Service) bool) {
	all, _ := s.store.list(services, namespace)
	for _, e := range all {
		if svc := e.stored.(*corev1.Service); match(svc) {
			s.controlService(svc.Namespace, svc.Name)
		}
	}
}

// controlService brings the EndpointSlices of a Service and its Endpoints object up to date. It looks at everything anew under the
// lock, so that the last of several concurrent changes sees all of them.
func (s *Server) controlService(namespace, name string) {
	s.controlling.Lock()
	defer s.controlling.Unlock()
	found := s.store.get(services, namespace, name)
	if found == nil {
		return
	}
	svc := found.stored.(*corev1.Service)
	state := controller.State{Service: svc, Existing: s.slicesOf(svc), Node: s.node, Nodes: s.nodes}
	if e := s.store.get(endpoints, namespace, name); e != nil {
		state.Endpoints = e.stored.(*corev1.Endpoints)
	}
	near, _ := s.store.list(pods, s.cluster.podsInReach.Do(namespace))
	for _, e := range near {
		state.Pods = append(state.Pods, e.stored.(*corev1.Pod))
	}
	desired := s.endpointRules.Reconcile(&state)
	for _, slice := range desired.Create {
		newMetadata(slice)
		generateName(slice)
		slice.Generation = 1
		_, _ = s.store.create(endpointSlices, slice, s.viewer(endpointSlices), nil) // refused only where the namespace is going
	}
	for _, slice := range desired.Update {
		slice.Generation++
		s.overwrite(endpointSlices, slice)
	}
	for _, slice := range desired.Delete {
		s.erase(endpointSlices, slice)
	}
	switch {
	case desired.Endpoints == nil || state.Endpoints != nil && equality.Semantic.DeepEqual(desired.Endpoints, state.Endpoints):
	case state.Endpoints == nil:
		newMetadata(desired.Endpoints)
		_, _ = s.store.create(endpoints, desired.Endpoints, s.viewer(endpoints), nil) // as above
	default:
		s.overwrite(endpoints, desired.Endpoints)
	}
}

// The pods that a Service may select are those of its namespace.
var podsInReach = rule.New("pods-in-reach", func(namespace string) string { return namespace }, spec.ProxySelectorAllLabels)

// What a controller has made is looked at again when somebody has changed it.
var slicesRestored = rule.New("slices-restored", controller.Generated, spec.ProxySlicesRestored)

// slicesOf are the EndpointSlices that say that they belong to the Service or are owned by it.
func (s *Server) slicesOf(svc *corev1.Service) (slices []*discoveryv1.EndpointSlice) {
	all, _ := s.store.list(endpointSlices, svc.Namespace)
	for _, e := range all {
		if slice := e.stored.(*discoveryv1.EndpointSlice); slice.Labels[discoveryv1.LabelServiceName] == svc.Name || metav1.IsControlledBy(slice, svc) {
			slices = append(slices, slice)
		}
	}
	return slices
}

// collectEndpoints removes what the controllers made for a Service that is gone, as the garbage collector does. It also
// removes the Endpoints object of that name.
func (s *Server) collectEndpoints(svc *corev1.Service) {
	s.controlling.Lock()
	defer s.controlling.Unlock()
	for _, slice := range s.slicesOf(svc) {
		if controller.Generated(slice) || metav1.IsControlledBy(slice, svc) {
			s.erase(endpointSlices, slice)
		}
	}
	if e := s.store.get(endpoints, svc.Namespace, svc.Name); e != nil {
		s.erase(endpoints, e.stored)
	}
}

// overwrite stores a new state of an object that a controller has looked at, unless the object is gone.
func (s *Server) overwrite(res *resource, obj object) {
	for {
		e := s.store.get(res, obj.GetNamespace(), obj.GetName())
		if e == nil {
			return
		}
		if _, err := s.store.update(res, e, obj, s.viewer(res), e.writes); err == nil {
			return
		}
	}
}

// erase removes an object if it is still there.
func (s *Server) erase(res *resource, obj object) {
	for {
		e := s.store.get(res, obj.GetNamespace(), obj.GetName())
		if e == nil {
			return
		}
		if _, err := s.store.remove(res, e, nil, s.viewer(res)); err == nil {
			return
		}
	}
}

// node returns a Node, nil if there is none of that name.
func (s *Server) node(name string) *corev1.Node {
	if e := s.store.get(nodes, "", name); e != nil {
		return e.stored.(*corev1.Node)
	}
	return nil
}

func (s *Server) nodes() (all []*corev1.Node) {
	entries, _ := s.store.list(nodes, "")
	for _, e := range entries {
		all = append(all, e.stored.(*corev1.Node))
	}
	return all
}
