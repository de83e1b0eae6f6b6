// Package candidate holds the interfaces of what is under test. The tiers implement them; the suites see
// nothing else, so a check cannot know on which tier it runs: it asks for a capability.
package candidate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/spec"
)

// Candidate is an implementation of Services under test. All methods are safe for concurrent use.
type Candidate interface {
	// Describe says what is under test. It is cheap and may be called before any control plane exists.
	Describe() Description
	// ControlPlane returns a control plane as asked for, starting one where that is needed and possible. It blocks
	// while an exclusive lease that conflicts is held. An *UnavailableError means that this candidate cannot offer such
	// a control plane. The check is then not judged. Any other error means that the environment failed. The check
	// is then unknown.
	ControlPlane(ctx context.Context, request Request) (ControlPlane, error)
	// DataPlane returns nodes and pods, and the control plane that they belong to. It needs the capability data-plane;
	// the errors are those of ControlPlane.
	DataPlane(ctx context.Context, request DataPlaneRequest) (DataPlane, error)
	// Close stops and removes everything that the candidate started.
	Close(ctx context.Context) error
}

// Description identifies a candidate in reports.
type Description struct {
	// Implementation is the name of the control plane that expectations are looked up by, for example "reference" or "kubernetes".
	Implementation string `json:"implementation"`
	// Version is the Kubernetes version that it implements, for example "v1.37.1"; empty if unknown.
	Version string `json:"version"`
	// DataPlane is the service proxy, by which expectations about traffic are looked up, for example "kube-proxy"; without a name where it is not known.
	DataPlane Implementation `json:"dataPlane,omitzero"`
	// Tier is where it runs: reference, lab, kind or cluster. For reports only.
	Tier string `json:"tier"`
	// Capabilities are what checks may ask for.
	Capabilities []spec.Capability `json:"capabilities"`
	// Declarations say what the implementation does where the specification leaves room, see spec.Declarables.
	Declarations map[spec.Declarable]string `json:"declarations,omitempty"`
	// Careful says that others use the candidate, and could feel what goes beyond pods and ordinary Services. No
	// request may have it make load balancers, which cost something.
	Careful bool `json:"careful,omitempty"`
	// Patience is the timeout factor: how many times longer than on the lab things may take here. Emulated machines and
	// busy nodes need it; 0 is 1.
	Patience int `json:"patience,omitempty"`
	// ProxyMode is the mode of kube-proxy on the shared nodes (ProxyModes), where it is kube-proxy and can be seen.
	ProxyMode string `json:"proxyMode,omitempty"`
	// FurtherServiceCIDRs are ranges that addresses come from as well, beside those of the control planes: somebody has extended the cluster by ServiceCIDR objects.
	FurtherServiceCIDRs []string `json:"furtherServiceCIDRs,omitempty"`
	// Admission is set where the operators may have configured what the API server admits. A run asks it before it
	// begins (check.FindAdmission), and puts here what it found. nil means that Services are stored as they are sent.
	Admission *Admission `json:"admission,omitempty"`
	// Shared is what all checks share that ask for no range of their own, and that one of them may have for itself while no other check runs: the ranges of a cluster.
	Shared *SharedRanges `json:"shared,omitempty"`
	// Nobody are addresses of the candidate's own networks that nobody has, at most one of each family, for what is to stay with the candidate. Without one, checks take
	// addresses for documentation.
	Nobody []netip.Addr `json:"nobody,omitempty"`
	// Witnesses says that every node has the addresses Witness itself, and refuses connections to them.
	Witnesses bool `json:"witnesses,omitempty"`
	// Surroundings are what the network around the nodes does with addresses that nobody has, where a run has asked it (check.FindSurroundings).
	Surroundings []Surrounding `json:"surroundings,omitempty"`
	// Components are further versions worth recording ("etcd": "3.6.5", "go": "1.26.8").
	Components map[string]string `json:"components,omitempty"`
	// Faults are the deliberate bugs that are switched on.
	Faults []string `json:"faults,omitempty"`
}

// SharedRanges are the ranges of a cluster whose API server is the only one.
type SharedRanges struct {
	// ServiceCIDRs is its Service range, or two joined by a comma.
	ServiceCIDRs string `json:"serviceCIDRs"`
	// NodePorts is its node-port range ("first-last").
	NodePorts string `json:"nodePorts"`
}

// Meant reports whether a check that has these ranges for itself has those that are shared; empty ranges are any.
func (s *SharedRanges) Meant(serviceCIDRs, nodePorts string) bool {
	return s != nil && (serviceCIDRs == "" || serviceCIDRs == s.ServiceCIDRs) && (nodePorts == "" || nodePorts == s.NodePorts)
}

// Implementation is a part of a candidate that somebody publishes by itself.
type Implementation struct {
	Name string `json:"name"`
	// Version is its own, for example "v1.37.1" or "1.20.2"; empty if unknown.
	Version string `json:"version,omitempty"`
}

func (i Implementation) String() string {
	if i.Version == "" {
		return i.Name
	}
	return i.Name + " " + i.Version
}

// Has reports whether the candidate offers the capability.
func (d *Description) Has(c spec.Capability) bool { return slices.Contains(d.Capabilities, c) }

