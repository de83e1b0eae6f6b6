package check

import (
	"context"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/candidate"
)

func (p *scriptedPlane) Resolve(_ context.Context, questions []candidate.Question) ([]candidate.Resolution, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks++
	said := make([]candidate.Resolution, len(questions))
	for i, q := range questions {
		said[i] = p.said(q)
	}
	return said, nil
}

func found(name string, addresses ...string) candidate.Resolution {
	said := candidate.Resolution{Said: candidate.Found}
	for _, a := range addresses {
		said.Records = append(said.Records, candidate.Record{Name: name, Type: candidate.A, Address: netip.MustParseAddr(a)})
	}
	return said
}

func nothing(said candidate.Said) candidate.Resolution { return candidate.Resolution{Said: said} }

// knowing answers questions for the control, and all others so.
func knowing(said candidate.Resolution) func(candidate.Question) candidate.Resolution {
	return func(q candidate.Question) candidate.Resolution {
		if q.Name == controlName {
			return found(q.Name, "10.96.0.1")
		}
		return said
	}
}

const controlName = "kubernetes.default.svc"

func TestRecordsWants(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	question := candidate.Question{Name: "app.ns.svc", Type: candidate.A}
	one, both, twice := found("app.ns.svc", "10.0.0.1"), found("app.ns.svc", "10.0.0.2", "10.0.0.1"), found("app.ns.svc", "10.0.0.1", "10.0.0.1")
	cname := func(name, target string) candidate.Resolution {
		return candidate.Resolution{Said: candidate.Found, Records: []candidate.Record{{Name: name, Type: candidate.CNAME, Target: target}}}
	}
	srv := func(target string, port int) candidate.Resolution {
		return candidate.Resolution{Said: candidate.Found, Records: []candidate.Record{{Name: "app.ns.svc", Type: candidate.SRV, Target: target, Port: port}}}
	}
	ptr := func(names ...string) candidate.Resolution {
		said := candidate.Resolution{Said: candidate.Found}
		for _, n := range names {
			said.Records = append(said.Records, candidate.Record{Name: "app.ns.svc", Type: candidate.PTR, Target: n})
		}
		return said
	}
	txt := func(texts ...string) candidate.Resolution {
		said := candidate.Resolution{Said: candidate.Found}
		for _, text := range texts {
			said.Records = append(said.Records, candidate.Record{Name: "app.ns.svc", Type: candidate.TXT, Text: text})
		}
		return said
	}
	followed := cname("app.ns.svc", "www.example.com.")
	followed.Records = append(followed.Records, found("www.example.com.", "10.0.0.1").Records...)
	for name, c := range map[string]struct {
		want       RecordsWant
		question   candidate.RecordType
		met, unmet []candidate.Resolution
	}{
		"addresses": {ResolvesTo(a, b), candidate.A, []candidate.Resolution{both, found("APP.ns.svc", "10.0.0.1", "10.0.0.2")}, []candidate.Resolution{
			one, twice, found("app.ns.svc", "10.0.0.1", "10.0.0.2", "10.0.0.3"), found("other.ns.svc", "10.0.0.1", "10.0.0.2"),
			nothing(candidate.NoName), nothing(candidate.NoRecords), nothing(candidate.Failed), nothing(candidate.Unanswered), nothing(candidate.Found), followed,
		}},
		"an address":   {ResolvesTo(a), candidate.A, []candidate.Resolution{one}, []candidate.Resolution{both, twice}},
		"another type": {ResolvesTo(a), candidate.AAAA, nil, []candidate.Resolution{one}},
		"a target": {LeadsTo(Target{"web.app.ns.svc", 80}), candidate.SRV,
			[]candidate.Resolution{srv("web.app.ns.svc", 80), srv("WEB.app.ns.svc", 80)}, []candidate.Resolution{
				srv("web.app.ns.svc", 81), srv("app.ns.svc", 80), srv("web.app.ns.svc.", 80), one,
			}},
		"an alias": {AliasFor("www.example.com."), candidate.A, []candidate.Resolution{cname("app.ns.svc", "www.example.com."), followed}, []candidate.Resolution{
			cname("app.ns.svc", "www.example.com"), cname("app.ns.svc", "example.com."), cname("other.ns.svc", "www.example.com."), one, nothing(candidate.NoRecords),
		}},
		"nothing": {NoRecords(), candidate.A, []candidate.Resolution{nothing(candidate.NoName), nothing(candidate.NoRecords)}, []candidate.Resolution{
			one, nothing(candidate.Failed), nothing(candidate.Unanswered),
		}},
		"a name": {Names("a.ns.svc"), candidate.PTR, []candidate.Resolution{ptr("a.ns.svc"), ptr("A.ns.svc")}, []candidate.Resolution{
			ptr("b.ns.svc"), ptr("a.ns.svc", "b.ns.svc"), ptr("a.ns.svc", "a.ns.svc"), cname("app.ns.svc", "a.ns.svc"), nothing(candidate.NoName), nothing(candidate.Failed),
		}},
		"a name beside others": {NamesWith("a.ns.svc"), candidate.PTR, []candidate.Resolution{ptr("a.ns.svc"), ptr("b.ns.svc", "A.ns.svc")}, []candidate.Resolution{
			ptr("b.ns.svc"), cname("app.ns.svc", "a.ns.svc"), nothing(candidate.NoName),
		}},
		"a version": {SemanticVersion(), candidate.TXT, []candidate.Resolution{txt("1.1.0"), txt("2.0.0-rc.1")}, []candidate.Resolution{
			txt("1.1"), txt("v"), txt("1.1.0", "1.1.0"), one, nothing(candidate.NoName), nothing(candidate.NoRecords),
		}},
		"a number": {SomeRecords(2), candidate.A, []candidate.Resolution{both, twice}, []candidate.Resolution{one, nothing(candidate.NoName), followed}},
	} {
		question.Type = c.question
		for _, said := range c.met {
			if !c.want.Met(question, said) {
				t.Errorf("%s: not met by %+v", name, said)
			}
		}
		for _, said := range c.unmet {
			if c.want.Met(question, said) {
				t.Errorf("%s: met by %+v", name, said)
			}
		}
	}
}

