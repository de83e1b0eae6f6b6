package check

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Case is one cell of a matrix of clients and destinations: what is sent, and what is demanded of the outcomes.
type Case struct {
	From candidate.Client
	To   netip.AddrPort
	// Protocol is TCP unless it says otherwise.
	Protocol corev1.Protocol
	Want     Want
	// Shots replaces the number that the demand asks for.
	Shots int
	// The rest is that of candidate.Probe.
	SourcePort int
	Connection string
	Path       string
	Interval   time.Duration
	Payload    int
	Reversed   bool
	Rate       int
	// Aside cases tell nothing about what the check is about: that nodes have followed all changes, for example. Its timeline leaves them out.
	Aside bool
}

func (c *Case) probe() candidate.Probe {
	p := candidate.Probe{
		From: c.From, To: c.To, Protocol: c.Protocol, Count: c.Shots, SourcePort: c.SourcePort, Connection: c.Connection, Path: c.Path, Interval: c.Interval, Payload: c.Payload, Reversed: c.Reversed, Rate: c.Rate,
	}
	if p.Protocol == "" {
		p.Protocol = corev1.ProtocolTCP
	}
	if p.Count == 0 {
		p.Count = max(1, c.Want.Shots)
	}
	return p
}

// ConvergenceBound is how long a data plane may take to follow a change. It takes a fraction of a second on an idle machine;
// a loaded one must not make a red verdict.
const ConvergenceBound = 30 * time.Second

// flaps is how often a demand that held may cease to hold before it counts as unmet: nodes follow a change one after the other.
const flaps = 3

// Expect demands that all cases hold at a time within ConvergenceBound, and still hold when they are looked at again. It records how long that
// took under the name what, which says what was changed, for example "the Service is created". It returns the outcomes of the look that
// decided. If they do not hold, the check fails with the table of what was demanded and observed. Silent demands are
// looked at beside controls: if the same client does not reach a pod by its own address, the check is unknown.
func (n *Network) Expect(ctx context.Context, what string, cases ...Case) [][]candidate.Outcome {
	ginkgo.GinkgoHelper()
	return n.ExpectWithin(ctx, what, ConvergenceBound, cases...)
}

// ExpectNow demands that all cases hold at once: for what must hold at every moment.
func (n *Network) ExpectNow(ctx context.Context, what string, cases ...Case) [][]candidate.Outcome {
	ginkgo.GinkgoHelper()
	return n.ExpectWithin(ctx, what, 0, cases...)
}

// ExpectWithin is Expect with a bound of its own. Cases that need what the candidate does not claim are left out; they have no outcomes.
func (n *Network) ExpectWithin(ctx context.Context, what string, within time.Duration, cases ...Case) [][]candidate.Outcome {
	ginkgo.GinkgoHelper()
	judged, places := n.withinClaims(cases)
	outcomes := make([][]candidate.Outcome, len(cases))
	for k, os := range n.expect(ctx, what, within, judged) {
		outcomes[places[k]] = os
	}
	return outcomes
}

