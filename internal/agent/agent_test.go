//go:build linux

package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

const secret = "the token of a run"

var pod = candidate.PodName{Namespace: "ns", Name: "web"}

// running is an agent that serves on loopback.
type running struct {
	*agent
	url    string
	served chan error // what serve returned
	client *Client
}

// run starts an agent with a backend on a free port of each protocol.
func run(t *testing.T, config Config, protocols ...corev1.Protocol) *running {
	t.Helper()
	config.TokenDigest, config.Pod = TokenDigest(secret), pod
	for _, p := range protocols {
		config.Ports = append(config.Ports, candidate.PodPort{Protocol: p})
	}
	a, err := start(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &running{agent: a, url: "http://" + listener.Addr().String(), served: make(chan error, 1)}
	r.client = &Client{Do: func(ctx context.Context, method, path string, query url.Values, body []byte) ([]byte, error) {
		code, answer, err := r.ask(ctx, method, path+"?"+query.Encode(), secret, bytes.NewReader(body))
		if err == nil && code != http.StatusOK {
			err = errors.New(http.StatusText(code))
		}
		return answer, err
	}}
	go func() { r.served <- a.serve(context.WithoutCancel(t.Context()), listener) }()
	t.Cleanup(a.exit)
	return r
}

// ask sends a request with a token to the control server.
func (r *running) ask(ctx context.Context, method, path, token string, body io.Reader) (code int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, r.url+path, body)
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		request.Header.Set(TokenHeader, token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// to is the address of a backend.
func (r *running) to(port int) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(r.backend.Ports()[port].Number))
}

// probe sends probes for the lease and returns the results of all shots.
func (r *running) probe(t *testing.T, lease string, probes ...candidate.Probe) [][]candidate.Outcome {
	t.Helper()
	outcomes, err := r.client.Probe(t.Context(), lease, probes)
	if err != nil {
		t.Fatal(err)
	}
	return outcomes
}

func TestBatchOfProbesIsAnswered(t *testing.T) {
	r := run(t, Config{}, corev1.ProtocolTCP, corev1.ProtocolUDP)
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := netip.MustParseAddrPort(nobody.Addr().String())
	nobody.Close()
	outcomes := r.probe(t, "a",
		candidate.Probe{To: r.to(0), Protocol: corev1.ProtocolTCP, Count: 3},
		candidate.Probe{To: r.to(1), Protocol: corev1.ProtocolUDP, Count: 2},
		candidate.Probe{To: r.to(0), Protocol: corev1.ProtocolTCP, Path: "/x"},
		candidate.Probe{To: closed, Protocol: corev1.ProtocolTCP})
	for i, want := range []struct {
		shots  int
		result candidate.Result
		port   int
	}{{3, candidate.Answered, 0}, {2, candidate.Answered, 1}, {1, candidate.Answered, 0}, {1, candidate.Refused, -1}} {
		if len(outcomes[i]) != want.shots {
			t.Fatalf("probe %d: %d outcomes, want %d", i, len(outcomes[i]), want.shots)
		}
		for _, o := range outcomes[i] {
			if o.Result != want.result {
				t.Errorf("probe %d: %+v, want %s", i, o, want.result)
			}
			if want.port >= 0 && (o.Pod != pod || o.PodPort != int(r.to(want.port).Port()) || o.Source.Addr() != r.to(0).Addr()) {
				t.Errorf("probe %d was answered as %+v", i, o)
			}
		}
	}
	if h := outcomes[2][0].HTTP; h == nil || h.Code != http.StatusOK || !strings.Contains(h.Body, `"/x"`) {
		t.Errorf("the answer of HTTP is %+v", h)
	}
}

