package check

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient"
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
		client, err := apiclient.New(&rest.Config{Host: "http://server", QPS: -1, Transport: answers(func(request string) int {
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
		cp := &ControlPlane{client: client, spaces: []string{"kept", "dead", "late", "good"}}
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

// TestCleaningDeletesServicesByPages demands that no request deletes more than a page, and that all Services go. The
// cleanup does not ask for ever for those that something else holds.
func TestCleaningDeletesServicesByPages(t *testing.T) {
	for name, want := range map[string]struct{ services, held, atOnce, requests int }{
		"few": {3, 0, deletePage, 1}, "one page": {deletePage, 0, deletePage, 2}, "some": {2*deletePage + 7, 0, deletePage, 3},
		"some held": {2*deletePage + 7, 2, deletePage, 3}, "a page held": {deletePage, deletePage, deletePage, 1},
		"a slow server": {300, 0, deletePage / 4, 4}, "a very slow server": {20, 0, leastDeletePage, 6}, "a server that gives up": {20, 20, 0, 4},
	} {
		left, requests := want.services, 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
			if err != nil || r.Method != http.MethodDelete {
				t.Errorf("%s %s, not the deletion of a page", r.Method, r.URL)
			}
			if limit > want.atOnce {
				left -= min(1, left-want.held) // it began
				w.WriteHeader(http.StatusGatewayTimeout)
				return
			}
			n := min(limit, left)
			list := corev1.ServiceList{TypeMeta: metav1.TypeMeta{Kind: "ServiceList", APIVersion: "v1"}, Items: make([]corev1.Service, n)}
			for i := range min(n, want.held) {
				list.Items[i].Finalizers = []string{candidate.BalancerCleanup}
			}
			left -= max(0, n-want.held)
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(list)
		}))
		client, err := apiclient.New(&rest.Config{Host: server.URL, QPS: -1})
		if err != nil {
			t.Fatal(err)
		}
		err = (&ControlPlane{client: client}).deleteServices(t.Context(), "own")
		server.Close()
		if (err != nil) != (want.atOnce == 0) || requests != want.requests || left != want.held {
			t.Errorf("%s: %d requests left %d Services, want %d and %d: %v", name, requests, left, want.requests, want.held, err)
		}
	}
}