var (
	askApp  = Ask(candidate.A, "app.ns.svc", ResolvesTo(netip.MustParseAddr("10.96.0.7")))
	askGone = Ask(candidate.A, "gone.ns.svc", NoRecords())
)

func expecting(said func(candidate.Question) candidate.Resolution, lookups ...Lookup) TrafficBody {
	return func(ctx context.Context, net *Network) {
		script.said = said
		net.ExpectRecords(ctx, "the Service is created", lookups...)
	}
}

var _ = ginkgo.Describe("records", func() {
	it("that are as demanded are met without a control", expecting(func(q candidate.Question) candidate.Resolution { return found(q.Name, "10.96.0.7") }, askApp),
		judged{verdict: Conformant, look: func(t *testing.T, f finding) {
			if hasControls(f.Result) || len(f.Convergence) != 1 || f.looks != 2 {
				t.Errorf("%d looks, %+v", f.looks, f.Result)
			}
		}})
	it("that come in time are met", expecting(func(q candidate.Question) candidate.Resolution {
		if script.spent < 5*time.Second {
			return nothing(candidate.Failed)
		}
		return found(q.Name, "10.96.0.7")
	}, askApp), judged{verdict: Conformant, look: func(t *testing.T, f finding) {
		if len(f.Convergence) != 1 || f.Convergence[0].Seconds < 4.9 || f.Convergence[0].Seconds > 6 {
			t.Errorf("convergence %+v", f.Convergence)
		}
	}})
	// stale is what a cache has kept, which asks again when its time is over, and finds what is there then; ttl is what it says at a time.
	stale := func(until time.Duration, ttl func(spent time.Duration) int) func(candidate.Question) candidate.Resolution {
		return func(q candidate.Question) candidate.Resolution {
			if script.spent >= until {
				return found(q.Name, "10.96.0.7")
			}
			said := found(q.Name, "10.96.0.8")
			said.TTL = ttl(script.spent)
			return said
		}
	}
	ages := func(spent time.Duration) int { return 30 - int(spent/time.Second)%30 }
	it("that a cache has kept are waited for until their time is over", expecting(stale(45*time.Second, ages), askApp),
		judged{verdict: Conformant, look: func(t *testing.T, f finding) {
			if len(f.Evidence) != 1 || f.Evidence[0].Name != "cache" || len(f.Convergence) != 1 || f.Convergence[0].Seconds < 44 {
				t.Errorf("evidence %+v, convergence %+v", f.Evidence, f.Convergence)
			}
		}})
	it("that a cache keeps for longer are a violation", expecting(stale(time.Hour, ages), askApp), judged{verdict: NonConformant, message: []string{"not met within 1m0s\n", "10.96.0.8"}})
	it("that a server makes each time with the same TTL are a violation at once", expecting(stale(45*time.Second, func(time.Duration) int { return 30 }), askApp),
		judged{verdict: NonConformant, message: []string{"not met within 30s\n", "10.96.0.8"}})
	it("that differ with ever shorter TTLs are of no cache", expecting(func(q candidate.Question) candidate.Resolution {
		said := found(q.Name, "10.96.0."+strconv.Itoa(10+script.looks))
		said.TTL = max(1, 100-script.looks)
		return said
	}, askApp), judged{verdict: NonConformant, message: []string{"not met within 30s\n"}})
	it("that are others are a violation", expecting(func(q candidate.Question) candidate.Resolution { return found(q.Name, "10.96.0.8") }, askApp),
		judged{verdict: NonConformant, message: []string{
			"after this: the Service is created\nnot met within 30s\n", "✗  app.ns.svc  A", "10.96.0.7", "10.96.0.8",
		}})
	it("that cease to be are a violation", expecting(func(q candidate.Question) candidate.Resolution {
		if script.looks%2 == 0 {
			return nothing(candidate.NoName)
		}
		return found(q.Name, "10.96.0.7")
	}, askApp), judged{verdict: NonConformant, message: []string{"the demand held 4 times and each time ceased to hold\n", "✗", "no such name"}})
	it("that a server withholds which answers others are a violation", expecting(knowing(nothing(candidate.Unanswered)), askApp),
		judged{verdict: NonConformant, message: []string{"✗  app.ns.svc", "no answer"}})
	it("of a server that answers nothing are unknown",
		expecting(func(candidate.Question) candidate.Resolution { return nothing(candidate.Unanswered) }, askApp),
		judged{verdict: Unknown, reason: "control: the DNS of the cluster does not answer kubernetes.default.svc A: no answer"})
	it("that are not there are absent beside a control", expecting(knowing(nothing(candidate.NoName)), askGone),
		judged{verdict: Conformant, look: func(t *testing.T, f finding) {
			if !hasControls(f.Result) {
				t.Error("without a control")
			}
		}})
	it("of a server that knows nothing are not absent but unknown",
		expecting(func(candidate.Question) candidate.Resolution { return nothing(candidate.NoName) }, askGone),
		judged{verdict: Unknown, reason: "control: the DNS of the cluster does not know"})
	it("that are there are not absent", expecting(knowing(found("gone.ns.svc", "10.96.0.9")), askGone),
		judged{verdict: NonConformant, message: []string{"✗  gone.ns.svc", "no records", "10.96.0.9"}})
})
