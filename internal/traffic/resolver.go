package traffic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/service-conformance/conformance/framework/candidate"
)

// answerTimeout is how long a DNS server, which has no way to go but that of the cluster, may keep silent.
const answerTimeout = 5 * time.Second

// maxAnswer is the size of the datagrams that this resolver takes (RFC 6891): what no answer about the Services of a check exceeds.
const maxAnswer = 16 << 10

var recordTypes = map[candidate.RecordType]dnsmessage.Type{
	candidate.A: dnsmessage.TypeA, candidate.AAAA: dnsmessage.TypeAAAA, candidate.CNAME: dnsmessage.TypeCNAME, candidate.SRV: dnsmessage.TypeSRV,
	candidate.PTR: dnsmessage.TypePTR, candidate.TXT: dnsmessage.TypeTXT,
}

// Ask sends one question to a DNS server ("10.96.0.10:53") by UDP and reads its answer. domain is that of the cluster ("cluster.local.").
// Silence, for five seconds, is an answer too. The error says that the question could not be asked, or that the context has ended. Ask
// may be called concurrently.
func Ask(ctx context.Context, server, domain string, q candidate.Question) (candidate.Resolution, error) {
	id := uint16(rand.Uint32())
	query, err := packQuestion(id, domain, q)
	if err != nil {
		return candidate.Resolution{}, fmt.Errorf("ask for %s: %w", q, err)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "udp", server)
	if err != nil {
		return candidate.Resolution{}, fmt.Errorf("ask for %s: %w", q, err)
	}
	defer conn.Close()
	deadline := time.Now().Add(answerTimeout)
	if err := conn.SetDeadline(deadline); err != nil {
		return candidate.Resolution{}, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err = conn.Write(query); err == nil {
		buffer := make([]byte, maxAnswer)
		for {
			var n int
			if n, err = conn.Read(buffer); err != nil {
				break
			}
			var message dnsmessage.Message
			if message.Unpack(buffer[:n]) == nil && (message.ID != id || !message.Response) {
				continue // not the answer to this question
			}
			return readResolution(buffer[:n], domain), nil
		}
	}
	if ctx.Err() != nil {
		return candidate.Resolution{}, context.Cause(ctx)
	}
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return candidate.Resolution{Said: candidate.Unanswered}, nil
	}
	return candidate.Resolution{Said: candidate.Unanswered, Reason: err.Error()}, nil // nobody listens
}

// packQuestion makes the message of a question.
func packQuestion(id uint16, domain string, q candidate.Question) ([]byte, error) {
	t, ok := recordTypes[q.Type]
	if !ok {
		return nil, fmt.Errorf("type %q is not known", q.Type)
	}
	full := q.Name
	if !strings.HasSuffix(full, ".") {
		full += "." + domain
	}
	name, err := dnsmessage.NewName(full)
	if err != nil {
		return nil, fmt.Errorf("name %q: %w", full, err)
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: name, Type: t, Class: dnsmessage.ClassINET}},
	}
	var size dnsmessage.ResourceHeader
	if err := size.SetEDNS0(maxAnswer, dnsmessage.RCodeSuccess, false); err != nil {
		return nil, err
	}
	m.Additionals = []dnsmessage.Resource{{Header: size, Body: &dnsmessage.OPTResource{}}}
	return m.Pack()
}

// readResolution says what a message answers.
func readResolution(packet []byte, domain string) candidate.Resolution {
	failed := func(format string, args ...any) candidate.Resolution {
		return candidate.Resolution{Said: candidate.Failed, Reason: fmt.Sprintf(format, args...)}
	}
	var m dnsmessage.Message
	if err := m.Unpack(packet); err != nil {
		return failed("unreadable message: %v", err)
	}
	switch {
	case m.RCode == dnsmessage.RCodeNameError:
		return candidate.Resolution{Said: candidate.NoName, TTL: ttlOf(&m)}
	case m.RCode != dnsmessage.RCodeSuccess:
		return failed("%s", strings.TrimPrefix(m.RCode.String(), "RCode"))
	case m.Truncated:
		return failed("truncated beyond %d bytes", maxAnswer)
	}
	said := candidate.Resolution{Said: candidate.NoRecords, TTL: ttlOf(&m)}
	for _, a := range m.Answers {
		r := candidate.Record{Name: below(domain, a.Header.Name)}
		switch body := a.Body.(type) {
		case *dnsmessage.AResource:
			r.Type, r.Address = candidate.A, netip.AddrFrom4(body.A)
		case *dnsmessage.AAAAResource:
			r.Type, r.Address = candidate.AAAA, netip.AddrFrom16(body.AAAA)
		case *dnsmessage.CNAMEResource:
			r.Type, r.Target = candidate.CNAME, below(domain, body.CNAME)
		case *dnsmessage.SRVResource:
			r.Type, r.Target, r.Port = candidate.SRV, below(domain, body.Target), int(body.Port)
		case *dnsmessage.PTRResource:
			r.Type, r.Target = candidate.PTR, below(domain, body.PTR)
		case *dnsmessage.TXTResource:
			r.Type, r.Text = candidate.TXT, strings.Join(body.TXT, "")
		default:
			continue
		}
		said.Said, said.Records = candidate.Found, append(said.Records, r)
	}
	return said
}

// ttlOf is for how many seconds a cache may keep the message: the least of its records, or what the SOA record says where there are none.
func ttlOf(m *dnsmessage.Message) int {
	var all []uint32
	for _, a := range m.Answers {
		all = append(all, a.Header.TTL)
	}
	for _, a := range m.Authorities {
		if soa, is := a.Body.(*dnsmessage.SOAResource); is && len(m.Answers) == 0 {
			all = append(all, min(a.Header.TTL, soa.MinTTL))
		}
	}
	if len(all) == 0 {
		return 0
	}
	return int(slices.Min(all))
}

// below is a full name as questions and records have it.
func below(domain string, name dnsmessage.Name) string {
	short, _ := strings.CutSuffix(name.String(), "."+domain)
	return short
}
