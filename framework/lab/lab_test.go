package lab

import (
	"context"
	"errors"
	"github.com/service-conformance/conformance/framework/lab/fakes"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

// newFakeLab is a lab whose programs are fakes, with a folder of its own for temporary files.
func newFakeLab(t *testing.T) *Lab {
	t.Helper()
	programs := fakes.Install(t, "etcd", "kube-apiserver") // before temporary files go elsewhere
	// Not t.TempDir: its long path leaves no room for the path of a socket.
	tmp, err := os.MkdirTemp("", "lab-")
	fakes.Must(t, err)
	t.Cleanup(func() {
		if left, _ := filepath.Glob(filepath.Join(tmp, "*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		os.RemoveAll(tmp)
	})
	t.Setenv("TMPDIR", tmp)
	t.Setenv("TMP", tmp)
	l, err := New(t.Context(), Options{BinDir: programs, MaxServers: 4})
	fakes.Must(t, err)
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestLabLeasesControlPlanes(t *testing.T) {
	l := newFakeLab(t)
	cp, err := l.ControlPlane(t.Context(), candidate.Request{ServiceCIDRs: prefixes("10.96.0.0/24", "fd00::/112"), NodePorts: "31000-31100", Exclusive: true})
	fakes.Must(t, err)
	if first, last := cp.NodePorts(); first != 31000 || last != 31100 {
		t.Errorf("node ports %d-%d", first, last)
	}
	if c := cp.ServiceCIDRs(); len(c) != 2 || c[0].String() != "10.96.0.0/24" || c[1].String() != "fd00::/112" {
		t.Errorf("Service CIDRs %v", c)
	}
	c, err := newClient(cp.Access())
	fakes.Must(t, err)
	defer c.close()
	fakes.Must(t, c.get(t.Context(), kubernetesServicePath, nil))

	s := cp.(*controlPlane).server
	before := s.process.pid
	fakes.Must(t, cp.Restart(t.Context()))
	if s.process.pid == before {
		t.Error("restarted without a new process")
	}
	c.close()
	if err := c.get(t.Context(), kubernetesServicePath, nil); err != nil {
		t.Errorf("at the same place after the restart: %v", err)
	}
	if err := c.call(t.Context(), http.MethodPost, defaultServicesPath, "application/json", []byte(`{}`), nil); err != nil {
		t.Errorf("restarted before it could allocate: %v", err)
	}
	cp.Release()
	again, err := l.ControlPlane(t.Context(), candidate.Request{ServiceCIDRs: prefixes("10.96.0.0/24", "fd00::/112"), NodePorts: "31000-31100", Exclusive: true})
	fakes.Must(t, err)
	if again.Access().URL != cp.Access().URL {
		t.Error("the same ranges got another server")
	}
}

func TestLabPassesTheRangesToTheServer(t *testing.T) {
	l := newFakeLab(t)
	cp, err := l.ControlPlane(t.Context(), candidate.Request{ServiceCIDRs: prefixes("fd00::/112", "10.96.0.0/24"), NodePorts: "31000-31100"})
	fakes.Must(t, err)
	flags := fakes.ServerFlags(cp.(*controlPlane).server.args())
	for name, want := range map[string]string{
		"service-cluster-ip-range": "fd00::/112,10.96.0.0/24", "service-node-port-range": "31000-31100", "advertise-address": "2001:db8::1",
	} {
		if flags[name] != want {
			t.Errorf("--%s=%s, want %s", name, flags[name], want)
		}
	}
}

// People who use `lab up` and nodes get what a cluster serves; the checks need less.
func TestServersForChecksServeServicesOnly(t *testing.T) {
	l := newFakeLab(t)
	cp, err := l.ControlPlane(t.Context(), candidate.Request{})
	fakes.Must(t, err)
	mine := cp.(*controlPlane).server
	for _, c := range []struct {
		what          string
		minor         int
		reach         netip.Addr
		detached      bool
		authorization string
		without       string
	}{
		{"checks", 37, netip.Addr{}, false, "AlwaysAllow", "apps/v1=false"},
		{"nodes", 37, netip.MustParseAddr("10.0.0.1"), false, "RBAC", ""},
		{"lab up", 37, netip.Addr{}, true, "RBAC", ""},
		{"checks, of a version that starts later that way", 31, netip.Addr{}, false, "RBAC", ""},
	} {
		s := apiServer{version: version{Minor: c.minor}, binaries: mine.binaries, etcd: mine.etcd, ranges: mine.ranges, reach: c.reach, detached: c.detached}
		flags := fakes.ServerFlags(s.args())
		if without := flags["runtime-config"]; flags["authorization-mode"] != c.authorization || !strings.HasPrefix(without, c.without) || c.without == "" && without != "" {
			t.Errorf("for %s: --authorization-mode=%s --runtime-config=%s", c.what, flags["authorization-mode"], without)
		}
		if !strings.HasPrefix(flags["disable-admission-plugins"], "ServiceAccount") {
			t.Errorf("for %s: pods need accounts", c.what)
		}
	}
}

func TestSharedControlPlanesAreNotRestarted(t *testing.T) {
	l := newFakeLab(t)
	cp, err := l.ControlPlane(t.Context(), candidate.Request{})
	fakes.Must(t, err)
	if err := cp.Restart(t.Context()); err == nil {
		t.Error("no error")
	}
}

func TestLabReplacesServersThatDied(t *testing.T) {
	for _, victim := range []Component{APIServer, Etcd} {
		t.Run(string(victim), func(t *testing.T) {
			l := newFakeLab(t)
			cp, err := l.ControlPlane(t.Context(), candidate.Request{})
			fakes.Must(t, err)
			s := cp.(*controlPlane).server
			if victim == Etcd {
				s.etcd.process.kill()
			} else {
				s.process.kill()
			}
			if err := s.alive(); err == nil || !strings.Contains(err.Error(), string(victim)) {
				t.Errorf("the dead server says: %v", err)
			}
			other, err := l.ControlPlane(t.Context(), candidate.Request{})
			fakes.Must(t, err)
			if err := other.(*controlPlane).server.alive(); err != nil {
				t.Error(err)
			}
			cp.Release()
			other.Release()
		})
	}
}

func TestUnavailableRangesStartNothing(t *testing.T) {
	l := newFakeLab(t)
	if _, err := l.ControlPlane(t.Context(), candidate.Request{ServiceCIDRs: prefixes("10.96.0.0/30")}); !candidate.IsUnavailable(err) {
		t.Errorf("error %v", err)
	}
	if l.etcd != nil {
		t.Error("etcd was started")
	}
}

func TestAFailedStartSaysWhyAndLeavesNothing(t *testing.T) {
	l := newFakeLab(t)
	t.Setenv("FAKE_APISERVER_ERROR", "no such flag")
	if _, err := l.ControlPlane(t.Context(), candidate.Request{}); err == nil || !strings.Contains(err.Error(), "no such flag") {
		t.Errorf("error %v", err)
	}
	if n := len(l.dir.rec.Processes); n != 1 {
		t.Errorf("%d processes are recorded, want etcd", n)
	}
}

func TestCloseTwice(t *testing.T) {
	l := newFakeLab(t)
	cp, err := l.ControlPlane(t.Context(), candidate.Request{})
	fakes.Must(t, err)
	s := cp.(*controlPlane).server
	for range 2 {
		fakes.Must(t, l.Close(t.Context()))
	}
	if s.process.alive() || s.etcd.process.alive() {
		t.Error("a server survived")
	}
	cp.Release()
	if _, err := l.ControlPlane(t.Context(), candidate.Request{}); !errors.Is(err, errClosed) {
		t.Errorf("a request after Close: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	d := newFakeLab(t).Describe()
	if d.Implementation != "kubernetes" || d.Tier != "lab" || d.Version != DefaultVersion || d.Components["etcd"] != "3.7.0" || d.Components["go"] == "" {
		t.Errorf("%+v", d)
	}
	if !d.Has(spec.ServiceCIDRAPI) || !d.Has(spec.ExhaustibleRange) || d.Has(spec.DataPlane) {
		t.Errorf("capabilities %v", d.Capabilities)
	}
	t.Setenv("FAKE_VERSION", "v1.31.0")
	if d := newFakeLab(t).Describe(); d.Has(spec.ServiceCIDRAPI) || d.Has(spec.ManageServiceCIDRs) || d.Version != "v1.31.0" {
		t.Errorf("v1.31.0: %+v", d)
	}
}

func TestServiceCIDRControllerIsOfferedWithItsProgram(t *testing.T) {
	for _, c := range []struct {
		reported string
		programs []string
		want     bool
	}{
		{"v1.37.1", []string{"etcd", "kube-apiserver", "kube-controller-manager"}, true},
		{"v1.37.1", []string{"etcd", "kube-apiserver"}, false},
		{"v1.32.0", []string{"etcd", "kube-apiserver", "kube-controller-manager"}, false},
	} {
		t.Setenv("FAKE_VERSION", c.reported)
		l, err := New(t.Context(), Options{BinDir: fakes.Install(t, c.programs...)})
		fakes.Must(t, err)
		if d := l.Describe(); d.Has(spec.ServiceCIDRController) != c.want {
			t.Errorf("%s with %v: capabilities %v", c.reported, c.programs, d.Capabilities)
		}
		fakes.Must(t, l.Close(context.Background()))
	}
}

func TestBinariesOfTheUser(t *testing.T) {
	programs := fakes.Install(t, "etcd", "kube-apiserver")
	for name, c := range map[string]struct{ dir, reported, want, message string }{
		"any version":       {programs, "v1.36.3", "", ""},
		"as asked for":      {programs, "v1.36.3", "1.36.3", ""},
		"of a vendor":       {programs, "v1.34.2+vendor1", "v1.34.2", ""},
		"another version":   {programs, "v1.36.3", "v1.37.1", "not v1.37.1"},
		"without stamps":    {programs, "v0.0.0-master+$Format:%H$", "", "version stamps"},
		"malformed version": {programs, "v1.36.3", "newest", `"newest"`},
		"empty folder":      {t.TempDir(), "", "", "kube-apiserver"},
	} {
		t.Setenv("FAKE_VERSION", c.reported)
		_, b, err := binariesIn(t.Context(), c.dir, c.want, controlPlaneComponents, ServerOptions{})
		if c.message == "" {
			if err != nil || b.Version != c.reported {
				t.Errorf("%s: %+v, %v", name, b, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: error %v, want one about %q", name, err, c.message)
		}
	}
}

func TestServersThatFit(t *testing.T) {
	if n := serversThatFit(); n < 1 || n > maxServers {
		t.Errorf("%d servers", n)
	}
}
