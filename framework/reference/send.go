package reference

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/absent"
	"github.com/service-conformance/conformance/framework/reference/proxy"
)

// flowKey is a connection that outlives a shot: one with a name, or datagrams from a fixed port.
type flowKey struct {
	from     candidate.Client
	protocol corev1.Protocol
	name     string
	port     int
	to       netip.AddrPort
}

// flow is what the network remembers of it.
type flow struct {
	backend  *pod
	life     int
	at       netip.AddrPort
	decision proxy.Decision // with Pass, it went to the backend's own address
	node     *host
	source   netip.AddrPort
	broken   bool
	starts   int  // of the proxy, when it began
	busy     bool // datagrams go on beside the shots
	nowhere  bool // left where nobody answers
}

// sender is where a client's packets come from.
type sender struct {
	addresses []netip.Addr
	entry     *host // the node that they enter
	pod       *pod  // nil for clients that are none
	inside    bool
}

func (d *dataPlane) sender(c candidate.Client) (sender, error) {
	switch {
	case c.Node != "":
		h := d.world.nodes[c.Node]
		if h == nil {
			return sender{}, fmt.Errorf("there is no node %q", c.Node)
		}
		return sender{addresses: h.Addresses, entry: h, inside: true}, nil
	case c.Gateway != "":
		h := d.world.nodes[c.Gateway]
		if h == nil || c.Address < 0 || c.Address >= candidate.ClientAddresses {
			return sender{}, fmt.Errorf("there is no client outside by %q with address %d", c.Gateway, c.Address)
		}
		return sender{addresses: hostAddresses(outsideHosts+h.index, c.Address+1), entry: h}, nil
	}
	p := d.pods[c.Pod]
	if p == nil {
		p = d.lent[c.Pod]
	}
	if p == nil {
		return sender{}, fmt.Errorf("there is no pod %s of this lease", c.Pod)
	}
	return sender{addresses: p.Addresses, entry: p.host, pod: p, inside: true}, nil
}

// Send implements candidate.DataPlane.
func (d *dataPlane) Send(ctx context.Context, probes []candidate.Probe) ([][]candidate.Outcome, error) {
	w := d.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.advance()
	outcomes := make([][]candidate.Outcome, len(probes))
	began, ended := d.now, d.now
	for i := range probes {
		p := &probes[i]
		var from sender
		var err error
		if !p.From.Balanced {
			if from, err = d.sender(p.From); err != nil {
				return nil, err
			}
		}
		d.now = began // probes are sent at the same time
		for k := range max(1, p.Count) {
			if k > 0 && p.Interval > 0 {
				d.pass(p.Interval)
			}
			var o candidate.Outcome
			if !p.From.Balanced {
				o = d.shoot(p, &from)
			} else if o, err = d.shootBalanced(*p, k); err != nil {
				return nil, err
			}
			o.Start = d.now
			outcomes[i] = append(outcomes[i], o)
		}
		if d.now.After(ended) {
			ended = d.now
		}
	}
	d.now = ended
	return outcomes, nil
}

// shoot sends one shot.
func (d *dataPlane) shoot(p *candidate.Probe, from *sender) candidate.Outcome {
	source := netip.AddrPort{}
	for _, a := range from.addresses {
		if a.Is4() == p.To.Addr().Is4() {
			source = netip.AddrPortFrom(a, uint16(p.SourcePort))
		}
	}
	if !source.Addr().IsValid() {
		return candidate.Outcome{Result: candidate.Broken, Error: fmt.Sprintf("the client has no address of the family of %s", p.To.Addr())}
	}
	if p.To.Addr().IsLoopback() {
		source = netip.AddrPortFrom(p.To.Addr(), source.Port())
	}
	if source.Port() == 0 {
		d.ports++
		source = netip.AddrPortFrom(source.Addr(), 32768+d.ports%28000)
	}
	key, lasting := flowKey{from: p.From, protocol: p.Protocol, name: p.Connection, to: p.To}, p.Connection != ""
	if p.Protocol == corev1.ProtocolUDP && p.SourcePort != 0 {
		key.port, lasting = p.SourcePort, true
	}
	if lasting {
		if f := d.flows[key]; f != nil {
			if o, goesOn := d.goOn(f, p); goesOn {
				return o
			}
			source = f.source
		}
	}
	ended := flowKey{from: p.From, protocol: p.Protocol, port: p.SourcePort, to: p.To}
	if p.SourcePort != 0 && d.confused(ended) {
		return candidate.Outcome{Result: candidate.Dropped}
	}
	f, o := d.open(p, from, source)
	if p.SourcePort != 0 && f != nil {
		d.ended[ended] = f
	}
	if f == nil && lasting && p.Protocol == corev1.ProtocolUDP && !d.world.book.flowLookedAt.Do(nil, p.Rate > 0) {
		f = &flow{nowhere: true}
	}
	if lasting && f != nil {
		f.busy = p.Rate > 0
		d.flows[key] = f
	}
	return o
}

