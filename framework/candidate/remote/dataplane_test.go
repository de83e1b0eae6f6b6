package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
)

// planeStub is a candidate with one data plane, which it remembers the leases of.
type planeStub struct {
	*stub
	plane     *recorder
	dualStack []bool
}

func (s *planeStub) DataPlane(_ context.Context, r candidate.DataPlaneRequest) (candidate.DataPlane, error) {
	if s.fail != nil {
		return nil, s.fail
	}
	s.dualStack = append(s.dualStack, r.DualStack)
	return s.plane, nil
}

// call is a method with its arguments.
type call struct {
	method    string
	arguments []any
}

// recorder is a data plane that remembers what it was asked and gives prepared results.
type recorder struct {
	stubPlane
	nodes     []candidate.Node
	addresses []netip.Addr
	calls     []call
	fail      error
	wait      chan struct{} // Pass tells here that it waits for the end of its context

	pod      candidate.Pod
	outcomes [][]candidate.Outcome
	said     []candidate.Resolution
	text     string
	env      []string
	node     candidate.Node
	state    candidate.ProxyState
}

func (r *recorder) note(method string, arguments ...any) error {
	r.calls = append(r.calls, call{method, arguments})
	return r.fail
}

func (r *recorder) Nodes() []candidate.Node         { return r.nodes }
func (r *recorder) ExternalAddresses() []netip.Addr { return r.addresses }
func (r *recorder) StartPod(_ context.Context, pod candidate.Pod) (candidate.Pod, error) {
	return r.pod, r.note("StartPod", pod)
}
func (r *recorder) LendPod(_ context.Context, node string, ports []candidate.PodPort) (candidate.Pod, error) {
	return r.pod, r.note("LendPod", node, ports)
}
func (r *recorder) SetReady(_ context.Context, pod candidate.PodName, ready bool) error {
	return r.note("SetReady", pod, ready)
}
func (r *recorder) AnswerReadiness(_ context.Context, pod candidate.PodName, ready bool) error {
	return r.note("AnswerReadiness", pod, ready)
}
func (r *recorder) Environment(_ context.Context, pod candidate.PodName) ([]string, error) {
	return r.env, r.note("Environment", pod)
}
func (r *recorder) Terminate(_ context.Context, pod candidate.PodName) error {
	return r.note("Terminate", pod)
}
func (r *recorder) Kill(_ context.Context, pod candidate.PodName) error { return r.note("Kill", pod) }
func (r *recorder) Remove(_ context.Context, pod candidate.PodName) error {
	return r.note("Remove", pod)
}
func (r *recorder) Send(_ context.Context, probes []candidate.Probe) ([][]candidate.Outcome, error) {
	return r.outcomes, r.note("Send", probes)
}
func (r *recorder) Resolve(_ context.Context, questions []candidate.Question) ([]candidate.Resolution, error) {
	return r.said, r.note("Resolve", questions)
}
func (r *recorder) Pass(ctx context.Context, d time.Duration) error {
	if r.wait != nil {
		r.wait <- struct{}{}
		<-ctx.Done()
		r.wait <- struct{}{}
		return ctx.Err()
	}
	return r.note("Pass", d)
}
func (r *recorder) Diagnose(_ context.Context, to netip.AddrPort) (string, error) {
	return r.text, r.note("Diagnose", to)
}
func (r *recorder) AddNode(_ context.Context, node candidate.Node, proxy candidate.ProxyConfiguration) (candidate.Node, error) {
	return r.node, r.note("AddNode", node, proxy)
}
func (r *recorder) StartProxy(_ context.Context, node string, proxy candidate.ProxyConfiguration) error {
	return r.note("StartProxy", node, proxy)
}
func (r *recorder) StopControllers(context.Context) error          { return r.note("StopControllers") }
func (r *recorder) StartControllers(context.Context) error         { return r.note("StartControllers") }
func (r *recorder) StopProxy(_ context.Context, node string) error { return r.note("StopProxy", node) }
func (r *recorder) ProxyState(_ context.Context, node string) (candidate.ProxyState, error) {
	return r.state, r.note("ProxyState", node)
}
func (r *recorder) Interfere(_ context.Context, node string, what candidate.Interference) error {
	return r.note("Interfere", node, what)
}

