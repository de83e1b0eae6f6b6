//go:build linux

package traffic

import (
	"bufio"
	"bytes"
	"net"
	"testing"

	"github.com/service-conformance/conformance/framework/candidate"
)

func TestPayloadIsCarriedThereAndBack(t *testing.T) {
	_, ports := serve(t, tcp, udp)
	p := newProber(t)
	for _, a := range families() {
		for _, n := range []int{1, 100, maxLine, 8000, candidate.MaxDatagram} {
			for i, protocol := range []candidate.Probe{{Protocol: tcp}, {Protocol: udp}} {
				protocol.To, protocol.Payload, protocol.Count, protocol.Connection = to(a, ports[i]), n, 2, "kept"
				outcomes := send(t, p, protocol)
				want(t, outcomes, candidate.Answered)
				for _, o := range outcomes {
					if o.Payload != n || o.Pod != pod {
						t.Errorf("%d bytes by %s: %d by %v", n, protocol.Protocol, o.Payload, o.Pod)
					}
				}
			}
		}
		want(t, send(t, p, candidate.Probe{Protocol: tcp, To: to(a, ports[0]), Payload: candidate.MaxPayload}), candidate.Answered)
	}
}

func TestPayloadOutOfRangeIsBroken(t *testing.T) {
	p := newProber(t)
	for _, probe := range []candidate.Probe{
		{Protocol: tcp, Payload: -1}, {Protocol: tcp, Payload: candidate.MaxPayload + 1}, {Protocol: udp, Payload: candidate.MaxDatagram + 1}, {Protocol: tcp, Payload: 1, Path: "/"},
	} {
		probe.To = to(loopback4, 9)
		want(t, send(t, p, probe), candidate.Broken)
	}
}

// between passes connections on to a server, and what it answers back as change makes it.
func between(t *testing.T, server int, change func(answer []byte) []byte) candidate.Probe {
	t.Helper()
	front := peer(t, func(c *net.TCPConn, r *bufio.Reader) {
		back, err := net.DialTCP("tcp4", nil, net.TCPAddrFromAddrPort(to(loopback4, server)))
		if err != nil {
			return
		}
		go func() {
			defer back.Close() // which ends the other direction, too
			b := make([]byte, maxLine)
			for {
				n, err := r.Read(b)
				if err != nil {
					return
				}
				_, _ = back.Write(b[:n])
			}
		}()
		b := make([]byte, maxLine)
		for {
			n, err := back.Read(b)
			if err != nil {
				return
			}
			if _, err := c.Write(change(b[:n])); err != nil {
				return
			}
		}
	})
	return candidate.Probe{Protocol: tcp, To: front, Payload: 3000}
}

func TestPayloadThatIsAlteredIsToldFromOneThatIsLost(t *testing.T) {
	_, ports := serve(t, tcp)
	p := newProber(t)
	same := between(t, ports[0], func(b []byte) []byte { return b })
	want(t, send(t, p, same), candidate.Answered)
	altered := between(t, ports[0], func(b []byte) []byte {
		b = bytes.Clone(b)
		b[len(b)-1]++
		return b
	})
	want(t, send(t, p, altered), candidate.Altered)
	cut := between(t, ports[0], func(b []byte) []byte { return b[:min(len(b), 500)] })
	cut.Timeout = brief
	outcomes := send(t, p, cut)
	want(t, outcomes, candidate.Dropped)
	if outcomes[0].Stranger {
		t.Error("silence in the midst of content says that somebody else had accepted the connection")
	}
}
