//go:build linux

package traffic

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
)

// TestFragmentsAreOneDatagram puts the packets together again, in the reversed order, as their headers say.
func TestFragmentsAreOneDatagram(t *testing.T) {
	for _, c := range []struct {
		from, to string
		header   int // with that of the fragment
	}{{"198.18.0.1:5000", "203.0.113.7:80", 20}, {"[2001:db8:52::1]:5000", "[2001:db8::7]:80", 48}} {
		from, to := netip.MustParseAddrPort(c.from), netip.MustParseAddrPort(c.to)
		for _, size := range []int{1, 1400, 4000, 8001} {
			content := bytes.Repeat([]byte("0123456"), size/7+1)[:size]
			packets := fragmentsOf(from, to, content, 77)
			message, last := make([]byte, 8+size), 0
			for _, p := range slices.Backward(packets) {
				if len(p) > 1500 {
					t.Fatalf("%d bytes to %s: a packet of %d bytes", size, to, len(p))
				}
				field := binary.BigEndian.Uint16(p[6:8])
				at, more := int(field&0x1fff)*8, field&0x2000 != 0
				if to.Addr().Is6() {
					field = binary.BigEndian.Uint16(p[42:44])
					at, more = int(field&^7), field&1 != 0
				}
				copy(message[at:], p[c.header:])
				if !more {
					last++
				}
			}
			if last != 1 || !bytes.Equal(message[8:], content) {
				t.Errorf("%d bytes to %s: %d packets say that they are the last, and the content is right: %v", size, to, last, bytes.Equal(message[8:], content))
			}
			if sum := checksumOf(from.Addr(), to.Addr(), message); sum != 0 && sum != 0xffff {
				t.Errorf("%d bytes to %s: the checksum does not add up: %#x", size, to, sum)
			}
		}
	}
}