// full returns a value whose every field differs from zero and from the others: a field that is not carried shows.
func full[T any](t *testing.T, seed string) T {
	t.Helper()
	var v T
	serial := 0
	fill(t, reflect.ValueOf(&v).Elem(), seed, &serial)
	return v
}

func fill(t *testing.T, v reflect.Value, seed string, serial *int) {
	t.Helper()
	*serial++
	switch v.Interface().(type) {
	case netip.Addr:
		v.Set(reflect.ValueOf(netip.AddrFrom4([4]byte{10, byte(len(seed)), 0, byte(*serial)})))
		return
	case netip.AddrPort:
		v.Set(reflect.ValueOf(netip.MustParseAddrPort(fmt.Sprintf("[fd00::%x]:%d", *serial, *serial))))
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(int64(*serial), 5).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field, seed, serial)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), seed, serial)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i), seed, serial)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, seed, serial)
		fill(t, value, seed, serial)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprintf("%s-%d", seed, *serial))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*serial))
	default:
		t.Fatalf("no value for a field of type %s", v.Type())
	}
}

// servePlane serves the stub, and dials it.
func servePlane(t *testing.T, s *planeStub) *Client {
	t.Helper()
	server, err := Serve(s, nil, func(json.RawMessage) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	client, err := Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// leasePlane takes the data plane of a stub that is served.
func leasePlane(t *testing.T, s *planeStub) planeWithNodes {
	t.Helper()
	plane, err := servePlane(t, s).DataPlane(t.Context(), candidate.DataPlaneRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return plane.(planeWithNodes)
}

// planeWithNodes has all methods of a data plane, of which some are optional.
type planeWithNodes interface {
	candidate.DataPlane
	candidate.NodeOwner
}

// method is a call of a data plane: what it must arrive as, and what must come back.
type method struct {
	call    call
	do      func(context.Context, planeWithNodes) (any, error)
	results func(*recorder) any // nil where there is none but the error
}

func methodsOf(t *testing.T) map[string]method {
	pod, name := full[candidate.Pod](t, "pod"), full[candidate.PodName](t, "name")
	probes, to := full[[]candidate.Probe](t, "probe"), netip.MustParseAddrPort("[fd00::7]:80")
	questions := full[[]candidate.Question](t, "question")
	node, proxy := full[candidate.Node](t, "node"), full[candidate.ProxyConfiguration](t, "proxy")
	type plane = planeWithNodes
	return map[string]method{
		"StartPod": {
			call{"StartPod", []any{pod}}, func(ctx context.Context, p plane) (any, error) { return p.StartPod(ctx, pod) },
			func(r *recorder) any { return r.pod },
		},
		"LendPod": {
			call{"LendPod", []any{node.Name, pod.Ports}}, func(ctx context.Context, p plane) (any, error) { return p.LendPod(ctx, node.Name, pod.Ports) },
			func(r *recorder) any { return r.pod },
		},
		"SetReady": {
			call{"SetReady", []any{name, true}}, func(ctx context.Context, p plane) (any, error) { return nil, p.SetReady(ctx, name, true) }, nil,
		},
		"SetReady to false": {
			call{"SetReady", []any{name, false}}, func(ctx context.Context, p plane) (any, error) { return nil, p.SetReady(ctx, name, false) }, nil,
		},
		"AnswerReadiness": {
			call{"AnswerReadiness", []any{name, true}}, func(ctx context.Context, p plane) (any, error) { return nil, p.AnswerReadiness(ctx, name, true) }, nil,
		},
		"Environment": {
			call{"Environment", []any{name}}, func(ctx context.Context, p plane) (any, error) { return p.Environment(ctx, name) },
			func(r *recorder) any { return r.env },
		},
		"Terminate": {call{"Terminate", []any{name}}, func(ctx context.Context, p plane) (any, error) { return nil, p.Terminate(ctx, name) }, nil},
		"Kill":      {call{"Kill", []any{name}}, func(ctx context.Context, p plane) (any, error) { return nil, p.Kill(ctx, name) }, nil},
		"Remove":    {call{"Remove", []any{name}}, func(ctx context.Context, p plane) (any, error) { return nil, p.Remove(ctx, name) }, nil},
		"Send": {
			call{"Send", []any{probes}}, func(ctx context.Context, p plane) (any, error) { return p.Send(ctx, probes) },
			func(r *recorder) any { return r.outcomes },
		},
		"Resolve": {
			call{"Resolve", []any{questions}}, func(ctx context.Context, p plane) (any, error) { return p.Resolve(ctx, questions) },
			func(r *recorder) any { return r.said },
		},
		"Pass": {call{"Pass", []any{time.Hour + 1}}, func(ctx context.Context, p plane) (any, error) { return nil, p.Pass(ctx, time.Hour+1) }, nil},
		"Diagnose": {
			call{"Diagnose", []any{to}}, func(ctx context.Context, p plane) (any, error) { return p.Diagnose(ctx, to) },
			func(r *recorder) any { return r.text },
		},
		"AddNode": {
			call{"AddNode", []any{node, proxy}}, func(ctx context.Context, p plane) (any, error) { return p.AddNode(ctx, node, proxy) },
			func(r *recorder) any { return r.node },
		},
		"StartProxy": {
			call{"StartProxy", []any{"n", proxy}}, func(ctx context.Context, p plane) (any, error) { return nil, p.StartProxy(ctx, "n", proxy) }, nil,
		},
		"StopControllers": {
			call{"StopControllers", nil}, func(ctx context.Context, p plane) (any, error) {
				return nil, p.(candidate.ControllerOwner).StopControllers(ctx)
			}, nil,
		},
		"StartControllers": {
			call{"StartControllers", nil}, func(ctx context.Context, p plane) (any, error) {
				return nil, p.(candidate.ControllerOwner).StartControllers(ctx)
			}, nil,
		},
		"StopProxy": {call{"StopProxy", []any{"n"}}, func(ctx context.Context, p plane) (any, error) { return nil, p.StopProxy(ctx, "n") }, nil},
		"ProxyState": {
			call{"ProxyState", []any{"n"}}, func(ctx context.Context, p plane) (any, error) { return p.ProxyState(ctx, "n") },
			func(r *recorder) any { return r.state },
		},
		"Interfere": {
			call{"Interfere", []any{"n", candidate.FlushRules}},
			func(ctx context.Context, p plane) (any, error) {
				return nil, p.Interfere(ctx, "n", candidate.FlushRules)
			}, nil,
		},
	}
}

func TestEachMethodOfADataPlaneIsCarried(t *testing.T) {
	methods := methodsOf(t)
	carried := map[string]bool{"Nodes": true, "ExternalAddresses": true} // with the lease
	for _, m := range methods {
		carried[m.call.method] = true
	}
	whole, base := reflect.TypeFor[planeWithNodes](), reflect.TypeFor[candidate.ControlPlane]()
	for method := range whole.Methods() {
		name := method.Name
		if _, inherited := base.MethodByName(name); !inherited && !carried[name] {
			t.Errorf("%s is not tried here", name)
		}
	}
	for name, m := range methods {
		t.Run(name, func(t *testing.T) {
			r := &recorder{
				pod: full[candidate.Pod](t, "started"), outcomes: full[[][]candidate.Outcome](t, "outcome"), said: full[[]candidate.Resolution](t, "said"),
				text: "what the nodes know\nof it", env: []string{"A=1", "B=two\nlines"},
				node: full[candidate.Node](t, "added"), state: full[candidate.ProxyState](t, "state"),
			}
			plane := leasePlane(t, &planeStub{stub: &stub{}, plane: r})
			got, err := m.do(t.Context(), plane)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.calls) != 1 || !reflect.DeepEqual(r.calls[0], m.call) {
				t.Errorf("arrived as\n%+v, want\n%+v", r.calls, m.call)
			}
			if m.results != nil && !reflect.DeepEqual(got, m.results(r)) {
				t.Errorf("the result came back as\n%+v, want\n%+v", got, m.results(r))
			}

			r.fail = errors.New("no memory")
			got, err = m.do(t.Context(), plane)
			if err == nil || err.Error() != "no memory" || candidate.IsUnavailable(err) {
				t.Errorf("a broken environment came back as %v", err)
			}
			if got != nil && !reflect.ValueOf(got).IsZero() {
				t.Errorf("a result came back beside an error: %+v", got)
			}
			r.fail = fmt.Errorf("node n: %w", candidate.Unavailable("no such kernel"))
			if _, err = m.do(t.Context(), plane); !candidate.IsUnavailable(err) || err.Error() != "node n: no such kernel" {
				t.Errorf("unavailable came back as %v", err)
			}
		})
	}
}

func TestLeaseOfADataPlaneIsCarried(t *testing.T) {
	r := &recorder{nodes: full[[]candidate.Node](t, "node"), addresses: []netip.Addr{netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("2001:db8::1")}}
	r.stubPlane = stubPlane{&stub{released: make(chan string, 1)}, candidate.Request{
		NodePorts: "the data plane", ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("fd00::/112")},
	}}
	s := &planeStub{stub: &stub{}, plane: r}
	client := servePlane(t, s)
	plane, err := client.DataPlane(t.Context(), candidate.DataPlaneRequest{DualStack: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.DataPlane(t.Context(), candidate.DataPlaneRequest{}); err != nil || !slices.Equal(s.dualStack, []bool{true, false}) {
		t.Errorf("the requests arrived as dual stack %v, %v", s.dualStack, err)
	}
	if !reflect.DeepEqual(plane.Nodes(), r.nodes) {
		t.Errorf("the nodes arrived as %+v, want %+v", plane.Nodes(), r.nodes)
	}
	if !slices.Equal(plane.ExternalAddresses(), r.addresses) {
		t.Errorf("the external addresses arrived as %v", plane.ExternalAddresses())
	}
	if first, last := plane.NodePorts(); first != 1 || last != 2 || plane.Access().Token != "t" || !slices.Equal(plane.ServiceCIDRs(), r.ServiceCIDRs()) {
		t.Errorf("the control plane of the data plane arrived as %+v", plane)
	}
	if err := plane.(candidate.ServerOwner).Restart(t.Context()); err == nil || err.Error() != "does not restart" {
		t.Errorf("restart: %v", err)
	}
	plane.Release()
	if got := <-r.stubPlane.stub.released; got != "the data plane" {
		t.Errorf("released %q", got)
	}
	plane.Release() // a lease that is given back is given back once
	if err := plane.Kill(t.Context(), candidate.PodName{Name: "p"}); err == nil || candidate.IsUnavailable(err) || len(r.calls) > 0 {
		t.Errorf("a method of a lease that was given back: %v, arrived as %+v", err, r.calls)
	}
	if len(r.stubPlane.stub.released) > 0 {
		t.Error("released twice")
	}
}

func TestDataPlaneThatCannotBeLeased(t *testing.T) {
	s := &planeStub{stub: &stub{fail: candidate.Unavailable("no network namespaces")}}
	client := servePlane(t, s)
	if p, err := client.DataPlane(t.Context(), candidate.DataPlaneRequest{}); p != nil || !candidate.IsUnavailable(err) || err.Error() != "no network namespaces" {
		t.Errorf("unavailable arrived as %v, %v", p, err)
	}
	s.fail = errors.New("no memory")
	if p, err := client.DataPlane(t.Context(), candidate.DataPlaneRequest{}); p != nil || err == nil || candidate.IsUnavailable(err) || err.Error() != "no memory" {
		t.Errorf("a broken environment arrived as %v, %v", p, err)
	}
}

func TestControlPlaneHasNoMethodsOfADataPlane(t *testing.T) {
	client := servePlane(t, &planeStub{stub: &stub{released: make(chan string, 1)}})
	cp, err := client.ControlPlane(t.Context(), candidate.Request{})
	if err != nil {
		t.Fatal(err)
	}
	d := &dataPlane{*cp.(*leased)}
	if err := d.Pass(t.Context(), time.Second); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("got %v", err)
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	r := &recorder{wait: make(chan struct{})}
	plane := leasePlane(t, &planeStub{stub: &stub{}, plane: r})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- plane.Pass(ctx, time.Hour) }()
	<-r.wait
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-r.wait // the data plane has seen the end of the context too
}

// A check that has run out of time says so, and does not accuse the program that holds the candidate.
func TestCallEndsWithTheCauseOfItsContext(t *testing.T) {
	r := &recorder{wait: make(chan struct{})}
	plane := leasePlane(t, &planeStub{stub: &stub{}, plane: r})
	late := errors.New("the check has timed out")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error)
	go func() { ended <- plane.Pass(ctx, time.Hour) }()
	<-r.wait
	cancel(late)
	if err := <-ended; !errors.Is(err, late) || strings.Contains(err.Error(), "does not answer") {
		t.Errorf("got %v", err)
	}
	<-r.wait
}
