package check

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

func TestFirstEnded(t *testing.T) {
	object := func(name string, phase corev1.PodPhase) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{Phase: phase}}
	}
	pod := func(namespace, name string) candidate.Pod {
		return candidate.Pod{PodName: candidate.PodName{Namespace: namespace, Name: name}}
	}
	objects := []corev1.Pod{object("runs", corev1.PodRunning), object("failed", corev1.PodFailed), object("done", corev1.PodSucceeded)}
	for _, c := range []struct {
		started []candidate.Pod
		ended   string
	}{
		{nil, ""},
		{[]candidate.Pod{pod("ns", "runs"), pod("other", "elsewhere")}, ""},
		{[]candidate.Pod{pod("ns", "runs"), pod("ns", "failed")}, "failed"},
		{[]candidate.Pod{pod("ns", "done")}, "done"},
		{[]candidate.Pod{pod("ns", "gone"), pod("ns", "failed")}, "gone"},
	} {
		if p, ended := firstEnded(objects, c.started, "ns"); p.Name != c.ended || ended != (c.ended != "") {
			t.Errorf("of %v %q (%t) has ended, want %q", c.started, p.Name, ended, c.ended)
		}
	}
}
