//go:build linux

package traffic

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Server answers on the ports of a pod. Its methods are safe for concurrent use.
type Server struct {
	identity  candidate.PodName
	ports     []candidate.PodPort
	listeners []io.Closer
	closing   chan struct{}
	running   sync.WaitGroup

	mu          sync.Mutex
	closed      bool
	connections map[*net.TCPConn]bool
}

// Serve opens the ports in the namespace and answers on them until Close. It listens on all addresses of both families,
// or of IPv4 alone where the kernel has no IPv6. A port with the number 0 gets one that is free, see Ports. No port
// stays open if one cannot be opened.
func Serve(identity candidate.PodName, ports []candidate.PodPort, in Namespace) (*Server, error) {
	files := make([]*os.File, len(ports))
	err := in.do(func() (err error) {
		for i, p := range ports {
			if files[i], err = listen(p.Protocol, p.Number); err != nil {
				return fmt.Errorf("open port %d/%s of pod %s: %w", p.Number, p.Protocol, identity, err)
			}
		}
		return nil
	})
	defer func() {
		for _, f := range files {
			f.Close() // what package net makes of it is a duplicate
		}
	}()
	if err != nil {
		return nil, err
	}
	s := &Server{identity: identity, closing: make(chan struct{}), connections: map[*net.TCPConn]bool{}}
	for i, f := range files {
		if err := s.start(ports[i], f); err != nil {
			s.Close()
			return nil, fmt.Errorf("listen on port %d/%s of pod %s: %w", ports[i].Number, ports[i].Protocol, identity, err)
		}
	}
	return s, nil
}

func (s *Server) start(port candidate.PodPort, f *os.File) error {
	if port.Protocol == corev1.ProtocolUDP {
		c, err := net.FilePacketConn(f)
		if err != nil {
			return err
		}
		udp := c.(*net.UDPConn)
		port.Number = udp.LocalAddr().(*net.UDPAddr).Port
		s.listeners, s.ports = append(s.listeners, udp), append(s.ports, port)
		s.running.Go(func() { s.answerDatagrams(udp, port.Number) })
		return nil
	}
	l, err := net.FileListener(f)
	if err != nil {
		return err
	}
	port.Number = l.Addr().(*net.TCPAddr).Port
	s.listeners, s.ports = append(s.listeners, l), append(s.ports, port)
	s.running.Go(func() { s.accept(l, port.Number) })
	return nil
}

// Ports are the ports that the server answers on, in the order of Serve.
func (s *Server) Ports() []candidate.PodPort { return s.ports }

// Close stops answering: established connections are reset, and new ones are refused. It returns when nothing of the server is left.
// It may be called more than once.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
		for _, l := range s.listeners {
			l.Close()
		}
		for c := range s.connections {
			reset(c)
		}
	}
	s.mu.Unlock()
	s.running.Wait()
}

// reset ends a connection with a reset instead of an orderly end.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	c.Close()
}

func (s *Server) accept(l net.Listener, port int) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files, or a connection that went away: that may pass
			select {
			case <-s.closing:
				return
			case <-time.After(5 * time.Millisecond):
			}
			continue
		}
		tcp := c.(*net.TCPConn)     // also with SCTP, whose sockets of this style have the same calls
		_ = tcp.SetKeepAlive(false) // packets that no shot sent would refresh what expires on the way
		s.mu.Lock()
		if s.closed {
			reset(tcp)
		} else {
			s.connections[tcp] = true
			s.running.Go(func() { s.answerRequests(tcp, port) })
		}
		s.mu.Unlock()
	}
}

func (s *Server) answerRequests(c *net.TCPConn, port int) {
	defer func() {
		s.mu.Lock()
		delete(s.connections, c)
		s.mu.Unlock()
		c.Close()
	}()
	r := bufio.NewReaderSize(c, maxLine)
	source := c.RemoteAddr().(*net.TCPAddr).AddrPort()
	for {
		q, err := readRequest(r)
		if err != nil {
			return
		}
		a := s.answer(q.text, port, source)
		if q.size > 0 {
			got := make([]byte, q.size)
			if _, err := io.ReadFull(r, got); err != nil {
				return
			}
			if bytes.Equal(got, content(q.text, q.size)) {
				a.Payload = q.size
			}
		}
		b := a.line()
		switch {
		case q.http:
			b = a.http(q.last)
		case q.size > 0:
			b = append(b, content(backwards(q.text), q.size)...)
		}
		if _, err := c.Write(b); err != nil || q.last {
			return
		}
	}
}

func (s *Server) answerDatagrams(c *net.UDPConn, port int) {
	datagram, control := make([]byte, maxDatagram), make([]byte, maxControl)
	for {
		n, controlled, _, source, err := c.ReadMsgUDPAddrPort(datagram, control)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n == 0 { // what keeps a flow busy
			continue
		}
		// What cannot be sent is lost, as datagrams are.
		_, _, _ = c.WriteMsgUDPAddrPort(s.answerDatagram(datagram[:n], port, source), fromReceiver(control[:controlled]), source)
	}
}

// answerDatagram is the answer to a datagram. It has the size of one that carries content.
func (s *Server) answerDatagram(datagram []byte, port int, source netip.AddrPort) []byte {
	head, _, _ := bytes.Cut(datagram[:min(len(datagram), maxLine)], []byte("\n"))
	token, n, ok := parseSized(string(head))
	if !ok {
		return s.answer(string(datagram), port, source).line()
	}
	a := s.answer(token, port, source)
	if bytes.Equal(datagram, sizedDatagram(token, n)) {
		a.Payload = n
	}
	b := a.line()
	return append(b, content(backwards(token), max(0, n-len(b)))...)
}

func (s *Server) answer(request string, port int, source netip.AddrPort) *answer {
	return &answer{
		Request: request, Namespace: s.identity.Namespace, Pod: s.identity.Name, Port: port,
		Source: netip.AddrPortFrom(source.Addr().Unmap(), source.Port()),
	}
}
