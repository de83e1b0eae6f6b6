package check

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

// Run judges the candidate with every check of the suites that the calling program imports. It reports whether all of
// them are conformant or not applicable. It may be called once per process, from a `go test` function or a program; a
// second call fails and says why.
func Run(t ginkgo.GinkgoTestingT, s Setup) bool {
	suite, reporter := ginkgo.GinkgoConfiguration()
	return RunConfigured(t, s, suite, reporter)
}

// RunConfigured is Run with Ginkgo's own configuration.
func RunConfigured(t ginkgo.GinkgoTestingT, s Setup, suite types.SuiteConfig, reporter types.ReporterConfig) bool {
	return RunInTurn(t, []Setup{s}, suite, reporter)
}

// RunInTurn is RunConfigured for several runs in one process, one after another. Ginkgo runs its tree once, so a check is in
// it once for each run that selects it. The checks of a run have no order among them.
func RunInTurn(t ginkgo.GinkgoTestingT, runs []Setup, suite types.SuiteConfig, reporter types.ReporterConfig) bool {
	if hasRun {
		fmt.Fprintln(os.Stderr, "conformance:", ErrRunTwice)
		t.Fail()
		return false
	}
	hasRun = true
	configure(runs)
	if len(runs) > 1 {
		suite.RandomizeAllSpecs = true // so that Ginkgo orders checks by their priority, and not by their container
	}
	gomega.RegisterFailHandler(ginkgo.Fail)
	return ginkgo.RunSpecs(t, "service conformance", suite, reporter)
}

// ErrRunTwice says why a second Run fails.
var ErrRunTwice = errors.New("the checks have run in this process, and Ginkgo runs its tree once: judge another candidate in a test binary of its own, which is a package of its own")

var hasRun bool

// HasRun reports whether the checks have run in this process, so that they cannot run again.
func HasRun() bool { return hasRun }

// Configure sets what Run takes as its Setup, for programs that call ginkgo.RunSpecs themselves.
func Configure(s Setup) { configure([]Setup{s}) }

func configure(runs []Setup) {
	inTurn = slices.Clone(runs)
	for i := range inTurn {
		s := &inTurn[i]
		if s.RunID == "" {
			s.RunID = strings.ToLower(rand.Text()[:6])
		}
		if s.Candidate != nil {
			s.admission = s.Candidate.Describe().Admission
		}
	}
	setup, declarations = inTurn[0], nil
	if !reporting {
		reporting = true
		ginkgo.ReportAfterEach(judge)
	}
}

// reporting is set while judge stands in Ginkgo's tree. ginkgo.PreviewSpecs drops the nodes outside of containers.
var reporting bool

// running is the state of the check that runs in this process; Ginkgo runs one at a time.
type running struct {
	result    Result
	unknown   string // set when the environment failed
	transient bool   // what set unknown may pass
	unjudged  bool   // set when the check ends as not judged, and not as not applicable
	ctx       context.Context
	deciding  []spec.ID // what the demands that are being made are about, see Deciding
	met       []spec.ID // what demands were about that have been met
	unmet     *unmet    // what the check fails with if it fails with nothing else
	cp        *ControlPlane
	declared  *Declaration
	// unmetUses are the features that the unmet cases of a demand use, one list for each kind of case.
	unmetUses [][]string
	// seen are the cases of an unmet demand.
	seen []CaseSeen
	// shots are kept of a check with a timeline.
	shots *recorder
	// shortOfMemory says how short of memory the machine was while the body of a check of traffic ran; empty if it was not.
	shortOfMemory string
}

var current *running

