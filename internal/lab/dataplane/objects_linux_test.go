package dataplane

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient/fromclientset"
	"github.com/service-conformance/conformance/internal/lab/network"
)

// impatient is an API server that carries the first request of each kind out, and answers that it has given it up.
func impatient() *fake.Clientset {
	api := fake.NewClientset()
	carryOut, seen := clienttesting.ObjectReaction(api.Tracker()), map[string]bool{}
	api.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		kind := a.GetVerb() + " " + a.GetResource().Resource + "/" + a.GetSubresource()
		if seen[kind] {
			return false, nil, nil
		}
		seen[kind] = true
		if _, _, err := carryOut(a); err != nil {
			return true, nil, err
		}
		return true, nil, apierrors.NewTimeoutError("gave it up", 0)
	})
	return api
}

func TestObjectsOfALabAreKeptThoughTheServerGivesRequestsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the pauses take no time
		api := impatient()
		n := &Node{Name: "node-1", world: &World{Api: fromclientset.Of(api)}, network: &network.Node{
			Addresses: []netip.Addr{netip.MustParseAddr("172.16.0.1")}, PodRanges: []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")},
		}}
		if err := n.register(t.Context()); err != nil {
			t.Fatal(err)
		}
		stored, err := api.CoreV1().Nodes().Get(t.Context(), n.Name, metav1.GetOptions{})
		if err != nil || len(stored.Status.Addresses) != 2 {
			t.Errorf("node %+v: %v", stored, err)
		}
		p := &pod{Pod: candidate.Pod{PodName: candidate.PodName{Namespace: "a", Name: "b"}, Addresses: n.network.Addresses}, node: n}
		if err := p.register(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := n.label(t.Context()); err != nil {
			t.Error(err)
		}
		d := &dataPlane{world: n.world}
		if err := d.pods.AddOwn(p.PodName, p); err != nil {
			t.Fatal(err)
		}
		if err := d.SetReady(t.Context(), p.PodName, false); err != nil {
			t.Error(err)
		}
		kept, err := api.CoreV1().Pods("a").Get(t.Context(), "b", metav1.GetOptions{})
		if err != nil || kept.Status.Phase != corev1.PodRunning || !slices.ContainsFunc(kept.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse
		}) {
			t.Errorf("pod %+v: %v", kept, err)
		}
		interrupted, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.remove(interrupted); err != nil {
			t.Error(err)
		}
		if _, err := api.CoreV1().Pods("a").Get(t.Context(), "b", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("after the pod was removed: %v", err)
		}
	})
}

// A pod whose name is taken before it is first asked for is another one.
func TestObjectsOfOthersAreNotTakenOver(t *testing.T) {
	api := fake.NewClientset(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}})
	n := &Node{Name: "node-1", world: &World{Api: fromclientset.Of(api)}, network: &network.Node{Addresses: []netip.Addr{netip.MustParseAddr("172.16.0.1")}}}
	p := &pod{Pod: candidate.Pod{PodName: candidate.PodName{Namespace: "a", Name: "b"}, Addresses: n.network.Addresses}, node: n}
	if err := p.register(t.Context()); !apierrors.IsAlreadyExists(err) {
		t.Errorf("error %v", err)
	}
}
