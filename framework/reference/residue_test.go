package reference

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

func TestResidueIsWhatChecksLeft(t *testing.T) {
	r, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := r.DataPlane(t.Context(), candidate.DataPlaneRequest{})
	if err != nil {
		t.Fatal(err)
	}
	client := clientOf(t, d)
	for run, name := range map[string]string{"this": "left", "other": "of-others"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{candidate.RunLabel: run}}}
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	d.Release()
	left, err := r.CloseAndAccount(t.Context(), "this")
	if want := []string{"Namespace left"}; err != nil || !slices.Equal(left.Left, want) || len(left.Looked) == 0 {
		t.Errorf("residue %+v, want %q, error %v", left, want, err)
	}
}
