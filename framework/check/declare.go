// Package check is how a check is declared and judged. It binds executable code to requirements of the specification,
// and gives it a control plane. It turns what happens into a verdict with evidence.
package check

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/spec"
)

// DefaultTimeout bounds a check that does not set its own. A check that runs into it is unknown.
const DefaultTimeout = 60 * time.Second

// DefaultTrafficTimeout is DefaultTimeout for checks that send traffic: more than what the convergence of several changes may take.
const DefaultTrafficTimeout = 3 * time.Minute

// Declaration is what is known of a check before it runs.
type Declaration struct {
	Suite        string        `json:"suite"`
	Name         string        `json:"name"`
	Requirements []spec.ID     `json:"requirements"`
	ServiceCIDRs []string      `json:"serviceCIDRs,omitempty"`
	Slow         bool          `json:"slow,omitempty"`
	Location     string        `json:"location"`
	Timeout      time.Duration `json:"-"`
	Runs         int           `json:"-"` // how often the configured run runs it: once per range, 0 if it is not selected

	// OtherRanges is set when the configured run leaves the check out, because it is about other ranges than those that were asked for.
	OtherRanges bool `json:"-"`

	Traffic bool `json:"traffic,omitempty"` // it sends traffic, and so needs a data plane

	alone       bool
	aloneUnless spec.Capability // alone where the candidate does not offer it
	long        bool
	needs       []spec.Capability
	claiming    []string
	aside       []spec.ID // of the requirements, those that Aside has bound
	versions    []string
	exclusive   bool
	dualStack   bool
	ownNodes    int // as said; see nodesOfItsOwn
	fixedRange  bool
	nodePorts   string
	timeline    bool
}

// Alike is the same text for checks that cost about as much: time on the nodes, a control plane of their own, or little.
func (d *Declaration) Alike() string {
	return fmt.Sprintf("%s traffic=%t slow=%t long=%t alone=%t exclusive=%t", d.Suite, d.Traffic, d.Slow, d.long, d.alone, d.exclusive)
}

// sharesNamespace reports whether the check may run in a namespace in which earlier checks have run. Resolvers remember names that were there before, and kubelets give
// pods the Services of their namespace.
func (d *Declaration) sharesNamespace() bool {
	return d.Traffic && !slices.Contains(d.needs, spec.ClusterDNS) && !slices.Contains(d.needs, spec.Kubelet)
}

// Option refines a declaration.
type Option func(*Declaration)

// Body is the code of a check. The context ends at the check's timeout and on interruption.
type Body = func(ctx context.Context, cp *ControlPlane)

// TrafficBody is the code of a check that sends traffic. It needs a data plane.
type TrafficBody = func(ctx context.Context, net *Network)

// OnEachServiceCIDR runs the check once for each range, each on a control plane that has this range. The body computes its
// demands from cp.CIDR(), so the ranges may be replaced (--service-cidr). Two ranges joined by a comma are dual stack.
func OnEachServiceCIDR(cidrs ...string) Option {
	return func(d *Declaration) { d.ServiceCIDRs = append(d.ServiceCIDRs, cidrs...) }
}

// OnServiceCIDR runs the check on exactly this range, whose numbers the document states. --service-cidr does not replace it.
func OnServiceCIDR(cidr string) Option {
	return func(d *Declaration) { d.ServiceCIDRs, d.fixedRange = append(d.ServiceCIDRs, cidr), true }
}

// DualStack runs the check on a control plane with ranges of both families.
func DualStack() Option {
	return func(d *Declaration) { d.dualStack = true; d.needs = append(d.needs, spec.DualStack) }
}

// SingleStack runs the check on a control plane with a range of one family only.
func SingleStack() Option {
	return func(d *Declaration) { d.needs = append(d.needs, spec.SingleStack) }
}

// Exclusive gives the check a control plane of its own, whose range holds nothing but the "kubernetes" Service. For checks
// that fill a range, count its addresses or observe the order in which they are handed out.
func Exclusive() Option {
	return func(d *Declaration) {
		d.exclusive = true
		d.needs = append(d.needs, spec.ExhaustibleRange)
	}
}

// NodePorts asks for a control plane with this node-port range ("30000-30063"), exclusively.
func NodePorts(r string) Option {
	return func(d *Declaration) { d.nodePorts = r; Exclusive()(d) }
}

// Needs adds capabilities to those that the requirements name.
func Needs(cs ...spec.Capability) Option {
	return func(d *Declaration) { d.needs = append(d.needs, cs...) }
}

// Versions restricts the check to Kubernetes versions (spec.ParseVersions), beyond what its requirements say.
func Versions(constraint string) Option {
	return func(d *Declaration) { d.versions = append(d.versions, constraint) }
}

// Also binds the check to further requirements.
func Also(ids ...spec.ID) Option {
	return func(d *Declaration) { d.Requirements = append(d.Requirements, ids...) }
}

