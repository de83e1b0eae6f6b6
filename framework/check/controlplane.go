package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient"
	"github.com/service-conformance/conformance/framework/spec"
)

// ControlPlane is what a check sees of the control plane under test: its ranges, a namespace of its own, and the API.
// The request methods (Create, Get, Patch …) return the server's Response, be it success or refusal. They abort the
// check as unknown when there is no response. All methods are safe for concurrent use.
type ControlPlane struct {
	lease     candidate.ControlPlane
	config    *rest.Config
	http      *http.Client
	client    apiclient.Interface
	base      string
	agent     string
	exclusive bool
	careful   bool
	further   []string // ranges that addresses come from as well
	random    *rand.Rand
	journal   *journal
	server    string        // which of several API servers this is; empty for the first
	serial    *atomic.Int64 // of names
	mu        sync.Mutex
	spaces    []string
	lent      string // that of them which others have had before; empty if none
}

func newControlPlane(lease candidate.ControlPlane, d *Declaration, cidr string, what *candidate.Description) (*ControlPlane, error) {
	config, err := restConfig(lease.Access())
	if err != nil {
		return nil, err
	}
	config.UserAgent = userAgent(d.Name)
	config.QPS, config.Burst = -1, 0 // the server, not the client, sets the pace
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(func(t http.RoundTripper) http.RoundTripper { return reads{t} })
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	cp := &ControlPlane{
		lease: lease, config: config, http: client, base: config.Host, agent: config.UserAgent, exclusive: d.exclusive, careful: what.Careful,
		further: what.FurtherServiceCIDRs, random: seeded(d.Name + cidr),
		journal: &journal{length: setup.Requests}, serial: &atomic.Int64{},
	}
	if cp.client, err = apiclient.NewFor(config, client); err != nil {
		return nil, err
	}
	return cp, nil
}

// CIDR is the primary Service range; it is invalid if the candidate does not know it. A check that asks for a range does not apply where addresses come from further
// ranges as well.
func (cp *ControlPlane) CIDR() netip.Prefix {
	if cidrs := cp.CIDRs(); len(cidrs) > 0 {
		return cidrs[0]
	}
	return netip.Prefix{}
}

// CIDRs are the Service ranges, the primary family first, see CIDR.
func (cp *ControlPlane) CIDRs() []netip.Prefix {
	if len(cp.further) > 0 {
		LeaveUnjudged("a cluster without further ServiceCIDR objects", "it names the Service range, and addresses come from %s as well, of further ServiceCIDR objects", strings.Join(cp.further, ", "))
	}
	return cp.lease.ServiceCIDRs()
}

// CIDROf returns the Service range of a family, see CIDR; it is invalid if there is none.
func (cp *ControlPlane) CIDROf(family corev1.IPFamily) netip.Prefix {
	for _, c := range cp.CIDRs() {
		if c.Addr().Is4() == (family == corev1.IPv4Protocol) {
			return c
		}
	}
	return netip.Prefix{}
}

// PrimaryFamily is the family that the cluster uses by default.
func (cp *ControlPlane) PrimaryFamily() corev1.IPFamily {
	if cidrs := cp.lease.ServiceCIDRs(); len(cidrs) > 0 && cidrs[0].Addr().Is6() {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// OtherFamily is the family that the cluster does not use by default.
func (cp *ControlPlane) OtherFamily() corev1.IPFamily {
	if cp.PrimaryFamily() == corev1.IPv4Protocol {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// NodePorts is the node-port range, both ends included.
func (cp *ControlPlane) NodePorts() (first, last int) { return cp.lease.NodePorts() }

// Has reports whether the candidate offers a capability, for checks that demand more where they can.
func (cp *ControlPlane) Has(c spec.Capability) bool {
	what := setup.Candidate.Describe()
	return what.Has(c)
}

// OfVersion reports whether the candidate is of a version that the constraint admits (spec.ParseVersions), for what is different there.
func (cp *ControlPlane) OfVersion(constraint string) bool {
	what := setup.Candidate.Describe()
	admits, err := spec.ParseVersions(constraint)
	return err == nil && admits(what.Version)
}

// Client is a typed client for objects other than Services. Its requests are not part of the reproduction.
func (cp *ControlPlane) Client() apiclient.Interface { return cp.client }

// Rand is a source of random numbers that depends on the run's seed and the check. It is not safe for concurrent use.
func (cp *ControlPlane) Rand() *rand.Rand { return cp.random }

// Namespace is the namespace of the check.
func (cp *ControlPlane) Namespace() string {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	return cp.spaces[0]
}

// NewNamespace creates a further namespace, removed with the check.
func (cp *ControlPlane) NewNamespace(ctx context.Context) string {
	ginkgo.GinkgoHelper()
	name, err := cp.namespace(ctx)
	Must(err)
	return name
}

// Name returns a name that no other object of the check has.
func (cp *ControlPlane) Name(prefix string) string {
	return fmt.Sprintf("%s-%d", prefix, cp.serial.Add(1))
}

// Restart kills the API server and starts it again on the same storage (capability restart-control-plane), with other ranges if some are named.
func (cp *ControlPlane) Restart(ctx context.Context, serviceCIDRs ...netip.Prefix) {
	ginkgo.GinkgoHelper()
	own, err := candidate.OwnServer(cp.lease)
	if err == nil {
		err = own.Restart(ctx, serviceCIDRs...)
	}
	if candidate.IsUnavailable(err) {
		cannot(err)
	}
	Must(err)
	if t, ok := cp.config.Transport.(*http.Transport); ok {
		t.CloseIdleConnections() // they lead to the server that was killed
	}
}

var namespaceSerial atomic.Int64

// namespacePrefix begins the names of namespaces that the suite makes.
const namespacePrefix = "conformance-"

func (cp *ControlPlane) namespace(ctx context.Context) (string, error) {
	name := fmt.Sprintf(namespacePrefix+"%s-%d-%d", setup.RunID, ginkgo.GinkgoParallelProcess(), namespaceSerial.Add(1))
	if setup.Again != nil { // that of the first attempt may not be gone yet
		name += "-again"
	}
	cp.mu.Lock()
	cp.spaces = append(cp.spaces, name) // before it exists: whatever becomes of the request, clean looks for it
	cp.mu.Unlock()
	// An interruption must not cut the request off: the server could carry it out after clean has been here.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patiently(candidate.InsistTimeout))
	defer cancel()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{candidate.RunLabel: setup.RunID}}}
	if _, err := candidate.Create(ctx, cp.client.CoreV1().Namespaces(), ns); err != nil {
		return "", fmt.Errorf("create namespace %s: %w", name, err)
	}
	return name, nil
}

// live makes a namespace that was lent that of the check: Release gives it back.
func (cp *ControlPlane) live(lent string) {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	cp.spaces, cp.lent = []string{lent}, lent
}

// clean removes what the check created. An interruption does not stop it.
func (cp *ControlPlane) clean(interruptible ginkgo.SpecContext) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(interruptible), cleanTimeout)
	defer cancel()
	err := cp.removeNamespaces(ctx)
	if cp.exclusive {
		disconnect(cp.lease.Access())
	}
	Must(err)
}

