// Package service holds the rules of the Service resource. They are defaulting, allocation of cluster IPs and node
// ports, validation, and what an update keeps, clears or refuses. It knows neither HTTP nor storage.
//
// The rules are read from the Service v1 API reference, the document "Service ClusterIP allocation" and, where these are
// silent, from the behavior of kube-apiserver. Where kube-apiserver is known to break a documented sentence, the document is
// followed.
package service

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/allocator"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// Config says which ranges the rules allocate from and which version of Kubernetes they follow.
type Config struct {
	// ServiceCIDRs is one range, or two of different families; the first one is the default family. They form the range
	// with the name DefaultRange.
	ServiceCIDRs []netip.Prefix
	// NodePorts is the node-port range; the zero value means spec.DefaultNodePorts.
	NodePorts spec.PortRange
	// Faults are the deliberate bugs that are switched on.
	Faults Faults
	// NewAllocator makes the allocator of a range; nil means allocator.New.
	NewAllocator func(netip.Prefix) (allocator.Allocator, error)
	// Seed makes dynamic allocation repeatable.
	Seed uint64
	// Version is the Kubernetes version whose rules are followed, for example "1.36"; empty means the newest one known.
	Version string
	// OnAllocate and OnRelease, if set, are told of every cluster IP that is taken for a Service or given back, in that
	// order. A dry run tells nothing. They are called with a lock held and must not call the Rules.
	OnAllocate func(ip netip.Addr, owner *corev1.Service)
	OnRelease  func(ip netip.Addr)
	// Beside, if set, are the rules of another API server on the same storage: what is in use there is in use here.
	Beside *Rules
	// LooseIPs lets sloppy forms of addresses pass, as before strictIPs.
	LooseIPs bool
}

// DefaultRange is the name of the range made of Config.ServiceCIDRs, as that of the ServiceCIDR object.
const DefaultRange = "kubernetes"

// Rules are the rules of the Service resource together with the addresses and ports in use. All methods are safe for
// concurrent use, but the two objects that a method works on must not be shared while it runs.
type Rules struct {
	*book
	version  version
	looseIPs bool
	families []corev1.IPFamily // that the cluster is configured for, the default one first

	onAllocate func(netip.Addr, *corev1.Service)
	onRelease  func(netip.Addr)

	*record
}

// record is the addresses and ports in use. The rules of all API servers on one storage share it.
type record struct {
	mu    sync.Mutex // held while addresses and ports are taken or given back, so that a dry run is never seen
	ips   addresses
	ports *allocator.Ports
}

// New makes the rules of a cluster in which nothing is allocated.
func New(config Config) (*Rules, error) {
	if n := len(config.ServiceCIDRs); n != 1 && n != 2 {
		return nil, fmt.Errorf("%d service ranges: give one, or one of each IP family", n)
	}
	if config.NodePorts == (spec.PortRange{}) {
		config.NodePorts = spec.DefaultNodePorts
	}
	options := allocator.Options{Seed: config.Seed, Faults: config.Faults}
	if config.NewAllocator == nil {
		config.NewAllocator = func(prefix netip.Prefix) (allocator.Allocator, error) { return allocator.New(prefix, options) }
	}
	v, err := parseVersion(config.Version)
	if err != nil {
		return nil, err
	}
	b := newBook()
	b.edit(config.Faults)
	r := &Rules{
		book:       b,
		version:    v,
		looseIPs:   config.LooseIPs,
		onAllocate: config.OnAllocate,
		onRelease:  config.OnRelease,
		record:     &record{ips: addresses{book: b, newAllocator: config.NewAllocator, inUse: map[netip.Addr]use{}}},
	}
	if r.onAllocate == nil {
		r.onAllocate = func(netip.Addr, *corev1.Service) {}
	}
	if r.onRelease == nil {
		r.onRelease = func(netip.Addr) {}
	}
	for _, prefix := range config.ServiceCIDRs {
		r.families = append(r.families, familyOf(prefix.Addr()))
	}
	if len(r.families) == 2 && r.families[0] == r.families[1] {
		return nil, fmt.Errorf("service ranges %s and %s are of the same IP family: give one range of each", config.ServiceCIDRs[0], config.ServiceCIDRs[1])
	}
	if config.Beside != nil {
		r.record = config.Beside.record
		return r, nil
	}
	if r.ports, err = allocator.NewPorts(config.NodePorts.First, config.NodePorts.Last, options); err != nil {
		return nil, err
	}
	if err := r.AddRange(DefaultRange, config.ServiceCIDRs); err != nil {
		return nil, err
	}
	return r, nil
}

// Default fills in the static defaults of the schema. It is applied whenever a Service is decoded: on create, update and
// apply, to the main resource and to its status.
func (r *Rules) Default(svc *corev1.Service) {
	for i := range svc.Spec.Ports {
		for j := range r.portDefaults {
			r.portDefaults[j].Do(svc, i)
		}
	}
	for i := range r.defaults {
		r.defaults[i].Do(svc)
	}
}

// Create prepares a new, defaulted Service in place: it allocates what the Service needs, then validates it. A refusal is an
// *apierrors.StatusError, and then, as in a dry run, nothing stays allocated.
func (r *Rules) Create(svc *corev1.Service, dryRun bool) (*Transaction, error) {
	return r.create.Do(r, svc, dryRun)
}