// expect is ExpectWithin of cases that can all be judged.
func (n *Network) expect(ctx context.Context, what string, within time.Duration, cases []Case) [][]candidate.Outcome {
	ginkgo.GinkgoHelper()
	n.shots.expecting(what, cases)
	within = bounded(n.Patiently(within))
	probes := make([]candidate.Probe, len(cases))
	for i := range cases {
		if probes[i] = cases[i].probe(); within == 0 && !cases[i].Want.Silent {
			probes[i].Timeout = LossTimeout
		}
	}
	limit, paced := within, false
	var passed time.Duration // on the candidate's clock
	watch, pause, held := startStopwatch(), n.Patiently(pollInterval), 0
	defer watch.stop()
	var first time.Duration
	patience := firstPatience
	for {
		silent, unmet := n.scout(ctx, cases, probes, within, patience)
		if unmet && watch.elapsed() < limit {
			if len(silent) > 0 {
				patience = min(2*patience, candidate.DefaultProbeTimeout)
			}
			n.pause(ctx, pause)
			pause = n.nextPause(pause, watch.elapsed(), limit)
			continue
		}
		outcomes := n.refusedOnly(ctx, cases, n.sendExcept(ctx, silent, probes))
		if !n.virtual {
			passed = watch.elapsed()
		}
		judged, met, last := cases, allMet(cases, outcomes), false
		if last = !met && passed >= limit; last || !met && onlyWithheld(cases, outcomes) {
			outcomes = n.refusedOnly(ctx, cases, n.findLost(ctx, within, cases, outcomes))
			met = allMet(cases, outcomes)
		}
		if met {
			if held++; held == 1 {
				first = passed
			}
			again, looked := cases, outcomes
			if within > 0 {
				again, looked = n.lookAgain(ctx, cases, probes)
				looked = n.refusedOnly(ctx, again, n.findLost(ctx, within, again, looked))
			}
			if allMet(again, looked) {
				n.control(ctx, cases)
				if within > 0 { // else nothing was waited for
					record(what, first)
				}
				return outcomes
			}
			judged, outcomes = again, looked
		}
		if last || held > flaps {
			n.control(ctx, cases)
			n.controlUnanswered(ctx, judged, outcomes)
			n.controlStrangers(ctx, judged, outcomes)
			if last && !paced && within > 0 && !n.virtual { // a virtual clock waits for every node
				paced = true
				if took := n.controlPace(ctx, within, judged, outcomes); took > 0 {
					limit = watch.elapsed() + took
					continue
				}
			}
			n.fail(ctx, what, within, held, judged, outcomes)
		}
		if n.virtual {
			passed += pause
			n.pause(ctx, pause)
			pause = min(2*pause, time.Second)
		} else {
			n.pause(ctx, pause)
			pause = n.nextPause(pause, passed, limit)
		}
	}
}

// nextPause is the time between two looks after a wait of that length: a tenth of the wait. So the looks do not slow
// down a slow candidate, and the time is known within a tenth. It does not reach beyond the bound: that would be more
// time for the candidate.
func (n *Network) nextPause(pause, waited, within time.Duration) time.Duration {
	return min(2*pause, max(n.Patiently(shortPause), min(waited/10, within-waited)))
}

// shortPause is what a pause grows to however short the wait was, times the candidate's patience.
const shortPause = 200 * time.Millisecond

// findLost sends the shots of those cases once more, and more patiently, of which all is well but for a few shots that met silence. A network may
// lose a packet, and a machine under load may leave a backend without its turn: neither accuses the candidate. What drops every so many connections,
// or all of a flow, does so again. What had to hold at once (within is 0) was asked with all patience; but for datagrams, which nobody repeated.
func (n *Network) findLost(ctx context.Context, within time.Duration, cases []Case, outcomes [][]candidate.Outcome) [][]candidate.Outcome {
	ginkgo.GinkgoHelper()
	var probes []candidate.Probe
	var of []int
	sent := 0
	for i, c := range cases {
		withheld := refusalsWithheld(&c, outcomes[i])
		if c.Want.Met(outcomes[i]) || !fewLost(&c, outcomes[i]) && !withheld || within == 0 && c.Protocol != corev1.ProtocolUDP {
			continue
		}
		sent++
		p := c.probe()
		if p.Timeout, p.Repeats = LossTimeout, lossRepeats; withheld {
			p.Repeats = int(LossTimeout/time.Second) - 1
		}
		// Shots that depend on each other follow one another; others need not wait for what is lost among them.
		p.Count = len(outcomes[i])
		if c.Connection == "" && c.SourcePort == 0 {
			p.Count = lossBatch
		}
		for left := len(outcomes[i]); left > 0; left -= p.Count {
			p.Count = min(p.Count, left)
			probes, of = append(probes, p), append(of, i)
		}
	}
	if sent == 0 {
		return outcomes
	}
	again := slices.Clone(outcomes)
	for _, i := range of {
		again[i] = nil
	}
	for k, os := range n.Send(ctx, probes...) {
		again[of[k]] = append(again[of[k]], os...)
	}
	Record("lost packets", "%d of %d cases were sent again, with %s for each answer, for a few shots had met silence", sent, len(cases), LossTimeout)
	return again
}