// confused reports whether what came from the same port of a client before keeps a connection from being answered.
func (d *dataPlane) confused(k flowKey) bool {
	book := d.world.book
	if was := d.ended[k]; was != nil && !book.endedForgotten.Do() {
		return !was.node.KeepsFlow(was.decision, k.to.Addr().Is6())
	}
	for other := range d.ended {
		if other.from == k.from && other.protocol == k.protocol && other.port == k.port && other.to != k.to && !book.flowsToldApart.Do() {
			return true
		}
	}
	return false
}

// goOn sends a shot on a flow. A connection is bound to its backend for good; a flow of datagrams only as long as the proxy leaves it there.
func (d *dataPlane) goOn(f *flow, p *candidate.Probe) (candidate.Outcome, bool) {
	if f.nowhere {
		return candidate.Outcome{Result: candidate.Dropped}, true
	}
	f.busy = f.busy || p.Rate > 0
	alive := f.life == f.backend.life
	if p.Protocol != corev1.ProtocolUDP {
		if !alive || f.broken || !d.world.book.connectionKept.Do(f, p.To.Addr().Is6()) {
			f.broken = true
			return candidate.Outcome{Result: candidate.Reset}, true
		}
		return d.carried(f, p), true
	}
	if f.decision.Answer == proxy.Forward && !f.node.KeepsFlow(f.decision, p.To.Addr().Is6()) && d.world.book.flowLookedAt.Do(f, f.busy) {
		return candidate.Outcome{}, false
	}
	if backend, exists := d.world.backendAt(f.at, p.Protocol); backend != f.backend {
		if exists {
			return candidate.Outcome{Result: candidate.Refused}, true
		}
		return candidate.Outcome{Result: candidate.Dropped}, true
	}
	return d.carried(f, p), true
}

// open sends the first packet of a flow; the flow is nil if nobody answers it.
func (d *dataPlane) open(p *candidate.Probe, from *sender, source netip.AddrPort) (*flow, candidate.Outcome) {
	w := d.world
	node := from.entry
	packet := proxy.Packet{Source: source, To: p.To, Protocol: p.Protocol, Inside: from.inside, Host: from.pod == nil && from.inside}
	if from.pod != nil {
		packet.Namespace = from.pod.Namespace
	}
	decision := node.Decide(d.now, &packet, w.random, d.openTo)
	if decision.Answer == proxy.Pass {
		// The network brings it to the node that has the address, whose proxy looks at it too.
		if owner := w.hostAt(p.To.Addr()); owner != nil && owner != node {
			node, packet.Host = owner, false
			decision = node.Decide(d.now, &packet, w.random, d.openTo)
		}
	}
	if decision.Answer != proxy.Pass && d.deniedTo(from, decision.To.Addr(), source.Addr()) {
		return nil, candidate.Outcome{Result: candidate.Dropped}
	}
	f := &flow{node: node, decision: decision, source: source, at: p.To, starts: node.Starts()}
	switch decision.Answer {
	case proxy.Refuse:
		return nil, candidate.Outcome{Result: candidate.Refused}
	case proxy.Drop:
		return nil, candidate.Outcome{Result: candidate.Dropped}
	case proxy.Forward:
		f.at = decision.To
		if from.pod != nil && decision.To.Addr() == source.Addr() && !node.Hairpins(decision) {
			return nil, candidate.Outcome{Result: candidate.Dropped}
		}
		f.source = netip.AddrPortFrom(decision.Source, source.Port())
	case proxy.Pass:
		if owner := w.hostAt(p.To.Addr()); owner != nil && p.Protocol == corev1.ProtocolTCP && owner.Refuses(int(p.To.Port())) {
			return nil, candidate.Outcome{Result: candidate.Refused}
		}
		if o, ok := d.ownPorts(p, from, node); ok {
			return nil, o
		}
		f.at = w.book.headlessPassed.Do(d, p)
	}
	backend, exists := w.backendAt(f.at, p.Protocol)
	switch {
	case backend != nil:
	case exists || f.at.Addr().IsLoopback():
		return nil, candidate.Outcome{Result: candidate.Refused}
	case decision.Answer == proxy.Pass && !routes(f.at.Addr()):
		return nil, candidate.Outcome{Result: candidate.Unreachable, Error: "no route to host"}
	default:
		return nil, candidate.Outcome{Result: candidate.Dropped}
	}
	if decision.Answer == proxy.Forward && !w.book.wayOpen.Do(&way{from: from, entry: node, at: p.To.Addr(), to: backend, kind: decision.Kind, local: decision.ExternalLocal}) {
		return nil, candidate.Outcome{Result: candidate.Dropped}
	}
	if decision.Answer == proxy.Forward && backend.Outside && !w.book.outsideReached.Do(from) {
		return nil, candidate.Outcome{Result: candidate.Dropped}
	}
	f.backend, f.life = backend, backend.life
	if decision.Answer == proxy.Forward && !w.book.replyFromVIP.Do(source, p.To) {
		return nil, candidate.Outcome{Result: candidate.Dropped}
	}
	return f, d.carried(f, p)
}

