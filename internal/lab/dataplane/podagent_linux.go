package dataplane

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/lab/isolation"
	"github.com/service-conformance/conformance/internal/lab/network"
)

// podAgent makes every Pod real that users create in a lab that stays, as a scheduler and kubelets would. It finds a
// node for the Pod, and starts its network and a backend that answers on its ports. Then it says that the Pod runs.
// Images and commands mean nothing. One goroutine does everything.
type podAgent struct {
	world   *World
	objects cache.Store
	queue   workqueue.TypedRateLimitingInterface[string]
	pods    map[string]*agentPod // by NAMESPACE/NAME
	outside *network.Outside
	bound   int // counts the pods that were given a node
}

// agentPod is a pod that runs, with the object that it was started for.
type agentPod struct {
	*pod
	uid types.UID
}

// StartPodAgent makes Pods real until ctx ends. The pods go with the process.
func StartPodAgent(ctx context.Context, w *World) (err error) {
	a := &podAgent{
		world: w, pods: map[string]*agentPod{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](50*time.Millisecond, 10*time.Second)),
	}
	if a.outside, err = w.outsideOf(w.Shared[0]); err != nil {
		return err
	}
	add := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			a.queue.Add(key)
		}
	}
	var controller cache.Controller
	a.objects, controller = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(w.Api.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, fields.Everything()),
		ObjectType:    &corev1.Pod{},
		Handler:       cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, object any) { add(object) }, DeleteFunc: add},
	})
	go controller.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), controller.HasSynced) {
		return context.Cause(ctx)
	}
	if err := a.record(); err != nil {
		return err
	}
	context.AfterFunc(ctx, a.queue.ShutDown)
	go func() {
		for {
			key, shutdown := a.queue.Get()
			if shutdown {
				return
			}
			if err := a.reconcile(ctx, key); err == nil {
				a.queue.Forget(key)
			} else if ctx.Err() == nil {
				a.explain(ctx, key, err)
				a.queue.AddRateLimited(key)
			}
			a.queue.Done(key)
		}
	}()
	return nil
}

// reconcile brings a pod one step nearer to what its object says.
func (a *podAgent) reconcile(ctx context.Context, key string) error {
	item, exists, err := a.objects.GetByKey(key)
	if err != nil {
		return err
	}
	p := a.pods[key]
	if !exists {
		return a.end(key)
	}
	object := item.(*corev1.Pod)
	if object.Annotations[startedAnnotation] != "" {
		return nil // a run ends it
	}
	if p != nil && p.uid != object.UID { // another one of the same name
		if err := a.end(key); err != nil {
			return err
		}
		p = nil
	}
	switch {
	case object.Spec.NodeName == "" && object.DeletionTimestamp == nil:
		return a.bind(ctx, object)
	case a.node(object.Spec.NodeName) == nil:
		return nil // nobody's
	case object.DeletionTimestamp != nil:
		if left := time.Until(object.DeletionTimestamp.Time); p != nil && left > 0 { // it drains, as a good application does
			a.queue.AddAfter(key, left)
			return nil
		}
		if err := a.end(key); err != nil {
			return err
		}
		return a.forget(ctx, object)
	case object.Status.Phase == corev1.PodSucceeded || object.Status.Phase == corev1.PodFailed:
		return a.end(key)
	case p == nil:
		if p, err = a.start(object); err != nil {
			return err
		}
	}
	if object.Status.Phase == corev1.PodRunning {
		return nil // from here on the status is whatever users make of it
	}
	return a.report(ctx, p, object)
}

// bind chooses a node for a pod, each in turn, as far as the pod leaves the choice. Of its wishes only the node selector counts.
func (a *podAgent) bind(ctx context.Context, object *corev1.Pod) error {
	nodes, err := a.world.Api.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(object.Spec.NodeSelector).String()})
	if err != nil {
		return err
	}
	var names []string
	for _, n := range nodes.Items {
		if a.node(n.Name) != nil && !n.Spec.Unschedulable {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("no node has the labels that it selects: %s", labels.FormatLabels(object.Spec.NodeSelector))
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name, UID: object.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: names[a.bound%len(names)]},
	}
	err = a.world.Api.CoreV1().RESTClient().Post().Namespace(object.Namespace).Resource("pods").Name(object.Name).SubResource("binding").Body(binding).Do(ctx).Error()
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // it is gone, or has a node: that will be seen
		return nil
	}
	if err == nil {
		a.bound++
	}
	return err
}

// node finds a node of the lab; nil if there is none of that name.
func (a *podAgent) node(name string) *Node {
	for _, n := range a.world.Shared {
		if n.Name == name {
			return n
		}
	}
	return nil
}