func TestKillClosesPortsAndResetsConnections(t *testing.T) {
	r := run(t, Config{}, corev1.ProtocolTCP)
	fresh := candidate.Probe{To: r.to(0), Protocol: corev1.ProtocolTCP}
	open := candidate.Probe{To: r.to(0), Protocol: corev1.ProtocolTCP, Connection: "c"}
	for range 2 {
		if o := r.probe(t, "a", open)[0][0]; o.Result != candidate.Answered {
			t.Fatalf("before: %+v", o)
		}
	}
	for range 2 { // the second finds nothing to do
		if err := r.client.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	outcomes := r.probe(t, "a", open, fresh)
	if got := outcomes[0][0].Result; got != candidate.Reset {
		t.Errorf("the established connection: %s", got)
	}
	if got := outcomes[1][0].Result; got != candidate.Refused {
		t.Errorf("a new connection: %s", got)
	}
	if code, _, err := r.ask(t.Context(), http.MethodGet, PathReadyz, "", nil); code != http.StatusOK || err != nil {
		t.Errorf("the API noticed: readiness %d, %v", code, err)
	}
}

func TestNamedConnectionsBelongToTheirLease(t *testing.T) {
	r := run(t, Config{}, corev1.ProtocolTCP)
	named := candidate.Probe{To: r.to(0), Protocol: corev1.ProtocolTCP, Connection: "c"}
	source := func(lease string) netip.AddrPort {
		o := r.probe(t, lease, named)[0][0]
		if o.Result != candidate.Answered {
			t.Fatalf("lease %s: %+v", lease, o)
		}
		return o.Source
	}
	a, b := source("a"), source("b")
	if a == b {
		t.Errorf("two leases share the connection from %s", a)
	}
	if again := source("a"); again != a {
		t.Errorf("the connection from %s was not kept: %s", a, again)
	}
	for range 2 {
		if err := r.client.End(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	if again := source("a"); again == a {
		t.Error("the connection of a lease outlived it")
	}
	if again := source("b"); again != b {
		t.Error("the end of a lease closed the connection of another one")
	}
}

func TestCommandsNeedTheToken(t *testing.T) {
	r := run(t, Config{}, corev1.ProtocolTCP)
	for path := range commands {
		for _, token := range []string{"", "wrong", secret + "x", secret[1:], TokenDigest(secret)} {
			code, answer, err := r.ask(t.Context(), http.MethodPost, path, token, strings.NewReader("{}"))
			if err != nil || code != http.StatusUnauthorized || !strings.Contains(string(answer), TokenHeader) {
				t.Errorf("%s with token %q: %d %s, %v", path, token, code, answer, err)
			}
		}
	}
	if o := r.probe(t, "a", candidate.Probe{To: r.to(0), Protocol: corev1.ProtocolTCP})[0][0]; o.Result != candidate.Answered {
		t.Errorf("a command without the token was obeyed: %+v", o)
	}
	for _, path := range []string{PathReadyz, PathLivez} {
		if code, _, err := r.ask(t.Context(), http.MethodGet, path, "", nil); err != nil || code != http.StatusOK {
			t.Errorf("%s without a token: %d, %v", path, code, err)
		}
	}
}

func TestReadinessIsSwitched(t *testing.T) {
	for _, unready := range []bool{false, true} {
		r := run(t, Config{Unready: unready})
		expect := func(ready bool) {
			t.Helper()
			want := map[bool]int{true: http.StatusOK, false: http.StatusServiceUnavailable}[ready]
			if code, answer, err := r.ask(t.Context(), http.MethodGet, PathReadyz, "", nil); err != nil || code != want {
				t.Errorf("readiness %d %s, %v, want %d", code, answer, err, want)
			}
			if code, _, err := r.ask(t.Context(), http.MethodGet, PathLivez, "", nil); err != nil || code != http.StatusOK {
				t.Errorf("it lives: %d, %v", code, err)
			}
		}
		expect(!unready)
		for _, ready := range []bool{unready, unready, !unready} {
			if err := r.client.Ready(t.Context(), ready); err != nil {
				t.Fatal(err)
			}
			expect(ready)
		}
	}
}

func TestMalformedRequestsAreRefused(t *testing.T) {
	r := run(t, Config{}, corev1.ProtocolTCP)
	manyShots := fmt.Sprintf(`[{"count":%d},{"count":1}]`, MaxShots)
	for _, c := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"POST", PathReady, `{"ready":`, 400, "malformed JSON"},
		{"POST", PathReady, `{"ready":"yes"}`, 400, "malformed JSON"},
		{"POST", PathReady, `{"ready":false}{}`, 400, "something follows"},
		{"POST", PathReady, `{"raedy":false}`, 400, `unknown field "raedy"`},
		{"POST", PathReady, `{}`, 400, `{"ready":true}`},
		{"POST", PathReady, ``, 400, "malformed JSON"},
		{"POST", PathProbe, `[]`, 400, "?lease=ID"},
		{"POST", PathProbe + "?lease=a", `{}`, 400, "malformed JSON"},
		{"POST", PathProbe + "?lease=a", `[{"to":"nowhere"}]`, 400, "malformed JSON"},
		{"POST", PathProbe + "?lease=a", manyShots, 413, "send fewer at once"},
		{"POST", PathProbe + "?lease=a", `[{"count":9223372036854775807},{"count":9223372036854775807}]`, 413, "send fewer at once"},
		{"POST", PathProbe + "?lease=a", strings.Repeat(" ", maxRequest+1), 413, "larger than 8388608 bytes"},
		{"POST", PathEnd, ``, 400, "?lease=ID"},
		{"GET", PathKill, ``, 405, "takes POST, not GET"},
		{"POST", PathReadyz, ``, 405, "takes GET, not POST"},
		{"POST", "/kill/", ``, 404, "there is no /kill/"},
		{"GET", "/", ``, 404, "there is no /"},
	} {
		code, answer, err := r.ask(t.Context(), c.method, c.path, secret, strings.NewReader(c.body))
		var said failure
		if err != nil || code != c.code || json.Unmarshal(answer, &said) != nil || !strings.Contains(said.Error, c.want) {
			t.Errorf("%s %s %.80s: %d %s, %v, want %d %q", c.method, c.path, c.body, code, answer, err, c.code, c.want)
		}
	}
	if o := r.probe(t, "a", candidate.Probe{To: r.to(0), Protocol: corev1.ProtocolTCP})[0][0]; o.Result != candidate.Answered {
		t.Errorf("what was refused had an effect: %+v", o)
	}
	if code, _, _ := r.ask(t.Context(), http.MethodGet, PathReadyz, "", nil); code != http.StatusOK {
		t.Errorf("what was refused had an effect: readiness %d", code)
	}
}

func TestClientIsToldWhy(t *testing.T) {
	r := run(t, Config{})
	_, err := r.client.Probe(t.Context(), "", []candidate.Probe{})
	if err == nil || !strings.Contains(err.Error(), "the agent refuses to probe: name the lease") {
		t.Errorf("got %v", err)
	}
	for answer, want := range map[string]string{"<html>": "is not its JSON", "[]": "1 probes with 0 lists", "[[]]": "1 shots with 0 outcomes"} {
		c := Client{Do: func(context.Context, string, string, url.Values, []byte) ([]byte, error) { return []byte(answer), nil }}
		if _, err := c.Probe(t.Context(), "a", []candidate.Probe{{}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", answer, err, want)
		}
		if _, err := c.Resolve(t.Context(), "cluster.local", make([]candidate.Question, 2)); err == nil {
			t.Errorf("%s was taken for two resolutions", answer)
		}
	}
}

// fakeDNS answers every question of type A with an address, and others with no such name. It returns where it listens, and the names that it is asked for.
func fakeDNS(t *testing.T) (address string, asked chan string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	asked = make(chan string, 64)
	go func() {
		packet := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(packet[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			asked <- m.Questions[0].Name.String()
			m.Response, m.RCode, m.Additionals = true, dnsmessage.RCodeNameError, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.RCode = dnsmessage.RCodeSuccess
				header := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}
				m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: [4]byte{10, 96, 0, 1}}}}
			}
			if answer, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	return conn.LocalAddr().String(), asked
}