// Aside binds the check to further requirements, which only demands inside of Deciding are about: a failure of any other leaves them undecided.
func Aside(ids ...spec.ID) Option {
	return func(d *Declaration) {
		d.Requirements = append(d.Requirements, ids...)
		d.aside = append(d.aside, ids...)
	}
}

// Slow leaves the check undecided, as not applicable, unless the run asks for slow checks.
func Slow() Option { return func(d *Declaration) { d.Slow = true } }

// Alone runs the check while no other one runs. A busy machine cannot tell a second of waiting from a second of work.
// Such checks come last; let them be short.
func Alone() Option { return func(d *Declaration) { d.alone = true } }

// AloneUnless is Alone where the candidate does not offer the capability: there the check does to what all share what it would do to something of its own.
func AloneUnless(c spec.Capability) Option { return func(d *Declaration) { d.aloneUnless = c } }

// OwnNodes says how many nodes the check adds at most. One that needs spec.OwnNodes or spec.ProxyConfiguration adds one if it does not say.
func OwnNodes(n int) Option { return func(d *Declaration) { d.ownNodes = n } }

// Long lets the check begin before others, with those that stand in the same container. It waits for seconds that
// others can use, and would delay the end of the run.
func Long() Option { return func(d *Declaration) { d.long = true } }

// Timeout replaces DefaultTimeout.
func Timeout(t time.Duration) Option { return func(d *Declaration) { d.Timeout = t } }

var (
	// inTurn are the runs of this process, one after another. setup is that of the one whose checks run, or are being declared.
	inTurn       = make([]Setup, 1)
	setup        = Setup{}
	declarations []Declaration
)

// Declarations returns every check that has been declared, selected or not, in order of declaration. Checks are declared
// while Ginkgo builds its tree: call it after Preview or Run.
func Declarations() []Declaration { return slices.Clone(declarations) }

// Preview declares all checks without running any.
func Preview() []Declaration {
	declarations = nil
	ginkgo.PreviewSpecs("preview")
	reporting = false
	return Declarations()
}

// It declares a check of a requirement. text completes the sentence of its container, and is unique there. args are
// Options and, last, a Body or a TrafficBody. Call it inside a Ginkgo container of a package below suites/, or of
// another package. The directory of that package is then the name of the suite.
func It(id spec.ID, text string, args ...any) {
	ginkgo.GinkgoHelper()
	d := Declaration{Requirements: []spec.ID{id}, Timeout: DefaultTimeout}
	var body any
	for _, a := range args {
		switch a := a.(type) {
		case Option:
			a(&d)
		case Body:
			body = a
		case TrafficBody:
			body, d.Traffic = a, true
			d.needs = append(d.needs, spec.DataPlane)
			if d.Timeout == DefaultTimeout {
				d.Timeout = DefaultTrafficTimeout
			}
		default:
			panic(fmt.Sprintf("check %q: argument of type %T is neither an option nor a body", text, a))
		}
	}
	if body == nil {
		panic(fmt.Sprintf("check %q has no body", text))
	}
	caller := make([]uintptr, 1)
	runtime.Callers(2, caller)
	frame, _ := runtime.CallersFrames(caller).Next()
	d.Suite, d.Location = placed(&frame)
	d.Name = string(id) + ": " + text
	for _, id := range d.Requirements {
		r := spec.Default().Get(id)
		if r == nil {
			panic(fmt.Sprintf("check %q: requirement %q is not in the catalogue: run go generate ./framework/spec", text, id))
		}
		d.needs = append(d.needs, r.Needs...)
		d.versions = append(d.versions, r.Versions)
	}
	if setup.Candidate != nil {
		what := setup.Candidate.Describe()
		d.Timeout *= time.Duration(max(1, what.Patience))
	}
	declarations = append(declarations, d)
	declared := &declarations[len(declarations)-1]
	for i := range inTurn {
		setup = inTurn[i]
		d.declare(i, body, declared)
	}
	setup = inTurn[0]
}

// declare makes the specs of the check that the run of this turn selects. It notes in declared what becomes of it there.
func (d Declaration) declare(turn int, body any, declared *Declaration) {
	if setup.Select != nil && !setup.Select(d) {
		return
	}
	cidrs := d.ServiceCIDRs
	if len(setup.ServiceCIDRs) > 0 && !d.fixedRange && (len(cidrs) > 0 || d.exclusive) && !d.dualStack {
		cidrs = setup.ServiceCIDRs
	}
	if setup.OnlyServiceCIDRs && len(cidrs) > 0 {
		if cidrs = slices.DeleteFunc(slices.Clone(cidrs), func(c string) bool { return !slices.Contains(setup.ServiceCIDRs, c) }); len(cidrs) == 0 {
			declared.OtherRanges = true
			return
		}
	}
	if len(cidrs) == 0 {
		cidrs = []string{""}
	}
	if setup.SelectRange != nil {
		cidrs = slices.DeleteFunc(slices.Clone(cidrs), func(c string) bool { return !setup.SelectRange(d, c) })
	}
	labels := ginkgo.Label(d.Suite)
	for _, id := range d.Requirements {
		labels = append(labels, string(id))
	}
	declared.Runs += len(cidrs)
	for _, cidr := range cidrs {
		full := DisplayName(d.Name, cidr)
		decorators := []any{labels, ginkgo.NodeTimeout(leaseTimeout + d.Timeout)}
		if d.alone || d.hasShared(cidr) || d.aloneHere() {
			decorators = append(decorators, ginkgo.Serial)
		}
		switch {
		case len(inTurn) > 1:
			decorators = append(decorators, ginkgo.SpecPriority(-turn))
		case d.Traffic && slices.Contains(setup.ExpectedToFail, d.Name):
			decorators = append(decorators, ginkgo.SpecPriority(2))
		case d.long:
			decorators = append(decorators, ginkgo.SpecPriority(1))
		}
		ginkgo.It(full, append(decorators, func(ctx ginkgo.SpecContext) {
			setup = inTurn[turn]
			run(ctx, &d, cidr, body)
		})...)
	}
}

