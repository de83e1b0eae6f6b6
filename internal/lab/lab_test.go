package lab

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/internal/apiservers"
	"github.com/service-conformance/conformance/internal/lab/controlplane"
	"github.com/service-conformance/conformance/internal/lab/fakes"
	"github.com/service-conformance/conformance/internal/lab/programs"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

// newFakeLab is a lab whose programs are fakes, with a folder of its own for temporary files.
func newFakeLab(t *testing.T) *Lab {
	t.Helper()
	folder := fakes.Install(t, "etcd", "kube-apiserver") // before temporary files go elsewhere
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
	l, err := New(t.Context(), Options{BinDir: folder, MaxServers: 4})
	fakes.Must(t, err)
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestResidueOfALabIsNone(t *testing.T) {
	l := newFakeLab(t)
	_, err := l.ControlPlane(t.Context(), candidate.Request{})
	fakes.Must(t, err)
	ran := l.Dir.Processes()
	r, err := l.CloseAndAccount(t.Context(), "")
	if err != nil || len(r.Left) > 0 || len(r.Looked) == 0 {
		t.Errorf("residue %+v, error %v", r, err)
	}
	for _, p := range ran {
		if p.Identity().Alive() {
			t.Errorf("%s runs, and the residue does not name it", p.Name)
		}
	}
	if len(ran) == 0 {
		t.Error("nothing ran that could have been left")
	}
}

func TestLabLeasesControlPlanes(t *testing.T) {
	l := newFakeLab(t)
	cp, err := l.ControlPlane(t.Context(), candidate.Request{ServiceCIDRs: fakes.Prefixes("10.96.0.0/24", "fd00::/112"), NodePorts: "31000-31100", Exclusive: true})
	fakes.Must(t, err)
	if first, last := cp.NodePorts(); first != 31000 || last != 31100 {
		t.Errorf("node ports %d-%d", first, last)
	}
	if c := cp.ServiceCIDRs(); len(c) != 2 || c[0].String() != "10.96.0.0/24" || c[1].String() != "fd00::/112" {
		t.Errorf("Service CIDRs %v", c)
	}
	c, err := apiservers.NewClient(cp.Access())
	fakes.Must(t, err)
	defer c.Close()
	fakes.Must(t, c.Get(t.Context(), apiservers.KubernetesServicePath, nil))

	s := cp.(*controlplane.ControlPlane).Server
	before := s.Process.PID
	fakes.Must(t, cp.(candidate.ServerOwner).Restart(t.Context()))
	if s.Process.PID == before {
		t.Error("restarted without a new process")
	}
	c.Close()
	if err := c.Get(t.Context(), apiservers.KubernetesServicePath, nil); err != nil {
		t.Errorf("at the same place after the restart: %v", err)
	}
	if err := c.Call(t.Context(), http.MethodPost, apiservers.DefaultServicesPath, "application/json", []byte(`{}`), nil); err != nil {
		t.Errorf("restarted before it could allocate: %v", err)
	}
	cp.Release()
	again, err := l.ControlPlane(t.Context(), candidate.Request{ServiceCIDRs: fakes.Prefixes("10.96.0.0/24", "fd00::/112"), NodePorts: "31000-31100", Exclusive: true})
	fakes.Must(t, err)
	if again.Access().URL != cp.Access().URL {
		t.Error("the same ranges got another server")
	}
}

func TestLabPassesTheRangesToTheServer(t *testing.T) {
	l := newFakeLab(t)
	cp, err := l.ControlPlane(t.Context(), candidate.Request{ServiceCIDRs: fakes.Prefixes("fd00::/112", "10.96.0.0/24"), NodePorts: "31000-31100"})
	fakes.Must(t, err)
	flags := fakes.ServerFlags(cp.(*controlplane.ControlPlane).Server.Args())
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
	mine := cp.(*controlplane.ControlPlane).Server
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
		s := controlplane.APIServer{Version: programs.Version{Minor: c.minor}, Binaries: mine.Binaries, Etcd: mine.Etcd, Ranges: mine.Ranges, Reach: c.reach, Detached: c.detached}
		flags := fakes.ServerFlags(s.Args())
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
	if err := cp.(candidate.ServerOwner).Restart(t.Context()); err == nil {
		t.Error("no error")
	}
}

func TestLabReplacesServersThatDied(t *testing.T) {
	for _, victim := range []programs.Component{programs.APIServer, programs.Etcd} {
		t.Run(string(victim), func(t *testing.T) {
			l := newFakeLab(t)
			cp, err := l.ControlPlane(t.Context(), candidate.Request{})
			fakes.Must(t, err)
			s := cp.(*controlplane.ControlPlane).Server
			if victim == programs.Etcd {
				s.Etcd.Process.Kill()
			} else {
				s.Process.Kill()
			}
			if err := s.Alive(); err == nil || !strings.Contains(err.Error(), string(victim)) {
				t.Errorf("the dead server says: %v", err)
			}
			other, err := l.ControlPlane(t.Context(), candidate.Request{})
			fakes.Must(t, err)
			if err := other.(*controlplane.ControlPlane).Server.Alive(); err != nil {
				t.Error(err)
			}
			cp.Release()
			other.Release()
		})
	}
}

func TestUnavailableRangesStartNothing(t *testing.T) {
	l := newFakeLab(t)
	if _, err := l.ControlPlane(t.Context(), candidate.Request{ServiceCIDRs: fakes.Prefixes("10.96.0.0/30")}); !candidate.IsUnavailable(err) {
		t.Errorf("error %v", err)
	}
	if l.Etcd != nil {
		t.Error("etcd was started")
	}
}

func TestAFailedStartSaysWhyAndLeavesNothing(t *testing.T) {
	l := newFakeLab(t)
	t.Setenv("FAKE_APISERVER_ERROR", "no such flag")
	if _, err := l.ControlPlane(t.Context(), candidate.Request{}); err == nil || !strings.Contains(err.Error(), "no such flag") {
		t.Errorf("error %v", err)
	}
	if n := len(l.Dir.Record.Processes); n != 1 {
		t.Errorf("%d processes are recorded, want etcd", n)
	}
}

func TestCloseTwice(t *testing.T) {
	l := newFakeLab(t)
	cp, err := l.ControlPlane(t.Context(), candidate.Request{})
	fakes.Must(t, err)
	s := cp.(*controlplane.ControlPlane).Server
	for range 2 {
		fakes.Must(t, l.Close(t.Context()))
	}
	if s.Process.Alive() || s.Etcd.Process.Alive() {
		t.Error("a server survived")
	}
	cp.Release()
	if _, err := l.ControlPlane(t.Context(), candidate.Request{}); !errors.Is(err, apiservers.ErrClosed) {
		t.Errorf("a request after Close: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	d := newFakeLab(t).Describe()
	if d.Implementation != "kubernetes" || d.Tier != "lab" || d.Version != programs.DefaultVersion || d.Components["etcd"] != "3.7.0" || d.Components["go"] == "" {
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
