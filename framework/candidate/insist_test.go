package candidate

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

func TestInsist(t *testing.T) {
	late := apierrors.NewForbidden(corev1.Resource("pods"), "a", apierrors.NewGenericServerResponse(http.StatusGatewayTimeout, "get", corev1.Resource("limitranges"), "", "", 0, false))
	allocated := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), "a", field.ErrorList{
		field.Invalid(field.NewPath("spec", "clusterIPs"), nil, "failed to allocate IP 10.0.0.1: etcdserver: request timed out")})
	taken := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), "a", field.ErrorList{
		field.Invalid(field.NewPath("spec", "clusterIPs"), nil, "failed to allocate IP 10.0.0.1: provided IP is already allocated")})
	quota := apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("exceeded quota"))
	gaveUp, refused, gone := apierrors.NewTimeoutError("gave it up", 0), apierrors.NewAlreadyExists(corev1.Resource("pods"), "a"), errors.New("connection refused")
	for name, c := range map[string]struct {
		answers []error // the last one again and again
		asked   int
		err     error
	}{
		"answered":       {answers: []error{nil}, asked: 1},
		"given up once":  {answers: []error{gaveUp, nil}, asked: 2},
		"admitted late":  {answers: []error{late, nil}, asked: 2},
		"allocated late": {answers: []error{allocated, nil}, asked: 2},
		"not allocated":  {answers: []error{taken}, asked: 1, err: taken},
		"not admitted":   {answers: []error{quota}, asked: 1, err: quota},
		"always":         {answers: []error{gaveUp}, asked: insistence.Steps, err: gaveUp},
		"refused":        {answers: []error{refused}, asked: 1, err: refused},
		"then refused":   {answers: []error{gaveUp, refused}, asked: 2, err: refused},
		"nobody there":   {answers: []error{gone}, asked: 1, err: gone},
	} {
		synctest.Test(t, func(t *testing.T) { // the pauses take no time
			var again []bool
			err := Insist(t.Context(), func(a bool) error {
				again = append(again, a)
				return c.answers[min(len(again), len(c.answers))-1]
			})
			want := slices.Repeat([]bool{true}, c.asked)
			want[0] = false
			if !errors.Is(err, c.err) || !slices.Equal(again, want) {
				t.Errorf("%s: %v, asked %v", name, err, again)
			}
		})
	}
}

func TestInsistEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	err := Insist(ctx, func(bool) error {
		asked++
		cancel()
		return apierrors.NewTimeoutError("gave it up", 0)
	})
	if !apierrors.IsTimeout(err) || asked != 1 {
		t.Errorf("%v, asked %d times", err, asked)
	}
}

// TestCreateAndSetStatus does both against an API server that carries the first request out, and then gives it up.
func TestCreateAndSetStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the pauses take no time
		clientset := fake.NewClientset()
		pods := clientset.CoreV1().Pods("ns")
		created, updated := 0, []string(nil) // requests, and the resource versions of updates
		clientset.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if created++; created > 1 {
				return false, nil, nil
			}
			if err := clientset.Tracker().Create(action.GetResource(), action.(clienttesting.CreateAction).GetObject(), "ns"); err != nil {
				t.Error(err)
			}
			return true, nil, apierrors.NewTimeoutError("gave it up", 0)
		})
		clientset.PrependReactor("update", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			updated = append(updated, action.(clienttesting.UpdateAction).GetObject().(*corev1.Pod).ResourceVersion)
			if len(updated) > 1 {
				return false, nil, nil
			}
			return true, nil, apierrors.NewTimeoutError("gave it up", 0)
		})
		stored, err := Create(t.Context(), pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "7"}})
		if err != nil || created != 2 || stored.Name != "a" {
			t.Fatalf("created %v by %d requests: %v", stored, created, err)
		}
		stored.Status.Phase = corev1.PodRunning
		if err := SetStatus(t.Context(), pods, stored); err != nil || len(updated) != 2 || updated[0] == "" || updated[1] != "" {
			t.Fatalf("set by updates of resource versions %q: %v", updated, err)
		}
		if found, err := pods.Get(t.Context(), "a", metav1.GetOptions{}); err != nil || found.Status.Phase != corev1.PodRunning {
			t.Fatalf("stored %v: %v", found, err)
		}

		// What was there before the first request is somebody else's.
		if _, err := Create(t.Context(), pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}); !apierrors.IsAlreadyExists(err) {
			t.Errorf("created over another: %v", err)
		}
	})
}

// TestInsistingOnWhatIsThere updates, patches and deletes against an API server that carries the first request of each kind out, and then gives it up.
func TestInsistingOnWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the pauses take no time
		clientset := fake.NewClientset(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: "7"}})
		pods, asked := clientset.CoreV1().Pods("ns"), []string(nil)
		carryOut := clienttesting.ObjectReaction(clientset.Tracker())
		clientset.PrependReactor("*", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			verb := action.GetVerb()
			if verb == "get" {
				return false, nil, nil
			}
			first := !slices.Contains(asked, verb)
			asked = append(asked, verb)
			if update, ok := action.(clienttesting.UpdateAction); ok && verb == "update" && update.GetObject().(*corev1.Pod).ResourceVersion != "" {
				t.Error("updated what it has become only if nobody else has")
			}
			if !first {
				return false, nil, nil
			}
			if _, _, err := carryOut(action); err != nil {
				t.Error(err)
			}
			return true, nil, apierrors.NewTimeoutError("gave it up", 0)
		})
		changed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "6", Labels: map[string]string{"by": "update"}}}
		if stored, err := Update(t.Context(), pods, changed); err != nil || stored.Labels["by"] != "update" {
			t.Errorf("updated to %v: %v", stored, err)
		}
		if err := Patch(t.Context(), pods, "a", types.MergePatchType, `{"metadata":{"labels":{"by":"patch"}}}`); err != nil {
			t.Error(err)
		}
		if stored, err := pods.Get(t.Context(), "a", metav1.GetOptions{}); err != nil || stored.Labels["by"] != "patch" {
			t.Errorf("patched to %v: %v", stored, err)
		}
		if err := Delete(t.Context(), pods, "a", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if want := []string{"update", "update", "patch", "patch", "delete", "delete"}; !slices.Equal(asked, want) {
			t.Errorf("asked %q, want %q", asked, want)
		}

		// What was gone before the first request was deleted by somebody else.
		if err := Delete(t.Context(), pods, "a", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("deleted what was not there: %v", err)
		}
	})
}

// TestGaveUpByBreakingOff has a server break a request off, as kube-apiserver does when it has begun to answer as time is up.
func TestGaveUpByBreakingOff(t *testing.T) {
	asked := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	err = Insist(t.Context(), func(bool) error {
		return client.CoreV1().Pods("ns").Delete(t.Context(), "a", metav1.DeleteOptions{})
	})
	if err != nil || asked != 2 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}