func (a *podAgent) start(object *corev1.Pod) (*agentPod, error) {
	n := a.node(object.Spec.NodeName)
	started, err := n.startPod(candidate.Pod{
		PodName: candidate.PodName{Namespace: object.Namespace, Name: object.Name}, Node: n.Name, HostNetwork: object.Spec.HostNetwork, Ports: answeredPorts(&object.Spec),
	})
	if err != nil {
		return nil, err
	}
	p := &agentPod{pod: started, uid: object.UID}
	a.pods[object.Namespace+"/"+object.Name] = p
	return p, a.record()
}

// end ends a pod if it runs.
func (a *podAgent) end(key string) error {
	p := a.pods[key]
	if p == nil {
		return nil
	}
	delete(a.pods, key)
	err := a.record() // before its descriptor means something else
	p.stop()
	return err
}

// report says that a pod runs.
func (a *podAgent) report(ctx context.Context, p *agentPod, object *corev1.Pod) error {
	object = object.DeepCopy() // that one belongs to the cache
	object.Status = p.status()
	started := true
	for _, c := range object.Spec.Containers {
		object.Status.ContainerStatuses = append(object.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		})
	}
	_, err := a.world.Api.CoreV1().Pods(object.Namespace).UpdateStatus(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil // that will be seen
	}
	return err
}

// explain says in the log why a pod does not get on, and in its status as long as it does not run.
func (a *podAgent) explain(ctx context.Context, key string, reason error) {
	fmt.Fprintf(os.Stderr, "%s pod %s: %v\n", time.Now().Format(time.DateTime), key, reason)
	item, exists, err := a.objects.GetByKey(key)
	if err != nil || !exists {
		return
	}
	object := item.(*corev1.Pod).DeepCopy()
	if object.Status.Phase != corev1.PodPending || object.Status.Message == reason.Error() {
		return
	}
	object.Status.Reason, object.Status.Message = "NotStarted", reason.Error()
	if _, err := a.world.Api.CoreV1().Pods(object.Namespace).UpdateStatus(ctx, object, metav1.UpdateOptions{}); err != nil {
		fmt.Fprintf(os.Stderr, "%s pod %s: say so: %v\n", time.Now().Format(time.DateTime), key, err) // it is said again with the next failure
	}
}

// forget removes the object of a pod that has ended.
func (a *podAgent) forget(ctx context.Context, object *corev1.Pod) error {
	now := int64(0)
	err := a.world.Api.CoreV1().Pods(object.Namespace).Delete(ctx, object.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &object.UID},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// record writes down where shells can be opened.
func (a *podAgent) record() error {
	var places []Place
	add := func(name string, n *network.Namespace, addresses ...netip.Addr) error {
		inode, err := NamespaceInode(n.Descriptor())
		places = append(places, Place{Name: name, Addresses: addresses, Descriptor: n.Descriptor(), Inode: inode})
		return err
	}
	for _, n := range a.world.Shared {
		if err := add(n.Name, n.network.Namespace, n.network.Addresses...); err != nil {
			return err
		}
	}
	if err := add(outsideName, a.outside.Namespace, a.outside.Addresses[0][0], a.outside.Addresses[1][0]); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(a.pods)) {
		if err := add(key, a.pods[key].namespace(), a.pods[key].Addresses...); err != nil {
			return err
		}
	}
	return WritePlaces(a.world.parts.Dir, places)
}

// defaultPorts are what a pod answers on whose containers name no port.
var defaultPorts = []int{80, 8080}

// answeredPorts are the TCP and UDP ports that the containers name, or the default ones. Pods on a node's own network answer on what they name only.
func answeredPorts(spec *corev1.PodSpec) []candidate.PodPort {
	var ports []candidate.PodPort
	named := map[candidate.PodPort]bool{}
	add := func(name string, protocol corev1.Protocol, number int) {
		key := candidate.PodPort{Protocol: protocol, Number: number}
		if !named[key] { // two containers may name the same port
			named[key] = true
			key.Name = name
			ports = append(ports, key)
		}
	}
	for _, c := range spec.Containers {
		for _, p := range c.Ports {
			if p.Protocol == corev1.ProtocolTCP || p.Protocol == corev1.ProtocolUDP || p.Protocol == corev1.ProtocolSCTP && isolation.SCTPWorks() {
				add(p.Name, p.Protocol, int(p.ContainerPort))
			}
		}
	}
	if len(ports) == 0 && !spec.HostNetwork {
		for _, number := range defaultPorts {
			add("", corev1.ProtocolTCP, number)
			add("", corev1.ProtocolUDP, number)
		}
	}
	return ports
}

// clientsNamespace is where the pods are that a lab that stays lends to runs.
const clientsNamespace = "conformance-clients"

// MakeClientsNamespace keeps the pods that are lent out of the namespaces of the user's.
func (w *World) MakeClientsNamespace(ctx context.Context) error {
	w.clients = clientsNamespace
	_, err := candidate.Create(ctx, w.Api.CoreV1().Namespaces(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clientsNamespace}})
	return err
}