// fewLost reports whether a few shots met silence, and the others what is demanded of them.
func fewLost(c *Case, outcomes []candidate.Outcome) bool {
	rest := slices.DeleteFunc(slices.Clone(outcomes), func(o candidate.Outcome) bool { return o.Result == candidate.Dropped })
	lost := len(outcomes) - len(rest)
	if c.Want.Silent || lost == 0 || len(rest) == 0 || lost > max(1, len(outcomes)/lostOf) {
		return false
	}
	if still, ok := c.Want.again(); ok {
		return still.Met(rest)
	}
	return c.Want.Met(rest)
}

// refusalsWithheld reports whether shots that are to be refused were refused or met silence. A kernel tells a peer
// of errors about once a second (icmp_ratelimit of Linux), and a proxy may refuse a connection by such an error, too. So
// some of several refusals look like silence. A proxy that drops them does so for longer than that. Of connections one
// must have been refused: before a change is made, all of them may meet silence, and a look must not take long then.
func refusalsWithheld(c *Case, outcomes []candidate.Outcome) bool {
	return c.Want.ConnectionRefused && (c.Protocol == corev1.ProtocolUDP || slices.ContainsFunc(outcomes, refused)) && every(outcomes, func(o candidate.Outcome) bool {
		return refused(o) || o.Result == candidate.Dropped
	})
}

func refused(o candidate.Outcome) bool { return o.Result == candidate.Refused }

// onlyWithheld reports whether nothing is missing but refusals that a kernel may withhold, and each of those cases has seen one.
func onlyWithheld(cases []Case, outcomes [][]candidate.Outcome) bool {
	for i := range cases {
		c, seen := &cases[i], outcomes[i]
		if !c.Want.Met(seen) && !(refusalsWithheld(c, seen) && slices.ContainsFunc(seen, refused)) {
			return false
		}
	}
	return true
}

// lostOf is of how many shots one may be lost. lossRepeats is how often a datagram is sent again before it counts as
// lost. lossBatch is how many shots wait for each other.
const (
	lostOf      = 12
	lossRepeats = 4
	lossBatch   = 4
)

// firstPatience is how long the first scouts wait for an answer; later ones wait longer, up to what a shot waits.
const firstPatience = 100 * time.Millisecond

// scout sends one shot of each case that demands answers. It reports whether one of them shows already that its case is
// unmet. It also returns, by case, what met silence for as long as its patience lasts. A look at what is not served yet
// would cost many shots without scouts, and a second of silence for each. Where waiting takes no time none are sent.
func (n *Network) scout(ctx context.Context, cases []Case, probes []candidate.Probe, within, patience time.Duration) (silent map[int][]candidate.Outcome, unmet bool) {
	ginkgo.GinkgoHelper()
	if n.virtual || within == 0 {
		return nil, false
	}
	var scouts []candidate.Probe
	var of []int
	for i, p := range probes {
		if !cases[i].Want.Silent {
			p.Count, p.Timeout = 1, patience
			scouts, of = append(scouts, p), append(of, i)
		}
	}
	if len(scouts) == 0 {
		return nil, false
	}
	silent = map[int][]candidate.Outcome{}
	for k, os := range n.Send(ctx, scouts...) {
		if os[0].Result == candidate.Dropped {
			silent[of[k]], unmet = os, true
		} else if still, ok := cases[of[k]].Want.again(); ok && !still.Met(os) {
			unmet = true
		}
	}
	return silent, unmet
}

// sendExcept is Send for all probes but those whose outcomes are known.
func (n *Network) sendExcept(ctx context.Context, known map[int][]candidate.Outcome, probes []candidate.Probe) [][]candidate.Outcome {
	ginkgo.GinkgoHelper()
	var rest []candidate.Probe
	for i, p := range probes {
		if known[i] == nil {
			rest = append(rest, p)
		}
	}
	sent := n.Send(ctx, rest...)
	outcomes := make([][]candidate.Outcome, len(probes))
	for i := range probes {
		if outcomes[i] = known[i]; outcomes[i] == nil {
			outcomes[i], sent = sent[0], sent[1:]
		}
	}
	return outcomes
}

