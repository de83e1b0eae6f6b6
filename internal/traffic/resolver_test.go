package traffic

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/service-conformance/conformance/framework/candidate"
)

// fakeDNS answers each question, which it remembers, with the messages that answers makes of it.
func fakeDNS(t *testing.T, answers func(question dnsmessage.Message) [][]byte) (address string, asked <-chan dnsmessage.Message) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	seen := make(chan dnsmessage.Message, 10)
	go func() {
		packet := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(packet[:n]) != nil {
				return
			}
			seen <- m
			for _, a := range answers(m) {
				_, _ = conn.WriteTo(a, from)
			}
		}
	}()
	return conn.LocalAddr().String(), seen
}

// reply makes an answer of a question.
func reply(question dnsmessage.Message, change func(*dnsmessage.Message), answers ...dnsmessage.Resource) []byte {
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: question.ID, Response: true}, Questions: question.Questions, Answers: answers}
	if change != nil {
		change(&m)
	}
	packed, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return packed
}

func resourceOf(name string, body dnsmessage.ResourceBody) dnsmessage.Resource {
	return dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name), Class: dnsmessage.ClassINET}, Body: body}
}

func TestAskReadsAnswers(t *testing.T) {
	const app = "app.ns.svc.cluster.local."
	withCode := func(c dnsmessage.RCode) func(*dnsmessage.Message) { return func(m *dnsmessage.Message) { m.RCode = c } }
	v6 := netip.MustParseAddr("fd00::1")
	for name, c := range map[string]struct {
		answers func(dnsmessage.Message) [][]byte
		want    candidate.Resolution
	}{
		"records": {func(q dnsmessage.Message) [][]byte {
			return [][]byte{reply(q, nil,
				resourceOf(app, &dnsmessage.AResource{A: [4]byte{10, 96, 0, 1}}), resourceOf(app, &dnsmessage.AAAAResource{AAAA: v6.As16()}),
				resourceOf(app, &dnsmessage.MXResource{MX: dnsmessage.MustNewName("of.no.interest.")}),
				resourceOf("dns-version.cluster.local.", &dnsmessage.TXTResource{TXT: []string{"1.", "1.0"}}),
				resourceOf("1.0.96.10.in-addr.arpa.", &dnsmessage.PTRResource{PTR: dnsmessage.MustNewName(app)}),
				resourceOf("_web._tcp."+app, &dnsmessage.SRVResource{Port: 80, Target: dnsmessage.MustNewName(app)}),
				resourceOf("www.example.com.", &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName("cluster.local.example.com.")}))}
		}, candidate.Resolution{Said: candidate.Found, Records: []candidate.Record{
			{Name: "app.ns.svc", Type: candidate.A, Address: netip.MustParseAddr("10.96.0.1")}, {Name: "app.ns.svc", Type: candidate.AAAA, Address: v6},
			{Name: "dns-version", Type: candidate.TXT, Text: "1.1.0"}, {Name: "1.0.96.10.in-addr.arpa.", Type: candidate.PTR, Target: "app.ns.svc"},
			{Name: "_web._tcp.app.ns.svc", Type: candidate.SRV, Target: "app.ns.svc", Port: 80},
			{Name: "www.example.com.", Type: candidate.CNAME, Target: "cluster.local.example.com."},
		}}},
		"no records": {func(q dnsmessage.Message) [][]byte { return [][]byte{reply(q, nil)} }, candidate.Resolution{Said: candidate.NoRecords}},
		"the shortest time": {func(q dnsmessage.Message) [][]byte {
			one, two := resourceOf(app, &dnsmessage.AResource{A: [4]byte{10, 96, 0, 1}}), resourceOf(app, &dnsmessage.AResource{A: [4]byte{10, 96, 0, 2}})
			one.Header.TTL, two.Header.TTL = 30, 5
			return [][]byte{reply(q, nil, one, two)}
		}, candidate.Resolution{Said: candidate.Found, TTL: 5, Records: []candidate.Record{
			{Name: "app.ns.svc", Type: candidate.A, Address: netip.MustParseAddr("10.96.0.1")}, {Name: "app.ns.svc", Type: candidate.A, Address: netip.MustParseAddr("10.96.0.2")},
		}}},
		"the time of nothing": {func(q dnsmessage.Message) [][]byte {
			return [][]byte{reply(q, func(m *dnsmessage.Message) {
				soa := resourceOf("cluster.local.", &dnsmessage.SOAResource{NS: dnsmessage.MustNewName("ns.dns.cluster.local."), MBox: dnsmessage.MustNewName("h.cluster.local."), MinTTL: 5})
				soa.Header.TTL = 30
				m.RCode, m.Authorities = dnsmessage.RCodeNameError, []dnsmessage.Resource{soa}
			})}
		}, candidate.Resolution{Said: candidate.NoName, TTL: 5}},
		"no such name": {
			func(q dnsmessage.Message) [][]byte { return [][]byte{reply(q, withCode(dnsmessage.RCodeNameError))} },
			candidate.Resolution{Said: candidate.NoName},
		},
		"failure": {
			func(q dnsmessage.Message) [][]byte {
				return [][]byte{reply(q, withCode(dnsmessage.RCodeServerFailure))}
			},
			candidate.Resolution{Said: candidate.Failed, Reason: "ServerFailure"},
		},
		"truncation": {
			func(q dnsmessage.Message) [][]byte {
				return [][]byte{reply(q, func(m *dnsmessage.Message) { m.Truncated = true })}
			},
			candidate.Resolution{Said: candidate.Failed, Reason: "truncated beyond 16384 bytes"},
		},
		"answers to others": {func(q dnsmessage.Message) [][]byte {
			other := reply(q, func(m *dnsmessage.Message) { m.ID++ }, resourceOf(app, &dnsmessage.AResource{}))
			echo := reply(q, func(m *dnsmessage.Message) { m.Response = false })
			return [][]byte{other, echo, reply(q, withCode(dnsmessage.RCodeNameError))}
		}, candidate.Resolution{Said: candidate.NoName}},
	} {
		t.Run(name, func(t *testing.T) {
			server, _ := fakeDNS(t, c.answers)
			got, err := Ask(t.Context(), server, "cluster.local.", candidate.Question{Name: "app.ns.svc", Type: candidate.A})
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v, %v, want %+v", got, err, c.want)
			}
		})
	}
	t.Run("nonsense", func(t *testing.T) {
		server, _ := fakeDNS(t, func(dnsmessage.Message) [][]byte { return [][]byte{{1, 2, 3}} })
		got, err := Ask(t.Context(), server, "cluster.local.", candidate.Question{Name: "app.ns.svc", Type: candidate.A})
		if err != nil || got.Said != candidate.Failed || !strings.HasPrefix(got.Reason, "unreadable message") {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestAskSendsTheQuestion(t *testing.T) {
	server, asked := fakeDNS(t, func(q dnsmessage.Message) [][]byte { return [][]byte{reply(q, nil)} })
	for _, c := range []struct {
		question candidate.Question
		name     string
		kind     dnsmessage.Type
	}{
		{candidate.Question{Name: "_web._tcp.app.ns.svc", Type: candidate.SRV}, "_web._tcp.app.ns.svc.cluster.local.", dnsmessage.TypeSRV},
		{candidate.Question{Name: "www.example.com.", Type: candidate.AAAA}, "www.example.com.", dnsmessage.TypeAAAA},
	} {
		if _, err := Ask(t.Context(), server, "cluster.local.", c.question); err != nil {
			t.Fatal(err)
		}
		m := <-asked
		if len(m.Questions) != 1 || m.Questions[0].Name.String() != c.name || m.Questions[0].Type != c.kind || !m.RecursionDesired {
			t.Errorf("%s was asked as %+v", c.question, m)
		}
		if len(m.Additionals) != 1 || m.Additionals[0].Header.Class != maxAnswer {
			t.Errorf("the size of answers is not said: %+v", m.Additionals)
		}
	}
	for _, q := range []candidate.Question{{Name: "app", Type: "MX"}, {Name: strings.Repeat("a", 300), Type: candidate.A}} {
		if _, err := Ask(t.Context(), server, "cluster.local.", q); err == nil {
			t.Errorf("%s could be asked", q)
		}
	}
}

func TestAskOfNobody(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := conn.LocalAddr().String()
	conn.Close()
	got, err := Ask(t.Context(), server, "cluster.local.", candidate.Question{Name: "app.ns.svc", Type: candidate.A})
	if err != nil || got.Said != candidate.Unanswered {
		t.Errorf("%+v, %v", got, err)
	}
	silent, asked := fakeDNS(t, func(dnsmessage.Message) [][]byte { return nil })
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-asked; cancel(errors.New("enough")) }()
	if got, err := Ask(ctx, silent, "cluster.local.", candidate.Question{Name: "app.ns.svc", Type: candidate.A}); err == nil || err.Error() != "enough" {
		t.Errorf("interrupted: %+v, %v", got, err)
	}
}