// cleanRetries are the pauses before a server that could not be asked is asked again. They sum up to 6 seconds, so that
// a run whose server has gone ends.
var cleanRetries = wait.Backoff{Duration: retryPause, Factor: 2, Steps: 6}

// removeNamespaces removes all that can be removed; what is wrong with one namespace lets no other one stay.
func (cp *ControlPlane) removeNamespaces(ctx context.Context) error {
	var errs []error
	for _, ns := range cp.spaces {
		errs = append(errs, retry.OnError(cleanRetries, func(err error) bool { return ctx.Err() == nil && Transient(err) }, func() error { return cp.removeNamespace(ctx, ns) }))
	}
	return errors.Join(errs...)
}

// removeNamespace removes the Services first, because their addresses and node ports are free only when they are gone.
// Not every control plane has a controller that empties namespaces.
func (cp *ControlPlane) removeNamespace(ctx context.Context, ns string) error {
	err := cp.deleteServices(ctx, ns)
	if err != nil {
		err = fmt.Errorf("delete the Services of namespace %s: %w", ns, err)
	}
	if ns == cp.lent {
		return err
	}
	zero := int64(0)
	deleteErr := cp.client.CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{GracePeriodSeconds: &zero})
	if deleteErr != nil && !apierrors.IsNotFound(deleteErr) && !apierrors.IsConflict(deleteErr) {
		err = errors.Join(err, fmt.Errorf("delete namespace %s: %w", ns, deleteErr))
	}
	return err
}

// Transient reports whether a later try may succeed. There was no response, or the server is busy or out of order.
func Transient(err error) bool {
	status := apierrors.APIStatus(nil)
	return !errors.As(err, &status) || apierrors.IsTooManyRequests(err) || candidate.GaveUp(err)
}

// One request deletes up to deletePage Services, and at least leastDeletePage of them. kube-apiserver cuts off a
// request that takes longer than 34 seconds (requestTimeoutUpperBound in its handlers).
const deletePage, leastDeletePage = 500, 500 / 4 / 4 / 4

// deleteServices deletes all Services of a namespace. It removes finalizers that a failed check has left on them. The
// responses to the deletions name them, which saves a list: a consistent one takes 100 ms. A server that is too slow
// for a page is asked for a smaller one.
func (cp *ControlPlane) deleteServices(ctx context.Context, ns string) error {
	page := deletePage
	for {
		n, err := cp.deletePageOfServices(ctx, ns, page)
		switch {
		case candidate.GaveUp(err) && page > leastDeletePage && ctx.Err() == nil:
			page /= 4
		case err != nil || n != page: // more of them: the server knows no pages
			return err
		}
	}
}

// deletePageOfServices returns how many Services it deleted.
func (cp *ControlPlane) deletePageOfServices(ctx context.Context, ns string, page int) (int, error) {
	result := cp.client.CoreV1().RESTClient().Delete().Namespace(ns).Resource("services").Param("limit", strconv.Itoa(page)).Do(ctx)
	if response, err := result.Raw(); err == nil && !bytes.Contains(response, []byte("finalizers")) {
		var deleted struct{ Items []json.RawMessage } // they need not be decoded further
		err := json.Unmarshal(response, &deleted)
		return len(deleted.Items), err
	}
	var deleted corev1.ServiceList
	if err := result.Into(&deleted); err != nil {
		return 0, err
	}
	held := 0 // by the finalizer of who makes load balancers
	for i := range deleted.Items {
		svc := &deleted.Items[i]
		if slices.Contains(svc.Finalizers, candidate.BalancerCleanup) {
			held++
		}
		for candidate.FreeOfChecks(svc) {
			_, err := cp.client.CoreV1().Services(ns).Update(ctx, svc, metav1.UpdateOptions{})
			if err == nil || apierrors.IsNotFound(err) {
				break
			}
			if !apierrors.IsConflict(err) {
				return 0, err
			}
			// The controller of load balancers has changed it meanwhile.
			if svc, err = cp.client.CoreV1().Services(ns).Get(ctx, svc.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
				break
			} else if err != nil {
				return 0, err
			}
		}
	}
	if held == page {
		return 0, nil // the next page would be the same
	}
	return len(deleted.Items), nil
}

const retryPause = 200 * time.Millisecond
