package check

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// answers is a server: it is given a request as "METHOD path" and returns a code, or 0 for no answer.
type answers func(request string) int

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) {
	code := f(r.Method + " " + r.URL.Path)
	if code == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	body := io.NopCloser(strings.NewReader(`{"kind":"ServiceList","apiVersion":"v1"}`))
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: r}, nil
}

// TestCleaningLeavesNoNamespaceBecauseOfAnother demands that each is tried, again where it may help, and that the error names those that are left.
func TestCleaningLeavesNoNamespaceBecauseOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the pauses take no time
		asked := map[string]int{}
		core, err := typedcorev1.NewForConfig(&rest.Config{Host: "http://server", QPS: -1, Transport: answers(func(request string) int {
			asked[request]++
			switch {
			case request == "DELETE /api/v1/namespaces/late/services" && asked[request] < 3:
				return 0
			case request == "DELETE /api/v1/namespaces/late" && asked[request] < 4:
				return http.StatusInternalServerError
			case request == "DELETE /api/v1/namespaces/kept":
				return http.StatusForbidden
			case strings.HasPrefix(request, "DELETE /api/v1/namespaces/dead"):
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		})})
		if err != nil {
			t.Fatal(err)
		}
		cp := &ControlPlane{core: core, spaces: []string{"kept", "dead", "late", "good"}}
		err = cp.removeNamespaces(t.Context())
		if err == nil || !strings.Contains(err.Error(), "delete namespace kept") || !strings.Contains(err.Error(), "delete namespace dead") ||
			strings.Contains(err.Error(), "late") || strings.Contains(err.Error(), "good") {
			t.Errorf("error %v, not one about the namespaces kept and dead", err)
		}
		for request, want := range map[string]int{
			"DELETE /api/v1/namespaces/kept": 1, "DELETE /api/v1/namespaces/dead": cleanRetries.Steps,
			"DELETE /api/v1/namespaces/late": 4, "DELETE /api/v1/namespaces/good": 1,
		} {
			if asked[request] != want {
				t.Errorf("%s was sent %d times, want %d", request, asked[request], want)
			}
		}
	})
}
