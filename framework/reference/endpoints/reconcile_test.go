package endpoints

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// world is a State that tests shape, and what has come of it so far.
type world struct {
	State
	nodes  []*corev1.Node
	serial int
}

func newWorld(shape ...func(*corev1.Service)) *world {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns", UID: "service"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"}, ClusterIP: "10.96.0.10", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)}},
		},
	}
	for _, f := range shape {
		f(svc)
	}
	w := &world{State: State{Service: svc}}
	w.Nodes = func() []*corev1.Node { return w.nodes }
	w.Node = func(name string) *corev1.Node {
		for _, n := range w.nodes {
			if n.Name == name {
				return n
			}
		}
		return nil
	}
	for i, zone := range []string{"a", "a", "b"} {
		w.nodes = append(w.nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i), Labels: map[string]string{corev1.LabelTopologyZone: zone}},
			Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		})
	}
	return w
}

// pod adds a ready pod with addresses of both families on the i-th node.
func (w *world) pod(node int, shape ...func(*corev1.Pod)) {
	w.serial++
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("pod-%d", w.serial), Namespace: "ns", UID: types.UID(fmt.Sprintf("uid-%d", w.serial)), Labels: map[string]string{"app": "web"},
		},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", node)},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			PodIPs: []corev1.PodIP{{IP: fmt.Sprintf("10.0.%d.%d", w.serial/250, w.serial%250)}, {IP: fmt.Sprintf("fd00::%x", w.serial)}},
		},
	}
	for _, f := range shape {
		f(pod)
	}
	w.Pods = append(w.Pods, pod)
}

func unready(p *corev1.Pod)     { p.Status.Conditions = nil }
func terminating(p *corev1.Pod) { now := metav1.Now(); p.DeletionTimestamp = &now }

// settle applies what Reconcile asks for and checks that it asks for nothing more.
func (w *world) settle(t *testing.T) *Changes {
	t.Helper()
	asked := w.apply()
	if again := w.apply(); len(again.Create)+len(again.Update)+len(again.Delete) > 0 {
		t.Fatalf("a second look asks for changes: %d to create, %d to update, %d to delete", len(again.Create), len(again.Update), len(again.Delete))
	}
	return asked
}

func (w *world) apply() *Changes {
	c := New(fault.Set{}).Reconcile(&w.State)
	for _, s := range c.Delete {
		w.Existing = slices.DeleteFunc(w.Existing, func(e *discoveryv1.EndpointSlice) bool { return e.Name == s.Name })
	}
	for _, s := range c.Update {
		i := slices.IndexFunc(w.Existing, func(e *discoveryv1.EndpointSlice) bool { return e.Name == s.Name })
		w.Existing[i] = s
	}
	for _, s := range c.Create {
		w.serial++
		s.Name = fmt.Sprintf("%s%d", s.GenerateName, w.serial)
		w.Existing = append(w.Existing, s)
	}
	if c.Endpoints != nil {
		w.Endpoints = c.Endpoints
	}
	return c
}

