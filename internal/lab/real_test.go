//go:build lab

// Tests on the real programs, which are built on the first run: go test -tags lab ./internal/lab

package lab

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/internal/apiservers"
	"github.com/service-conformance/conformance/internal/lab/controlplane"
	"github.com/service-conformance/conformance/internal/lab/fakes"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

func newRealLab(t *testing.T) *Lab {
	t.Helper()
	l, err := New(t.Context(), Options{Version: os.Getenv("KUBERNETES_VERSION")})
	fakes.Must(t, err)
	t.Cleanup(func() { fakes.Must(t, l.Close(t.Context())) })
	return l
}

// TestTheServerRefusesWhatTheLabCallsUnavailable keeps the reasons that the lab gives true.
func TestTheServerRefusesWhatTheLabCallsUnavailable(t *testing.T) {
	l := newRealLab(t)
	for _, cidr := range []string{"10.96.0.0/30", "10.96.0.0/32", "fd00::/126"} {
		if _, err := l.ControlPlane(t.Context(), candidate.Request{ServiceCIDRs: fakes.Prefixes(cidr)}); !candidate.IsUnavailable(err) {
			t.Errorf("%s: %v, want unavailable", cidr, err)
		}
		_, err := l.start(t.Context(), apiservers.Ranges{Primary: fakes.Prefixes(cidr)[0], NodePorts: spec.DefaultNodePorts})
		if err == nil || !strings.Contains(err.Error(), "must be at least 8 IP addresses") {
			t.Errorf("%s: the real server says %v", cidr, err)
		}
	}
}

func TestRealControlPlane(t *testing.T) {
	l := newRealLab(t)
	q := candidate.Request{ServiceCIDRs: fakes.Prefixes("10.96.0.0/29", "fd00::/112"), Exclusive: true}
	cp, err := l.ControlPlane(t.Context(), q)
	fakes.Must(t, err)
	c := cp.(*controlplane.ControlPlane).Server.Client
	const services = "/api/v1/namespaces/default/services"
	create := func(name string) error {
		return c.Call(t.Context(), http.MethodPost, services, "application/json", []byte(`{"metadata":{"name":"`+name+`"},"spec":{"ports":[{"port":80}]}}`), nil)
	}
	for _, name := range []string{"a", "b", "c", "d", "e"} { // with "kubernetes" all usable addresses of the range
		fakes.Must(t, create(name))
	}
	if err := create("f"); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("one more: %v", err)
	}
	fakes.Must(t, cp.(candidate.ServerOwner).Restart(t.Context()))
	fakes.Must(t, c.Get(t.Context(), services+"/e", nil))
	cp.Release()

	cp, err = l.ControlPlane(t.Context(), q)
	fakes.Must(t, err)
	defer cp.Release()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		fakes.Must(t, create(name))
	}
}
