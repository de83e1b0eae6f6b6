package apiserver

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/reference/service"
	"github.com/service-conformance/conformance/framework/spec"
)

// serviceCIDRFinalizer holds a ServiceCIDR while addresses depend on it (KEP-1880).
const serviceCIDRFinalizer = "networking.k8s.io/service-cidr-finalizer"

// serviceCIDRStrategy keeps the objects that ranges are made of (KEP-1880). The controller that makes them ready and, when
// they are deleted, waits for their addresses runs inline.
type serviceCIDRStrategy struct{}

func (serviceCIDRStrategy) defaults(*Server, object) {}

func (serviceCIDRStrategy) create(s *Server, obj object, dryRun bool) (transaction, error) {
	cidr := obj.(*networkingv1.ServiceCIDR)
	cidr.Status = networkingv1.ServiceCIDRStatus{}
	errs := validateMetadata(serviceCIDRs, &cidr.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	prefixes, invalid := s.cluster.newCIDRs.Do(cidr.Spec.CIDRs)
	if err := refusal(serviceCIDRs, cidr.Name, append(errs, invalid...)); err != nil {
		return nil, err
	}
	holdServiceCIDR(cidr)
	setReady(cidr, metav1.ConditionTrue, "", "Kubernetes Service CIDR is ready")
	return &rangeTransaction{server: s, cidr: cidr, prefixes: prefixes}, nil
}

func (serviceCIDRStrategy) update(s *Server, obj, old object, subresource string, _ bool) (transaction, error) {
	cidr, was := obj.(*networkingv1.ServiceCIDR), old.(*networkingv1.ServiceCIDR)
	errs := append(validateFinalizers(&cidr.ObjectMeta), validateMetadataUpdate(&cidr.ObjectMeta, &was.ObjectMeta)...)
	if subresource == "status" {
		cidr.Spec = was.Spec
		return noTransaction{}, refusal(serviceCIDRs, cidr.Name, errs)
	}
	cidr.Status = was.Status
	if cidr.DeletionTimestamp == nil {
		holdServiceCIDR(cidr) // the controller adds what somebody took away
	}
	prefixes, invalid := s.cluster.cidrsKept.Do(cidr.Spec.CIDRs, was.Spec.CIDRs)
	if err := refusal(serviceCIDRs, cidr.Name, append(errs, invalid...)); err != nil {
		return nil, err
	}
	if len(cidr.Spec.CIDRs) == len(was.Spec.CIDRs) || cidr.DeletionTimestamp != nil {
		return noTransaction{}, nil
	}
	return &rangeTransaction{server: s, cidr: cidr, prefixes: prefixes}, nil
}

func holdServiceCIDR(cidr *networkingv1.ServiceCIDR) {
	if !slices.Contains(cidr.Finalizers, serviceCIDRFinalizer) {
		cidr.Finalizers = append(cidr.Finalizers, serviceCIDRFinalizer)
	}
}

func (serviceCIDRStrategy) deleted(s *Server, obj object) {
	s.rules.Load().RemoveRange(obj.GetName())
	if obj.GetName() == service.DefaultRange {
		s.cluster.defaultRestored.Do(s)
	}
}

func (serviceCIDRStrategy) warnings(_ *Server, _, _ object, _ string) []string { return nil }

// rangeTransaction makes a range of a ServiceCIDR once it is stored.
type rangeTransaction struct {
	server   *Server
	cidr     *networkingv1.ServiceCIDR
	prefixes []netip.Prefix
}

func (t *rangeTransaction) Rollback() {}

func (t *rangeTransaction) Commit() {
	if t.cidr.Name == service.DefaultRange && t.server.cluster.defaultKept.Do(t.server, t.prefixes) {
		return
	}
	t.server.cluster.rangeAdded.Do(t.server, t.cidr, t.prefixes)
}

var (
	newCIDRs = rule.New("service-cidr-valid", parseCIDRs, spec.AllocServiceCIDRValidation)

	cidrsKept = rule.New("service-cidr-immutable", changedCIDRs, spec.AllocServiceCIDRImmutable)

	// A range that no allocator can be made for, such as an IPv6 range larger than /64, is stored and not ready.
	rangeAdded = rule.New("service-cidr-adds-range", func(s *Server, added *networkingv1.ServiceCIDR, prefixes []netip.Prefix) {
		err := s.rules.Load().AddRange(added.Name, prefixes)
		if err == nil {
			s.collectServiceCIDRs() // addresses of one that is leaving may belong here too
			return
		}
		s.changeServiceCIDR(added.Name, func(cidr *networkingv1.ServiceCIDR) {
			setReady(cidr, metav1.ConditionFalse, "NoAllocator", err.Error())
		})
	}, spec.AllocServiceCIDRAddsRange, spec.AllocServiceCIDROwnBands, spec.AllocRangeIPv6Shorter)

	leavingGivesNothing = rule.New("service-cidr-leaving-gives-nothing", func(s *Server, name string) {
		s.rules.Load().RemoveRange(name)
	}, spec.AllocServiceCIDRDeletionWaits, spec.AllocNoRangeNoAddress)

	leavingWaits = rule.New("service-cidr-leaving-waits", (*Server).depended, spec.AllocServiceCIDRDeletionWaits)

	defaultReady = rule.New("service-cidr-default-ready", func(cidr *networkingv1.ServiceCIDR) {
		setReady(cidr, metav1.ConditionTrue, "", "Kubernetes default Service CIDR is ready")
	}, spec.AllocServiceCIDRDefault)

	defaultRestored = rule.New("service-cidr-default-restored", func(s *Server) {
		s.createDefaultServiceCIDR()
		_ = s.rules.Load().AddRange(service.DefaultRange, s.options.ServiceCIDRs) // these have been ranges before
	}, spec.AllocServiceCIDRDefaultRestored)

	// The default ServiceCIDR is what the server was started with. It undoes what others make of it.
	defaultKept = rule.New("service-cidr-default-kept", func(s *Server, prefixes []netip.Prefix) bool {
		if slices.Equal(prefixes, s.options.ServiceCIDRs) {
			return false
		}
		s.changeServiceCIDR(service.DefaultRange, func(cidr *networkingv1.ServiceCIDR) { cidr.Spec.CIDRs = textsOf(s.options.ServiceCIDRs) })
		return true
	}, spec.AllocServiceCIDRDefaultEdited)

	// Services that exist are left as they are.
	rangesChanged = rule.New("ranges-changed", (*Server).changeRanges, spec.APIDualStackEnabledNew, spec.APIDualStackEnabledExisting)

	recordRestored = rule.New("record-restored", (*Server).restore,
		spec.AllocRecordSurvivesRestart, spec.AllocNodePortRecordSurvivesRestart, spec.AllocRestartDuringCreates)
)

// parseCIDRs reads one range, or two of different families, in canonical form.
func parseCIDRs(texts []string) (prefixes []netip.Prefix, errs field.ErrorList) {
	path := field.NewPath("spec", "cidrs")
	switch {
	case len(texts) == 0:
		return nil, field.ErrorList{field.Required(path, "at least one CIDR required")}
	case len(texts) > 2:
		return nil, field.ErrorList{field.Invalid(path, texts, "may only hold up to 2 values")}
	}
	for i, text := range texts {
		if invalid := validation.IsValidCIDR(path.Index(i), text); len(invalid) > 0 {
			errs = append(errs, invalid...)
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			errs = append(errs, field.Invalid(path.Index(i), text, err.Error()))
			continue
		}
		prefixes = append(prefixes, prefix)
	}
	if len(prefixes) == 2 && prefixes[0].Addr().Is4() == prefixes[1].Addr().Is4() {
		errs = append(errs, field.Invalid(path, texts, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"))
	}
	return prefixes, errs
}

// changedCIDRs allows one change only: a second family may be added.
func changedCIDRs(texts, old []string) ([]netip.Prefix, field.ErrorList) {
	path := field.NewPath("spec", "cidrs")
	if len(texts) != len(old) && (len(old) != 1 || len(texts) != 2) {
		return nil, field.ErrorList{field.Invalid(path, texts, apivalidation.FieldImmutableErrorMsg)}
	}
	var errs field.ErrorList
	for i, text := range old {
		if texts[i] != text {
			errs = append(errs, field.Invalid(path.Index(i), texts[i], apivalidation.FieldImmutableErrorMsg))
		}
	}
	if len(texts) == len(old) {
		return nil, errs // the stored ones, which are valid
	}
	prefixes, invalid := parseCIDRs(texts)
	return prefixes, append(errs, invalid...)
}

func setReady(cidr *networkingv1.ServiceCIDR, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&cidr.Status.Conditions, metav1.Condition{
		Type: networkingv1.ServiceCIDRConditionReady, Status: status, Reason: reason, Message: message, LastTransitionTime: now(),
	})
}

// changeServiceCIDR changes a stored ServiceCIDR on behalf of the controller. It does nothing if the object is gone.
func (s *Server) changeServiceCIDR(name string, change func(*networkingv1.ServiceCIDR)) {
	for {
		e := s.store.get(serviceCIDRs, "", name)
		if e == nil {
			return
		}
		cidr := e.stored.DeepCopyObject().(*networkingv1.ServiceCIDR)
		change(cidr)
		if _, err := s.replace(serviceCIDRs, e, cidr, e.writes, ""); !errors.Is(err, errChanged) {
			return
		}
	}
}

// collectServiceCIDRs lets those ServiceCIDRs go that are being deleted and that no address depends on any more.
func (s *Server) collectServiceCIDRs() {
	entries, _ := s.store.list(serviceCIDRs, "")
	for _, e := range entries {
		if e.stored.GetDeletionTimestamp() == nil || !slices.Contains(e.stored.GetFinalizers(), serviceCIDRFinalizer) || s.cluster.leavingWaits.Do(s, e.stored.(*networkingv1.ServiceCIDR)) {
			continue
		}
		s.changeServiceCIDR(e.stored.GetName(), func(cidr *networkingv1.ServiceCIDR) {
			cidr.Finalizers = slices.DeleteFunc(cidr.Finalizers, func(f string) bool { return f == serviceCIDRFinalizer })
		})
	}
}

// depended reports whether an IPAddress lies in the ServiceCIDR and in no other that stays.
func (s *Server) depended(leaving *networkingv1.ServiceCIDR) bool {
	var stay []netip.Prefix
	all, _ := s.store.list(serviceCIDRs, "")
	for _, e := range all {
		if e.stored.GetDeletionTimestamp() == nil {
			stay = append(stay, prefixesOf(e.stored.(*networkingv1.ServiceCIDR))...)
		}
	}
	leave := prefixesOf(leaving)
	addresses, _ := s.store.list(ipAddresses, "")
	return slices.ContainsFunc(addresses, func(e *entry) bool {
		ip, err := netip.ParseAddr(e.stored.GetName())
		contains := func(p netip.Prefix) bool { return p.Contains(ip) }
		return err == nil && slices.ContainsFunc(leave, contains) && !slices.ContainsFunc(stay, contains)
	})
}

func prefixesOf(cidr *networkingv1.ServiceCIDR) (prefixes []netip.Prefix) {
	for _, text := range cidr.Spec.CIDRs {
		if p, err := netip.ParsePrefix(text); err == nil {
			prefixes = append(prefixes, p)
		}
	}
	return prefixes
}

// textsOf are ranges as a ServiceCIDR has them.
func textsOf(prefixes []netip.Prefix) (texts []string) {
	for _, p := range prefixes {
		texts = append(texts, p.Masked().String())
	}
	return texts
}

// createDefaultServiceCIDR stores the ServiceCIDR of the ranges that the server was started with.
func (s *Server) createDefaultServiceCIDR() {
	cidr := &networkingv1.ServiceCIDR{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "ServiceCIDR"},
		ObjectMeta: metav1.ObjectMeta{Name: service.DefaultRange, Finalizers: []string{serviceCIDRFinalizer}},
	}
	newMetadata(cidr)
	cidr.Spec.CIDRs = textsOf(s.options.ServiceCIDRs)
	s.cluster.defaultReady.Do(cidr)
	_, _ = s.store.create(serviceCIDRs, cidr, s.viewer(serviceCIDRs), nil) // the one that exists already is as good
}

// changeRanges gives the server other ranges, and its ServiceCIDR too.
func (s *Server) changeRanges(prefixes []netip.Prefix) {
	s.options.ServiceCIDRs = prefixes
	if e := s.store.get(serviceCIDRs, "", service.DefaultRange); e != nil {
		changed := e.stored.(*networkingv1.ServiceCIDR).DeepCopy()
		changed.Spec.CIDRs = textsOf(prefixes)
		_, _ = s.store.update(serviceCIDRs, e, changed, s.viewer(serviceCIDRs), nil) // nobody else writes now
	}
}

// bootstrap creates what a new control plane has.
func (s *Server) bootstrap() error {
	for _, name := range []string{metav1.NamespaceDefault, corev1.NamespaceNodeLease, metav1.NamespacePublic, metav1.NamespaceSystem} {
		ns := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
		namespaces.strategy.defaults(s, ns)
		if _, err := s.create(namespaces, ns, writeOptions{}, write{manager: "kube-apiserver", object: ns.DeepCopy()}); err != nil {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	s.createDefaultServiceCIDR()
	return s.createKubernetesService()
}

// restore tells new rules of what is stored.
func (s *Server) restore(rules *service.Rules) error {
	cidrs, _ := s.store.list(serviceCIDRs, "")
	for _, e := range cidrs {
		if e.stored.GetDeletionTimestamp() != nil {
			rules.RemoveRange(e.stored.GetName())
		} else if err := rules.AddRange(e.stored.GetName(), prefixesOf(e.stored.(*networkingv1.ServiceCIDR))); err != nil {
			continue // it was not usable before either
		}
	}
	stored, _ := s.store.list(services, "")
	for _, e := range stored {
		// One whose range is gone keeps its address through the IPAddress below.
		_ = rules.Adopt(e.stored.(*corev1.Service))
	}
	addresses, _ := s.store.list(ipAddresses, "")
	for _, e := range addresses {
		if ip, err := netip.ParseAddr(e.stored.GetName()); err == nil {
			_ = rules.Reserve(ip) // the address of a Service is taken already
		}
	}
	return nil
}