// listed are the names of the pods, or the addresses, that slices list, in order, with their conditions (r, s, t) and hints.
func (w *world) listed() string {
	var all []string
	for _, s := range w.Existing {
		for _, e := range s.Endpoints {
			text := e.Addresses[0]
			if e.TargetRef != nil {
				text = e.TargetRef.Name
			}
			text += ":"
			for _, c := range []struct {
				is   *bool
				name string
			}{{e.Conditions.Ready, "r"}, {e.Conditions.Serving, "s"}, {e.Conditions.Terminating, "t"}} {
				if c.is != nil && *c.is {
					text += c.name
				}
			}
			if e.Hints != nil {
				for _, z := range e.Hints.ForZones {
					text += "@" + z.Name
				}
				for _, n := range e.Hints.ForNodes {
					text += "@" + n.Name
				}
			}
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestConditionsFollowThePod(t *testing.T) {
	w := newWorld()
	w.pod(0)
	w.pod(0, unready)
	w.pod(0, terminating)
	w.pod(0, terminating, unready)
	w.pod(0, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	w.pod(0, func(p *corev1.Pod) { p.Status.PodIPs = nil })
	w.pod(0, func(p *corev1.Pod) { p.Labels = map[string]string{"app": "other"} })
	w.settle(t)
	expect(t, "endpoints", w.listed(), "pod-1:rs pod-2: pod-3:st pod-4:t")
	expect(t, "addresses in the Endpoints object", len(w.Endpoints.Subsets[0].Addresses), 1)
	expect(t, "addresses that are not ready in the Endpoints object", len(w.Endpoints.Subsets[0].NotReadyAddresses), 1)
	w.Service.Spec.PublishNotReadyAddresses = true
	w.settle(t)
	expect(t, "published endpoints", w.listed(), "pod-1:rs pod-2:r pod-3:rst pod-4:rt")
	expect(t, "addresses published in the Endpoints object", len(w.Endpoints.Subsets[0].Addresses), 4)
}

func TestEverySliceIsOfOneFamilyAndOneSetOfPorts(t *testing.T) {
	named := func(number int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: number, Protocol: corev1.ProtocolTCP}}}}
		}
	}
	w := newWorld(func(s *corev1.Service) {
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
		s.Spec.Ports[0].TargetPort = intstr.FromString("web")
	})
	w.pod(0, named(8080))
	w.pod(1, named(9090))
	w.pod(2) // has no port of the name
	w.settle(t)
	got := map[string]string{}
	for _, s := range w.Existing {
		port := "none"
		if len(s.Ports) > 0 {
			port = fmt.Sprint(*s.Ports[0].Name, *s.Ports[0].Port)
		}
		got[string(s.AddressType)+" "+port] = s.Endpoints[0].TargetRef.Name
	}
	expect(t, "slices", got, map[string]string{
		"IPv4 http8080": "pod-1", "IPv6 http8080": "pod-1", "IPv4 http9090": "pod-2", "IPv6 http9090": "pod-2", "IPv4 none": "pod-3", "IPv6 none": "pod-3",
	})
}

func TestSlicesAreFilledAndKept(t *testing.T) {
	w := newWorld()
	c := w.settle(t)
	expect(t, "slices of a Service without pods", len(c.Create), 1)
	placeholder := w.Existing[0].Name
	for range 250 {
		w.pod(0)
	}
	c = w.settle(t)
	expect(t, "slices updated and created for 250 pods", fmt.Sprint(len(c.Update), len(c.Create)), "1 2")
	if !slices.ContainsFunc(w.Existing, func(s *discoveryv1.EndpointSlice) bool { return s.Name == placeholder }) {
		t.Error("the empty slice was replaced, not filled")
	}
	for _, s := range w.Existing {
		if len(s.Endpoints) > maxEndpoints {
			t.Errorf("slice %s has %d endpoints", s.Name, len(s.Endpoints))
		}
	}
	w.Pods = w.Pods[1:]
	w.pod(1)
	c = w.settle(t)
	expect(t, "slices updated, created and deleted when one pod goes and one comes",
		fmt.Sprint(len(c.Update) <= 2, len(c.Create), len(c.Delete)), "true 0 0")
	w.Service.Spec.Ports[0].TargetPort = intstr.FromInt32(9090)
	c = w.settle(t)
	expect(t, "slices updated, created and deleted when the port changes", fmt.Sprint(len(c.Update), len(c.Create), len(c.Delete)), "3 0 0")
	w.Pods = nil
	c = w.settle(t)
	expect(t, "slices updated, created and deleted when all pods go", fmt.Sprint(len(c.Update), len(c.Create), len(c.Delete)), "1 0 2")
}

func TestSlicesOfOthersAreLeftAlone(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"without a manager":    {discoveryv1.LabelServiceName: "web"},
		"with another manager": {discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: "somebody"},
	} {
		for _, selector := range []map[string]string{nil, {"app": "web"}} {
			w := newWorld(func(s *corev1.Service) { s.Spec.Selector = selector })
			w.pod(0)
			foreign := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "foreign", Namespace: "ns", Labels: labels}, AddressType: discoveryv1.AddressTypeIPv4}
			w.Existing = []*discoveryv1.EndpointSlice{foreign}
			before := foreign.DeepCopy()
			w.settle(t)
			if w.Existing[0] != foreign || fmt.Sprint(foreign) != fmt.Sprint(before) {
				t.Errorf("selector %v: a slice %s was changed", selector, name)
			}
			want := 2
			if selector == nil {
				want = 1
			}
			expect(t, fmt.Sprintf("slices with selector %v and one %s", selector, name), len(w.Existing), want)
		}
	}
}

func TestAliasesHaveNoEndpoints(t *testing.T) {
	w := newWorld()
	w.pod(0)
	w.settle(t)
	w.Service.Spec.Type, w.Service.Spec.IPFamilies = corev1.ServiceTypeExternalName, nil
	w.settle(t)
	expect(t, "slices", len(w.Existing), 0)
}