// run is the body of every Ginkgo spec: it arranges a control plane, runs the check and cleans up.
func run(node ginkgo.SpecContext, d *Declaration, cidr string, body any) {
	if ended() {
		ginkgo.Skip("the run has ended") // it gives no result: current is nil
	}
	ctx, end := endingWithRun(node)
	defer end()
	current = &running{declared: d, ctx: ctx, result: Result{
		Suite: d.Suite, Check: d.Name, ServiceCIDR: cidr, Requirements: d.Requirements, Location: d.Location,
		TimeoutSeconds: d.Timeout.Seconds(),
	}}
	emit(Event{Check: d.Name, ServiceCIDR: cidr, Time: time.Now()})
	what := setup.Candidate.Describe()
	if reason := inapplicable(&what, d); reason != "" {
		DoesNotBind("%s", reason)
	}
	needClaimed(d.claiming)
	needed(&what, d)
	if d.Slow && !setup.Slow {
		LeaveUnjudged(BySlow, "it takes minutes on a real server")
	}
	request := candidate.Request{
		DualStack: d.dualStack, SingleStack: slices.Contains(d.needs, spec.SingleStack), NodePorts: d.nodePorts, Exclusive: d.exclusive,
		OwnServer: slices.Contains(d.needs, spec.RestartControlPlane) || slices.Contains(d.needs, spec.SeveralAPIServers), ServiceCIDRController: slices.Contains(d.needs, spec.ServiceCIDRController),
	}
	if cidr != "" {
		ranges, err := spec.ParseServiceCIDRs(cidr)
		if err != nil {
			Abort("service CIDR: %v", err)
		}
		request.ServiceCIDRs = ranges
	}
	lease, plane, err := acquire(ctx, d, request)
	ctx, cancel := context.WithTimeoutCause(ctx, d.Timeout, errTimedOut)
	defer cancel()
	current.ctx = ctx
	switch {
	case candidate.IsUnavailable(err):
		cannot(err)
	case err != nil:
		Must(fmt.Errorf("no control plane: %w", err))
	}
	released := false
	release := func() {
		if !released {
			released = true
			lease.Release()
		}
	}
	ginkgo.DeferCleanup(release)
	ginkgo.DeferCleanup(aliveStill, lease)
	cp, err := newControlPlane(lease, d, cidr, &what)
	if err == nil {
		current.cp = cp
		ginkgo.DeferCleanup(cp.clean, ginkgo.NodeTimeout(cleanTimeout))
		if lender, ok := plane.(candidate.NamespaceLender); ok && lender.LentNamespace() != "" {
			cp.live(lender.LentNamespace())
		} else {
			_, err = cp.namespace(ctx)
		}
	}
	if err == nil && d.exclusive {
		err = cp.removeStrays(ctx)
	}
	if err != nil {
		Must(fmt.Errorf("control plane at %s: %w", lease.Access().URL, err))
	}
	if d.Traffic {
		net := newNetwork(cp, plane, what)
		net.ownNodes = d.nodesOfItsOwn()
		if d.timeline {
			net.shots = newRecorder(net.virtual)
			current.shots = net.shots
		}
		defer current.noteShortage(meterMemory())
		body.(TrafficBody)(ctx, net)
	} else {
		body.(Body)(ctx, cp)
	}
	current.failLate()
}

// ended reports whether the run has.
func ended() bool { return setup.Context != nil && setup.Context.Err() != nil }

// errRunEnded is why the context of a check ended that the end of the run cut off.
var errRunEnded = errors.New("the run has ended")

// errTimedOut is why the context of a check ended that had its lease for longer than its timeout.
var errTimedOut = errors.New("the check has timed out")

