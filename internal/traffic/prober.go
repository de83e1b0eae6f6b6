//go:build linux

package traffic

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Bounds of an HTTP answer.
const (
	maxBody     = 1 << 20
	maxResponse = 2 << 20 // with headers and the framing of chunks
)

// Prober sends probes. It holds the connections that probes name, so it belongs to one lease of a data plane. The zero value is ready
// to use; all methods are safe for concurrent use.
type Prober struct {
	// Ports, unless it is nil, chooses the source ports for this prober and others that send for the same clients.
	Ports *Ports

	mu     sync.Mutex
	closed bool
	named  map[connectionName]*connection
	flows  map[flow]bool
	own    Ports // without others
}

// connectionName names a connection: clients have names of their own.
type connectionName struct {
	from     candidate.Client
	protocol corev1.Protocol
	name     string
}

// flow is what datagrams with a fixed source port belong to. The kernel lets a second socket take it, which gets all answers then.
type flow struct {
	from       candidate.Client
	source, to netip.AddrPort
}

// connection is what shots are sent on.
type connection struct {
	turn   chan struct{} // is held by the shot that uses it
	socket *socket       // nil before it is established
	reader *bufio.Reader // of a stream
	flow   flow
	// owed is the number of HTTP answers that had not begun when their shots gave up: they come first.
	owed int
	// broken says why no answer can be told from the rest of an earlier one.
	broken error
	// proved is set once a backend has answered. Until then the peer of a stream may be a stranger: some networks
	// accept what is sent to an address that nobody has.
	proved bool
	budget int   // what may still be read of the answer
	ended  error // what the socket said last
	busy   bool  // its socket sends empty datagrams, too
}

func newConnection() *connection { return &connection{turn: make(chan struct{}, 1)} }

// Send sends the shots of the probe one after the other, from sockets in the namespace, and returns as many outcomes as it has shots. The
// source address is local; the kernel chooses one if it is invalid. A context that ends makes the shots that are left Broken.
//
// A named connection (of the same client and protocol) that was broken stays so: every further shot on it is Reset. The
// next shot tries again a connection that could not be established, or on which no backend has answered. It does so for
// a socket of UDP that was aborted, too.
func (p *Prober) Send(ctx context.Context, in Namespace, probe candidate.Probe, local netip.Addr) []candidate.Outcome {
	if probe.Timeout == 0 {
		probe.Timeout = candidate.DefaultProbeTimeout
	}
	probe.To = netip.AddrPortFrom(probe.To.Addr().Unmap(), probe.To.Port())
	source := netip.AddrPortFrom(local.Unmap(), uint16(probe.SourcePort))
	outcomes := make([]candidate.Outcome, max(1, probe.Count))
	for i := range outcomes {
		o := &outcomes[i]
		if i > 0 {
			pause(ctx, time.Until(outcomes[i-1].Start.Add(probe.Interval)))
		}
		o.Start = time.Now()
		err := p.shoot(ctx, in, &probe, source, o)
		o.Duration = time.Since(o.Start)
		if o.Result = classify(err); o.Result != candidate.Answered {
			*o = candidate.Outcome{Result: o.Result, Start: o.Start, Duration: o.Duration, Stranger: o.Stranger}
		}
		switch met := (networkError{}); {
		case o.Result == candidate.Broken:
			o.Error = err.Error()
		case o.Result == candidate.Unreachable && errors.As(err, &met):
			o.Error = met.errno.Error()
		}
	}
	return outcomes
}

