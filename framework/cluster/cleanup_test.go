package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient/fromclientset"
)

// TestCleanupTakesOldNamespacesOfRunsOnly demands that neither what is not of a run nor what a run may still use is removed.
func TestCleanupTakesOldNamespacesOfRunsOnly(t *testing.T) {
	namespace := func(name string, age time.Duration, labels map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, CreationTimestamp: metav1.NewTime(time.Now().Add(-age))}}
	}
	ofRun := map[string]string{candidate.RunLabel: "x"}
	for older, want := range map[time.Duration][]string{NoRunLasts: {"old"}, 0: {"old", "young"}} {
		held := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "old", Name: "held", Finalizers: []string{"example.com/held", candidate.BalancerCleanup}}}
		client := fake.NewClientset(held, namespace("old", 25*time.Hour, ofRun), namespace("young", time.Minute, ofRun), namespace("foreign", 240*time.Hour, nil))
		removed, err := Cleanup(t.Context(), fromclientset.Of(client), older)
		slices.Sort(removed)
		if err != nil || !slices.Equal(removed, want) {
			t.Errorf("older than %s: removed %v, error %v, want %v", older, removed, err, want)
		}
		left, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(left.Items) != 3-len(want) {
			t.Errorf("older than %s: %d namespaces are left, error %v", older, len(left.Items), err)
		}
		s, err := client.CoreV1().Services("old").Get(t.Context(), "held", metav1.GetOptions{})
		if err != nil || !slices.Equal(s.Finalizers, []string{candidate.BalancerCleanup}) {
			t.Errorf("older than %s: the finalizers are %v, error %v: those of checks keep the namespace from going, and without the other one a load balancer stays", older, s.Finalizers, err)
		}
	}
}

// TestCleanupSaysWhatIsLeft demands that a namespace that does not go is not among those that are gone, and that the error says why.
func TestCleanupSaysWhatIsLeft(t *testing.T) {
	namespace := func(name string, conditions ...corev1.NamespaceCondition) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{candidate.RunLabel: "x"}}, Status: corev1.NamespaceStatus{Conditions: conditions}}
	}
	client := fake.NewClientset(namespace("gone"), namespace("stuck",
		corev1.NamespaceCondition{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "pods. has 1 resource instances"},
		corev1.NamespaceCondition{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionFalse, Message: "All resources successfully discovered"}))
	client.PrependReactor("delete", "namespaces", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.(clienttesting.DeleteAction).GetName() == "stuck", nil, nil
	})
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the time is over"))
	removed, err := Cleanup(over, fromclientset.Of(client), 0)
	if !slices.Equal(removed, []string{"gone"}) {
		t.Errorf("removed %v", removed)
	}
	if want := "namespace stuck is left: wait until it is gone: the time is over; NamespaceContentRemaining: pods. has 1 resource instances"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
