package check

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Lookup is a question to the DNS of the cluster, and what is demanded of the answer.
type Lookup struct {
	candidate.Question
	Want RecordsWant
}

// Ask makes a Lookup.
func Ask(t candidate.RecordType, name string, want RecordsWant) Lookup {
	return Lookup{candidate.Question{Name: name, Type: t}, want}
}

// RecordsWant is a demand on an answer of the DNS.
type RecordsWant struct {
	Text string
	// Absent demands say that there is nothing: they hold where nothing is known, so they are looked at beside a control.
	Absent bool
	Met    func(candidate.Question, candidate.Resolution) bool
}

// ResolvesTo demands A or AAAA records of the name with exactly these addresses, each once.
func ResolvesTo(addresses ...netip.Addr) RecordsWant {
	var want []candidate.Record
	for _, a := range addresses {
		want = append(want, candidate.Record{Address: a})
	}
	return exactly(want, func(r candidate.Record) candidate.Record { return candidate.Record{Address: r.Address} })
}

// Target is where an SRV record leads to.
type Target struct {
	Name string
	Port int
}

// LeadsTo demands SRV records of the name that lead to exactly these targets, each once.
func LeadsTo(targets ...Target) RecordsWant {
	var want []candidate.Record
	for _, t := range targets {
		want = append(want, candidate.Record{Type: candidate.SRV, Target: t.Name, Port: t.Port})
	}
	return exactly(want, func(r candidate.Record) candidate.Record {
		return candidate.Record{Type: r.Type, Target: strings.ToLower(r.Target), Port: r.Port}
	})
}

// Names demands PTR records with exactly these names, each once.
func Names(names ...string) RecordsWant {
	var want []candidate.Record
	for _, n := range names {
		want = append(want, candidate.Record{Type: candidate.PTR, Target: n})
	}
	return exactly(want, func(r candidate.Record) candidate.Record {
		return candidate.Record{Type: r.Type, Target: strings.ToLower(r.Target)}
	})
}

// NamesWith demands a PTR record with this name, beside which there may be others.
func NamesWith(name string) RecordsWant {
	return RecordsWant{Text: name, Met: func(q candidate.Question, said candidate.Resolution) bool {
		return said.Said == candidate.Found && slices.ContainsFunc(said.Records, func(r candidate.Record) bool {
			return r.Type == candidate.PTR && strings.EqualFold(r.Name, q.Name) && strings.EqualFold(r.Target, name)
		})
	}}
}

// SemanticVersion demands one TXT record with a semantic version.
func SemanticVersion() RecordsWant {
	return RecordsWant{Text: "a semantic version", Met: func(q candidate.Question, said candidate.Resolution) bool {
		if said.Said != candidate.Found || len(said.Records) != 1 || said.Records[0].Type != candidate.TXT || !strings.EqualFold(said.Records[0].Name, q.Name) {
			return false
		}
		_, err := version.ParseSemantic(said.Records[0].Text)
		return err == nil
	}}
}

// exactly demands that the records of the name and type that are asked for, reduced to what matters, are these in any order.
func exactly(want []candidate.Record, reduced func(candidate.Record) candidate.Record) RecordsWant {
	var texts []string
	for _, r := range want {
		if r.Type == "" {
			texts = append(texts, r.Address.String())
		} else {
			texts = append(texts, r.String())
		}
	}
	return RecordsWant{Text: strings.Join(texts, ", "), Met: func(q candidate.Question, said candidate.Resolution) bool {
		left := slices.Clone(want)
		for _, r := range said.Records {
			i := slices.Index(left, reduced(r))
			if i < 0 || r.Type != q.Type || !strings.EqualFold(r.Name, q.Name) {
				return false
			}
			left = slices.Delete(left, i, i+1)
		}
		return said.Said == candidate.Found && len(left) == 0
	}}
}

// AliasFor demands one CNAME record of the name, which leads to the target. Whatever type is asked for, the records of the target may follow.
func AliasFor(target string) RecordsWant {
	return RecordsWant{Text: "CNAME " + target, Met: func(q candidate.Question, said candidate.Resolution) bool {
		own := slices.DeleteFunc(slices.Clone(said.Records), func(r candidate.Record) bool { return !strings.EqualFold(r.Name, q.Name) })
		return said.Said == candidate.Found && len(own) == 1 && own[0].Type == candidate.CNAME && strings.EqualFold(own[0].Target, target)
	}}
}

// NoRecords demands that there are no records of the type that is asked for, be it that the name does not exist.
func NoRecords() RecordsWant {
	return RecordsWant{Text: "no records", Absent: true, Met: func(_ candidate.Question, said candidate.Resolution) bool {
		return said.Said == candidate.NoName || said.Said == candidate.NoRecords
	}}
}

// SomeRecords demands n records of the name and type that are asked for; the check looks at them itself.
func SomeRecords(n int) RecordsWant {
	return RecordsWant{Text: fmt.Sprintf("%d records", n), Met: func(q candidate.Question, said candidate.Resolution) bool {
		for _, r := range said.Records {
			if r.Type != q.Type || !strings.EqualFold(r.Name, q.Name) {
				return false
			}
		}
		return said.Said == candidate.Found && len(said.Records) == n
	}}
}

// ExpectRecords demands that the DNS of the cluster answers all lookups as they want at a time within ConvergenceBound.
// It demands the same when it asks again. It records how long that took under the name what, which says what was
// changed, and returns the answers that decided. The check is unknown if the DNS answers nothing at all, and if absence
// is demanded of one that does not know the "kubernetes" Service.
func (n *Network) ExpectRecords(ctx context.Context, what string, lookups ...Lookup) []candidate.Resolution {
	ginkgo.GinkgoHelper()
	return n.ExpectRecordsWithin(ctx, what, ConvergenceBound, lookups...)
}

