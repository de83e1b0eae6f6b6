//go:build linux

package traffic

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

// brief is the timeout where silence is what must be seen.
const brief = 30 * time.Millisecond

// patient is the timeout where an answer must be seen.
const patient = 30 * time.Second

func newProber(t *testing.T) *Prober {
	p := &Prober{}
	t.Cleanup(p.Close)
	return p
}

// send sends a probe, patiently if it does not say otherwise.
func send(t *testing.T, p *Prober, probe candidate.Probe) []candidate.Outcome {
	t.Helper()
	if probe.Timeout == 0 {
		probe.Timeout = patient
	}
	before := time.Now()
	outcomes := p.Send(t.Context(), nil, probe, netip.Addr{})
	if len(outcomes) != max(1, probe.Count) {
		t.Fatalf("%d outcomes of %d shots", len(outcomes), probe.Count)
	}
	for _, o := range outcomes {
		if o.Start.Before(before) || o.Duration <= 0 || o.Start.Add(o.Duration).After(time.Now()) || (o.Error != "") != (o.Result == candidate.Broken || o.Result == candidate.Unreachable) {
			t.Errorf("outcome %+v", o)
		}
		before = o.Start
	}
	return outcomes
}

// want demands a result of every outcome.
func want(t *testing.T, outcomes []candidate.Outcome, result candidate.Result) {
	t.Helper()
	for i, o := range outcomes {
		if o.Result != result {
			t.Errorf("shot %d is %s (%s), want %s", i, o.Result, o.Error, result)
		}
	}
}

func to(a netip.Addr, port int) netip.AddrPort { return netip.AddrPortFrom(a, uint16(port)) }

// peer accepts connections of TCP and hands each to handle, which must return when the connection ends.
func peer(t *testing.T, handle func(c *net.TCPConn, r *bufio.Reader)) netip.AddrPort {
	t.Helper()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: loopback4.AsSlice()})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() { l.Close(); running.Wait() })
	running.Go(func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				handle(c, bufio.NewReader(c))
			})
		}
	})
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// datagrams is a socket that the test reads and answers by hand.
func datagrams(t *testing.T) (*net.UDPConn, netip.AddrPort) {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: loopback4.AsSlice()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, c.LocalAddr().(*net.UDPAddr).AddrPort()
}