func TestNamesAreAskedForInOrder(t *testing.T) {
	r := run(t, Config{})
	server, asked := fakeDNS(t)
	pod := dns{server: server}
	r.dns = func() (dns, error) { return pod, nil }
	questions := []candidate.Question{{Name: "app.ns.svc", Type: candidate.AAAA}, {Name: "app.ns.svc", Type: candidate.A}}
	record := candidate.Record{Name: "app.ns.svc", Type: candidate.A, Address: netip.MustParseAddr("10.96.0.1")}
	want := []candidate.Resolution{{Said: candidate.NoName}, {Said: candidate.Found, Records: []candidate.Record{record}}}
	for _, c := range []struct{ domain, ofPod, want string }{
		{"cluster.local", "k8s.example.com", "cluster.local."}, {"cluster.local.", "", "cluster.local."},
		{"", "k8s.example.com", "k8s.example.com."}, {"", "k8s.example.com.", "k8s.example.com."}, {"", "", "cluster.local."},
	} {
		pod.domain = c.ofPod
		got, err := r.client.Resolve(t.Context(), c.domain, questions)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: %+v, %v, want %+v", c, got, err, want)
			continue
		}
		for range questions {
			if name := <-asked; name != "app.ns.svc."+c.want {
				t.Errorf("%+v: asked for %s", c, name)
			}
		}
	}
	if _, err := r.client.Resolve(t.Context(), "cluster.local", []candidate.Question{{Name: "app", Type: "MX"}}); err == nil {
		t.Error("a type that is not known was asked for")
	}
	r.dns = func() (dns, error) { return dns{}, errors.New("no DNS here") }
	if _, err := r.client.Resolve(t.Context(), "cluster.local", questions); err == nil || !strings.Contains(err.Error(), "no DNS here") {
		t.Errorf("without a name server: %v", err)
	}
}

