package check

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/formatter"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

func TestDescribeSumsOutcomesUp(t *testing.T) {
	refused, dropped := met(candidate.Refused), met(candidate.Dropped)
	kinds := []candidate.Outcome{by("a"), by("b"), by("c"), by("d"), refused, dropped, met(candidate.Reset), met(candidate.Unreachable)}
	for want, os := range map[string][]candidate.Outcome{
		"nothing sent":                        nil,
		"1× by a on 8080, seen from 10.0.0.1": {by("a")},
		"3× dropped, 2× by a on 8080, seen from 10.0.0.1, 1× refused": {by("a"), dropped, refused, dropped, by("a"), dropped},
		"2× HTTP 503, 1× dropped":                                     {httpCode(503), dropped, httpCode(503)},
		`1× HTTP 200, weight 4, {"localEndpoints": 4}`: {{Result: candidate.Answered, HTTP: &candidate.HTTPAnswer{
			Code: 200, Header: http.Header{"X-Load-Balancing-Endpoint-Weight": {"4"}}, Body: "{\"localEndpoints\":\n 4}\n"}}},
		"1× HTTP 404": {{Result: candidate.Answered, HTTP: &candidate.HTTPAnswer{Code: 404, Body: strings.Repeat("x", shortBody+1)}}},
		"1× by a on 8080, seen from 10.0.0.1, 1× by b on 8080, seen from 10.0.0.1, 1× by c on 8080, seen from 10.0.0.1, " +
			"1× by d on 8080, seen from 10.0.0.1, 1× refused, 1× dropped, 2 more kinds": kinds,
	} {
		if got := describe(os); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	many := make([]candidate.Outcome, 10000)
	for i := range many {
		many[i] = kinds[i%len(kinds)]
	}
	if got := describe(many); len(got) > 350 {
		t.Errorf("10000 outcomes are described in %d bytes: %s", len(got), got)
	}
}

func TestAPacketThatWasDroppedAtFirstIsToldFromAMachineThatStalls(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(second, repeated int) candidate.Outcome {
		o := by("a")
		o.Start, o.Duration, o.Repeated = noon.Add(time.Duration(second)*time.Second), time.Duration(repeated)*time.Second+time.Millisecond, repeated
		return o
	}
	slow := at(10, 0)
	slow.Duration = 2 * time.Second
	silent := met(candidate.Dropped)
	silent.Start, silent.Duration = noon.Add(10*time.Second), time.Second
	for name, c := range map[string]struct {
		outcomes, controls []candidate.Outcome
		dropped            int
	}{
		"nothing was repeated":            {[]candidate.Outcome{at(0, 0), at(10, 0)}, []candidate.Outcome{at(0, 0), at(10, 2)}, 0},
		"all is repeated":                 {[]candidate.Outcome{at(0, 0), at(10, 2)}, []candidate.Outcome{at(11, 2), at(0, 0)}, 0},
		"the control stood still as long": {[]candidate.Outcome{at(0, 0), at(10, 2)}, []candidate.Outcome{at(0, 0), slow}, 0},
		"the control is not answered":     {[]candidate.Outcome{at(0, 0), at(10, 2)}, []candidate.Outcome{at(0, 0), silent}, 0},
		"one packet is lost":              {[]candidate.Outcome{at(0, 0), at(10, 1)}, []candidate.Outcome{at(0, 0), at(10, 0)}, 0},
		"it drops for seconds":            {[]candidate.Outcome{at(0, 0), at(10, 2)}, []candidate.Outcome{at(0, 0), at(10, 0)}, 1},
		"it drops again and again":        {[]candidate.Outcome{at(0, 0), at(10, 1), at(20, 1)}, []candidate.Outcome{at(0, 0), at(10, 0)}, 2},
		"the machine stalled another day": {[]candidate.Outcome{at(0, 0), at(10, 2)}, []candidate.Outcome{at(0, 0), at(20, 2)}, 1},
	} {
		dropped := 0
		for i, o := range droppedAtFirst(c.outcomes, c.controls) {
			switch o.Result {
			case candidate.Dropped:
				dropped++
			case c.outcomes[i].Result:
			default:
				t.Errorf("%s: %s became %s", name, c.outcomes[i].Result, o.Result)
			}
		}
		if dropped != c.dropped {
			t.Errorf("%s: %d of %d were dropped, want %d", name, dropped, len(c.outcomes), c.dropped)
		}
	}
}

// scripted is a candidate whose data plane answers as a check of this file says.
type scripted struct {
	api *httptest.Server

	mu         sync.Mutex
	pods       map[netip.Addr]candidate.Pod
	shots      func(p candidate.Probe, shot int) candidate.Outcome // nil answers honestly
	said       func(candidate.Question) candidate.Resolution
	virtualIPs []string            // of the Services that are created, in turn
	listed     func() []netip.Addr // by the EndpointSlices of every namespace, as ready; nil lists none
	looks      int                 // calls of Send and Resolve
	spent      time.Duration       // on its virtual clock
}

// forbiddenPath is what the client may not do.
const forbiddenPath = "/api/v1/namespaces/forbidden/services/there/proxy/"

// otherAnswers are what the API says to requests for these paths, the last one of each again and again.
var otherAnswers = map[string][]string{
	forbiddenPath:                       {`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"details":{"kind":"services"}}`},
	"/api/v1/namespaces/denied/pods":    {`{"kind":"Status","apiVersion":"v1","status":"Failure","code":400,"message":"admission webhook \"no.pods\" denied the request: none here"}`},
	"/api/v1/namespaces/deaf/pods":      {`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"message":"Internal error occurred: failed calling webhook \"no.pods\": EOF"}`},
	"/api/v1/namespaces/against/pods":   {`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"pods \"a\" is forbidden: ValidatingAdmissionPolicy 'no' with binding 'pods' denied request: no"}`},
	"/api/v1/namespaces/away/pods":      {`{"kind":"Status","apiVersion":"v1","status":"Failure","code":504,"message":"Timeout: request did not complete"}`},
	"/api/v1/namespaces/overrun/pods":   {`{"kind":"Status","apiVersion":"v1","status":"Failure","code":429}`, `{"kind":"PodList","apiVersion":"v1","code":200}`},
	"/api/v1/namespaces/slow/pods":      {`{"kind":"Status","apiVersion":"v1","status":"Failure","code":504}`, `{"kind":"PodList","apiVersion":"v1","code":200}`},
	"/api/v1/namespaces/slower/pods":    {`{"kind":"Status","apiVersion":"v1","status":"Failure","code":504}`, `{"kind":"PodList","apiVersion":"v1","code":200}`},
	"/api/v1/namespaces/stuck/pods":     {`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"message":"etcdserver: request timed out"}`},
	"/api/v1/namespaces/own/proxy/busy": {`{"kind":"Status","apiVersion":"v1","status":"Failure","code":503}`},
}

func newScripted() *scripted {
	s := &scripted{}
	asked := map[string]int{}
	// Enough of an API for the namespace of a check.
	api := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if answers := otherAnswers[r.URL.Path]; answers != nil {
			s.mu.Lock()
			answer := answers[min(asked[r.URL.Path], len(answers)-1)]
			asked[r.URL.Path]++
			s.mu.Unlock()
			var status struct{ Code int }
			_ = json.Unmarshal([]byte(answer), &status)
			w.WriteHeader(status.Code)
			_, _ = io.WriteString(w, answer)
			return
		}
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/services") {
			s.mu.Lock()
			defer s.mu.Unlock()
			var ip string
			ip, s.virtualIPs = s.virtualIPs[0], s.virtualIPs[1:]
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Service", "apiVersion": "v1", "spec": map[string]any{"clusterIP": ip}})
			return
		}
		if strings.HasSuffix(r.URL.Path, "/endpointslices") {
			s.mu.Lock()
			defer s.mu.Unlock()
			var endpoints []map[string]any
			if s.listed != nil {
				for _, a := range s.listed() {
					endpoints = append(endpoints, map[string]any{"addresses": []string{a.String()}, "conditions": map[string]any{"ready": true}})
				}
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "EndpointSliceList", "apiVersion": "discovery.k8s.io/v1", "items": []any{map[string]any{"endpoints": endpoints}}})
			return
		}
		kind := map[bool]string{true: "ServiceList", false: "Namespace"}[strings.HasSuffix(r.URL.Path, "/services")]
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": kind, "apiVersion": "v1", "metadata": map[string]any{}})
	}
	s.api = httptest.NewServer(http.HandlerFunc(api))
	return s
}