// ExpectRecordsWithin is ExpectRecords with another bound.
func (n *Network) ExpectRecordsWithin(ctx context.Context, what string, bound time.Duration, lookups ...Lookup) []candidate.Resolution {
	ginkgo.GinkgoHelper()
	within := bounded(n.Patiently(bound))
	var passed, first time.Duration // on the candidate's clock
	watch, pause, held := startStopwatch(), n.Patiently(pollInterval), 0
	defer watch.stop()
	kept := cached{lookups: lookups, last: make([]candidate.Resolution, len(lookups))}
	for {
		said := n.resolve(ctx, lookups)
		kept.look(said)
		if !n.virtual {
			passed = watch.elapsed()
		}
		met := allAnswered(lookups, said)
		if met {
			if held++; held == 1 {
				first = passed
			}
			said = n.resolve(ctx, lookups)
			if allAnswered(lookups, said) {
				n.controlDNS(ctx, lookups, said)
				record(what, first)
				return said
			}
		}
		if !met && passed >= within && held <= flaps {
			if more := bounded(within+n.Patiently(kept.expire())) - within; more > 0 {
				Record("cache", "a cache answers: what it said may be kept for %.0f s more", more.Seconds())
				within += more
				continue
			}
		}
		if !met && passed >= within || held > flaps {
			n.controlDNS(ctx, lookups, said)
			n.keepQuestions(lookups, said)
			ginkgo.Fail(answersOf(what, within, held, lookups, said))
		}
		if n.virtual {
			passed += pause
		}
		n.pause(ctx, pause)
		pause = n.nextPause(pause, passed, within)
	}
}

// resolve asks all questions at a time.
func (n *Network) resolve(ctx context.Context, lookups []Lookup) []candidate.Resolution {
	ginkgo.GinkgoHelper()
	questions := make([]candidate.Question, len(lookups))
	for i, l := range lookups {
		questions[i] = l.Question
	}
	said, err := n.plane.Resolve(ctx, questions)
	mustOffer(err, "ask the DNS of the cluster")
	return said
}

func allAnswered(lookups []Lookup, said []candidate.Resolution) bool {
	for i, l := range lookups {
		if !l.Want.Met(l.Question, said[i]) {
			return false
		}
	}
	return true
}

// controlDNS asks for a name that every cluster has, where that tells whether what was said can be believed.
func (n *Network) controlDNS(ctx context.Context, lookups []Lookup, said []candidate.Resolution) {
	ginkgo.GinkgoHelper()
	mute, absent := false, false
	for i, l := range lookups {
		mute = mute || isMute(said[i])
		absent = absent || l.Want.Absent
	}
	if !mute && !absent {
		return
	}
	control := Ask(candidate.A, "kubernetes.default.svc", RecordsWant{})
	if n.PrimaryFamily() == corev1.IPv6Protocol {
		control.Type = candidate.AAAA
	}
	answer := n.resolve(ctx, []Lookup{control})[0]
	for tries := 1; isMute(answer) && tries <= n.patience; tries++ { // a datagram may be lost, and a slow machine slow to answer
		answer = n.resolve(ctx, []Lookup{control})[0]
	}
	switch {
	case isMute(answer):
		Abort("control: the DNS of the cluster does not answer %s: %s", control.Question, describeAnswer(answer))
	case absent && answer.Said != candidate.Found:
		Abort("control: the DNS of the cluster does not know %s: %s", control.Question, describeAnswer(answer))
	default:
		Record("controls", "%s is answered: %s", control.Question, describeAnswer(answer))
	}
}

// keptQuestions is how many of the questions that are not answered as demanded are shown to who repeats a failure.
const keptQuestions = 2

// keepQuestions has a failure show, after the requests that made the names, questions that are not answered as demanded.
func (n *Network) keepQuestions(lookups []Lookup, said []candidate.Resolution) {
	kept := 0
	for i, l := range lookups {
		if kept < keptQuestions && !l.Want.Met(l.Question, said[i]) {
			n.journal.add(entry{question: l.Question})
			kept++
		}
	}
}

// isMute reports whether an answer says nothing of the name.
func isMute(said candidate.Resolution) bool {
	return said.Said == candidate.Unanswered || said.Said == candidate.Failed
}

// answersOf describes what was demanded and answered, one line for each question, the unmet ones marked.
func answersOf(what string, within time.Duration, held int, lookups []Lookup, said []candidate.Resolution) string {
	var b strings.Builder
	if fmt.Fprintf(&b, "after this: %s\n", what); held > flaps {
		fmt.Fprintf(&b, "the demand held %d times and each time ceased to hold\n", held)
	} else {
		fmt.Fprintf(&b, "not met within %s\n", within)
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tname\ttype\texpected\tobserved")
	for i, l := range lookups {
		mark := "✓"
		if !l.Want.Met(l.Question, said[i]) {
			mark = "✗"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", mark, l.Name, l.Type, l.Want.Text, describeAnswer(said[i]))
	}
	w.Flush()
	return strings.TrimRight(b.String(), "\n")
}

// describeAnswer sums an answer up.
func describeAnswer(said candidate.Resolution) string {
	if said.Said != candidate.Found {
		return strings.TrimSuffix(string(said.Said)+": "+said.Reason, ": ")
	}
	var texts []string
	for i, r := range said.Records {
		if i == 8 {
			texts = append(texts, fmt.Sprintf("%d more", len(said.Records)-i))
			break
		}
		texts = append(texts, r.String())
	}
	return strings.Join(texts, ", ")
}