// endingWithRun is a context of a check that ends with the run, too. Cleaning up has other contexts.
func endingWithRun(node context.Context) (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(node)
	if setup.Context == nil {
		return ctx, func() { cancel(nil) }
	}
	stop := context.AfterFunc(setup.Context, func() { cancel(errRunEnded) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// aliveStill makes the check unknown, whatever it found, if a program that it rests on ended meanwhile. A proxy that is
// not there breaks no sentence about Services.
func aliveStill(ctx ginkgo.SpecContext, lease candidate.ControlPlane) {
	l, ok := lease.(candidate.Living)
	if !ok {
		return
	}
	if err := l.Alive(context.WithoutCancel(ctx)); err != nil && current != nil {
		current.unknown = err.Error()
		ginkgo.Fail("unknown: " + current.unknown)
	}
}

// acquire leases what the check needs: a data plane, which is a control plane too, or a control plane.
func acquire(ctx context.Context, d *Declaration, request candidate.Request) (candidate.ControlPlane, candidate.DataPlane, error) {
	if d.Traffic {
		plane, err := setup.Candidate.DataPlane(ctx, candidate.DataPlaneRequest{DualStack: d.dualStack, LendNamespace: d.sharesNamespace(), OwnNodes: d.nodesOfItsOwn()})
		return plane, plane, err
	}
	cp, err := setup.Candidate.ControlPlane(ctx, request)
	return cp, nil, err
}

// cleanTimeout bounds the removal of what a check created. A check may fill a /20, and a slow server deletes five Services a second.
const cleanTimeout = 15 * time.Minute

// inapplicable says why the check does not bind the candidate; empty if it does.
func inapplicable(what *candidate.Description, d *Declaration) string {
	for _, v := range d.versions {
		admits, err := spec.ParseVersions(v)
		if err == nil && !admits(what.Version) {
			return fmt.Sprintf("applies to Kubernetes %s, not to %s", v, what.Version)
		}
	}
	for _, id := range d.Requirements {
		r := spec.Default().Get(id)
		switch {
		case refusedFeature(r.Feature) != "":
			return fmt.Sprintf("the admission of this candidate refuses the feature %s: %s", r.Feature, refusedFeature(r.Feature))
		case !claimed(r.Feature):
			return fmt.Sprintf("feature %s is not claimed", r.Feature)
		case setup.Profiles != nil && !slices.Contains(setup.Profiles, r.Profile):
			return fmt.Sprintf("profile %s is not claimed", r.Profile)
		}
	}
	return ""
}

// Abort ends the check with the verdict unknown: the environment or the prober failed, nothing is said about the candidate.
func Abort(format string, args ...any) {
	ginkgo.GinkgoHelper()
	reason := fmt.Sprintf(format, args...)
	if current != nil && current.unknown == "" {
		current.unknown = reason
	}
	ginkgo.Fail("unknown: " + reason)
}

// Must aborts the check if err is set: for the arrangements of a check, which say nothing about the candidate.
func Must(err error) {
	ginkgo.GinkgoHelper()
	if err == nil {
		return
	}
	if current != nil && Transient(err) {
		current.transient = true
	}
	Abort("%v", err)
}

// Deciding makes demands that are about some of the check's requirements only. If one is not met, those are violated; the
// requirements of earlier demands are met, those of later ones undecided. A check that decides several requirements by one
// costly observation uses it, so that a red verdict names what is wrong and nothing else. Demands outside of it are about all
// requirements of the check. Not for use in Concurrently.
func Deciding(demands func(), ids ...spec.ID) {
	ginkgo.GinkgoHelper()
	if current == nil {
		demands()
		return
	}
	outer := current.deciding
	current.deciding = ids
	demands() // a demand that is not met does not return
	current.deciding, current.met = outer, append(current.met, ids...)
}

// unmet is a demand that was not met, and which requirements it is about.
type unmet struct {
	message string
	ids     []spec.ID
}

// failLater has the check go on though a demand was not met: it is about requirements that Aside has bound, and the others are still to be decided.
func failLater(message string, ids ...spec.ID) {
	ginkgo.GinkgoHelper()
	if current == nil {
		ginkgo.Fail(message)
	}
	if current.unmet == nil {
		current.unmet = &unmet{message, ids}
	}
}

// failLate fails a check that has met all other demands.
func (r *running) failLate() {
	if r.unmet == nil {
		return
	}
	r.deciding, r.met = r.unmet.ids, r.declared.Requirements
	ginkgo.Fail(r.unmet.message)
}

// Record adds an observation to the evidence of the running check.
func Record(name, format string, args ...any) {
	if current != nil {
		current.result.Evidence = append(current.result.Evidence, Evidence{Name: name, Value: fmt.Sprintf(format, args...)})
	}
}

func emit(e Event) {
	if setup.Sink != nil {
		setup.Sink(e)
	}
}

// judge turns Ginkgo's report of a spec into the check's result.
func judge(report ginkgo.SpecReport) {
	if current == nil { // a check that never started: interrupted before
		return
	}
	r := &current.result
	r.Seconds = report.RunTime.Seconds()
	switch {
	case report.State == types.SpecStatePassed:
		r.Verdict = Conformant
	case report.State == types.SpecStateSkipped:
		r.Verdict, r.Reason = NotApplicable, report.Failure.Message
		if current.unjudged {
			r.Verdict = NotJudged
		}
	case interrupted(report.State):
		r.Verdict, r.Reason = Unknown, Interrupted
	case current.unknown != "":
		r.Verdict, r.Reason = Unknown, current.unknown
	case report.State == types.SpecStateTimedout || errors.Is(context.Cause(current.ctx), errTimedOut): // what it says after that, it saw too late
		r.Verdict, r.Reason = Unknown, fmt.Sprintf("timed out after %s", current.declared.Timeout)
		current.transient = true
	case report.State == types.SpecStatePanicked:
		r.Verdict, r.Reason = Unknown, fmt.Sprintf("the check itself panicked: %s (%s)", report.Failure.ForwardedPanic, location(report.Failure.Location))
	case report.Failure.FailureNodeType != types.NodeTypeIt:
		r.Verdict, r.Reason = Unknown, "cleaning up failed: "+plainMessage(report.Failure.Message)
	case current.shortOfMemory != "":
		r.Verdict, r.Reason = Unknown, current.shortOfMemory
		current.transient = true
		r.Evidence = append(r.Evidence, Evidence{Name: "not met", Value: plainMessage(report.Failure.Message)})
	default:
		r.Verdict = NonConformant
		r.Failure = &Failure{Message: plainMessage(report.Failure.Message), Location: location(report.Failure.Location)}
		r.Failure.Violated, r.Failure.Uses, r.Failure.Cases = current.deciding, current.unmetUses, current.seen
		if aside := current.declared.aside; len(current.deciding) == 0 && len(aside) > 0 {
			r.Failure.Undecided = aside
			r.Failure.Violated = slices.DeleteFunc(slices.Clone(r.Requirements), func(id spec.ID) bool { return slices.Contains(aside, id) })
		}
		if len(current.deciding) > 0 {
			r.Failure.Undecided = slices.DeleteFunc(slices.Clone(r.Requirements), func(id spec.ID) bool {
				return slices.Contains(current.deciding, id) || slices.Contains(current.met, id)
			})
		}
		if current.cp != nil {
			r.Failure.Reproduce = current.cp.journal.commands()
		}
	}
	if t, shots := current.shots.timeline(); t != nil && r.Verdict != NotApplicable && r.Verdict != NotJudged {
		r.Evidence = append(r.Evidence, Evidence{Name: "who answered whom", Value: t.words(shots), Timeline: t})
	}
	if setup.Requests > 0 && current.cp != nil {
		r.Requests = current.cp.journal.commands()
	}
	emit(Event{Check: r.Check, ServiceCIDR: r.ServiceCIDR, Time: time.Now(), Result: r, Transient: r.Verdict == Unknown && r.Reason != Interrupted && current.transient})
	current = nil
}

// Interrupted is the reason of a verdict that an interruption left unknown.
const Interrupted = "interrupted"

// interrupted reports whether the check ended because the run was interrupted: whatever it says then, it saw that and no more.
func interrupted(state types.SpecState) bool {
	if state.Is(types.SpecStateInterrupted | types.SpecStateAborted) {
		return true
	}
	// A check that notices first that its context has ended fails by itself; Ginkgo gives the cause as text only.
	cause := context.Cause(current.ctx)
	return state != types.SpecStatePassed && cause != nil && (errors.Is(cause, errRunEnded) || strings.HasPrefix(cause.Error(), "Interrupted by"))
}

// location shortens a code location to the path inside the project.
func location(l types.CodeLocation) string {
	dir, file := filepath.Split(l.FileName)
	return fmt.Sprintf("%s/%s:%d", filepath.Base(dir), file, l.LineNumber)
}

// Concurrently runs f(0) … f(n-1), each in a goroutine of its own, and returns when all are done. A demand that is not
// met in one of them fails the check.
func Concurrently(n int, f func(i int)) {
	done := make(chan struct{})
	for i := range n {
		go func() {
			defer func() { done <- struct{}{} }()
			defer ginkgo.GinkgoRecover()
			f(i)
		}()
	}
	for range n {
		<-done
	}
}

// Converge polls until demand holds (it uses the Gomega it is given), and records how long that took under the name
// what. It fails the check with the last unmet demand if it does not hold within the bound, times the candidate's
// patience. Time in which this program did not run does not count. Where the API server gave up reads meanwhile, the
// check is unknown instead: the bound may have passed before the demand was looked at.
func Converge(ctx context.Context, what string, within time.Duration, demand func(g gomega.Gomega)) {
	ginkgo.GinkgoHelper()
	if unmet := converge(ctx, what, within, nil, demand); unmet != "" {
		ginkgo.Fail(unmet)
	}
}

// converge says what is not met in the end; empty if the demand is met. If it is not met within the bound, more, if not nil, says how much longer it may take.
func converge(ctx context.Context, what string, within time.Duration, more func() time.Duration, demand func(g gomega.Gomega)) (unmet string) {
	ginkgo.GinkgoHelper()
	within = bounded(patiently(within))
	bound, left, polling := within, within, patiently(pollInterval)
	if onVirtualClock() { // nothing happens by itself there: a demand that waits lets time pass
		bound, left, polling = min(within, virtualBound), min(within, eagerFor), virtualPolling
	}
	watch := startStopwatch()
	defer watch.stop()
	givenUp, meter := readsGivenUp.Load(), meterMemory()
	g := gomega.NewGomega(func(message string, _ ...int) { unmet = message })
	for !g.Eventually(ctx, demand).WithTimeout(left).WithPolling(polling).Should(gomega.Succeed(), "%s within %s", what, within) {
		polling = max(polling, reluctantPolling)
		if left = bound - watch.elapsed(); left <= 0 || ctx.Err() != nil {
			if n := readsGivenUp.Load() - givenUp; n > 0 {
				Abort("reads that the API server gave up meanwhile: %d; %s", n, plainMessage(unmet))
			}
			if more != nil && ctx.Err() == nil {
				left, more = more(), nil
				bound = watch.elapsed() + left
			}
			if left <= 0 {
				if short := meter.shortage(); short != "" && !onVirtualClock() {
					Abort("%s; %s", short, plainMessage(unmet))
				}
				return unmet
			}
		}
	}
	if current != nil {
		current.result.Convergence = append(current.result.Convergence, Convergence{What: what, Seconds: watch.elapsed().Seconds()})
	}
	return ""
}

const pollInterval = 20 * time.Millisecond

// The same for candidates whose clock is virtual, in the time of this machine.
const (
	virtualBound   = 2 * time.Second
	virtualPolling = 200 * time.Microsecond
	// Nearly all that comes to hold there holds within eagerFor. What does not leaves the processors to others.
	eagerFor         = 100 * time.Millisecond
	reluctantPolling = 5 * time.Millisecond
)

// patiently is a bound on the time that a candidate may take, for this one.
func patiently(bound time.Duration) time.Duration {
	if setup.Candidate == nil {
		return bound
	}
	return bound * time.Duration(max(1, setup.Candidate.Describe().Patience))
}

// bounded is a bound on the time that a candidate may take, or the shorter one that the run sets.
func bounded(within time.Duration) time.Duration {
	if setup.MaxWait > 0 {
		return min(within, setup.MaxWait)
	}
	return within
}

func onVirtualClock() bool {
	if setup.Candidate == nil {
		return false
	}
	what := setup.Candidate.Describe()
	return what.Has(spec.VirtualClock)
}

// BuildVersion is the version of the module that this program was built from.
func BuildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
