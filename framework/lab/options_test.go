package lab

import (
	"slices"
	"testing"
)

func TestReplacedProgramsAreNotBuilt(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want []Component
	}{
		{Options{}, []Component{Etcd, APIServer}},
		{Options{Servers: ServerOptions{EtcdCommand: "kine"}}, []Component{APIServer}},
		{Options{Servers: ServerOptions{APIServerCommand: "server"}}, []Component{Etcd}},
		{Options{BinDir: "d", DataPlane: true, Proxy: ProxyOptions{Command: "proxy"}, Servers: ServerOptions{EtcdCommand: "kine"}}, []Component{APIServer, ControllerManager}},
	} {
		if got := c.o.Components(); !slices.Equal(sorted(got), sorted(c.want)) {
			t.Errorf("%+v: %v, want %v", c.o, got, c.want)
		}
	}
	if want := []Component{Etcd, APIServer}; !slices.Equal(sorted(controlPlaneComponents), sorted(want)) {
		t.Errorf("the list itself has changed: %v", controlPlaneComponents)
	}
}

func sorted(c []Component) []Component { return slices.Sorted(slices.Values(c)) }

func TestComponentsOfALab(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		want    bool
	}{
		"with nodes":                 {Options{DataPlane: true}, true},
		"with a proxy of its own":    {Options{DataPlane: true, Proxy: ProxyOptions{Command: "proxy"}}, true},
		"of a folder":                {Options{DataPlane: true, BinDir: "bin"}, false}, // no user has to have one
		"with a control plane alone": {Options{}, false},
	} {
		if got := slices.Contains(c.options.Components(), CoreDNS); got != c.want {
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
		if got := slices.Contains(c.options.Components(), ServiceController); got != c.want {
			t.Errorf("%s: service controller %v, want %v", name, got, c.want)
		}
	}
}
