//go:build linux

package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Sockets are made with system calls. Package net looks once per process whether there is IPv6, in whatever namespace
// that happens. It does not tell on which thread it makes a socket.

// transport returns the type and the protocol of sockets. One-to-one sockets of SCTP (RFC 6458, section 4) are used like those of TCP.
func transport(protocol corev1.Protocol) (kind, number int, err error) {
	switch protocol {
	case corev1.ProtocolTCP:
		return unix.SOCK_STREAM, unix.IPPROTO_TCP, nil
	case corev1.ProtocolSCTP:
		return unix.SOCK_STREAM, unix.IPPROTO_SCTP, nil
	case corev1.ProtocolUDP:
		return unix.SOCK_DGRAM, unix.IPPROTO_UDP, nil
	}
	return 0, 0, fmt.Errorf("protocol %q is none of TCP, UDP and SCTP", protocol)
}

func newSocket(family int, protocol corev1.Protocol) (int, error) {
	kind, number, err := transport(protocol)
	if err != nil {
		return -1, err
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, number)
	if err != nil {
		return -1, fmt.Errorf("make a socket of %s: %w", protocol, err)
	}
	return fd, nil
}

// set sets options, given as level, name and value, until one fails.
func set(fd int, options ...[3]int) error {
	for _, o := range options {
		if err := unix.SetsockoptInt(fd, o[0], o[1], o[2]); err != nil {
			return fmt.Errorf("set option %d of a socket: %w", o[1], err)
		}
	}
	return nil
}

// listen opens a port on all addresses.
func listen(protocol corev1.Protocol, port int) (*os.File, error) {
	f, err := listenOn(&unix.SockaddrInet6{Port: port}, unix.AF_INET6, protocol)
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL) {
		f, err = listenOn(&unix.SockaddrInet4{Port: port}, unix.AF_INET, protocol)
	}
	return f, err
}

func listenOn(address unix.Sockaddr, family int, protocol corev1.Protocol) (_ *os.File, err error) {
	fd, err := newSocket(family, protocol)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	if family == unix.AF_INET6 {
		if err := set(fd, [3]int{unix.SOL_IPV6, unix.IPV6_V6ONLY, 0}); err != nil {
			return nil, err
		}
	}
	if protocol == corev1.ProtocolUDP {
		// An answer comes from the address that was asked: the kernel tells which that was, of IPv4 on a socket of IPv6 too.
		info := [3]int{unix.SOL_IP, unix.IP_PKTINFO, 1}
		if family == unix.AF_INET6 {
			info = [3]int{unix.SOL_IPV6, unix.IPV6_RECVPKTINFO, 1}
		}
		if err := set(fd, info); err != nil {
			return nil, err
		}
	} else if err := set(fd, [3]int{unix.SOL_SOCKET, unix.SO_REUSEADDR, 1}); err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, address); err != nil {
		return nil, fmt.Errorf("bind: %w", err)
	}
	if protocol != corev1.ProtocolUDP {
		if err := unix.Listen(fd, 4096); err != nil { // the kernel lowers it to net.core.somaxconn
			return nil, fmt.Errorf("listen: %w", err)
		}
	}
	return os.NewFile(uintptr(fd), "listener"), nil
}

// maxControl is the size of the control message that tells where a datagram was sent to.
const maxControl = 64

// fromReceiver makes, of the control message that came with a datagram, that which sends the answer from the address that the datagram
// was sent to. The interface is left to the routes.
func fromReceiver(control []byte) []byte {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.SOL_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= unix.SizeofInet6Pktinfo:
			return unix.PktInfo6(&unix.Inet6Pktinfo{Addr: [16]byte(m.Data)})
		case m.Header.Level == unix.SOL_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo:
			return unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: [4]byte(m.Data[4:])}) // it follows the index of the interface
		}
	}
	return nil
}

// socket is a connected socket of the prober. Its methods but close are for one goroutine at a time.
type socket struct {
	file    *os.File
	raw     syscall.RawConn
	ctx     context.Context // of the shot that uses it
	timeout time.Duration
	// fragments sends packets that are made here; nil where the kernel makes them.
	fragments *os.File
	// repeated is how often SYN was sent again until the connection was established.
	repeated int
}

// networkError is what the network made of a packet, other than an answer.
type networkError struct{ errno unix.Errno }