// pause waits, not longer than the context.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (p *Prober) shoot(ctx context.Context, in Namespace, probe *candidate.Probe, source netip.AddrPort, o *candidate.Outcome) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !probe.To.IsValid() || probe.To.Port() == 0:
		return fmt.Errorf("%s is no address and port to send to", probe.To)
	case probe.SourcePort < 0 || probe.SourcePort > 65535:
		return fmt.Errorf("%d is no source port", probe.SourcePort)
	case probe.Payload < 0 || probe.Payload > candidate.MaxPayload || probe.Protocol == corev1.ProtocolUDP && probe.Payload > candidate.MaxDatagram || probe.Payload > 0 && probe.Path != "":
		return fmt.Errorf("no shot carries %d bytes of content by %s", probe.Payload, probe.Protocol)
	case probe.Reversed && (probe.Protocol != corev1.ProtocolUDP || probe.Payload == 0):
		return fmt.Errorf("a shot of %d bytes by %s has no packets whose order could be reversed", probe.Payload, probe.Protocol)
	case probe.Rate < 0 || probe.Rate > candidate.MaxRate || probe.Rate > 0 && (probe.Protocol != corev1.ProtocolUDP || probe.Connection == ""):
		return fmt.Errorf("no shot has %d datagrams a second beside it by %s, on connection %q", probe.Rate, probe.Protocol, probe.Connection)
	case probe.Path != "" && (probe.Protocol != corev1.ProtocolTCP || !strings.HasPrefix(probe.Path, "/")):
		return fmt.Errorf("HTTP needs the protocol TCP and a path that begins with a slash, not %s and %q", probe.Protocol, probe.Path)
	}
	c, err := p.connection(probe)
	if err != nil {
		return err
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.socket == nil {
		if err := p.establish(ctx, in, c, probe, source); err != nil {
			o.Stranger = classify(err) == candidate.Reset // somebody accepted it and ended it before the kernel told so
			return err
		}
		o.Repeated = c.socket.repeated
	}
	if probe.Connection == "" {
		defer p.release(c)
	}
	if probe.Rate > 0 && !c.busy {
		c.busy = true
		go c.socket.keepBusy(time.Second / time.Duration(probe.Rate))
	}
	defer c.socket.use(ctx, probe.Timeout)()
	err = c.exchange(probe, o)
	if c.proved = c.proved || err == nil && (o.Pod.Name != "" || o.HTTP != nil); !c.proved && probe.Payload == 0 && probe.Protocol != corev1.ProtocolUDP && classify(err) != candidate.Broken {
		o.Stranger = true
		defer p.forsake(c)
	}
	if probe.Protocol == corev1.ProtocolUDP && aborted(err) {
		// The socket is of no use any more. What uses UDP opens another one then, as it does after any error.
		defer p.forsake(c)
		return networkError{unix.ECONNREFUSED}
	}
	return err
}

// aborted reports whether something on this machine has ended a datagram socket. A balancer that works at sockets ends
// the flows to an endpoint that is gone (SOCK_DESTROY, udp_abort in net/ipv4/udp.c of Linux). The kernel tells it once,
// and from then on that the socket is not connected.
func aborted(err error) bool {
	return errors.Is(err, networkError{unix.ECONNABORTED}) || errors.Is(err, networkError{unix.EDESTADDRREQ})
}

// forsake closes the socket of a connection, so that the next shot on it opens another one.
func (p *Prober) forsake(c *connection) {
	p.release(c)
	p.mu.Lock()
	c.socket = nil
	p.mu.Unlock()
	c.owed, c.broken, c.ended, c.busy = 0, nil, nil, false
}

// connection returns the connection that the probe names, or a new one.
func (p *Prober) connection(probe *candidate.Probe) (*connection, error) {
	if probe.Connection == "" {
		return newConnection(), nil
	}
	name := connectionName{probe.From, probe.Protocol, probe.Connection}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	c := p.named[name]
	if c == nil {
		c = newConnection()
		if p.named == nil {
			p.named = map[connectionName]*connection{}
		}
		p.named[name] = c
	}
	return c, nil
}

var errClosed = errors.New("the prober is closed")

// establish opens the socket of a connection.
func (p *Prober) establish(ctx context.Context, in Namespace, c *connection, probe *candidate.Probe, source netip.AddrPort) error {
	var s *socket
	var err error
	for try := 0; ; try++ {
		from := source
		if from.Port() == 0 {
			from = netip.AddrPortFrom(source.Addr(), p.ports().next(probe.From))
		}
		if probe.Protocol == corev1.ProtocolUDP {
			if err := p.claim(c, flow{probe.From, from, probe.To}); err != nil {
				return err
			}
		}
		if s, err = dial(ctx, in, probe, from, probe.To, probe.Timeout); err == nil {
			break
		}
		p.release(c)
		taken := errors.Is(err, unix.EADDRINUSE) || errors.Is(err, networkError{unix.EADDRNOTAVAIL}) // at bind, at connect
		if !taken || source.Port() != 0 || try == triesForPort {
			return err
		}
	}
	if probe.Protocol != corev1.ProtocolUDP {
		c.reader = bufio.NewReaderSize(c, maxLine)
	}
	p.mu.Lock()
	c.socket = s
	closed := p.closed && probe.Connection != ""
	p.mu.Unlock()
	if closed {
		p.release(c)
		return errClosed
	}
	return nil
}