// Update prepares a changed, defaulted Service in place, given the stored one. It keeps allocated values that the
// request leaves out, and allocates and gives back what the change asks for. It clears fields that the new type has no
// use for, and validates. The metadata that a server fills in (resource version, UID, creation time) is filled in
// already. A refusal is an *apierrors.StatusError, and then, as in a dry run, nothing changes.
func (r *Rules) Update(svc, old *corev1.Service, dryRun bool) (*Transaction, error) {
	return r.update.Do(r, svc, old, dryRun)
}

// The order of what happens to a Service that is written.
var (
	addressBeforeCreate = rule.New("address-before-create", func(r *Rules, svc *corev1.Service, dryRun bool) (*Transaction, error) {
		r.adjust(r.prepares, svc, nil)
		return r.transact(dryRun, svc, func(t *Transaction) error {
			if err := r.familiesDecided.Do(t, svc, nil); err != nil {
				return err
			}
			if err := r.addressPerFamily.Do(t, svc, nil); err != nil {
				return err
			}
			return t.each(r.portsTaken, svc, nil)
		}, func() field.ErrorList { return r.validateCreate(svc) })
	}, spec.AllocAddressBeforeService, spec.APICreateClearsNothing)

	clearBeforeValidation = rule.New("clear-before-validation", func(r *Rules, svc, old *corev1.Service, dryRun bool) (*Transaction, error) {
		r.adjust(r.keeps, svc, old)
		return r.transact(dryRun, svc, func(t *Transaction) error {
			if err := r.familiesDecided.Do(t, svc, old); err != nil {
				return err
			}
			if err := t.each(r.addressChanges, svc, old); err != nil {
				return err
			}
			if err := t.each(r.portsTaken, svc, old); err != nil {
				return err
			}
			return t.each(r.portsFreed, svc, old)
		}, func() field.ErrorList {
			r.adjust(r.clears, svc, old)
			return r.validateUpdate(svc, old)
		})
	}, spec.APITypeChange, spec.APIUpdateClearsUnchanged)
)

// adjust applies rules that change a Service; old is nil for a new one.
func (r *Rules) adjust(rules []rule.Rule[adjusting], svc, old *corev1.Service) {
	for i := range rules {
		rules[i].Do(r, svc, old)
	}
}

// each applies rules that take and give back, until one fails; old is nil for a new Service.
func (t *Transaction) each(rules []rule.Rule[allocating], svc, old *corev1.Service) error {
	for i := range rules {
		if err := rules[i].Do(t, svc, old); err != nil {
			return err
		}
	}
	return nil
}

// UpdateStatus prepares a change of the status subresource in place: the specification stays as it is stored. A refusal is
// an *apierrors.StatusError.
func (r *Rules) UpdateStatus(svc, old *corev1.Service) error {
	r.adjust(r.statusKeeps, svc, old)
	return refusal(svc, r.validateStatusUpdate(svc, old))
}

// Adopt takes what a stored Service holds, when a server starts on storage that is there already. Nobody is told. The error
// says what could not be taken because it is in use or out of range; the rest is taken even so.
func (r *Rules) Adopt(svc *corev1.Service) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, ip := range clusterIPsOf(svc) {
		if err := r.ips.allocate(ip); err != nil {
			errs = append(errs, fmt.Errorf("service %s/%s: cluster IP %s: %w", svc.Namespace, svc.Name, ip, err))
		}
	}
	ports := nodePortsHeld(svc)
	if r.healthCheckNeeded.Do(svc) {
		ports = append(ports, int(svc.Spec.HealthCheckNodePort))
	}
	for _, port := range ports {
		if err := r.ports.Allocate(port); err != nil {
			errs = append(errs, fmt.Errorf("service %s/%s: node port %d: %w", svc.Namespace, svc.Name, port, err))
		}
	}
	return errors.Join(errs...)
}

// Delete gives back everything that a Service holds. It is called when the object is finally gone, after its finalizers.
func (r *Rules) Delete(svc *corev1.Service) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.releases {
		r.releases[i].Do(r, svc)
	}
}

// deletedAddressesFreed: a Service that is gone gives back its addresses.
var deletedAddressesFreed = rule.New("deleted-service-frees-addresses", func(r *Rules, svc *corev1.Service) {
	for _, ip := range clusterIPsOf(svc) {
		r.ips.release(ip)
		r.onRelease(ip)
	}
}, spec.AllocDeleteReleases, spec.AllocDeleteCollectionReleases)

// View changes a stored Service to what a reader sees.
func (r *Rules) View(svc *corev1.Service) {
	for i := range r.views {
		r.views[i].Do(svc)
	}
}

// AddRange adds the ranges of a ServiceCIDR object, or changes those of the one with that name. Addresses in use that lie
// in a new range are taken there from the start.
func (r *Rules) AddRange(name string, prefixes []netip.Prefix) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ips.addRange(name, prefixes)
}

// RemoveRange ends allocation from the ranges of a ServiceCIDR object. Addresses in use stay in use.
func (r *Rules) RemoveRange(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ips.removeRange(name)
}

// Reserve takes an address for an IPAddress object that somebody made by hand, in or out of the ranges. It returns
// allocator.ErrAllocated if the address is in use.
func (r *Rules) Reserve(ip netip.Addr) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ips.reserve(ip)
}

// Unreserve gives back an address that was taken with Reserve; any other is left alone.
func (r *Rules) Unreserve(ip netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ips.unreserve(ip)
}