func (s *scripted) Describe() candidate.Description {
	return candidate.Description{Implementation: "scripted", Version: "v1.37.1", Capabilities: []spec.Capability{spec.DataPlane, spec.VirtualClock},
		Declarations: map[spec.Declarable]string{spec.HostAccess: "served"}}
}
func (s *scripted) Close(context.Context) error { return nil }
func (s *scripted) ControlPlane(context.Context, candidate.Request) (candidate.ControlPlane, error) {
	return nil, candidate.Unavailable("data planes only")
}

// DataPlane begins anew for each check.
func (s *scripted) DataPlane(context.Context, candidate.DataPlaneRequest) (candidate.DataPlane, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods, s.shots, s.listed, s.looks, s.spent = map[netip.Addr]candidate.Pod{}, nil, nil, 0, 0
	return &scriptedPlane{scripted: s}, nil
}

// scriptedPlane panics where a check calls what is not written here.
type scriptedPlane struct {
	candidate.DataPlane
	*scripted
}

func (p *scriptedPlane) Access() candidate.Access { return candidate.Access{URL: p.api.URL} }
func (p *scriptedPlane) ServiceCIDRs() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("10.96.0.0/24")}
}
func (p *scriptedPlane) Nodes() []candidate.Node {
	return []candidate.Node{{Name: "node-0"}, {Name: "node-1"}, {Name: "node-2"}}
}
func (p *scriptedPlane) ExternalAddresses() []netip.Addr { return nil }
func (p *scriptedPlane) Release()                        {}
func (p *scriptedPlane) Diagnose(_ context.Context, a netip.AddrPort) (string, error) {
	return "the rules of " + a.String(), nil
}