func TestEndpointsAreMirrored(t *testing.T) {
	w := newWorld(func(s *corev1.Service) { s.Spec.Selector = nil })
	w.Endpoints = &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns", UID: "endpoints", Labels: map[string]string{"mark": "1"}}}
	w.Endpoints.Subsets = []corev1.EndpointSubset{{
		Addresses:         []corev1.EndpointAddress{{IP: "192.0.2.1"}, {IP: "2001:db8::1"}},
		NotReadyAddresses: []corev1.EndpointAddress{{IP: "192.0.2.2"}},
		Ports:             []corev1.EndpointPort{{Name: "http", Port: 8080, Protocol: corev1.ProtocolTCP}},
	}}
	w.settle(t)
	expect(t, "mirrored endpoints", w.listed(), "192.0.2.1:r 192.0.2.2: 2001:db8::1:r")
	for _, s := range w.Existing {
		expect(t, "labels of a mirrored slice", s.Labels,
			map[string]string{"mark": "1", discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: MirrorManager})
	}
	for i := range 1200 {
		w.Endpoints.Subsets[0].Addresses = append(w.Endpoints.Subsets[0].Addresses, corev1.EndpointAddress{IP: fmt.Sprintf("10.0.%d.%d", i/250, i%250)})
	}
	w.settle(t)
	total := 0
	for _, s := range w.Existing {
		total += len(s.Endpoints)
	}
	expect(t, "mirrored addresses of 1203", total, 1000)
	w.Endpoints.Labels[discoveryv1.LabelSkipMirror] = "true"
	w.settle(t)
	expect(t, "slices with the label skip-mirror", len(w.Existing), 0)
	delete(w.Endpoints.Labels, discoveryv1.LabelSkipMirror)
	w.settle(t)
	w.Service.Spec.Selector = map[string]string{"app": "web"}
	w.settle(t)
	expect(t, "endpoints once there is a selector", w.listed(), "")
}

func TestHints(t *testing.T) {
	for _, c := range []struct {
		distribution, mode string
		nodes              []int // of the pods
		want               string
	}{
		{"", "", []int{0, 2}, "pod-1:rs pod-2:rs"},
		{"PreferClose", "", []int{0, 2}, "pod-1:rs@a pod-2:rs@b"},
		{"PreferSameZone", "", []int{0, 2}, "pod-1:rs@a pod-2:rs@b"},
		{"PreferSameNode", "", []int{0, 2}, "pod-1:rs@a@node-0 pod-2:rs@b@node-2"},
		{"PreferSameNode", "Auto", []int{0, 0, 2}, "pod-1:rs@a pod-2:rs@a pod-3:rs@b"},
		{"", "Auto", []int{0}, "pod-1:rs"},                                          // fewer endpoints than zones
		{"", "Auto", []int{0, 2}, "pod-1:rs pod-2:rs"},                              // zone a has two thirds of the CPUs
		{"", "Auto", []int{0, 0, 1}, "pod-1:rs@a pod-2:rs@a pod-3:rs@b"},            // lends one to zone b
		{"", "Auto", []int{2, 2, 2}, "pod-1:rs@b pod-2:rs@a pod-3:rs@a"},            // lends two to zone a
		{"PreferClose", "Disabled", []int{0, 2}, "pod-1:rs@a pod-2:rs@b"},           // the annotation asks for nothing
		{"PreferClose", "Auto", []int{0, 0, 2}, "pod-1:rs@a pod-2:rs@a pod-3:rs@b"}, // outweighs the field
	} {
		w := newWorld(func(s *corev1.Service) {
			if c.distribution != "" {
				s.Spec.TrafficDistribution = &c.distribution
			}
			if c.mode != "" {
				s.Annotations = map[string]string{corev1.AnnotationTopologyMode: c.mode}
			}
		})
		for _, n := range c.nodes {
			w.pod(n)
		}
		w.settle(t)
		expect(t, fmt.Sprintf("%q, mode %q, pods on %v", c.distribution, c.mode, c.nodes), w.listed(), c.want)
	}
}

func TestOnlyReadyEndpointsHaveHints(t *testing.T) {
	w := newWorld(func(s *corev1.Service) { s.Spec.TrafficDistribution = new("PreferSameZone") })
	w.pod(0, unready)
	w.pod(1)
	w.settle(t)
	expect(t, "endpoints", w.listed(), "pod-1: pod-2:rs@a")
}
