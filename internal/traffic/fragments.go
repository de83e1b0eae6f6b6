//go:build linux

package traffic

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// What of a packet of 1500 bytes is left for a fragment: its header is that of IPv4, or that of IPv6 with one for fragments. Fragments begin at multiples of 8
// (RFC 791, RFC 8200).
const (
	fragmentRoom4 = 1480
	fragmentRoom6 = 1448
)

// openRaw opens a socket in the namespace that sends packets with the headers that it is given. It is bound to the address of a connected socket, for routes may
// go by that.
func openRaw(in Namespace, connected syscall.RawConn) (*os.File, error) {
	from, _, err := ends(connected)
	if err != nil {
		return nil, err
	}
	family := unix.AF_INET
	if from.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd := -1
	if err := in.do(func() (err error) {
		fd, err = unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		return err
	}); err != nil {
		return nil, fmt.Errorf("make a socket for packets: %w", err)
	}
	if err := unix.Bind(fd, sockaddr(netip.AddrPortFrom(from.Addr(), 0))); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("bind a socket for packets to %s: %w", from.Addr(), err)
	}
	return os.NewFile(uintptr(fd), "packets"), nil
}

// ends are the two ends of a connected socket.
func ends(connected syscall.RawConn) (own, peer netip.AddrPort, err error) {
	if controlled := connected.Control(func(fd uintptr) {
		var a, b unix.Sockaddr
		if a, err = unix.Getsockname(int(fd)); err == nil {
			b, err = unix.Getpeername(int(fd))
		}
		own, peer = addrPortOf(a), addrPortOf(b)
	}); controlled != nil {
		return own, peer, controlled
	}
	return own, peer, err
}

// send sends a datagram. With reversed, its packets are sent last first.
func (s *socket) send(datagram []byte, reversed bool) error {
	if !reversed {
		_, err := s.Write(datagram)
		return err
	}
	from, to, err := ends(s.raw)
	if err != nil {
		return err
	}
	packets := fragmentsOf(from, to, datagram, rand.Uint32())
	slices.Reverse(packets)
	raw, err := s.fragments.SyscallConn()
	if err != nil {
		return err
	}
	var met error
	if err := raw.Control(func(fd uintptr) {
		for _, p := range packets {
			if met = unix.Sendto(int(fd), p, 0, sockaddr(netip.AddrPortFrom(to.Addr(), 0))); met != nil {
				return
			}
		}
	}); err != nil {
		return err
	}
	return asNetworkError(met)
}

func addrPortOf(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// fragmentsOf are the packets of a datagram of UDP, in their order. Both addresses are of one family.
func fragmentsOf(from, to netip.AddrPort, datagram []byte, id uint32) (packets [][]byte) {
	message := binary.BigEndian.AppendUint16(nil, from.Port())
	message = binary.BigEndian.AppendUint16(message, to.Port())
	message = binary.BigEndian.AppendUint16(message, uint16(8+len(datagram)))
	message = append(append(message, 0, 0), datagram...)
	binary.BigEndian.PutUint16(message[6:], checksumOf(from.Addr(), to.Addr(), message))
	room := fragmentRoom4
	if to.Addr().Is6() {
		room = fragmentRoom6
	}
	for at := 0; at < len(message); at += room {
		part := message[at:min(at+room, len(message))]
		more := at+room < len(message)
		if to.Addr().Is6() {
			packets = append(packets, append(fragmentHeaders6(from.Addr(), to.Addr(), len(part), at, more, id), part...))
		} else {
			packets = append(packets, append(fragmentHeader4(from.Addr(), to.Addr(), len(part), at, more, uint16(id|1)), part...))
		}
	}
	return packets
}

// fragmentHeader4 is the header of IPv4 (RFC 791). The kernel fills in the checksum.
func fragmentHeader4(from, to netip.Addr, length, at int, more bool, id uint16) []byte {
	offset := uint16(at / 8)
	if more {
		offset |= 0x2000
	}
	h := []byte{0x45, 0}
	h = binary.BigEndian.AppendUint16(h, uint16(20+length))
	h = binary.BigEndian.AppendUint16(h, id)
	h = binary.BigEndian.AppendUint16(h, offset)
	h = append(h, 64, unix.IPPROTO_UDP, 0, 0)
	h = append(h, from.AsSlice()...)
	return append(h, to.AsSlice()...)
}

// fragmentHeaders6 are the header of IPv6 and that of a fragment (RFC 8200, section 4.5).
func fragmentHeaders6(from, to netip.Addr, length, at int, more bool, id uint32) []byte {
	offset := uint16(at)
	if more {
		offset |= 1
	}
	h := []byte{0x60, 0, 0, 0}
	h = binary.BigEndian.AppendUint16(h, uint16(8+length))
	h = append(h, unix.IPPROTO_FRAGMENT, 64)
	h = append(h, from.AsSlice()...)
	h = append(h, to.AsSlice()...)
	h = append(h, unix.IPPROTO_UDP, 0)
	h = binary.BigEndian.AppendUint16(h, offset)
	return binary.BigEndian.AppendUint32(h, id)
}

// checksumOf is that of a datagram of UDP, with the pseudo header of its addresses (RFC 768, RFC 8200 section 8.1).
func checksumOf(from, to netip.Addr, message []byte) uint16 {
	sum := uint32(unix.IPPROTO_UDP) + uint32(len(message))
	for _, b := range [][]byte{from.AsSlice(), to.AsSlice(), message} {
		for len(b) > 1 {
			sum += uint32(binary.BigEndian.Uint16(b))
			b = b[2:]
		}
		if len(b) == 1 {
			sum += uint32(b[0]) << 8
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	if sum == 0xffff { // no checksum at all would be zero
		return 0xffff
	}
	return ^uint16(sum)
}