func (p *scriptedPlane) StartPod(_ context.Context, pod candidate.Pod) (candidate.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := netip.AddrFrom4([4]byte{10, 1, 0, byte(1 + len(p.pods))})
	pod.Addresses = []netip.Addr{a}
	p.pods[a] = pod
	return pod, nil
}

func (p *scriptedPlane) LendPod(ctx context.Context, node string, ports []candidate.PodPort) (candidate.Pod, error) {
	p.mu.Lock()
	name := candidate.PodName{Namespace: "elsewhere", Name: node + "-client-" + strconv.Itoa(1+len(p.pods))}
	p.mu.Unlock()
	return p.StartPod(ctx, candidate.Pod{PodName: name, Node: node, Ports: ports})
}

func (p *scriptedPlane) Pass(_ context.Context, d time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent += d
	return nil
}

func (p *scriptedPlane) Send(_ context.Context, probes []candidate.Probe) ([][]candidate.Outcome, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks++
	outcomes := make([][]candidate.Outcome, len(probes))
	for i, probe := range probes {
		for shot := range max(1, probe.Count) {
			if p.shots != nil {
				outcomes[i] = append(outcomes[i], p.shots(probe, shot))
			} else {
				outcomes[i] = append(outcomes[i], p.honest(probe))
			}
		}
	}
	return outcomes, nil
}

// honest answers at the pods' own addresses and drops the rest.
func (s *scripted) honest(p candidate.Probe) candidate.Outcome {
	pod, ok := s.pods[p.To.Addr()]
	switch {
	case !ok:
		return met(candidate.Dropped)
	case int(p.To.Port()) != BackendPort:
		return met(candidate.Refused)
	}
	return candidate.Outcome{Result: candidate.Answered, Pod: pod.PodName, PodPort: BackendPort, Source: netip.MustParseAddrPort("10.0.0.1:40000")}
}

var (
	script = newScripted()
	vip    = netip.MustParseAddrPort("10.96.0.7:80")
)

// judged is what must come of a check of this file.
type judged struct {
	verdict Verdict
	reason  string   // begins so
	message []string // of a failure, in this order
	look    func(t *testing.T, f finding)
}

var judgements = map[string]judged{}

// it declares a check that is to be judged so.
func it(text string, body TrafficBody, want judged) {
	const id = "proxy-clusterip-reachable"
	judgements[id+": "+text] = want
	It(id, text, body)
}

func hasControls(r *Result) bool {
	return slices.ContainsFunc(r.Evidence, func(e Evidence) bool { return e.Name == "controls" })
}

