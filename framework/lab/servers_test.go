package lab

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCommandsThatCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"/does/not/exist --flag":       "no program /does/not/exist",
		"no-such-program-of-anybody x": "no program no-such-program-of-anybody",
		dir:                            "is a folder",
		plain + " {node}":              "may not be executed",
		"":                             "",
		"/bin/sh -c 'echo {node}'":     "",
		"sleep 1":                      "",
		"if true; then echo; fi":       "",
		"VARIABLE=1 no-such-program":   "", // only a shell can tell
		"$HOME/no-such-program":        "",
	} {
		err := startable(command)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", command, err, want)
		}
	}
	o := Options{Servers: ServerOptions{EtcdCommand: "/does/not/exist"}}
	if err := Obtain(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), "etcd command: ") {
		t.Errorf("a lab with it: %v", err)
	}
}

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

func TestAServerCommandIsGivenTheFlagsAndAsked(t *testing.T) {
	script := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n[ \"$1 $2\" = \"own --version\" ] && echo Kubernetes v1.36.9+vendor\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	b := &Binaries{servers: ServerOptions{APIServerCommand: script + " own"}}
	if v, err := b.servedVersion(t.Context(), ""); err != nil || v != (version{36, 9}) || b.Version != "v1.36.9+vendor" {
		t.Errorf("%v, %v, %q", v, err, b.Version)
	}
	if _, err := b.servedVersion(t.Context(), "v1.37.1"); err == nil || !strings.Contains(err.Error(), "not v1.37.1 as asked for") {
		t.Errorf("another version than the one asked for: %v", err)
	}
}