func TestProbesEndWithTheirRequest(t *testing.T) {
	r := run(t, Config{})
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	arrived := func() {
		t.Helper()
		if _, _, err := silent.ReadFrom(make([]byte, 4096)); err != nil {
			t.Error(err)
		}
	}
	// The shots would take longer than any test may.
	to := netip.MustParseAddrPort(silent.LocalAddr().String())
	slow := []candidate.Probe{{To: to, Protocol: corev1.ProtocolUDP, Timeout: 1 << 60, Connection: "c"}}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { arrived(); cancel() }()
	if _, err := r.client.Probe(ctx, "a", slow); !errors.Is(err, context.Canceled) {
		t.Fatalf("the request ended with %v", err)
	}
	// The connection is free for the next one, whose shots end when the agent does, with an answer.
	go func() {
		arrived()
		if err := r.client.Exit(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	outcomes, err := r.client.Probe(t.Context(), "a", slow)
	if err != nil || outcomes[0][0].Result != candidate.Broken {
		t.Errorf("%+v, %v", outcomes, err)
	}
	if err := <-r.served; err != nil {
		t.Error(err)
	}
	if _, _, err := r.ask(t.Context(), http.MethodGet, PathLivez, "", nil); err == nil {
		t.Error("an agent that has ended answers")
	}
}

func TestPortsThatAreTakenEndTheAgent(t *testing.T) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	if err := Run(t.Context(), Config{TokenDigest: TokenDigest(secret), Pod: pod, Control: taken}); err == nil || !strings.Contains(err.Error(), "control port") {
		t.Errorf("a control port that is taken: %v", err)
	}
	ports := []candidate.PodPort{{Protocol: corev1.ProtocolTCP, Number: taken}}
	if err := Run(t.Context(), Config{TokenDigest: TokenDigest(secret), Pod: pod, Ports: ports}); err == nil || !strings.Contains(err.Error(), "of pod ns/web") {
		t.Errorf("a port that is taken: %v", err)
	}
}