func TestAnswered(t *testing.T) {
	_, ports := serve(t, tcp, udp)
	p := newProber(t)
	for i, protocol := range []corev1.Protocol{tcp, udp} {
		cases := []struct{ local, source, to netip.Addr }{
			{other4, other4, loopback4},
			{loopback4, loopback4, other4}, // an answer comes from the address that was asked, not from the first one
		}
		for _, a := range families() {
			cases = append(cases, struct{ local, source, to netip.Addr }{netip.Addr{}, a, a}, struct{ local, source, to netip.Addr }{a, a, a})
		}
		for _, c := range cases {
			outcomes := p.Send(t.Context(), nil, candidate.Probe{To: to(c.to, ports[i]), Protocol: protocol, Count: 3, Timeout: patient}, c.local)
			want(t, outcomes, candidate.Answered)
			seen := map[netip.AddrPort]bool{}
			for _, o := range outcomes {
				if o.Pod != pod || o.PodPort != ports[i] || o.Source.Addr() != c.source || o.Source.Port() == 0 || o.HTTP != nil {
					t.Errorf("%s from %s to %s: %+v", protocol, c.local, c.to, o)
				}
				seen[o.Source] = true
			}
			if len(seen) == 1 {
				t.Errorf("%s: all shots came from the port of the first", protocol)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	s, ports := serve(t, tcp, udp)
	s.Close()
	for _, a := range families() {
		want(t, send(t, newProber(t), candidate.Probe{To: to(a, ports[0]), Protocol: tcp, Count: 3}), candidate.Refused)
		want(t, send(t, newProber(t), candidate.Probe{To: to(a, ports[1]), Protocol: udp, Count: 3}), candidate.Refused)
		want(t, send(t, newProber(t), candidate.Probe{To: to(a, ports[1]), Protocol: udp, Count: 3, Connection: "a"}), candidate.Refused)
	}
}

func TestUnreachable(t *testing.T) {
	// TCP has no multicast: connect says ENETUNREACH, as without a route.
	for _, a := range families() {
		group := netip.MustParseAddr(map[bool]string{true: "224.0.0.1", false: "ff02::1"}[a.Is4()])
		os := send(t, newProber(t), candidate.Probe{To: to(group, 80), Protocol: tcp})
		if len(os) != 1 || os[0].Result != candidate.Unreachable || os[0].Error != unix.ENETUNREACH.Error() {
			t.Errorf("outcomes %+v", os)
		}
	}
	for errno, result := range map[unix.Errno]candidate.Result{
		unix.EHOSTUNREACH: candidate.Unreachable, unix.EACCES: candidate.Unreachable, unix.ENOPROTOOPT: candidate.Unreachable,
		unix.ETIMEDOUT: candidate.Dropped, unix.EADDRNOTAVAIL: candidate.Broken,
	} {
		if got := classify(fmt.Errorf("connect: %w", networkError{errno})); got != result {
			t.Errorf("%v of the network is %s, want %s", errno, got, result)
		}
		if got := classify(fmt.Errorf("bind: %w", errno)); got != candidate.Broken {
			t.Errorf("%v of this machine is %s", errno, got)
		}
	}
}

// TestAbortedDatagramSocket: a socket that somebody disconnects is an answer, and the next shot has another one.
func TestAbortedDatagramSocket(t *testing.T) {
	_, ports := serve(t, udp)
	for _, a := range families() {
		p := newProber(t)
		probe := candidate.Probe{To: to(a, ports[0]), Protocol: udp, Connection: "a", Timeout: patient}
		want(t, send(t, p, probe), candidate.Answered)
		c, err := p.connection(&probe)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.socket.raw.Control(func(fd uintptr) {
			nobody := unix.RawSockaddr{Family: unix.AF_UNSPEC}
			if _, _, errno := unix.Syscall(unix.SYS_CONNECT, fd, uintptr(unsafe.Pointer(&nobody)), unsafe.Sizeof(nobody)); errno != 0 {
				t.Error("disconnect:", errno)
			}
		}); err != nil {
			t.Fatal(err)
		}
		want(t, send(t, p, probe), candidate.Refused)
		want(t, send(t, p, probe), candidate.Answered)
	}
	for _, errno := range []unix.Errno{unix.ECONNABORTED, unix.EDESTADDRREQ} {
		if !aborted(fmt.Errorf("recvfrom: %w", networkError{errno})) {
			t.Errorf("%v is not taken for the end of a socket", errno)
		}
	}
}

// TestADatagramThatAFilterTakesIsLost: it is not the prober that is broken then.
func TestADatagramThatAFilterTakesIsLost(t *testing.T) {
	for errno, is := range map[unix.Errno]bool{unix.EPERM: true, unix.ENOBUFS: true, unix.ENOMEM: false, unix.EHOSTUNREACH: false} {
		if filtered(fmt.Errorf("sendmsg: %w", networkError{errno}), 0) != is {
			t.Errorf("%v: a filter took it: %v", errno, !is)
		}
	}
	if filtered(networkError{unix.ENOBUFS}, 60000) {
		t.Error("a large datagram may lack room in the buffer of its sender")
	}
}

func TestDroppedDatagram(t *testing.T) {
	_, address := datagrams(t)
	want(t, send(t, newProber(t), candidate.Probe{To: address, Protocol: udp, Count: 2, Timeout: brief}), candidate.Dropped)
}

// TestRepeatedDatagram demands that a datagram that was lost is sent again as it was, in its flow, and no other time than asked for.
func TestRepeatedDatagram(t *testing.T) {
	c, address := datagrams(t)
	type datagram struct {
		text string
		from netip.AddrPort
	}
	heard := make(chan []datagram, 1)
	go func() {
		var all []datagram
		b := make([]byte, 100)
		for range 2 {
			n, from, err := c.ReadFromUDPAddrPort(b)
			if err != nil {
				break
			}
			all = append(all, datagram{string(b[:n]), from})
		}
		_, _ = c.WriteToUDPAddrPort([]byte("here"), all[len(all)-1].from)
		heard <- all
	}()
	want(t, send(t, newProber(t), candidate.Probe{To: address, Protocol: udp, Timeout: 100 * brief, Repeats: 99}), candidate.Answered)
	if all := <-heard; len(all) != 2 || all[0] != all[1] {
		t.Errorf("the datagrams were %v", all)
	}
	silent, address := datagrams(t)
	want(t, send(t, newProber(t), candidate.Probe{To: address, Protocol: udp, Timeout: 3 * brief, Repeats: 2}), candidate.Dropped)
	if err := silent.SetReadDeadline(time.Now().Add(brief)); err != nil {
		t.Fatal(err)
	}
	got := 0
	for b := make([]byte, 100); ; got++ {
		if _, _, err := silent.ReadFromUDPAddrPort(b); err != nil {
			break
		}
	}
	if got != 3 {
		t.Errorf("a datagram that is to be repeated twice was sent %d times", got)
	}
}

// fullListener is a listener on loopback whose queue of connections that nobody accepts is full: the kernel ignores SYN.
func fullListener(t *testing.T) (fd, port int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback4.As4()}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	port = bound.(*unix.SockaddrInet4).Port
	connect(t, port)
	return fd, port
}

func TestDroppedConnectionAttempt(t *testing.T) {
	_, port := fullListener(t)
	want(t, send(t, newProber(t), candidate.Probe{To: to(loopback4, port), Protocol: tcp, Count: 2, Timeout: brief}), candidate.Dropped)
	// A named connection that was not established is tried again.
	want(t, send(t, newProber(t), candidate.Probe{To: to(loopback4, port), Protocol: tcp, Count: 2, Timeout: brief, Connection: "a"}), candidate.Dropped)
}

func TestAConnectionThatWasDroppedAtFirstIsKnown(t *testing.T) {
	listener, port := fullListener(t)
	repeated := make(chan int, 1)
	go func() {
		p := candidate.Probe{Protocol: tcp}
		s, err := dial(t.Context(), nil, &p, netip.AddrPort{}, to(loopback4, port), time.Minute)
		if err != nil {
			repeated <- -1
			return
		}
		s.close()
		repeated <- s.repeated
	}()
	attempt := fmt.Sprintf(" 0100007F:%04X 02 ", port) // SYN is sent
	for len(repeated) == 0 {
		connections, err := os.ReadFile("/proc/self/net/tcp")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(connections), attempt) {
			break
		}
	}
	if _, _, err := unix.Accept(listener); err != nil { // there is room for the next SYN
		t.Fatal(err)
	}
	if n := <-repeated; n < 1 {
		t.Errorf("SYN was repeated %d times, want once, or more often on a machine that stalls", n)
	}
}

func TestDroppedOnEstablishedConnection(t *testing.T) {
	silent := peer(t, func(_ *net.TCPConn, r *bufio.Reader) { _, _ = io.Copy(io.Discard, r) })
	for _, path := range []string{"", "/"} {
		want(t, send(t, newProber(t), candidate.Probe{To: silent, Protocol: tcp, Timeout: brief, Path: path}), candidate.Dropped)
	}
}

func TestReset(t *testing.T) {
	for name, end := range map[string]func(*net.TCPConn, *bufio.Reader){
		"at once":                   func(c *net.TCPConn, _ *bufio.Reader) { reset(c) },
		"after the request":         func(c *net.TCPConn, r *bufio.Reader) { _, _ = r.ReadString('\n'); reset(c) },
		"orderly":                   func(_ *net.TCPConn, r *bufio.Reader) { _, _ = r.ReadString('\n') },
		"in the midst of an answer": func(c *net.TCPConn, r *bufio.Reader) { _, _ = r.ReadString('\n'); fmt.Fprint(c, `{"pod":`) },
		"in the midst of headers": func(c *net.TCPConn, r *bufio.Reader) {
			_, _ = r.ReadString('\n')
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nA")
		},
	} {
		for _, path := range []string{"", "/"} {
			if name == "in the midst of headers" && path == "" {
				continue // lines are no answers of a backend
			}
			t.Run(name+path, func(t *testing.T) {
				address := peer(t, end)
				want(t, send(t, newProber(t), candidate.Probe{To: address, Protocol: tcp, Count: 3, Path: path}), candidate.Reset)
				want(t, send(t, newProber(t), candidate.Probe{To: address, Protocol: tcp, Count: 3, Path: path, Connection: "a"}), candidate.Reset)
			})
		}
	}
}

func TestSourcePortIsThatOfEveryShot(t *testing.T) {
	_, ports := serve(t, tcp, udp)
	for i, protocol := range []corev1.Protocol{tcp, udp} {
		for _, a := range families() {
			source := freePort(t)
			outcomes := send(t, newProber(t), candidate.Probe{To: to(a, ports[i]), Protocol: protocol, Count: 20, SourcePort: source})
			want(t, outcomes, candidate.Answered)
			for _, o := range outcomes {
				if int(o.Source.Port()) != source {
					t.Errorf("%s shot from port %d, want %d", protocol, o.Source.Port(), source)
				}
			}
		}
	}
}

func TestSourcePortGoesToSeveralPeers(t *testing.T) {
	_, ports := serve(t, tcp, udp)
	p, source := newProber(t), freePort(t)
	for i, protocol := range []corev1.Protocol{tcp, udp} {
		for n, a := range append(families(), other4) {
			probe := candidate.Probe{To: to(a, ports[i]), Protocol: protocol, SourcePort: source, Connection: fmt.Sprint(n)}
			want(t, send(t, p, probe), candidate.Answered)
		}
		for range 2 {
			again := send(t, p, candidate.Probe{To: to(loopback4, ports[i]), Protocol: protocol, SourcePort: source})
			want(t, again, candidate.Broken) // as it would take the answers of the connection that is open
		}
	}
}

func TestNamedConnections(t *testing.T) {
	s, ports := serve(t, tcp, tcp, udp)
	p := newProber(t)
	for i, path := range []string{"", "/identity", ""} {
		probe := candidate.Probe{To: to(loopback4, ports[i]), Protocol: s.Ports()[i].Protocol, Count: 3, Connection: "kept" + path, Path: path}
		first := send(t, p, probe)
		probe.To = to(other4, 1) // a connection goes where its first shot went
		second := send(t, p, probe)
		probe.Connection, probe.To = "another", to(loopback4, ports[i])
		another := send(t, p, probe)
		want(t, append(append(first, second...), another...), candidate.Answered)
		for _, o := range append(first, second...) {
			if o.Source != first[0].Source || o.Pod != pod || o.PodPort != ports[i] {
				t.Errorf("the connection of %+v became %+v", first[0], o)
			}
		}
		if another[0].Source == first[0].Source {
			t.Errorf("connections with different names are one")
		}
		probe.From.Node = "elsewhere"
		if o := send(t, p, probe)[0]; o.Result != candidate.Answered || o.Source == another[0].Source {
			t.Errorf("different clients share a connection: %+v", o)
		}
	}
	s.Close()
	again, err := Serve(pod, s.Ports(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	want(t, send(t, p, candidate.Probe{To: to(loopback4, ports[0]), Protocol: tcp, Count: 3, Connection: "kept"}), candidate.Reset)
	want(t, send(t, p, candidate.Probe{To: to(loopback4, ports[1]), Protocol: tcp, Count: 3, Connection: "kept/identity", Path: "/"}), candidate.Reset)
	want(t, send(t, p, candidate.Probe{To: to(loopback4, ports[2]), Protocol: udp, Count: 3, Connection: "kept"}), candidate.Answered)
	p.Close()
	want(t, send(t, p, candidate.Probe{To: to(loopback4, ports[2]), Protocol: udp, Connection: "kept"}), candidate.Broken)
	want(t, send(t, p, candidate.Probe{To: to(loopback4, ports[2]), Protocol: udp}), candidate.Answered)
}

func TestCloseEndsShotsThatWait(t *testing.T) {
	p, asked := newProber(t), make(chan bool, 1)
	silent := peer(t, func(_ *net.TCPConn, r *bufio.Reader) {
		_, _ = r.ReadString('\n')
		asked <- true
		_, _ = io.Copy(io.Discard, r)
	})
	go func() { <-asked; p.Close() }()
	want(t, send(t, p, candidate.Probe{To: silent, Protocol: tcp, Connection: "a", Count: 2}), candidate.Broken)
}

// A peer that answers a request only when the next one has come, so late that the shot has given up.
func TestLateAnswersAreNotTakenForOthers(t *testing.T) {
	late := func(first bool) *answer {
		return &answer{Pod: map[bool]string{true: "late", false: "current"}[first], Port: 1, Source: to(loopback4, 1)}
	}
	lines := peer(t, func(c *net.TCPConn, r *bufio.Reader) {
		say := func(a *answer, q string) {
			if a.Request = q; strings.HasPrefix(q, "/") {
				_, _ = c.Write(a.http(false))
			} else {
				_, _ = c.Write(a.line())
			}
		}
		first, err := readRequest(r)
		if err != nil {
			return
		}
		say(late(false), first.text)
		var requests []string
		for range 2 {
			q, err := readRequest(r)
			if err != nil {
				return
			}
			requests = append(requests, q.text)
		}
		for i, q := range requests {
			say(late(i == 0), q)
		}
		_, _ = io.Copy(io.Discard, r)
	})
	socket, datagram := datagrams(t)
	go func() {
		var requests []string
		b := make([]byte, maxLine)
		for i := range 2 {
			n, source, err := socket.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			if requests = append(requests, string(b[:n])); i == 0 {
				continue
			}
			for j, q := range requests {
				a := late(j == 0)
				a.Request = q
				_, _ = socket.WriteToUDPAddrPort(a.line(), source)
			}
		}
	}()
	for _, probe := range []candidate.Probe{{To: lines, Protocol: tcp}, {To: lines, Protocol: tcp, Path: "/"}, {To: datagram, Protocol: udp}} {
		p := newProber(t)
		probe.Connection, probe.Timeout = "a", patient
		if probe.Protocol == tcp { // what was never answered is not used again
			want(t, send(t, p, probe), candidate.Answered)
		}
		probe.Timeout = brief
		want(t, send(t, p, probe), candidate.Dropped)
		probe.Timeout = patient
		if o := send(t, p, probe)[0]; o.Pod.Name != "current" {
			t.Errorf("%s%s: the outcome after a late answer is %+v", probe.Protocol, probe.Path, o)
		}
	}
}

// A prober that did not run until after its timeout finds what came in the meantime.
func TestAnswerThatWaitsInTheSocketIsNotSilence(t *testing.T) {
	there, address := datagrams(t)
	s, err := dial(t.Context(), nil, &candidate.Probe{Protocol: udp}, netip.AddrPort{}, address, patient)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	stop := s.use(t.Context(), patient)
	defer stop()
	if _, err := s.Write([]byte("question")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 16)
	_, source, err := there.ReadFromUDPAddrPort(b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := there.WriteToUDPAddrPort([]byte("answer"), source); err != nil {
		t.Fatal(err)
	}
	err = s.raw.Control(func(fd uintptr) {
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patient.Milliseconds())); n != 1 {
			t.Errorf("the answer is not there: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	s.timeout = -time.Second
	if n, err := s.Read(b); err != nil || string(b[:n]) != "answer" {
		t.Errorf("read %q, %v", b[:n], err)
	}
	if _, err := s.Read(b); !errors.Is(err, errSilence) {
		t.Errorf("an empty socket gives %v", err)
	}
}

// SCTP where the kernel has it; else the server says so, and the prober is broken.
func TestSCTP(t *testing.T) {
	const sctp = corev1.ProtocolSCTP
	s, err := Serve(pod, []candidate.PodPort{{Protocol: sctp}}, nil)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		want(t, send(t, newProber(t), candidate.Probe{To: to(loopback4, 1), Protocol: sctp}), candidate.Broken)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, source := newProber(t), freePort(t)
	for _, a := range families() {
		address := to(a, s.Ports()[0].Number)
		for _, o := range send(t, p, candidate.Probe{To: address, Protocol: sctp, Count: 3, SourcePort: source}) {
			if o.Result != candidate.Answered || o.Pod != pod || o.Source != to(a, source) {
				t.Errorf("outcome %+v", o)
			}
		}
		want(t, send(t, p, candidate.Probe{To: address, Protocol: sctp, Count: 3, Connection: a.String()}), candidate.Answered)
	}
	s.Close()
	want(t, send(t, p, candidate.Probe{To: to(loopback4, s.Ports()[0].Number), Protocol: sctp, Count: 2, Connection: loopback4.String()}), candidate.Reset)
	want(t, send(t, p, candidate.Probe{To: to(loopback4, s.Ports()[0].Number), Protocol: sctp}), candidate.Refused)
}

func TestHTTP(t *testing.T) {
	_, ports := serve(t, tcp)
	for _, a := range families() {
		o := send(t, newProber(t), candidate.Probe{To: to(a, ports[0]), Protocol: tcp, Path: "/x?y=z"})[0]
		if o.Result != candidate.Answered || o.HTTP == nil || o.HTTP.Code != 200 || o.Pod != pod || o.PodPort != ports[0] || o.Source.Addr() != a {
			t.Fatalf("outcome %+v", o)
		}
		if o.HTTP.Header["Content-Type"][0] != "application/json" || !strings.Contains(o.HTTP.Body, `"request":"/x?y=z"`) {
			t.Errorf("answer %+v", o.HTTP)
		}
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Seen"] = []string{r.RequestURI, "twice"}
		w.WriteHeader(http.StatusServiceUnavailable)
		if r.URL.Path == "/large" {
			_, _ = w.Write(make([]byte, maxBody+1)) // in chunks
		}
	}))
	defer other.Close()
	address := netip.MustParseAddrPort(other.Listener.Addr().String())
	p := newProber(t)
	for _, o := range send(t, p, candidate.Probe{To: address, Protocol: tcp, Path: "/a", Count: 3, Connection: "c"}) {
		if o.Result != candidate.Answered || o.HTTP == nil || o.HTTP.Code != 503 || fmt.Sprint(o.HTTP.Header["X-Seen"]) != "[/a twice]" || o.Pod != (candidate.PodName{}) {
			t.Errorf("outcome %+v", o)
		}
	}
	large := send(t, p, candidate.Probe{To: address, Protocol: tcp, Path: "/large", Connection: "c"})[0]
	if large.Result != candidate.Answered || len(large.HTTP.Body) != maxBody {
		t.Errorf("a large answer is %s with %d bytes", large.Result, len(large.HTTP.Body))
	}
	want(t, send(t, p, candidate.Probe{To: address, Protocol: tcp, Path: "/a", Connection: "c"}), candidate.Broken)
}

// TestStranger demands that an answer of somebody else is one, so that a network that answers for everybody is not taken for a broken prober.
func TestStranger(t *testing.T) {
	liar := peer(t, func(c *net.TCPConn, r *bufio.Reader) {
		_, _ = r.ReadString('\n')
		fmt.Fprintln(c, "HTTP/1.1 400 Bad Request")
	})
	outcomes := send(t, newProber(t), candidate.Probe{To: liar, Protocol: tcp})
	want(t, outcomes, candidate.Answered)
	if o := outcomes[0]; o.Pod.Name != "" || o.Error != "" {
		t.Errorf("the answer of a stranger is that of pod %q (error %q)", o.Pod, o.Error)
	}
}

// A network may accept every connection. One that met it stays with it for ever; the next shot is to find the backend that is there by then.
func TestANamedConnectionThatMetAStrangerIsOpenedAgain(t *testing.T) {
	for name, stranger := range map[string]func(*net.TCPConn, *bufio.Reader){
		"resets":  func(c *net.TCPConn, _ *bufio.Reader) { reset(c) },
		"ends":    func(_ *net.TCPConn, r *bufio.Reader) { _, _ = r.ReadString('\n') },
		"is mute": func(_ *net.TCPConn, r *bufio.Reader) { _, _ = io.Copy(io.Discard, r) },
		"answers": func(c *net.TCPConn, r *bufio.Reader) { _, _ = r.ReadString('\n'); fmt.Fprintln(c, "who is there?") },
	} {
		t.Run(name, func(t *testing.T) {
			var met atomic.Int64
			address := peer(t, func(c *net.TCPConn, r *bufio.Reader) {
				if met.Add(1) == 1 {
					stranger(c, r)
					return
				}
				for {
					q, err := readRequest(r)
					if err != nil {
						return
					}
					_, _ = c.Write((&answer{Request: q.text, Pod: "backend", Port: 1, Source: to(loopback4, 1)}).line())
				}
			})
			p := newProber(t)
			probe := candidate.Probe{To: address, Protocol: tcp, Connection: "kept", Timeout: brief}
			if o := send(t, p, probe)[0]; !o.Stranger || o.Pod.Name != "" {
				t.Errorf("what a stranger said is %+v", o)
			}
			probe.Timeout, probe.Count = patient, 3
			for _, o := range send(t, p, probe) {
				if o.Result != candidate.Answered || o.Stranger || o.Pod.Name != "backend" {
					t.Errorf("with a backend there, the outcome is %+v", o)
				}
			}
			if n := met.Load(); n != 2 {
				t.Errorf("%d connections, want 2: the second one is kept", n)
			}
		})
	}
}

func TestBroken(t *testing.T) {
	_, ports := serve(t, tcp, udp)
	liar := peer(t, func(c *net.TCPConn, r *bufio.Reader) {
		_, _ = r.ReadString('\n')
		fmt.Fprintln(c, "HTTP/1.1 OK, or not")
	})
	noisy := peer(t, func(c *net.TCPConn, r *bufio.Reader) {
		_, _ = r.ReadString('\n')
		fmt.Fprint(c, strings.Repeat("x", maxLine+1))
	})
	here := to(loopback4, ports[0])
	gone := errors.New("the namespace is gone")
	for name, c := range map[string]struct {
		probe candidate.Probe
		in    Namespace
		local netip.Addr
		text  string
	}{
		"no HTTP":                 {probe: candidate.Probe{To: liar, Protocol: tcp, Path: "/"}, text: "malformed HTTP"},
		"endless line":            {probe: candidate.Probe{To: noisy, Protocol: tcp, Connection: "a"}, text: "buffer full"},
		"no such namespace":       {probe: candidate.Probe{To: here, Protocol: tcp}, in: func(func() error) error { return gone }, text: gone.Error()},
		"not allowed there":       {probe: candidate.Probe{To: here, Protocol: tcp}, in: func(func() error) error { return unix.EPERM }, text: "not permitted"},
		"address of another":      {probe: candidate.Probe{To: here, Protocol: tcp}, local: netip.MustParseAddr("192.0.2.1"), text: "bind to 192.0.2.1:"},
		"address of other family": {probe: candidate.Probe{To: here, Protocol: tcp}, local: loopback6, text: "bind to [::1]:"},
		"port that listens":       {probe: candidate.Probe{To: here, Protocol: tcp, SourcePort: ports[0]}, text: "address already in use"},
		"no address":              {probe: candidate.Probe{Protocol: tcp}, text: "no address"},
		"no port":                 {probe: candidate.Probe{To: here, Protocol: tcp, SourcePort: 65536}, text: "no source port"},
		"no protocol":             {probe: candidate.Probe{To: here, Protocol: "ICMP"}, text: "none of TCP, UDP and SCTP"},
		"no path":                 {probe: candidate.Probe{To: here, Protocol: tcp, Path: "x"}, text: "begins with a slash"},
		"HTTP over UDP":           {probe: candidate.Probe{To: to(loopback4, ports[1]), Protocol: udp, Path: "/"}, text: "protocol TCP"},
	} {
		t.Run(name, func(t *testing.T) {
			c.probe.Count, c.probe.Timeout = 2, patient
			outcomes := newProber(t).Send(t.Context(), c.in, c.probe, c.local)
			want(t, outcomes, candidate.Broken)
			if !strings.Contains(outcomes[0].Error, c.text) {
				t.Errorf("error is %q, want %q in it", outcomes[0].Error, c.text)
			}
		})
	}
}

func TestCancelledContext(t *testing.T) {
	for _, name := range []string{"", "kept"} {
		ctx, cancel := context.WithCancel(t.Context())
		silent := peer(t, func(_ *net.TCPConn, r *bufio.Reader) {
			_, _ = r.ReadString('\n')
			cancel()
			_, _ = io.Copy(io.Discard, r)
		})
		p := newProber(t)
		outcomes := p.Send(ctx, nil, candidate.Probe{To: silent, Protocol: tcp, Count: 3, Interval: patient, Timeout: patient, Connection: name}, netip.Addr{})
		want(t, outcomes, candidate.Broken)
		if len(outcomes) != 3 || !strings.Contains(outcomes[2].Error, context.Canceled.Error()) {
			t.Errorf("outcomes %+v", outcomes)
		}
		// What ended one shot does not end the next: it waits as long as it is told to.
		want(t, send(t, p, candidate.Probe{To: silent, Protocol: tcp, Timeout: brief, Connection: name}), candidate.Dropped)
		p.Close()
	}
}

func TestIntervalIsFromShotToShot(t *testing.T) {
	_, ports := serve(t, udp)
	outcomes := send(t, newProber(t), candidate.Probe{To: to(loopback4, ports[0]), Protocol: udp, Count: 4, Interval: brief})
	want(t, outcomes, candidate.Answered)
	for i, o := range outcomes[1:] {
		if gap := o.Start.Sub(outcomes[i].Start); gap < brief {
			t.Errorf("shot %d followed after %s", i+1, gap)
		}
	}
}

func TestManyProbesAtATime(t *testing.T) {
	_, ports := serve(t, tcp, udp)
	p, addresses := newProber(t), families()
	var running sync.WaitGroup
	for i := range 200 {
		running.Go(func() {
			probe := candidate.Probe{To: to(addresses[i/2%len(addresses)], ports[i%2]), Protocol: []corev1.Protocol{tcp, udp}[i%2], Count: 5}
			if i%4 == 0 {
				probe.Connection = fmt.Sprint(i % 8)
			}
			want(t, send(t, p, probe), candidate.Answered)
		})
	}
	running.Wait()
}

func TestNamespaceOpensEverySocket(t *testing.T) {
	opened := 0
	in := func(open func() error) error { opened++; return open() }
	s, err := Serve(pod, []candidate.PodPort{{Protocol: tcp}, {Protocol: udp}}, in)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if opened == 0 {
		t.Error("the server opened its ports elsewhere")
	}
	opened = 0
	p := newProber(t)
	probe := candidate.Probe{To: to(loopback4, s.Ports()[0].Number), Protocol: tcp, Count: 3, Timeout: patient}
	want(t, p.Send(t.Context(), in, probe, netip.Addr{}), candidate.Answered)
	if opened < 3 { // one more for each port that somebody else has
		t.Errorf("3 shots opened %d sockets in the namespace", opened)
	}
}

// TestABusySocketGoesOnBetweenShots demands that empty datagrams go the way of the shots until the connection is closed, that nobody answers them, and that shots
// are answered beside them.
func TestABusySocketGoesOnBetweenShots(t *testing.T) {
	_, ports := serve(t, udp)
	answers := to(loopback4, ports[0])
	probe := candidate.Probe{From: candidate.Client{Node: "n"}, To: answers, Protocol: udp, Connection: "busy", Rate: 1000, Count: 3, Interval: 20 * time.Millisecond, Timeout: patient}
	want(t, newProber(t).Send(t.Context(), nil, probe, netip.Addr{}), candidate.Answered)

	plain, silent := datagrams(t)
	probe.To, probe.Count, probe.Timeout = silent, 1, 10*time.Millisecond
	newProber(t).Send(t.Context(), nil, probe, netip.Addr{})
	buffer := make([]byte, 100)
	for empty := 0; empty < 20; { // after the shot
		n, err := plain.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			empty++
		}
	}
	for _, wrong := range []candidate.Probe{
		{To: answers, Protocol: udp, Rate: 1000},
		{To: answers, Protocol: tcp, Connection: "busy", Rate: 1000},
		{To: answers, Protocol: udp, Connection: "busy", Rate: candidate.MaxRate + 1},
		{To: answers, Protocol: udp, Connection: "busy", Rate: -1},
	} {
		want(t, newProber(t).Send(t.Context(), nil, wrong, netip.Addr{}), candidate.Broken)
	}
}