func (e networkError) Error() string { return "network: " + e.errno.Error() }

// errSilence is the end of a timeout.
var errSilence = errors.New("no answer")

// open makes a socket in the namespace and binds it. Port 0 of the source is a fresh one, an invalid address the kernel's choice.
func open(in Namespace, protocol corev1.Protocol, source, to netip.AddrPort) (fd int, err error) {
	family := unix.AF_INET
	if to.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd = -1
	if err := in.do(func() (err error) { fd, err = newSocket(family, protocol); return err }); err != nil {
		if fd >= 0 {
			unix.Close(fd)
		}
		return -1, err
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	var options [][3]int
	if protocol != corev1.ProtocolUDP || source.Port() != 0 {
		// Ports are shared by sockets that are connected to different peers. The end of a connection is a reset, which leaves no
		// TIME_WAIT behind: the port is free for the next shot. With this option the kernel would choose a port of UDP that is
		// in use, even with the same peer.
		options = append(options, [3]int{unix.SOL_SOCKET, unix.SO_REUSEADDR, 1})
	}
	if family == unix.AF_INET6 {
		options = append(options, [3]int{unix.SOL_IPV6, unix.IPV6_V6ONLY, 1})
	}
	if protocol != corev1.ProtocolTCP { // which tells every ICMP error that comes before the connection is established
		options = append(options, [3]int{unix.SOL_IP, unix.IP_RECVERR, 1})
		if family == unix.AF_INET6 {
			options = append(options, [3]int{unix.SOL_IPV6, unix.IPV6_RECVERR, 1})
		}
	}
	if err := set(fd, options...); err != nil {
		return -1, err
	}
	if protocol != corev1.ProtocolUDP {
		if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
			return -1, fmt.Errorf("set SO_LINGER: %w", err)
		}
	}
	if source.Addr().IsValid() || source.Port() != 0 {
		if !source.Addr().IsValid() {
			source = netip.AddrPortFrom(unspecified(to.Addr()), source.Port())
		}
		if err := unix.Bind(fd, sockaddr(source)); err != nil {
			return -1, fmt.Errorf("bind to %s: %w", source, err)
		}
	}
	return fd, nil
}

func unspecified(like netip.Addr) netip.Addr {
	if like.Is6() {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is6() {
		return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
}

// dial opens a socket and connects it.
func dial(ctx context.Context, in Namespace, probe *candidate.Probe, source, to netip.AddrPort, timeout time.Duration) (*socket, error) {
	fd, err := open(in, probe.Protocol, source, to)
	if err != nil {
		return nil, err
	}
	switch err := unix.Connect(fd, sockaddr(to)); err {
	case nil, unix.EINPROGRESS, unix.EINTR:
	default:
		unix.Close(fd)
		return nil, fmt.Errorf("connect to %s: %w", to, asNetworkError(err))
	}
	// Only now does the runtime wait for the socket: before connect it would be told of an end of no connection.
	s := &socket{file: os.NewFile(uintptr(fd), "prober"), timeout: timeout}
	if s.raw, err = s.file.SyscallConn(); err == nil && probe.Protocol != corev1.ProtocolUDP {
		err = s.established(ctx)
	}
	if err == nil && probe.Reversed {
		s.fragments, err = openRaw(in, s.raw)
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("connect to %s: %w", to, err)
	}
	if probe.Protocol == corev1.ProtocolTCP {
		if err := s.raw.Control(s.countRepeats); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

// countRepeats asks the kernel how often it sent SYN again. One that does not tell leaves it at none.
func (s *socket) countRepeats(fd uintptr) {
	if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
		s.repeated = int(info.Total_retrans)
	}
}

func asNetworkError(err error) error {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return networkError{errno}
	}
	return err
}

// use readies the socket for a shot; the shot calls the returned function when it ends.
func (s *socket) use(ctx context.Context, timeout time.Duration) func() {
	s.ctx, s.timeout = ctx, timeout
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		_ = s.file.SetDeadline(time.Unix(1, 0))
	})
	return func() {
		if !stop() {
			<-woken // or it would end the wait of the next shot
		}
	}
}

// close resets the connection. It may be called at any time, from anywhere, more than once.
func (s *socket) close() {
	s.file.Close()
	if s.fragments != nil {
		s.fragments.Close()
	}
}