// deniedTo reports whether a Service does not serve the client here, where the endpoint is at to. The client is in the
// host network of a node, or is a backend itself.
func (d *dataPlane) deniedTo(from *sender, to, source netip.Addr) bool {
	without := d.world.absent
	return without.Has(absent.HostAccess) && from.inside && from.pod == nil || without.Has(absent.Hairpin) && from.pod != nil && to == source
}

// ownPorts are what a node itself answers: the health of its proxy and of Services, and, on loopback, metrics.
func (d *dataPlane) ownPorts(p *candidate.Probe, from *sender, entered *host) (candidate.Outcome, bool) {
	loopback := p.To.Addr().IsLoopback()
	node := entered
	if !loopback {
		node = d.world.hostAt(p.To.Addr())
	}
	if node == nil || p.Protocol != corev1.ProtocolTCP || p.Path == "" || loopback && (from.pod != nil || !from.inside) {
		return candidate.Outcome{}, false
	}
	program, _ := d.world.backendAt(p.To, p.Protocol)
	answer := node.HealthCheck(p.To, p.Path, program != nil)
	if key := (flowKey{from: p.From, name: p.Connection, to: p.To}); p.Connection != "" {
		d.healthAsked[key] = d.healthAsked[key] || answer != nil
		if answer == nil && !d.world.book.healthLookedAt.Do(d.healthAsked[key]) {
			answer = &candidate.HTTPAnswer{Code: http.StatusOK}
		}
	}
	if answer == nil {
		answer = node.Serve(d.now, loopback, int(p.To.Port()), p.Path)
	}
	if answer == nil {
		return candidate.Outcome{}, false
	}
	return candidate.Outcome{Result: candidate.Answered, HTTP: answer}, true
}

// answered is the outcome of a shot that the backend of a flow has answered.
func (d *dataPlane) answered(f *flow, p *candidate.Probe) candidate.Outcome {
	source := f.source
	o := candidate.Outcome{Result: candidate.Answered, Pod: f.backend.PodName, PodPort: int(f.at.Port()), Source: source, Payload: p.Payload}
	if p.Path != "" {
		body, _ := json.Marshal(map[string]any{"pod": o.Pod, "port": o.PodPort, "source": source}) // of plain values
		o.HTTP = &candidate.HTTPAnswer{Code: http.StatusOK, Body: string(body)}
	}
	return o
}

// openTo counts the connections of the lease that are open to an endpoint; -1 says that nobody is there.
func (d *dataPlane) openTo(to netip.AddrPort) int {
	n := 0
	for _, f := range d.flows {
		if f.at == to && !f.broken && f.backend != nil && f.life == f.backend.life {
			n++
		}
	}
	if n == 0 {
		if p := d.world.byAddr[to.Addr()]; p == nil || p.killed {
			return -1
		}
	}
	return n
}
