package apiservers

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"

	"github.com/service-conformance/conformance/framework/candidate"
)

// objectServer keeps objects by path and speaks as much of the API as reset uses.
type objectServer struct {
	mu      sync.Mutex
	objects map[string]object
	deleted int
	refuse  bool // deletions
	trials  int  // dry runs that are refused until the next one is accepted
}

func newObjectServer() *objectServer {
	o := &objectServer{objects: map[string]object{}}
	o.add("/api/v1/namespaces/default/services/", "kubernetes", "10.96.0.1")
	o.add(ipAddressPath+"/", "10.96.0.1", "")
	o.add(serviceCIDRPath+"/", "kubernetes", "")
	return o
}

func (o *objectServer) add(folder, name, clusterIP string, finalizers ...string) {
	var x object
	x.Metadata.Name = name
	if rest, ok := strings.CutPrefix(folder, "/api/v1/namespaces/"); ok {
		x.Metadata.Namespace, _, _ = strings.Cut(rest, "/")
	}
	x.Metadata.Finalizers = finalizers
	if clusterIP != "" {
		x.Spec.ClusterIPs = []string{clusterIP}
	}
	o.objects[folder+name] = x
}

func (o *objectServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	path := r.URL.Path
	x, found := o.objects[path]
	switch {
	case r.Method == http.MethodGet:
		var items []object
		for _, p := range slices.Sorted(maps.Keys(o.objects)) {
			if strings.HasPrefix(p, path+"/") || path == servicePath && strings.Contains(p, "/services/") {
				items = append(items, o.objects[p])
			}
		}
		json.NewEncoder(w).Encode(map[string]any{"items": items})
	case r.Method == http.MethodPost && o.trials > 0:
		o.trials--
		http.Error(w, "allocator not ready", http.StatusUnprocessableEntity)
	case r.Method == http.MethodPost:
		w.WriteHeader(http.StatusCreated)
	case !found:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodPatch:
		x.Metadata.Finalizers = nil
		o.objects[path] = x
	case r.Method == http.MethodDelete:
		if o.refuse {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if len(x.Metadata.Finalizers) == 0 {
			delete(o.objects, path)
			o.deleted++
		}
	}
}

// serve returns a client of this server.
func (o *objectServer) serve(t *testing.T) *Client {
	t.Helper()
	s := httptest.NewTLSServer(o)
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	c, err := NewClient(candidate.Access{URL: s.URL, CA: ca})
	fakes.Must(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestResetRemovesWhatTheServerDidNotMake(t *testing.T) {
	o := newObjectServer()
	o.add("/api/v1/namespaces/default/services/", "web", "10.96.0.7")
	o.add("/api/v1/namespaces/other/services/", "kubernetes", "10.96.0.8")
	o.add("/api/v1/namespaces/other/services/", "held", "10.96.0.9", "example.com/hold")
	o.add(ipAddressPath+"/", "10.96.0.200", "")
	o.add(serviceCIDRPath+"/", "more", "", "networking.k8s.io/service-cidr-finalizer")
	fakes.Must(t, o.serve(t).Reset(t.Context(), true))
	want := []string{"/api/v1/namespaces/default/services/kubernetes", ipAddressPath + "/10.96.0.1", serviceCIDRPath + "/kubernetes"}
	if got := slices.Sorted(maps.Keys(o.objects)); !slices.Equal(got, want) {
		t.Errorf("left: %v, want %v", got, want)
	}
}

func TestResetLooksAtServicesOnlyWhereThatIsAll(t *testing.T) {
	o := newObjectServer()
	o.add("/api/v1/namespaces/default/services/", "web", "10.96.0.7")
	o.add(ipAddressPath+"/", "10.96.0.200", "")
	fakes.Must(t, o.serve(t).Reset(t.Context(), false))
	if o.deleted != 1 {
		t.Errorf("%d objects deleted, want the Service", o.deleted)
	}
}

func TestResetWaitsUntilTheServerCanAllocate(t *testing.T) {
	o := newObjectServer()
	o.trials = 2
	fakes.Must(t, o.serve(t).Reset(t.Context(), true))
	if o.trials != 0 {
		t.Errorf("not asked %d times more", o.trials)
	}
}

func TestResetGivesUp(t *testing.T) {
	many := newObjectServer()
	for i := range resetLimit + 1 {
		many.add("/api/v1/namespaces/default/services/", fmt.Sprint("s", i), "10.97.0.1")
	}
	refusing := newObjectServer()
	refusing.add("/api/v1/namespaces/default/services/", "web", "10.96.0.7")
	refusing.refuse = true
	headless := newObjectServer()
	delete(headless.objects, "/api/v1/namespaces/default/services/kubernetes")
	for name, c := range map[string]struct {
		server *objectServer
		want   string
	}{
		"too many objects":        {many, "1001 objects"},
		"deletion refused":        {refusing, "403"},
		"without its own Service": {headless, "gone"},
	} {
		err := c.server.serve(t).Reset(t.Context(), true)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one about %q", name, err, c.want)
		}
		if c.server.deleted != 0 {
			t.Errorf("%s: %d objects deleted", name, c.server.deleted)
		}
	}
}