// wait repeats try, which does not block, until it returns true: at once, when the socket becomes ready, and once more after the timeout.
func (s *socket) wait(ready func(func(uintptr) bool) error, try func(fd int) bool) error {
	if err := s.file.SetDeadline(time.Now().Add(s.timeout)); err != nil {
		return err
	}
	if err := s.ctx.Err(); err != nil { // its end may have come before the deadline was set
		return err
	}
	err := ready(func(fd uintptr) bool { return try(int(fd)) })
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	done := false
	if err := s.raw.Control(func(fd uintptr) { done = try(int(fd)) }); err != nil || done {
		return err
	}
	if err := s.ctx.Err(); err != nil {
		return err
	}
	return errSilence
}

// established waits for the connection.
func (s *socket) established(ctx context.Context) error {
	defer s.use(ctx, s.timeout)()
	var met error
	err := s.wait(s.raw.Write, func(fd int) bool {
		if met = pending(fd); met != nil {
			return true
		}
		_, err := unix.Getpeername(fd)
		return err == nil
	})
	if err != nil {
		return err
	}
	return met
}

// pending takes the error that the kernel holds for the socket. That may be one that does not make the socket ready. An
// ICMP error from this machine comes while connect is in the kernel. The kernel then ends the attempt only when it
// sends SYN again, a second later.
func pending(fd int) error {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return err
	}
	if errno := unix.Errno(n); errno != 0 {
		return networkError{errno}
	}
	return nil
}

// forget drops the errors that earlier shots left on the socket, also in its error queue (recvmsg(2), MSG_ERRQUEUE).
func (s *socket) forget() error {
	return s.raw.Control(func(fd uintptr) {
		for err := error(nil); err == nil; {
			_, _, _, _, err = unix.Recvmsg(int(fd), nil, nil, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		}
		_ = pending(int(fd))
	})
}

// keepBusy sends an empty datagram each time the interval has passed, until the socket is closed. What comes of it is of no interest.
func (s *socket) keepBusy(interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for range tick.C {
		if err := s.raw.Control(func(fd uintptr) { _, _ = unix.SendmsgN(int(fd), nil, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT) }); err != nil {
			return
		}
	}
}

// Write sends all of b. With UDP that is one datagram.
func (s *socket) Write(b []byte) (int, error) {
	written := 0
	for written < len(b) {
		n, err := 0, error(nil)
		waited := s.wait(s.raw.Write, func(fd int) bool {
			n, err = unix.SendmsgN(fd, b[written:], nil, nil, unix.MSG_NOSIGNAL)
			return !errors.Is(err, unix.EAGAIN)
		})
		if waited != nil {
			return written, waited
		}
		if err != nil {
			return written, asNetworkError(err)
		}
		written += n
	}
	return written, nil
}

// Read waits for the next bytes, or for the next datagram.
func (s *socket) Read(b []byte) (int, error) {
	n, err := 0, error(nil)
	waited := s.wait(s.raw.Read, func(fd int) bool {
		n, _, err = unix.Recvfrom(fd, b, 0)
		return !errors.Is(err, unix.EAGAIN)
	})
	switch {
	case waited != nil:
		return 0, waited
	case err != nil:
		return 0, asNetworkError(err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// classify says what an error of a shot means.
func classify(err error) candidate.Result {
	var met networkError
	switch {
	case err == nil, errors.Is(err, errStranger):
		return candidate.Answered
	case errors.Is(err, errSilence):
		return candidate.Dropped
	case errors.Is(err, errAltered):
		return candidate.Altered
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return candidate.Reset
	case !errors.As(err, &met):
		return candidate.Broken
	}
	switch met.errno {
	case unix.ECONNREFUSED:
		return candidate.Refused
	case unix.ECONNRESET, unix.ECONNABORTED, unix.EPIPE, unix.ESHUTDOWN, unix.ENOTCONN:
		return candidate.Reset
	case unix.ETIMEDOUT:
		return candidate.Dropped
	case unix.EMSGSIZE:
		return candidate.TooBig
	// ICMP of both versions (net/ipv4/icmp.c, net/ipv6/icmp.c of Linux), routes of the same types, and filters of connect.
	case unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EACCES, unix.EPERM, unix.EHOSTDOWN, unix.ENONET, unix.ENOPROTOOPT, unix.EPROTO:
		return candidate.Unreachable
	}
	return candidate.Broken
}