// triesForPort is how many ports are tried that somebody else in the namespace has taken.
const triesForPort = 16

func (p *Prober) ports() *Ports {
	if p.Ports != nil {
		return p.Ports
	}
	return &p.own
}

// claim takes a flow for the connection, until release.
func (p *Prober) claim(c *connection, f flow) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flows[f] {
		return fmt.Errorf("another socket sends from port %d to %s", f.source.Port(), f.to)
	}
	if p.flows == nil {
		p.flows = map[flow]bool{}
	}
	p.flows[f], c.flow = true, f
	return nil
}

// release closes what the connection has.
func (p *Prober) release(c *connection) {
	if c.socket != nil {
		c.socket.close()
	}
	p.mu.Lock()
	delete(p.flows, c.flow)
	p.mu.Unlock()
}

// Close closes the named connections. Shots that are on them, and later ones that name one, are Broken. It may be called more than once.
func (p *Prober) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.named {
		if c.socket != nil {
			c.socket.close()
		}
		delete(p.flows, c.flow)
	}
	p.named = nil
}

// exchange sends a request and waits for its answer.
func (c *connection) exchange(probe *candidate.Probe, o *candidate.Outcome) error {
	switch {
	case c.broken != nil:
		return c.broken
	case probe.Path != "":
		return c.get(probe, o)
	case probe.Protocol == corev1.ProtocolUDP:
		return c.askDatagram(probe, o)
	}
	return c.askLine(probe, o)
}

// spoil notes that the connection stands in the midst of an answer. One that was broken says so itself.
func (c *connection) spoil(err error) {
	if classify(err) != candidate.Reset {
		c.broken = fmt.Errorf("the connection is of no use: an earlier answer was not complete: %s", err.Error()) // its kind is that of the earlier shot
	}
}

// token makes the text of a request, by which its answer is known.
func token() string { return strconv.FormatUint(rand.Uint64(), 36) }

func (c *connection) askLine(probe *candidate.Probe, o *candidate.Outcome) error {
	if c.owed > 0 {
		return errors.New("the connection still owes an answer of HTTP")
	}
	request := token()
	message := []byte(request + "\n")
	if probe.Payload > 0 {
		message = append([]byte(sizedHead(request, probe.Payload)), content(request, probe.Payload)...)
	}
	if _, err := c.socket.Write(message); err != nil {
		return err
	}
	for {
		c.budget = maxResponse
		line, err := c.reader.ReadSlice('\n')
		if err != nil && len(line) > 0 {
			c.spoil(err)
		}
		if err != nil {
			return err
		}
		a, err := parseAnswer(line)
		if err != nil {
			return err
		}
		if a.Request != request { // that of a shot that gave up
			continue
		}
		a.fill(o)
		return c.takeContent(probe, &a, o)
	}
}

// takeContent reads the content that follows the line of an answer.
func (c *connection) takeContent(probe *candidate.Probe, a *answer, o *candidate.Outcome) error {
	if probe.Payload == 0 {
		return nil
	}
	got := make([]byte, probe.Payload)
	c.budget = maxResponse + len(got)
	if _, err := io.ReadFull(c.reader, got); err != nil {
		c.spoil(err)
		return err
	}
	if a.Payload != probe.Payload || !bytes.Equal(got, content(backwards(a.Request), len(got))) {
		return errAltered
	}
	o.Payload = probe.Payload
	return nil
}

