package apiserver

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/allocator"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// ipAddressManager is the value of the label that marks the addresses of Services (KEP-1880).
const ipAddressManager = "ipallocator.k8s.io"

// The labels of the addresses of Services are the same for all of a family, so all of a family share one map.
var (
	ipv4Labels = labelsOfFamily("IPv4")
	ipv6Labels = labelsOfFamily("IPv6")
)

func labelsOfFamily(family string) map[string]string {
	return map[string]string{networkingv1.LabelIPAddressFamily: family, networkingv1.LabelManagedBy: ipAddressManager}
}

// ipAddressStrategy keeps IPAddress objects (KEP-1880). Those of Services come and go with the addresses that the rules give
// out; those that somebody makes by hand reserve theirs.
type ipAddressStrategy struct{}

func (ipAddressStrategy) defaults(*Server, object) {}

func (ipAddressStrategy) create(s *Server, obj object, dryRun bool) (transaction, error) {
	address := obj.(*networkingv1.IPAddress)
	errs := validateMetadata(ipAddresses, &address.ObjectMeta, s.cluster.ipAddressName.Do)
	errs = append(errs, validateParentRef(address.Spec.ParentRef)...)
	if err := refusal(ipAddresses, address.Name, errs); err != nil {
		return nil, err
	}
	ip, err := netip.ParseAddr(address.Name)
	if err != nil {
		return nil, refusal(ipAddresses, address.Name, field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), address.Name, err.Error())})
	}
	if dryRun {
		return noTransaction{}, nil
	}
	return s.cluster.ipAddressReserves.Do(s, ip, address)
}

var (
	ipAddressName = rule.New("ip-address-name", canonicalIPName, spec.AllocIPAddressName)

	ipAddressReserves = rule.New("ip-address-reserves", func(s *Server, ip netip.Addr, address *networkingv1.IPAddress) (transaction, error) {
		if err := s.rules.Load().Reserve(ip); errors.Is(err, allocator.ErrAllocated) {
			return nil, storeError(errExists, ipAddresses, "", address.Name)
		}
		return &reservation{server: s, ip: ip, address: address}, nil
	}, spec.AllocIPAddressReserves, spec.AllocIPAddressDuplicateRefused)

	ipAddressParent = rule.New("ip-address-parent", func(parent, old *networkingv1.ParentReference) field.ErrorList {
		return apivalidation.ValidateImmutableField(parent, old, field.NewPath("spec", "parentRef"))
	}, spec.AllocIPAddressParent)

	ipAddressLabels = rule.New("ip-address-labels", func(ip netip.Addr) map[string]string {
		if ip.Is6() {
			return ipv6Labels
		}
		return ipv4Labels
	}, spec.AllocIPAddressPerClusterIP)

	// The object comes back at once, where a real server takes minutes.
	missingRestored = rule.New("ip-address-missing-restored", (*Server).addressAllocated, spec.AllocRepairMissing)

	unusedRemoved = rule.New("ip-address-unused-removed", (*Server).removeOrphan, spec.AllocRepairUnused)
)

func (ipAddressStrategy) update(s *Server, obj, old object, _ string, _ bool) (transaction, error) {
	address, was := obj.(*networkingv1.IPAddress), old.(*networkingv1.IPAddress)
	errs := append(validateFinalizers(&address.ObjectMeta), validateParentRef(address.Spec.ParentRef)...)
	errs = append(errs, validateMetadataUpdate(&address.ObjectMeta, &was.ObjectMeta)...)
	errs = append(errs, s.cluster.ipAddressParent.Do(address.Spec.ParentRef, was.Spec.ParentRef)...)
	return noTransaction{}, refusal(ipAddresses, address.Name, errs)
}

// deleted gives a reserved address back, unless a Service has it.
func (ipAddressStrategy) deleted(s *Server, obj object) {
	ip, err := netip.ParseAddr(obj.GetName())
	if err != nil {
		return
	}
	if owner := s.ownerOf(ip); owner != nil {
		s.cluster.missingRestored.Do(s, ip, owner)
		return
	}
	s.rules.Load().Unreserve(ip)
	s.collectServiceCIDRs()
}