var _ = ginkgo.Describe("a demand on traffic", func() {
	silence := Case{From: Host("node-0"), To: vip, Want: Dropped()}

	it("that is silent holds beside controls", func(ctx context.Context, net *Network) {
		net.Expect(ctx, "nothing", silence)
	}, judged{verdict: Conformant, look: func(t *testing.T, f finding) {
		if !hasControls(f.Result) {
			t.Errorf("no controls among %+v", f.Evidence)
		}
	}})
	it("that is silent is not proven by a client that reaches nothing", func(ctx context.Context, net *Network) {
		script.shots = func(candidate.Probe, int) candidate.Outcome { return met(candidate.Dropped) }
		net.Expect(ctx, "nothing", silence)
	}, judged{verdict: Unknown, reason: "positive control: the client in the host of node-0 does not reach pod control-"})
	it("that is silent and must hold at once is not proven by a client that reaches nothing", func(ctx context.Context, net *Network) {
		script.shots = func(candidate.Probe, int) candidate.Outcome { return met(candidate.Refused) }
		net.ExpectNow(ctx, "nothing", Case{From: Outside("node-1"), To: vip, Want: Unanswered()})
	}, judged{verdict: Unknown, reason: "positive control: the client in the outside by node-1 does not reach pod control-"})
	it("that is silent is not proven where the wrong pod answers the control", func(ctx context.Context, net *Network) {
		script.shots = func(p candidate.Probe, _ int) candidate.Outcome {
			if p.To == vip {
				return met(candidate.Dropped)
			}
			return by("another")
		}
		net.Expect(ctx, "nothing", silence)
	}, judged{verdict: Unknown, reason: "positive control: "})
	it("that is silent is not proven where everything is answered", func(ctx context.Context, net *Network) {
		script.shots = func(p candidate.Probe, _ int) candidate.Outcome {
			if p.To == vip {
				return met(candidate.Dropped)
			}
			p.To = netip.AddrPortFrom(p.To.Addr(), BackendPort)
			return script.honest(p)
		}
		net.Expect(ctx, "nothing", silence)
	}, judged{verdict: Unknown, reason: "negative control: somebody answers the client in the host of node-0 at 10.1.0.1:9"})
	it("that is silent and unmet is no violation for a client that reaches nothing", func(ctx context.Context, net *Network) {
		script.shots = func(candidate.Probe, int) candidate.Outcome { return met(candidate.Dropped) }
		net.Expect(ctx, "nothing", Case{From: Host("node-0"), To: vip, Want: ConnectionRefused()})
	}, judged{verdict: Unknown, reason: "positive control: "})
	noWay := func(refused candidate.Result) func(candidate.Probe, int) candidate.Outcome {
		return func(p candidate.Probe, _ int) candidate.Outcome {
			o := script.honest(p)
			switch {
			case p.To == vip:
				return met(candidate.Unreachable)
			case o.Result == candidate.Dropped: // nobody has it
				return met(refused)
			}
			return o
		}
	}
	it("to be refused is met by the ICMP error of a network that leaves others without answer", func(ctx context.Context, net *Network) {
		script.shots = noWay(candidate.Dropped)
		net.Expect(ctx, "nothing", Case{From: Host("node-0"), To: vip, Want: ConnectionRefused()})
	}, judged{verdict: Conformant})
	it("to be refused is met by another ICMP error than the network has for everybody", func(ctx context.Context, net *Network) {
		script.shots = func(p candidate.Probe, shot int) candidate.Outcome {
			o := noWay(candidate.Unreachable)(p, shot)
			if p.To == vip {
				o.Error = "no route to host"
			}
			return o
		}
		net.Expect(ctx, "nothing", Case{From: Host("node-0"), To: vip, Want: ConnectionRefused()})
	}, judged{verdict: Conformant})
	it("to be refused is not met by what the network says of everybody", func(ctx context.Context, net *Network) {
		script.shots = noWay(candidate.Unreachable)
		net.Expect(ctx, "nothing", Case{From: Host("node-0"), To: vip, Want: AllOf(ConnectionRefused(), Unanswered())})
	}, judged{verdict: NonConformant, message: []string{"2× unreachable, as nobody is"}})
	it("is undecided for a pod that does not reach another by the protocol either", func(ctx context.Context, net *Network) {
		script.shots = func(p candidate.Probe, _ int) candidate.Outcome {
			if p.Protocol == corev1.ProtocolUDP {
				return met(candidate.Dropped)
			}
			return script.honest(p)
		}
		net.Expect(ctx, "nothing", Case{From: net.ClientPod(ctx, "node-0"), To: vip, Protocol: corev1.ProtocolUDP, Want: AnsweredBy(podNamed("a"))})
	}, judged{verdict: Unknown, reason: "positive control: the client in the pod node-0-client-"})
	it("that is silent is not proven by a client that reaches itself alone", func(ctx context.Context, net *Network) {
		self := net.ClientPod(ctx, "node-1")
		script.shots = func(p candidate.Probe, _ int) candidate.Outcome {
			if pod := script.pods[p.To.Addr()]; pod.PodName != self.Pod {
				return met(candidate.Dropped)
			}
			return script.honest(p)
		}
		net.Expect(ctx, "nothing", Case{From: self, To: vip, Want: Dropped()})
	}, judged{verdict: Unknown, reason: "positive control: the client in the pod node-1-client-"})
	lossy := func(every int, patient bool) func(candidate.Probe, int) candidate.Outcome {
		sent := 0
		return func(p candidate.Probe, _ int) candidate.Outcome {
			if p.To != vip {
				return script.honest(p)
			}
			if sent++; sent%every == 0 && (p.Timeout != LossTimeout || !patient) {
				return met(candidate.Dropped)
			}
			return by("a")
		}
	}
	it("is not violated by a packet that is lost once", func(ctx context.Context, net *Network) {
		script.shots = lossy(24, true)
		net.Expect(ctx, "nothing", Case{From: Host("node-0"), To: vip, Want: AnsweredBy(podNamed("a")), Shots: 24})
	}, judged{verdict: Conformant, look: func(t *testing.T, f finding) {
		if !slices.ContainsFunc(f.Evidence, func(e Evidence) bool { return e.Name == "lost packets" }) {
			t.Errorf("the loss is not among the evidence: %+v", f.Evidence)
		}
	}})
	// A kernel tells a peer of refusals once a second: repetitions of a datagram meet one, unless somebody drops them.
	withheld := func(drops bool) func(candidate.Probe, int) candidate.Outcome {
		return func(p candidate.Probe, shot int) candidate.Outcome {
			switch {
			case p.To != vip:
				return script.honest(p)
			case drops || shot > 0 && p.Timeout/time.Duration(1+p.Repeats) < time.Second:
				return met(candidate.Dropped)
			}
			return met(candidate.Refused)
		}
	}
	refused := Case{From: Host("node-0"), To: vip, Protocol: corev1.ProtocolUDP, Want: ConnectionRefused()}
	it("to be refused is met by a kernel that tells a peer once a second", func(ctx context.Context, net *Network) {
		script.shots = withheld(false)
		net.Expect(ctx, "nothing", refused)
	}, judged{verdict: Conformant})
	refusedConnection := refused
	refusedConnection.Protocol = corev1.ProtocolTCP
	it("to be refused is met by a kernel that tells a peer once a second, when it connects", func(ctx context.Context, net *Network) {
		script.shots = withheld(false)
		net.Expect(ctx, "nothing", refusedConnection)
	}, judged{verdict: Conformant})
	it("to be refused is violated by who drops every second connection", func(ctx context.Context, net *Network) {
		script.shots = func(p candidate.Probe, shot int) candidate.Outcome {
			switch {
			case p.To != vip:
				return script.honest(p)
			case shot%2 > 0:
				return met(candidate.Dropped)
			}
			return met(candidate.Refused)
		}
		net.Expect(ctx, "nothing", refusedConnection)
	}, judged{verdict: NonConformant, message: []string{"1× dropped"}})
	it("to be refused is violated by who drops", func(ctx context.Context, net *Network) {
		script.shots = withheld(true)
		net.Expect(ctx, "nothing", refused)
	}, judged{verdict: NonConformant, message: []string{"2× dropped"}})
	it("is undecided where the network accepts what nobody has", func(ctx context.Context, net *Network) {
		script.shots = func(p candidate.Probe, _ int) candidate.Outcome {
			if o := script.honest(p); o.Result == candidate.Answered {
				return o
			}
			return candidate.Outcome{Result: candidate.Reset, Stranger: true}
		}
		net.Expect(ctx, "nothing", Case{From: net.ClientPod(ctx, "node-0"), To: vip, Want: AnsweredBy(podNamed("a"))})
	}, judged{verdict: Unknown, reason: "negative control: somebody answers the client in the pod node-0-client-"})
	it("is violated where a stranger accepts what somebody has", func(ctx context.Context, net *Network) {
		script.shots = func(p candidate.Probe, _ int) candidate.Outcome {
			if p.To == vip {
				return candidate.Outcome{Result: candidate.Reset, Stranger: true}
			}
			return script.honest(p)
		}
		net.Expect(ctx, "nothing", Case{From: net.ClientPod(ctx, "node-0"), To: vip, Want: AnsweredBy(podNamed("a"))})
	}, judged{verdict: NonConformant, message: []string{"accepted by a stranger, then reset"}})
	it("is violated by packets that are lost again", func(ctx context.Context, net *Network) {
		script.shots = lossy(24, false)
		net.Expect(ctx, "nothing", Case{From: Host("node-0"), To: vip, Want: AnsweredBy(podNamed("a")), Shots: 24})
	}, judged{verdict: NonConformant, message: []string{"23× by a", "1× dropped"}})
	it("is violated by one packet that is lost where every one counts", func(ctx context.Context, net *Network) {
		script.shots = lossy(24, true)
		net.ExpectNow(ctx, "nothing", Case{From: Host("node-0"), To: vip, Want: AnsweredBy(podNamed("a")), Shots: 24})
		script.shots = func(p candidate.Probe, shot int) candidate.Outcome {
			if shot == 3 {
				return met(candidate.Dropped)
			}
			return by("a")
		}
		net.ExpectNow(ctx, "nothing", Case{From: Host("node-0"), To: vip, Want: AnsweredBy(podNamed("a")), Shots: 24})
	}, judged{verdict: NonConformant, message: []string{"23× by a", "1× dropped"}})
	it("is violated by an answer that a lost packet stands beside", func(ctx context.Context, net *Network) {
		script.shots = func(p candidate.Probe, shot int) candidate.Outcome {
			switch {
			case shot == 3:
				return met(candidate.Dropped)
			case shot == 4 && p.Timeout != LossTimeout:
				return by("wrong")
			}
			return by("a")
		}
		net.Expect(ctx, "nothing", Case{From: Host("node-0"), To: vip, Want: AnsweredBy(podNamed("a")), Shots: 24})
	}, judged{verdict: NonConformant, message: []string{"1× dropped", "by wrong"}})
	it("is undecided for a client outside that does not reach a pod either", func(ctx context.Context, net *Network) {
		script.shots = func(candidate.Probe, int) candidate.Outcome { return met(candidate.Dropped) }
		net.Expect(ctx, "nothing", Case{From: Outside("node-1"), To: vip, Want: AnsweredBy(podNamed("a"))})
	}, judged{verdict: Unknown, reason: "positive control: the client in the outside by node-1 does not reach pod control-"})
	external := netip.MustParseAddrPort("198.19.0.1:80")
	for _, witnesses := range []bool{false, true} {
		want := judged{verdict: NonConformant, message: []string{"dropped"}}
		if witnesses {
			want = judged{verdict: Unknown, reason: "positive control: the client in the outside by node-1 does not reach its node at 198.19.255.254:9"}
		}
		it(fmt.Sprintf("of a network that a firewall drops, with witnesses %v", witnesses), func(ctx context.Context, net *Network) {
			net.what.Witnesses = witnesses
			script.shots = func(p candidate.Probe, _ int) candidate.Outcome {
				if candidate.IsExternal(p.To.Addr()) {
					return met(candidate.Dropped)
				}
				return script.honest(p)
			}
			net.Expect(ctx, "nothing", Case{From: Outside("node-1"), To: external, Want: AnsweredBy(podNamed("a"))})
		}, want)
	}
	it("is violated where the node answers at the witness", func(ctx context.Context, net *Network) {
		net.what.Witnesses = true
		script.shots = func(p candidate.Probe, _ int) candidate.Outcome {
			switch {
			case p.To.Addr() == candidate.Witness(false):
				return met(candidate.Refused)
			case candidate.IsExternal(p.To.Addr()):
				return met(candidate.Dropped)
			}
			return script.honest(p)
		}
		net.Expect(ctx, "nothing", Case{From: Outside("node-1"), To: external, Want: AnsweredBy(podNamed("a"))})
	}, judged{verdict: NonConformant, message: []string{"dropped"}})
	it("is violated by many packets that are lost, which are not sent again", func(ctx context.Context, net *Network) {
		script.shots = lossy(4, true)
		net.Expect(ctx, "nothing", Case{From: Host("node-0"), To: vip, Want: AnsweredBy(podNamed("a")), Shots: 24})
	}, judged{verdict: NonConformant, message: []string{"18× by a", "6× dropped"}})
	it("is undecided by a prober that is broken", func(ctx context.Context, net *Network) {
		script.shots = func(_ candidate.Probe, shot int) candidate.Outcome {
			if shot == 1 {
				return candidate.Outcome{Result: candidate.Broken, Error: "too many open files"}
			}
			return by("a")
		}
		net.Expect(ctx, "nothing", Case{From: Host("node-2"), To: vip, Want: AnsweredBy(podNamed("a"))})
	}, judged{verdict: Unknown, reason: "the prober in the host of node-2 is broken (to 10.96.0.7:80/TCP): too many open files"})
	it("is about a virtual IP that no further Service of the check gets", func(ctx context.Context, net *Network) {
		script.virtualIPs = []string{"10.96.0.7", "10.96.0.7", "10.96.0.7", "10.96.0.8"}
		net.Expose(ctx, Service("first"))
		marker := net.ExposeApart(ctx, func() *corev1.Service { return Service(net.Name("marker")) })
		gomega.Expect(marker.Spec.ClusterIP).To(gomega.Equal("10.96.0.8"))
	}, judged{verdict: Conformant})
	it("is undecided by a request that the client may not send", func(ctx context.Context, net *Network) {
		gomega.Expect(net.Do(ctx, http.MethodGet, forbiddenPath, "", nil).Code).To(gomega.Equal(http.StatusNotFound))
	}, judged{verdict: Unknown, reason: "GET " + forbiddenPath + ": 403"})
	for _, namespace := range []string{"denied", "deaf", "against", "away", "stuck"} {
		path := "/api/v1/namespaces/" + namespace + "/pods"
		it("is undecided by an answer that is not the API server's own, "+namespace, func(ctx context.Context, net *Network) {
			net.Do(ctx, http.MethodGet, path, "", nil)
		}, judged{verdict: Unknown, reason: "GET " + path + ": "})
	}
	it("is decided by the answer that a server gives when it is no longer overloaded", func(ctx context.Context, net *Network) {
		gomega.Expect(net.Do(ctx, http.MethodGet, "/api/v1/namespaces/overrun/pods", "", nil).Code).To(gomega.Equal(http.StatusOK))
	}, judged{verdict: Conformant})
	it("is decided by the answer that a server gives to a read that it gave up before", func(ctx context.Context, net *Network) {
		gomega.Expect(net.Do(ctx, http.MethodGet, "/api/v1/namespaces/slow/pods", "", nil).Code).To(gomega.Equal(http.StatusOK))
	}, judged{verdict: Conformant})
	it("is undecided where time ran out while the server gave up reads", func(ctx context.Context, net *Network) {
		Converge(ctx, "nothing", time.Millisecond, func(g gomega.Gomega) {
			net.Do(ctx, http.MethodGet, "/api/v1/namespaces/slower/pods", "", nil)
			g.Expect("this").To(gomega.Equal("that"))
		})
	}, judged{verdict: Unknown, reason: "reads that the API server gave up meanwhile: 1; "})
	it("is violated where time ran out after the server gave up reads of earlier", func(ctx context.Context, net *Network) {
		Converge(ctx, "nothing", time.Millisecond, func(g gomega.Gomega) { g.Expect("this").To(gomega.Equal("that")) })
	}, judged{verdict: NonConformant, message: []string{"that"}})
	it("is undecided by a typed client that got no answer", func(ctx context.Context, net *Network) {
		_, err := net.Client().CoreV1().Pods("stuck").List(ctx, metav1.ListOptions{})
		gomega.Expect(Responded(err)).NotTo(gomega.HaveOccurred())
	}, judged{verdict: Unknown, reason: "etcdserver: request timed out"})
	it("is violated by what a typed client was answered", func(ctx context.Context, net *Network) {
		_, err := net.Client().CoreV1().Pods("denied").List(ctx, metav1.ListOptions{})
		gomega.Expect(Responded(err)).NotTo(gomega.HaveOccurred())
	}, judged{verdict: NonConformant, message: []string{"denied the request"}})
	it("is decided by a backend's answer, whatever it is", func(ctx context.Context, net *Network) {
		gomega.Expect(net.Do(ctx, http.MethodGet, "/api/v1/namespaces/own/proxy/busy", "", nil).Code).To(gomega.Equal(http.StatusServiceUnavailable))
	}, judged{verdict: Conformant})
	it("is undecided where the network answers for every address", func(ctx context.Context, net *Network) {
		script.shots = func(candidate.Probe, int) candidate.Outcome { return met(candidate.Answered) }
		net.Expect(ctx, "nothing", Case{From: Outside("node-2"), To: vip, Want: AnsweredBy(podNamed("a"))})
	}, judged{verdict: Unknown, reason: "negative control: somebody answers the client in the outside by node-2 at 203.0.113.113:80, an address that nobody has"})
	it("that a stranger answers is a violation where nobody answers for every address", func(ctx context.Context, net *Network) {
		script.shots = func(p candidate.Probe, _ int) candidate.Outcome {
			if p.To == vip {
				return met(candidate.Answered)
			}
			return met(candidate.Dropped)
		}
		net.Expect(ctx, "nothing", Case{From: Host("node-2"), To: vip, Want: AnsweredBy(podNamed("a"))})
	}, judged{verdict: NonConformant, message: []string{"answered by a stranger"}})
	it("that must hold at once is looked at once", func(ctx context.Context, net *Network) {
		net.ExpectNow(ctx, "a node has gone", Case{From: Host("node-0"), To: vip, Want: AnsweredBy(podNamed("a"))})
	}, judged{verdict: NonConformant, message: []string{"at this time: a node has gone\nnot met\n", "✗"}, look: func(t *testing.T, f finding) {
		if f.looks != 2 || f.spent != 0 { // and at the controls
			t.Errorf("looked %d times in %s", f.looks, f.spent)
		}
	}})
	it("that comes to hold is met, and how long it took is recorded", func(ctx context.Context, net *Network) {
		script.shots = func(candidate.Probe, int) candidate.Outcome {
			if script.spent < 5*time.Second {
				return met(candidate.Refused)
			}
			return by("a")
		}
		os := net.Expect(ctx, "the Service is created", Case{From: Host("node-0"), To: vip, Want: AnsweredBy(podNamed("a")), Shots: 7})
		if len(os) != 1 || len(os[0]) != 7 || os[0][6].Pod.Name != "a" {
			ginkgo.Fail("the outcomes are not those of the look that decided: " + describe(os[0]))
		}
	}, judged{verdict: Conformant, look: func(t *testing.T, f finding) {
		if len(f.Convergence) != 1 || f.Convergence[0].What != "the Service is created" || f.Convergence[0].Seconds < 4.9 || f.Convergence[0].Seconds > 7 {
			t.Errorf("convergence %+v", f.Convergence)
		}
		if hasControls(f.Result) {
			t.Error("controls were sent for a demand that is not silent")
		}
	}})
	it("that ceases to hold each time is a violation", func(ctx context.Context, net *Network) {
		script.shots = func(p candidate.Probe, _ int) candidate.Outcome {
			switch {
			case p.To != vip:
				return script.honest(p)
			case script.looks%2 == 0:
				return met(candidate.Refused)
			}
			return by("a")
		}
		net.Expect(ctx, "a node has gone", Case{From: Host("node-0"), To: vip, Want: AnsweredBy(podNamed("a"))})
	}, judged{verdict: NonConformant, message: []string{"after this: a node has gone\nthe demand held 4 times and each time ceased to hold\n", "✗", "3× refused"}})
	it("that ceases to hold does not accuse one that holds", func(ctx context.Context, net *Network) {
		pods := []candidate.Pod{podNamed("p0"), podNamed("p1")}
		script.shots = func(p candidate.Probe, shot int) candidate.Outcome {
			switch {
			case p.To == vip && script.looks%2 == 0:
				return met(candidate.Refused)
			case p.To == vip:
				return by("a")
			case p.To.Addr().String() != "10.96.0.8":
				return script.honest(p)
			}
			return by(pods[shot/shotsAgain%2].Name) // few shots meet one only, which is right
		}
		net.Expect(ctx, "a node has gone",
			Case{From: Host("node-0"), To: vip, Want: AnsweredBy(podNamed("a"))},
			Case{From: Host("node-1"), To: netip.MustParseAddrPort("10.96.0.8:80"), Want: AnsweredByEach(pods...)},
		)
	}, judged{verdict: NonConformant, message: []string{"✗  host of node-0  10.96.0.7:80/TCP", "✓  host of node-1  10.96.0.8:80/TCP"}})
})

