package check

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
)

// hasty is an API server of one Service. Of requests that write, it gives up the first of each method, having carried it out.
type hasty struct {
	code   int    // by which it gives up
	says   string // and its message
	taken  int    // its answer to the creation of what there is
	stored *corev1.Service
	going  bool     // whether it waits for the last finalizer to be removed
	asked  []string // methods
}

func (h *hasty) RoundTrip(q *http.Request) (*http.Response, error) {
	first := !slices.Contains(h.asked, q.Method)
	h.asked = append(h.asked, q.Method)
	code := http.StatusOK
	switch {
	case q.Method == http.MethodPost && h.stored != nil:
		code = h.taken
	case q.Method == http.MethodPost:
		h.stored = &corev1.Service{}
		if err := json.NewDecoder(q.Body).Decode(h.stored); err != nil {
			return nil, err
		}
		h.stored.Spec.ClusterIP = "10.0.0.1"
	case h.stored == nil:
		code = http.StatusNotFound
	case q.Method == http.MethodPatch && h.going:
		h.stored = nil
	case q.Method == http.MethodPatch:
		if err := json.NewDecoder(q.Body).Decode(h.stored); err != nil {
			return nil, err
		}
	case q.Method == http.MethodDelete:
		h.stored = nil
	}
	if first && q.Method != http.MethodGet {
		code = h.code
	}
	body := fmt.Appendf(nil, `{"kind":"Status","status":"Failure","message":%q}`, h.says)
	if code == http.StatusOK && h.stored != nil {
		body, _ = json.Marshal(h.stored)
	}
	return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(string(body))), Request: q}, nil
}

func networkOf(server http.RoundTripper) *Network {
	cp := &ControlPlane{journal: &journal{}, serial: &atomic.Int64{}, http: &http.Client{Transport: server}, base: "http://server", spaces: []string{"ns"}}
	return &Network{ControlPlane: cp, exposed: map[string]bool{}}
}

// TestServicesAreInsistedOn arranges Services against an API server that carries requests out, and then gives them up.
func TestServicesAreInsistedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the pauses take no time
		insistOnServices(t, &hasty{code: http.StatusGatewayTimeout, says: "gave it up", taken: http.StatusConflict})
		insistOnServices(t, &hasty{code: http.StatusGatewayTimeout, says: "gave it up", taken: http.StatusUnprocessableEntity}) // its address is allocated
		insistOnServices(t, &hasty{code: http.StatusForbidden, taken: http.StatusConflict, says: `services "app" is forbidden: the server was unable to return a response in the time allotted, but may still be processing the request`})
	})
}

func insistOnServices(t *testing.T, server *hasty) {
	t.Helper()
	n := networkOf(server)
	if svc := n.Expose(t.Context(), Service("app")); svc == nil || svc.Spec.ClusterIP != "10.0.0.1" || !n.exposed["10.0.0.1"] {
		t.Errorf("exposed %v", svc)
	}
	if svc := n.Change(t.Context(), "app", `{"spec":{"externalIPs":["192.0.2.1"]}}`); svc == nil || !slices.Equal(svc.Spec.ExternalIPs, []string{"192.0.2.1"}) {
		t.Errorf("changed into %v", svc)
	}
	n.Unexpose(t.Context(), "app")
	if want := []string{"POST", "POST", "GET", "PATCH", "PATCH", "DELETE", "DELETE"}; !slices.Equal(server.asked, want) || server.stored != nil {
		t.Errorf("asked %q, want %q; stored %v", server.asked, want, server.stored)
	}
}

// TestLastFinalizerIsInsistedOn demands that a Service that is gone with its last finalizer is what was asked for.
func TestLastFinalizerIsInsistedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &hasty{code: http.StatusGatewayTimeout, says: "gave it up", stored: &corev1.Service{}, going: true}
		networkOf(server).LetGo(t.Context(), "app")
		if want := []string{"PATCH", "PATCH"}; !slices.Equal(server.asked, want) {
			t.Errorf("asked %q, want %q", server.asked, want)
		}
	})
}

// TestRefusedArrangementsAreNotInsistedOn demands that what is there before the first request, or is not there, ends the check.
func TestRefusedArrangementsAreNotInsistedOn(t *testing.T) {
	for name, c := range map[string]struct {
		code    int
		arrange func(*Network)
	}{
		"another Service of the name": {http.StatusConflict, func(n *Network) { n.Expose(t.Context(), Service("app")) }},
		"no such Service":             {http.StatusNotFound, func(n *Network) { n.Unexpose(t.Context(), "app") }},
		"no finalizers":               {http.StatusNotFound, func(n *Network) { n.LetGo(t.Context(), "app") }},
		"no credentials":              {http.StatusUnauthorized, func(n *Network) { n.Change(t.Context(), "app", `{}`) }},
	} {
		asked := 0
		n := networkOf(answers(func(string) int {
			asked++
			return c.code
		}))
		if !ends(func() { c.arrange(n) }) || asked != 1 {
			t.Errorf("%s: asked %d times", name, asked)
		}
	}
}

// TestArrangementsEnd demands that an API server that gives everything up ends the check.
func TestArrangementsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the pauses take no time
		for _, code := range []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
			asked := 0
			n := networkOf(answers(func(string) int {
				asked++
				return code
			}))
			if !ends(func() { n.Expose(t.Context(), Service("app")) }) || asked < 2 {
				t.Errorf("%d: asked %d times", code, asked)
			}
		}
	})
}

// ends reports whether what a check does ends it.
func ends(do func()) (ended bool) {
	defer func() { ended = recover() != nil }()
	do()
	return false
}