// Request says which control plane a check needs.
type Request struct {
	// ServiceCIDRs is one range, or two of different families with the primary first. Empty asks for any control plane.
	ServiceCIDRs []netip.Prefix `json:"serviceCIDRs,omitempty"`
	// DualStack asks, when no range is named, for ranges of both families.
	DualStack bool `json:"dualStack,omitempty"`
	// SingleStack asks, when no range is named, for a range of one family.
	SingleStack bool `json:"singleStack,omitempty"`
	// NodePorts asks for a node-port range of its own ("first-last"); empty asks for spec.DefaultNodePorts.
	NodePorts string `json:"nodePorts,omitempty"`
	// Exclusive asks that nobody else uses the control plane until it is released, and that its ranges hold
	// nothing but the "kubernetes" Service.
	Exclusive bool `json:"exclusive,omitempty"`
	// OwnServer asks for an API server that the check may end and start, or start others beside (ServerOwner).
	OwnServer bool `json:"ownServer,omitempty"`
	// ServiceCIDRController asks for what holds a ServiceCIDR that is being deleted (capability service-cidr-controller).
	ServiceCIDRController bool `json:"serviceCIDRController,omitempty"`
}

// ControlPlane is an API server with its Service ranges, leased to one check until Release.
type ControlPlane interface {
	// Access says how to reach its API.
	Access() Access
	// ServiceCIDRs are its Service ranges, the primary family first.
	ServiceCIDRs() []netip.Prefix
	// NodePorts is its node-port range, both ends included.
	NodePorts() (first, last int)
	// Release gives the lease back. The caller has removed what it created.
	Release()
}

// Access is how an API server is reached; it can be handed to another process.
type Access struct {
	// URL is the base, for example "https://127.0.0.1:6443".
	URL string `json:"url"`
	// CA is the PEM bundle that verifies the server; empty with plain HTTP or Insecure.
	CA []byte `json:"ca,omitempty"`
	// Token is a bearer token with full rights; empty where none is needed.
	Token string `json:"token,omitempty"`
	// TokenFile, if set, is a file that holds the token of the moment: that of a service account is replaced from time to time.
	TokenFile string `json:"tokenFile,omitempty"`
	// Kubeconfig, if set, is the path of a kubeconfig that is used instead of the other fields.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Insecure skips verification of the server's certificate: only for servers on loopback that the suite started.
	Insecure bool `json:"insecure,omitempty"`
	// Direct, if set, answers requests to URL in this process, without a connection; other processes use the connection.
	Direct http.RoundTripper `json:"-"`
}

// RunLabel marks every object that a run creates in a shared place. Its value tells runs apart; what a tier starts for itself has another one than the
// namespaces of the checks.
const RunLabel = "service-conformance/run"

// SpareLabel marks the nodes of a cluster that are no shared ones: the kube-proxy there is that of the check which has the node.
const SpareLabel = "service-conformance/spare"

// BalancerCleanup is the finalizer by which a Service waits until its load balancer is cleaned up (KEP-980). It belongs
// to the controller that makes load balancers. If anything else removes it, a load balancer is left behind.
const BalancerCleanup = "service.kubernetes.io/load-balancer-cleanup"

// FreeOfChecks takes the finalizers from a Service that checks gave it, which are all but BalancerCleanup, and reports whether there were any.
func FreeOfChecks(svc *corev1.Service) bool {
	all := len(svc.Finalizers)
	svc.Finalizers = slices.DeleteFunc(svc.Finalizers, func(f string) bool { return f != BalancerCleanup })
	return len(svc.Finalizers) < all
}

// UnavailableError says that a candidate cannot offer what a check asks for, and why. The check is then not judged.
type UnavailableError struct {
	Reason string `json:"reason"`
	// JudgedBy is what would decide the check, such as "--tier lab"; empty where nothing is known that would.
	JudgedBy string `json:"judgedBy,omitempty"`
	// NotBound says that the implementation is not bound to offer it, so that the check does not apply.
	NotBound bool `json:"notBound,omitempty"`
}

func (e *UnavailableError) Error() string { return e.Reason }

// Living is what a ControlPlane implements whose programs somebody watches.
type Living interface {
	// Alive returns nil while everything runs that the lease rests on; else it says which program ended by itself, and what it said last.
	Alive(ctx context.Context) error
}

// NotBound makes an *UnavailableError of what the implementation is not bound to offer.
func NotBound(format string, args ...any) error {
	return &UnavailableError{Reason: fmt.Sprintf(format, args...), NotBound: true}
}

// UnavailableHere makes an *UnavailableError of what something else than this run offers, such as "--tier lab".
func UnavailableHere(judgedBy, format string, args ...any) error {
	return &UnavailableError{Reason: fmt.Sprintf(format, args...), JudgedBy: judgedBy}
}

// Unavailable makes an *UnavailableError.
func Unavailable(format string, args ...any) error {
	return &UnavailableError{Reason: fmt.Sprintf(format, args...)}
}

// IsUnavailable reports whether err says that the candidate cannot offer what was asked for.
func IsUnavailable(err error) bool { return AsUnavailable(err) != nil }

// AsUnavailable is what err says of what the candidate cannot offer, with the whole text of err; nil if it says something else.
func AsUnavailable(err error) *UnavailableError {
	var u *UnavailableError
	if !errors.As(err, &u) {
		return nil
	}
	return &UnavailableError{Reason: err.Error(), JudgedBy: u.JudgedBy, NotBound: u.NotBound}
}