var _ = ginkgo.Describe("a demand on traffic that nobody meets", func() {
	it("that never holds is a violation", func(ctx context.Context, net *Network) {
		pod := net.Start(ctx, candidate.Pod{PodName: candidate.PodName{Name: "backend"}, Node: "node-1"})
		net.Expect(ctx, "the Service is created",
			Case{From: Host("node-0"), To: netip.AddrPortFrom(pod.Addresses[0], BackendPort), Want: AnsweredBy(pod)},
			Case{From: Host("node-0"), To: vip, Want: AnsweredBy(pod)},
		)
	}, judged{
		verdict: NonConformant,
		message: []string{
			"after this: the Service is created\nnot met within 30s\n", "✗  host of node-0  10.96.0.7:80/TCP", "answered by backend", "3× dropped",
			"✓  host of node-0  10.1.0.1:8080/TCP",
		},
		look: func(t *testing.T, f finding) {
			if !slices.Contains(f.Evidence, Evidence{Name: "diagnosis of 10.96.0.7:80", Value: "the rules of 10.96.0.7:80"}) || len(f.Evidence) != 2 || !hasControls(f.Result) {
				t.Errorf("evidence %+v: not the controls and the diagnosis of what is unmet alone", f.Evidence)
			}
			if len(f.Convergence) > 0 {
				t.Errorf("a convergence is recorded that never was: %+v", f.Convergence)
			}
			if f.spent < ConvergenceBound-time.Second || f.spent > ConvergenceBound+2*time.Second {
				t.Errorf("gave up after %s", f.spent)
			}
		},
	})
})

