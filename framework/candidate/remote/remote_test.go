package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/candidate"
)

// stub is a candidate whose control planes remember what was asked of them.
type stub struct {
	requests []candidate.Request
	released chan string
	fail     error
}

func (s *stub) Describe() candidate.Description {
	return candidate.Description{Implementation: "stub", Version: "v1.37.1"}
}
func (s *stub) Close(context.Context) error {
	return errors.New("the candidate belongs to its own program")
}
func (s *stub) ControlPlane(_ context.Context, r candidate.Request) (candidate.ControlPlane, error) {
	if s.fail != nil {
		return nil, s.fail
	}
	s.requests = append(s.requests, r)
	return &stubPlane{s, r}, nil
}

func (s *stub) DataPlane(context.Context, candidate.DataPlaneRequest) (candidate.DataPlane, error) {
	return nil, candidate.Unavailable("no data plane")
}

type stubPlane struct {
	stub    *stub
	request candidate.Request
}

func (p *stubPlane) Access() candidate.Access {
	return candidate.Access{URL: "https://127.0.0.1:1", CA: []byte("ca"), Token: "t"}
}
func (p *stubPlane) ServiceCIDRs() []netip.Prefix { return p.request.ServiceCIDRs }
func (p *stubPlane) NodePorts() (first, last int) { return 1, 2 }
func (p *stubPlane) AnotherServer(_ context.Context, gates map[string]bool) (candidate.Access, error) {
	return candidate.Access{URL: fmt.Sprint(gates)}, nil
}
func (p *stubPlane) Restart(context.Context, ...netip.Prefix) error {
	return errors.New("does not restart")
}
func (p *stubPlane) Alive(context.Context) error {
	return errors.New("the proxy of " + p.request.NodePorts + " ended")
}
func (p *stubPlane) Release() { p.stub.released <- p.request.NodePorts }

func TestCandidateIsTheSameAcrossProcesses(t *testing.T) {
	c := &stub{released: make(chan string, 1)}
	events := make(chan string, 1)
	server, err := Serve(c, map[string]int{"answer": 42}, func(raw json.RawMessage) { events <- string(raw) })
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	var settings map[string]int
	if err := client.Settings(&settings); err != nil || settings["answer"] != 42 {
		t.Errorf("settings %v, %v", settings, err)
	}
	if d := client.Describe(); d.Implementation != "stub" {
		t.Errorf("description %+v", d)
	}
	if err := client.Post("hello"); err != nil || strings.TrimSpace(<-events) != `"hello"` {
		t.Errorf("event: %v", err)
	}
	request := candidate.Request{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("fd00::/112"), netip.MustParsePrefix("10.0.0.0/24")}, NodePorts: "1-2", Exclusive: true}
	cp, err := client.ControlPlane(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.requests[0]; !got.Exclusive || got.NodePorts != "1-2" || !slices.Equal(got.ServiceCIDRs, request.ServiceCIDRs) {
		t.Errorf("the request arrived as %+v", got)
	}
	if first, last := cp.NodePorts(); cp.Access().Token != "t" || string(cp.Access().CA) != "ca" || first != 1 || last != 2 || !slices.Equal(cp.ServiceCIDRs(), request.ServiceCIDRs) {
		t.Errorf("the control plane arrived as %+v", cp)
	}
	if err := cp.(candidate.ServerOwner).Restart(t.Context()); err == nil || err.Error() != "does not restart" {
		t.Errorf("restart: %v", err)
	}
	if a, err := cp.(candidate.ServerOwner).AnotherServer(t.Context(), map[string]bool{"Gate": true}); err != nil || a.URL != "map[Gate:true]" {
		t.Errorf("another server: %+v, %v", a, err)
	}
	if err := cp.(candidate.Living).Alive(t.Context()); err == nil || err.Error() != "the proxy of 1-2 ended" {
		t.Errorf("alive: %v", err)
	}
	cp.Release()
	if got := <-c.released; got != "1-2" {
		t.Errorf("released %q", got)
	}
	if err := client.Close(t.Context()); err != nil {
		t.Errorf("a worker must not close the candidate: %v", err)
	}
}

func TestUnavailableStaysDistinctFromBroken(t *testing.T) {
	c := &stub{fail: candidate.Unavailable("too small")}
	server, err := Serve(c, nil, func(json.RawMessage) {})
	if err != nil {
		t.Fatal(err)
	}
	client, err := Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ControlPlane(t.Context(), candidate.Request{}); !candidate.IsUnavailable(err) || err.Error() != "too small" {
		t.Errorf("unavailable arrived as %v", err)
	}
	c.fail = errors.New("no memory")
	if _, err := client.ControlPlane(t.Context(), candidate.Request{}); candidate.IsUnavailable(err) || err == nil || err.Error() != "no memory" {
		t.Errorf("a broken environment arrived as %v", err)
	}
	done := make(chan struct{})
	go func() { _ = client.Interrupted(); close(done) }()
	server.Interrupt()
	<-done
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ControlPlane(t.Context(), candidate.Request{}); err == nil || candidate.IsUnavailable(err) {
		t.Errorf("a parent that is gone arrived as %v", err)
	}
}
