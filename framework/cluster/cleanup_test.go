package cluster

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/service-conformance/conformance/framework/candidate"
)

// TestCleanupTakesOldNamespacesOfRunsOnly demands that neither what is not of a run nor what a run may still use is removed.
func TestCleanupTakesOldNamespacesOfRunsOnly(t *testing.T) {
	namespace := func(name string, age time.Duration, labels map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, CreationTimestamp: metav1.NewTime(time.Now().Add(-age))}}
	}
	ofRun := map[string]string{candidate.RunLabel: "x"}
	for older, want := range map[time.Duration][]string{NoRunLasts: {"old"}, 0: {"old", "young"}} {
		held := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "old", Name: "held", Finalizers: []string{"example.com/held"}}}
		client := fake.NewClientset(held, namespace("old", 25*time.Hour, ofRun), namespace("young", time.Minute, ofRun), namespace("foreign", 240*time.Hour, nil))
		removed, err := cleanup(t.Context(), client, older)
		slices.Sort(removed)
		if err != nil || !slices.Equal(removed, want) {
			t.Errorf("older than %s: removed %v, error %v, want %v", older, removed, err, want)
		}
		left, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(left.Items) != 3-len(want) {
			t.Errorf("older than %s: %d namespaces are left, error %v", older, len(left.Items), err)
		}
		s, err := client.CoreV1().Services("old").Get(t.Context(), "held", metav1.GetOptions{})
		if err != nil || len(s.Finalizers) > 0 {
			t.Errorf("older than %s: the finalizers %v keep the namespace from going, error %v", older, s.Finalizers, err)
		}
	}
}