func (c *connection) askDatagram(probe *candidate.Probe, o *candidate.Outcome) error {
	if err := c.socket.forget(); err != nil {
		return err
	}
	request := token()
	message := []byte(request)
	if probe.Payload > 0 {
		message = sizedDatagram(request, probe.Payload)
	}
	c.socket.timeout = probe.Timeout / time.Duration(1+max(0, probe.Repeats))
	for sent, told := 0, 0; ; sent++ {
		err := c.socket.send(message, probe.Reversed)
		if err == nil || filtered(err, probe.Payload) {
			err = c.awaitDatagram(probe, request, o)
		}
		switch {
		case errors.Is(err, networkError{unix.EMSGSIZE}) && told < triesForSize: // the kernel knows now how big packets may be
			told++
			sent--
		case !errors.Is(err, errSilence) || sent >= probe.Repeats:
			return err
		}
	}
}

// filtered reports whether a filter on the way out has taken a datagram with that much content. One of netfilter makes EPERM. A program at the egress of an interface
// makes ENOBUFS (net_xmit_errno of Linux), as a full queue does. The datagram is lost, or an ICMP error answers it, which then comes. A large datagram may also lack
// room in the buffer of its sender; roomy ones do not.
func filtered(err error, payload int) bool {
	return errors.Is(err, networkError{unix.EPERM}) || payload <= roomy && errors.Is(err, networkError{unix.ENOBUFS})
}

// roomy is how much content a datagram has at most that always finds room: a small part of the 200 KiB that Linux gives a socket by default.
const roomy = 16 << 10

// triesForSize is how often a datagram is sent again because it was too big for a link: each link on the way may say so.
const triesForSize = 3

// awaitDatagram waits for the answer to a request.
func (c *connection) awaitDatagram(probe *candidate.Probe, request string, o *candidate.Outcome) error {
	datagram := make([]byte, maxDatagram)
	for {
		n, err := c.socket.Read(datagram)
		if errors.Is(err, io.EOF) { // an empty datagram
			n, err = 0, nil
		}
		if err != nil {
			return err
		}
		line, rest := datagram[:n], []byte(nil)
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line, rest = line[:end+1], line[end+1:]
		}
		a, err := parseAnswer(line)
		if err != nil {
			return err
		}
		if a.Request != request {
			continue
		}
		a.fill(o)
		if size := probe.Payload; size > 0 {
			if a.Payload != size || !bytes.Equal(rest, content(backwards(request), max(0, size-len(line)))) {
				return errAltered
			}
			o.Payload = size
		}
		return nil
	}
}

// get is a GET of HTTP/1.1. The connection stays open, if it has a name and the server keeps it.
func (c *connection) get(probe *candidate.Probe, o *candidate.Outcome) error {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+probe.To.String()+probe.Path, nil)
	if err != nil {
		return fmt.Errorf("path %q: %w", probe.Path, err)
	}
	var message bytes.Buffer
	if err := r.Write(&message); err != nil {
		return fmt.Errorf("path %q: %w", probe.Path, err)
	}
	if _, err := c.socket.Write(message.Bytes()); err != nil {
		return err
	}
	c.owed++
	for {
		c.budget = maxResponse
		if _, err := c.reader.Peek(1); err != nil {
			return err
		}
		answer, err := c.response(r)
		if err != nil {
			if c.ended != nil {
				err = c.ended // what ended the answer, where the parser only says that it is not complete
			}
			c.spoil(err)
			return err
		}
		if c.owed--; c.owed > 0 {
			continue // that of a shot that gave up
		}
		o.HTTP = answer
		if a, err := parseAnswer([]byte(answer.Body)); err == nil {
			a.fill(o)
		}
		return nil
	}
}

func (c *connection) response(r *http.Request) (*candidate.HTTPAnswer, error) {
	response, err := http.ReadResponse(c.reader, r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxBody {
		body = body[:maxBody]
		c.broken = fmt.Errorf("the connection is of no use after an answer of more than %d bytes", maxBody)
	}
	return &candidate.HTTPAnswer{Code: response.StatusCode, Header: response.Header, Body: string(body)}, nil
}

// Read reads from the socket until the budget of an answer is spent.
func (c *connection) Read(p []byte) (int, error) {
	if c.budget <= 0 {
		return 0, fmt.Errorf("an answer of more than %d bytes", maxResponse)
	}
	n, err := c.socket.Read(p[:min(len(p), c.budget)])
	c.budget -= n
	c.ended = err
	return n, err
}