// Sharing says what a check needs of a cluster with one Service range, if several clusters of different ranges share the work.
type Sharing string

// What a check needs.
const (
	// AnyCluster will do: the check names no range, or a control plane is started for it.
	AnyCluster Sharing = "any"
	// WithNodes is one that sends traffic, which takes nodes and time.
	WithNodes Sharing = "nodes"
	// BothFamilies are needed: a cluster with Service ranges of IPv4 and IPv6.
	BothFamilies Sharing = "both"
	// OwnRange is what the check is about.
	OwnRange Sharing = "own"
	// OtherServer is a control plane beside that of the cluster: with another range, or one that may end.
	OtherServer Sharing = "other"
)

// SharingOn is what the check needs where it is run on a range, "" being that of a check without, of a cluster whose range is own.
func (d *Declaration) SharingOn(serviceCIDR, own string) Sharing {
	switch {
	case d.nodePorts != "" || !d.Traffic && (slices.Contains(d.needs, spec.RestartControlPlane) || slices.Contains(d.needs, spec.SeveralAPIServers)) || serviceCIDR != "" && serviceCIDR != own:
		return OtherServer
	case serviceCIDR != "":
		return OwnRange
	case slices.Contains(d.needs, spec.DualStack):
		return BothFamilies
	case d.Traffic:
		return WithNodes
	}
	return AnyCluster
}

// hasShared reports whether the check has for itself what all others share. Then it runs while no other one does.
func (d *Declaration) hasShared(cidr string) bool {
	if !d.exclusive || setup.Candidate == nil || slices.Contains(d.needs, spec.RestartControlPlane) || slices.Contains(d.needs, spec.SeveralAPIServers) {
		return false
	}
	what := setup.Candidate.Describe()
	return what.Shared.Meant(cidr, d.nodePorts)
}

// nodesOfItsOwn is how many nodes the check may add.
func (d *Declaration) nodesOfItsOwn() int {
	if slices.Contains(d.needs, spec.OwnNodes) || slices.Contains(d.needs, spec.ProxyConfiguration) || d.aloneUnless == spec.OwnNodes {
		return max(1, d.ownNodes)
	}
	return d.ownNodes
}

// aloneHere reports whether the check has nothing of its own to work on (AloneUnless).
func (d *Declaration) aloneHere() bool {
	if d.aloneUnless == "" || setup.Candidate == nil {
		return false
	}
	what := setup.Candidate.Describe()
	return !what.Has(d.aloneUnless)
}

// module is the path of the module that this package is of, with a slash.
var module = strings.TrimSuffix(reflect.TypeFor[Declaration]().PkgPath(), "framework/check")

// placed returns the suite of a check that stands in a function, and its file:line. The file is told by its package, without
// the module of this program: "suites/proxy/affinity.go:141".
func placed(in *runtime.Frame) (suite, location string) {
	// A function's name is that of its package, a dot and the rest, which has no slash.
	slash := strings.LastIndex(in.Function, "/") + 1
	name, _, _ := strings.Cut(in.Function[slash:], ".")
	pkg := strings.TrimPrefix(in.Function[:slash]+name, module)
	return filepath.Base(filepath.Dir(in.File)), fmt.Sprintf("%s/%s:%d", pkg, filepath.Base(in.File), in.Line)
}

// leaseTimeout bounds how long a check waits for what it leases, before its own time begins: another check may have it for itself.
const leaseTimeout = 30 * time.Minute

// seeded returns a source of random numbers that depends only on the run's seed and the text.
func seeded(text string) *rand.Rand {
	hash := fnv.New64a()
	hash.Write([]byte(text))
	return rand.New(rand.NewPCG(uint64(ginkgo.GinkgoRandomSeed()), hash.Sum64()))
}

func userAgent(name string) string {
	version := setup.Version
	if version == "" {
		version = "devel"
	}
	name, _, _ = strings.Cut(name, ":")
	return "service-conformance/" + version + " (" + name + ")"
}
