package lab

import (
	"slices"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/dataplane"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

func TestReplacedProgramsAreNotBuilt(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want []programs.Component
	}{
		{Options{}, []programs.Component{programs.Etcd, programs.APIServer, programs.ControllerManager}},
		{Options{BinDir: "d"}, []programs.Component{programs.Etcd, programs.APIServer}},
		{Options{Servers: programs.ServerOptions{EtcdCommand: "kine"}}, []programs.Component{programs.APIServer, programs.ControllerManager}},
		{Options{Servers: programs.ServerOptions{APIServerCommand: "server"}}, []programs.Component{programs.Etcd}},
		{Options{BinDir: "d", DataPlane: true, Proxy: dataplane.ProxyOptions{Command: "proxy"}, Servers: programs.ServerOptions{EtcdCommand: "kine"}}, []programs.Component{programs.APIServer, programs.ControllerManager}},
	} {
		if got := c.o.Components(); !slices.Equal(sorted(got), sorted(c.want)) {
			t.Errorf("%+v: %v, want %v", c.o, got, c.want)
		}
	}
	if want := []programs.Component{programs.Etcd, programs.APIServer}; !slices.Equal(sorted(programs.ControlPlaneComponents), sorted(want)) {
		t.Errorf("the list itself has changed: %v", programs.ControlPlaneComponents)
	}
}

func sorted(c []programs.Component) []programs.Component { return slices.Sorted(slices.Values(c)) }

func TestComponentsOfALab(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		want    bool
	}{
		"with nodes":                 {Options{DataPlane: true}, true},
		"with a proxy of its own":    {Options{DataPlane: true, Proxy: dataplane.ProxyOptions{Command: "proxy"}}, true},
		"of a folder":                {Options{DataPlane: true, BinDir: "bin"}, false}, // no user has to have one
		"with a control plane alone": {Options{}, false},
	} {
		if got := slices.Contains(c.options.Components(), programs.CoreDNS); got != c.want {
			t.Errorf("%s: CoreDNS %v, want %v", name, got, c.want)
		}
	}
}

func TestServiceControllerIsBuiltForLabsWithNodes(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		want    bool
	}{
		"with nodes":                 {Options{DataPlane: true}, true},
		"of a folder":                {Options{DataPlane: true, BinDir: "bin"}, false}, // no user has to have one
		"with a control plane alone": {Options{}, false},
	} {
		if got := slices.Contains(c.options.Components(), programs.ServiceController); got != c.want {
			t.Errorf("%s: service controller %v, want %v", name, got, c.want)
		}
	}
}