func (ipAddressStrategy) warnings(_ *Server, _, _ object, _ string) []string { return nil }

// reservation is the address of an IPAddress that is being made by hand.
type reservation struct {
	server  *Server
	ip      netip.Addr
	address *networkingv1.IPAddress
}

func (r *reservation) Rollback() { r.server.rules.Load().Unreserve(r.ip) }

// orphanGrace is how long an IPAddress is left alone that claims to belong to a Service but does not. A real server
// waits a minute, because there an address and its Service are two writes; here they are one.
const orphanGrace = 50 * time.Millisecond

func (r *reservation) Commit() {
	if r.address.Labels[networkingv1.LabelManagedBy] == ipAddressManager {
		time.AfterFunc(orphanGrace, func() { r.server.cluster.unusedRemoved.Do(r.server, r.address.Name) })
	}
}

// removeOrphan removes an IPAddress that is marked as that of a Service when no Service has the address.
func (s *Server) removeOrphan(name string) {
	for {
		e := s.store.get(ipAddresses, "", name)
		if e == nil || e.stored.GetLabels()[networkingv1.LabelManagedBy] != ipAddressManager || len(e.stored.GetFinalizers()) > 0 {
			return
		}
		ip, err := netip.ParseAddr(name)
		if err != nil || s.ownerOf(ip) != nil {
			return
		}
		if _, _, err := s.deleteEntry(ipAddresses, e, &metav1.DeleteOptions{}, false); !errors.Is(err, errChanged) {
			return
		}
	}
}

// ownerOf returns the Service that has an address, nil if none has.
func (s *Server) ownerOf(ip netip.Addr) *corev1.Service {
	all, _ := s.store.list(services, "")
	for _, e := range all {
		if svc := e.stored.(*corev1.Service); slices.Contains(clusterIPs(svc), ip) {
			return svc
		}
	}
	return nil
}

// addressAllocated stores the IPAddress of an address that a Service has been given. An object that exists already stays: it is
// there from before a restart.
func (s *Server) addressAllocated(ip netip.Addr, owner *corev1.Service) {
	address := &networkingv1.IPAddress{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "IPAddress"},
		ObjectMeta: metav1.ObjectMeta{Name: ip.String(), Labels: s.cluster.ipAddressLabels.Do(ip)},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{
			Resource: services.name, Namespace: owner.Namespace, Name: owner.Name,
		}},
	}
	newMetadata(address)
	_, _ = s.store.create(ipAddresses, address, s.viewer(ipAddresses), nil)
}

// addressReleased removes the IPAddress of an address that a Service no longer has. It runs under the lock of the rules and
// must not call them.
func (s *Server) addressReleased(ip netip.Addr) {
	for {
		e := s.store.get(ipAddresses, "", ip.String())
		if e == nil || e.stored.GetLabels()[networkingv1.LabelManagedBy] != ipAddressManager {
			return
		}
		if _, err := s.store.remove(ipAddresses, e, nil, s.viewer(ipAddresses)); !errors.Is(err, errChanged) {
			return
		}
	}
}

// canonicalIPName accepts an IP address in the one form that every address has.
func canonicalIPName(name string, _ bool) (messages []string) {
	for _, err := range validation.IsValidIP(field.NewPath("name"), name) {
		messages = append(messages, err.Detail)
	}
	return messages
}

func validateParentRef(ref *networkingv1.ParentReference) (errs field.ErrorList) {
	at := field.NewPath("spec", "parentRef")
	if ref == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	if ref.Group != "" {
		for _, message := range validation.IsDNS1123Subdomain(ref.Group) {
			errs = append(errs, field.Invalid(at.Child("group"), ref.Group, message))
		}
	}
	for _, part := range []struct {
		name, value string
		required    bool
	}{{"resource", ref.Resource, true}, {"namespace", ref.Namespace, false}, {"name", ref.Name, true}} {
		if part.value == "" {
			if part.required {
				errs = append(errs, field.Required(at.Child(part.name), ""))
			}
			continue
		}
		for _, message := range content.IsPathSegmentName(part.value) {
			errs = append(errs, field.Invalid(at.Child(part.name), part.value, message))
		}
	}
	return errs
}