// lookAgain sends few shots and returns what is demanded of them, and their outcomes.
func (n *Network) lookAgain(ctx context.Context, cases []Case, probes []candidate.Probe) ([]Case, [][]candidate.Outcome) {
	ginkgo.GinkgoHelper()
	cases, probes = slices.Clone(cases), slices.Clone(probes)
	for i := range cases {
		if still, ok := cases[i].Want.again(); ok {
			if still.Text == "" {
				still.Text = cases[i].Want.Text
			}
			cases[i].Want, probes[i].Count = still, min(probes[i].Count, shotsAgain)
		}
	}
	return cases, n.Send(ctx, probes...)
}

func allMet(cases []Case, outcomes [][]candidate.Outcome) bool {
	for i := range cases {
		if !cases[i].Want.Met(outcomes[i]) {
			return false
		}
	}
	return true
}

func record(what string, took time.Duration) {
	if current != nil {
		current.result.Convergence = append(current.result.Convergence, Convergence{What: what, Seconds: took.Seconds()})
	}
}

// Send sends probes, all at a time, and returns the outcomes of each. A prober that is broken makes the check unknown.
func (n *Network) Send(ctx context.Context, probes ...candidate.Probe) [][]candidate.Outcome {
	ginkgo.GinkgoHelper()
	record := n.shots.sending()
	outcomes := n.send(ctx, probes...)
	record(probes, outcomes)
	return outcomes
}

// send is Send of what the timeline of the check leaves out: controls.
func (n *Network) send(ctx context.Context, probes ...candidate.Probe) [][]candidate.Outcome {
	ginkgo.GinkgoHelper()
	if n.patience > 1 {
		probes = slices.Clone(probes)
		for i := range probes {
			if probes[i].Timeout == 0 {
				probes[i].Timeout = candidate.DefaultProbeTimeout
			}
			probes[i].Timeout *= time.Duration(n.patience)
		}
	}
	outcomes, err := n.plane.Send(ctx, probes)
	mustOffer(err, "send probes")
	for i, os := range outcomes {
		for _, o := range os {
			if o.Result == candidate.Broken {
				Abort("the prober in the %s is broken (to %s/%s): %s", probes[i].From, probes[i].To, probes[i].Protocol, o.Error)
			}
		}
	}
	return outcomes
}

// control proves, for each client of a silent demand, that its prober reaches what is reachable and is not answered where nobody answers.
func (n *Network) control(ctx context.Context, cases []Case) {
	ginkgo.GinkgoHelper()
	n.controlClients(ctx, slices.DeleteFunc(slices.Clone(cases), func(c Case) bool { return !c.Want.Silent }))
}

// controlUnanswered proves the same for each client that met no answer where answers are demanded. Pods reach each
// other, and clients outside of the cluster reach the nodes, without anything that the candidate makes.
func (n *Network) controlUnanswered(ctx context.Context, cases []Case, outcomes [][]candidate.Outcome) {
	ginkgo.GinkgoHelper()
	var unanswered []Case
	for i, c := range cases {
		if !c.Want.Met(outcomes[i]) &&
			!slices.ContainsFunc(outcomes[i], func(o candidate.Outcome) bool { return o.Result == candidate.Answered }) {
			unanswered = append(unanswered, c)
		}
	}
	n.controlClients(ctx, unanswered)
	n.controlWay(ctx, unanswered)
}

// controlWay looks at each client outside of the cluster that met no answer at an external address. It proves that a
// node answers the client at the witness, which is in the same network. A firewall between them may drop what goes to
// networks that nobody has.
func (n *Network) controlWay(ctx context.Context, unanswered []Case) {
	ginkgo.GinkgoHelper()
	if !n.what.Witnesses {
		return
	}
	var probes []candidate.Probe
	for _, c := range unanswered {
		if c.From.Gateway == "" || !candidate.IsExternal(c.To.Addr()) {
			continue
		}
		to := netip.AddrPortFrom(candidate.Witness(c.To.Addr().Is6()), closedPort)
		p := candidate.Probe{From: c.From, To: to, Protocol: corev1.ProtocolTCP, Count: 1, Timeout: 10 * time.Second, Repeats: lossRepeats}
		if !slices.Contains(probes, p) {
			probes = append(probes, p)
		}
	}
	if len(probes) == 0 {
		return
	}
	for i, o := range n.send(ctx, probes...) {
		if o[0].Result != candidate.Refused {
			Abort("positive control: the client in the %s does not reach its node at %s, an address of its own in the network of external addresses: %s",
				probes[i].From, probes[i].To, describe(o))
		}
	}
}

