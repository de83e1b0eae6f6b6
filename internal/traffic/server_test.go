//go:build linux

package traffic

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

const tcp, udp = corev1.ProtocolTCP, corev1.ProtocolUDP

var (
	pod = candidate.PodName{Namespace: "default", Name: "backend"}
	// Loopback answers on more than one address of IPv4.
	loopback4, other4, loopback6 = netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("::1")
)

// families are the loopback addresses of the families that this machine has.
func families() []netip.Addr {
	fd, err := listenOn(&unix.SockaddrInet6{Addr: loopback6.As16()}, unix.AF_INET6, tcp)
	if err != nil {
		return []netip.Addr{loopback4}
	}
	fd.Close()
	return []netip.Addr{loopback4, loopback6}
}

// serve starts a server on a free port of each protocol, and returns the ports.
func serve(t *testing.T, protocols ...corev1.Protocol) (*Server, []int) {
	t.Helper()
	var ports []candidate.PodPort
	for _, p := range protocols {
		ports = append(ports, candidate.PodPort{Protocol: p})
	}
	s, err := Serve(pod, ports, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	var numbers []int
	for _, p := range s.Ports() {
		numbers = append(numbers, p.Number)
	}
	return s, numbers
}

func connect(t *testing.T, port int) (*net.TCPConn, *bufio.Reader) {
	t.Helper()
	c, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: loopback4.AsSlice(), Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, bufio.NewReader(c)
}

func TestServerAnswersLinesAndHTTPOnOneConnection(t *testing.T) {
	_, ports := serve(t, tcp)
	c, r := connect(t, ports[0])
	fmt.Fprintf(c, "one\nGET /two?x=1 HTTP/1.1\r\nHost: x\r\n\r\nthree\r\nGET /four HTTP/1.1\r\nConnection: close\r\n\r\nnever\n")
	for _, want := range []string{"one", "/two?x=1", "three", "/four"} {
		var line []byte
		if strings.HasPrefix(want, "/") {
			response, err := http.ReadResponse(r, nil)
			if err != nil || response.StatusCode != http.StatusOK || response.Close != (want == "/four") {
				t.Fatalf("%s: %v, %+v", want, err, response)
			}
			line, err = io.ReadAll(response.Body)
			if err = errors.Join(err, response.Body.Close()); err != nil {
				t.Fatal(err)
			}
		} else {
			line, _ = r.ReadBytes('\n')
		}
		a, err := parseAnswer(line)
		self := c.LocalAddr().(*net.TCPAddr).AddrPort()
		if err != nil || a != (answer{Request: want, Namespace: "default", Pod: "backend", Port: ports[0], Source: self}) {
			t.Errorf("answer to %q is %+v, %v", want, a, err)
		}
	}
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("after Connection: close came %q, %v", rest, err)
	}
}

func TestServerEndsMalformedRequests(t *testing.T) {
	_, ports := serve(t, tcp)
	for _, bad := range []string{"GET x\n", "GET / SPDY/1\n", strings.Repeat("x", maxLine+1), "GET / HTTP/1.1\n" + strings.Repeat("a: b\n", maxHeaders+1)} {
		c, r := connect(t, ports[0])
		fmt.Fprint(c, bad)
		if b, err := io.ReadAll(r); len(b) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%.20q is answered with %q, %v", bad, b, err)
		}
	}
}

func TestServerClose(t *testing.T) {
	s, ports := serve(t, tcp, udp)
	var connections []*net.TCPConn
	for range 20 {
		c, r := connect(t, ports[0])
		fmt.Fprintln(c, "x")
		if _, err := r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		connections = append(connections, c)
	}
	s.Close()
	s.Close()
	for _, c := range connections {
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("an established connection ends with %v", err)
		}
	}
	if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ports[0])); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection meets %v, %v", c, err)
	}
	stacks := make([]byte, 1<<20)
	if stacks = stacks[:runtime.Stack(stacks, true)]; bytes.Contains(stacks, []byte("traffic.(*Server)")) {
		t.Errorf("the server still runs:\n%s", stacks)
	}
}

func TestServeOpensAllPortsOrNone(t *testing.T) {
	_, taken := serve(t, tcp)
	free := freePort(t)
	_, err := Serve(pod, []candidate.PodPort{{Protocol: tcp, Number: free}, {Protocol: tcp, Number: taken[0]}}, nil)
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), fmt.Sprintf("%d/TCP of pod default/backend", taken[0])) {
		t.Errorf("error is %v", err)
	}
	again, err := Serve(pod, []candidate.PodPort{{Protocol: tcp, Number: free}}, nil)
	if err != nil {
		t.Fatalf("the first port stayed open: %v", err)
	}
	again.Close()
	if _, err := Serve(pod, []candidate.PodPort{{Protocol: "ICMP", Number: 1}}, nil); err == nil {
		t.Error("protocol ICMP is served")
	}
	gone := errors.New("the namespace is gone")
	if _, err := Serve(pod, nil, func(func() error) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("error is %v", err)
	}
}

// freePort returns a port of TCP that nobody listens on.
func freePort(t *testing.T) int {
	s, ports := serve(t, tcp)
	s.Close()
	return ports[0]
}

func FuzzRequest(f *testing.F) {
	for _, s := range []string{"x\ny\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\nz\n", "GET /a HTTP/1.0\nContent-Length: 3\n\nabc", "GET \n", "\n\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReaderSize(bytes.NewReader(b), maxLine)
		for range b {
			q, err := readRequest(r)
			if err != nil {
				return
			}
			if strings.Contains(q.text, "\n") || len(q.text) > maxLine {
				t.Fatalf("%q is no line", q.text)
			}
			a := &answer{Request: q.text, Pod: "p", Port: 1, Source: netip.AddrPortFrom(loopback4, 1)}
			line := a.line()
			if q.http {
				response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(a.http(q.last))), nil)
				if err != nil {
					t.Fatal(err)
				}
				line, err = io.ReadAll(response.Body)
				if err = errors.Join(err, response.Body.Close()); err != nil || response.Close != q.last {
					t.Fatalf("%v, close %v", err, response.Close)
				}
			}
			if got, err := parseAnswer(line); err != nil || utf8.ValidString(q.text) && got != *a || bytes.Count(line, []byte("\n")) != 1 {
				t.Fatalf("%q is answered with %q: %v", q.text, line, err)
			}
		}
	})
}

func FuzzAnswer(f *testing.F) {
	good := answer{Request: "r", Namespace: "n", Pod: "p", Port: 1, Source: netip.AddrPortFrom(loopback6, 1)}
	f.Add(good.line())
	f.Add([]byte(`{"pod":"p","port":70000,"source":"1.2.3.4:5"}`))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := parseAnswer(b)
		if err != nil {
			return
		}
		if again, err := parseAnswer(a.line()); err != nil || again != a || a.Pod == "" || !a.Source.IsValid() {
			t.Fatalf("%q is read as %+v and then as %+v, %v", b, a, again, err)
		}
	})
}