// failures is the GinkgoTestingT of a suite with checks that are to fail.
type failures struct{}

func (failures) Fail() {}

// finding is the result of a check with what its candidate saw, and its place among them.
type finding struct {
	*Result
	place int
	looks int
	spent time.Duration
}

// findings runs the checks of this file, once: Ginkgo runs its suite once per process.
var findings = sync.OnceValue(func() map[string]finding {
	out := formatter.ColorableStdOut
	formatter.ColorableStdOut = io.Discard
	defer func() { formatter.ColorableStdOut = out; script.api.Close() }()
	all := map[string]finding{}
	Run(failures{}, Setup{Candidate: script, ExpectedToFail: []string{neverHolds}, Sink: func(e Event) {
		if e.Result != nil {
			all[e.Check] = finding{e.Result, len(all), script.looks, script.spent}
		}
	}})
	return all
})

// neverHolds is the name of a check that stands in the last container of this file.
const neverHolds = "proxy-clusterip-reachable: that never holds is a violation"

func TestChecksThatAreExpectedToFailBeginFirst(t *testing.T) {
	if f, ok := findings()[neverHolds]; !ok || f.place != 0 {
		t.Errorf("the check that is expected to fail ran (%t) after %d others", ok, f.place)
	}
}

func TestDemandsOnTrafficAreJudged(t *testing.T) {
	found := findings()
	if len(found) == 0 || len(found) != len(judgements) {
		t.Fatalf("%d of %d checks ran", len(found), len(judgements))
	}
	for name, want := range judgements { // Ginkgo has declared them only now
		t.Run(name, func(t *testing.T) {
			f, ok := found[name]
			if !ok {
				t.Fatal("did not run")
			}
			if f.Verdict != want.verdict || !strings.HasPrefix(f.Reason, want.reason) {
				t.Fatalf("%s: %q (%+v), want %s: %q", f.Verdict, f.Reason, f.Failure, want.verdict, want.reason)
			}
			if f.Verdict == NonConformant {
				rest := f.Failure.Message
				for _, part := range want.message {
					_, after, found := strings.Cut(rest, part)
					if !found {
						t.Fatalf("the message does not go on with %q:\n%s", part, f.Failure.Message)
					}
					rest = after
				}
				if file, _, _ := strings.Cut(f.Failure.Location, ":"); !slices.Contains([]string{"check/expect_test.go", "check/lookup_test.go", "check/pace_test.go", "check/controllers_test.go", "check/timeline_test.go"}, file) {
					t.Errorf("the demand is said to stand at %s", f.Failure.Location)
				}
			}
			if want.look != nil {
				want.look(t, f)
			}
		})
	}
}