func (n *Network) controlClients(ctx context.Context, cases []Case) {
	ginkgo.GinkgoHelper()
	var probes []candidate.Probe
	var pods []candidate.PodName // that are to answer, by the index of the probe
	for _, c := range cases {
		protocol := c.probe().Protocol
		if protocol == corev1.ProtocolSCTP { // few pods answer it
			protocol = corev1.ProtocolTCP
		}
		pod := n.controlPod(ctx, c.From, protocol)
		to := controlAddress(pod, c.To.Addr())
		p := candidate.Probe{From: c.From, To: to, Protocol: protocol, Count: 1, Timeout: 10 * time.Second, Repeats: lossRepeats}
		negative := p
		negative.To = netip.AddrPortFrom(to.Addr(), closedPort)
		if !slices.Contains(probes, p) {
			probes, pods = append(probes, p, negative), append(pods, pod.PodName, pod.PodName)
		}
	}
	if len(probes) == 0 {
		return
	}
	outcomes := n.send(ctx, probes...)
	for i := 0; i < len(probes); i += 2 {
		if o := outcomes[i][0]; o.Result != candidate.Answered || o.Pod != pods[i] {
			Abort("positive control: the client in the %s does not reach pod %s at %s/%s: %s", probes[i].From, pods[i].Name, probes[i].To, probes[i].Protocol, describe(outcomes[i]))
		}
		if o := outcomes[i+1][0]; o.Result == candidate.Answered {
			Abort("negative control: somebody answers the client in the %s at %s, where nobody listens", probes[i].From, probes[i+1].To)
		}
	}
	Record("controls", "%d times a client reached a pod (%s) at its own address and nobody at a closed port", len(probes)/2, pods[0].Name)
}

// controlAddress is where a pod answers controls, in the family of the address that they are for.
func controlAddress(pod candidate.Pod, like netip.Addr) netip.AddrPort {
	ginkgo.GinkgoHelper()
	family := corev1.IPv4Protocol
	if like.Is6() {
		family = corev1.IPv6Protocol
	}
	a := AddressOf(pod.Addresses, family)
	if !a.IsValid() {
		Abort("no control: pod %s has no address of family %s", pod.Name, family)
	}
	return netip.AddrPortFrom(a, BackendPort)
}

// controlStrangers looks at each client that something other than a pod of the check has answered, where that was not
// wanted. It proves that nothing answers the client at an address that nobody can have, nor at a free one beside the
// cluster IP that it asked: what no proxy captures there goes the way of that address. In some networks something (a
// transparent proxy) answers for every address, and no verdict is possible.
func (n *Network) controlStrangers(ctx context.Context, cases []Case, outcomes [][]candidate.Outcome) {
	ginkgo.GinkgoHelper()
	var probes []candidate.Probe
	for i, c := range cases {
		switch {
		case c.Want.Met(outcomes[i]):
			continue
		case !slices.ContainsFunc(outcomes[i], byStranger):
			return // this one is unmet whoever answers elsewhere
		}
		controls := []netip.Addr{nobody(&n.what, c.To.Addr())}
		if free := freeBeside(c.To.Addr(), n.AddressesInUse(ctx, netip.PrefixFrom(c.To.Addr(), 0))); free.IsValid() {
			controls = append(controls, free)
		}
		for _, a := range controls {
			p := c.probe()
			p.To, p.Count, p.SourcePort, p.Connection = netip.AddrPortFrom(a, c.To.Port()), 1, 0, ""
			if !slices.Contains(probes, p) {
				probes = append(probes, p)
			}
		}
	}
	if len(probes) == 0 {
		return
	}
	for i, o := range n.send(ctx, probes...) {
		if byStranger(o[0]) {
			Abort("negative control: somebody answers the client in the %s at %s, an address that nobody has: where the network answers for every address, "+
				"nothing can be said of the answers of strangers", probes[i].From, probes[i].To)
		}
	}
}

// byStranger reports whether something that is no pod of this suite answered a shot, or accepted its connection.
func byStranger(o candidate.Outcome) bool {
	return o.Stranger || o.Result == candidate.Answered && o.Pod.Name == ""
}

// closedPort is a port on which no backend answers.
const closedPort = 9

// controlPod is a pod of the check's own that answers the protocol on BackendPort, on another node than the client. It
// starts one if there is none. One that is lent would not do: a network may keep namespaces apart, or be late with new
// pods.
func (n *Network) controlPod(ctx context.Context, from candidate.Client, protocol corev1.Protocol) candidate.Pod {
	ginkgo.GinkgoHelper()
	own := n.nodeOf(from)
	n.mu.Lock()
	i := slices.IndexFunc(n.pods, func(p candidate.Pod) bool {
		return !n.lent[p.PodName] && !p.HostNetwork && p.Node != own && slices.ContainsFunc(p.Ports, func(q candidate.PodPort) bool { return q.Protocol == protocol && q.Number == BackendPort })
	})
	var pod candidate.Pod
	if i >= 0 {
		pod = n.pods[i]
	}
	n.mu.Unlock()
	if i >= 0 {
		return pod
	}
	return n.Start(ctx, candidate.Pod{PodName: candidate.PodName{Name: n.Name("control")}, Node: n.elsewhere(from)})
}

// fail ends the check as non-conformant, with the table as its message and what the nodes know as evidence.
func (n *Network) fail(ctx context.Context, what string, within time.Duration, held int, cases []Case, outcomes [][]candidate.Outcome) {
	ginkgo.GinkgoHelper()
	n.PodsLive(ctx)
	var unmet []netip.AddrPort
	for i, c := range cases {
		if !c.Want.Met(outcomes[i]) {
			unmet = append(unmet, c.To)
		}
	}
	n.Diagnose(ctx, unmet...)
	if current != nil {
		current.unmetUses = n.unmetUses(cases, outcomes)
		current.seen = casesSeen(cases, outcomes)
	}
	ginkgo.Fail(tableOf(what, within, held, cases, outcomes))
}

// Diagnose records as evidence what the nodes know of what a demand is unmet for: of two destinations at most.
func (n *Network) Diagnose(ctx context.Context, unmet ...netip.AddrPort) {
	diagnosed := map[netip.AddrPort]bool{}
	for _, to := range unmet {
		if diagnosed[to] || len(diagnosed) == 2 {
			continue
		}
		diagnosed[to] = true
		if text, err := n.plane.Diagnose(ctx, to); err != nil {
			Record("diagnosis of "+to.String(), "failed: %v", err)
		} else if text != "" {
			Record("diagnosis of "+to.String(), "%s", text)
		}
	}
}

// shortBody is how long the body of an HTTP answer may be to stand in a matrix.
const shortBody = 200

// describeHTTP is the code of an answer, and what a load balancer reads in it.
func describeHTTP(a *candidate.HTTPAnswer) string {
	text := fmt.Sprintf("HTTP %d", a.Code)
	if weight := http.Header(a.Header).Get("X-Load-Balancing-Endpoint-Weight"); weight != "" {
		text += ", weight " + weight
	}
	if body := strings.Join(strings.Fields(a.Body), " "); body != "" && len(body) <= shortBody {
		text += ", " + body
	}
	return text
}

// describe sums outcomes up: "12 answered by a-1 (from 10.0.0.1, port 8080), 3 dropped".
func describe(outcomes []candidate.Outcome) string {
	count := map[string]int{}
	var order []string
	for _, o := range outcomes {
		text := string(o.Result)
		switch {
		case o.HTTP != nil && o.Pod.Name == "":
			text = describeHTTP(o.HTTP)
		case byStranger(o) && o.Result == candidate.Answered:
			text = "answered by a stranger"
		case byStranger(o):
			text = "accepted by a stranger, then " + text
		case o.Result == candidate.Answered:
			text = fmt.Sprintf("by %s on %d, seen from %s", o.Pod.Name, o.PodPort, o.Source.Addr())
		}
		if count[text]++; count[text] == 1 {
			order = append(order, text)
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return count[b] - count[a] })
	var parts []string
	for i, text := range order {
		if i == 6 {
			parts = append(parts, fmt.Sprintf("%d more kinds", len(order)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%d× %s", count[text], text))
	}
	if len(parts) == 0 {
		return "nothing sent"
	}
	return strings.Join(parts, ", ")
}
