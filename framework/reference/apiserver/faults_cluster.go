package apiserver

import (
	"encoding/json"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/reference/service"
)

// What can be wrong when a server starts, and with the controllers.
var startFaults = []clusterWrong{
	{fault.RestartForgets, func(b *clusterBook) { b.recordRestored.Off() }},
	{fault.SecondServerOwnRecord, func(b *clusterBook) {
		b.recordShared.Replace(func(_, another *Server, _ map[string]bool) (*service.Rules, error) { return another.ownRecord() })
	}},
	{fault.BitmapNotShared, func(b *clusterBook) {
		b.recordShared.Wrap(func(right recording) recording {
			return func(s, another *Server, gates map[string]bool) (*service.Rules, error) {
				if _, otherRecord := gates[ipAddressGate]; otherRecord {
					return another.ownRecord()
				}
				return right(s, another, gates)
			}
		})
	}},
	{fault.RepairFreesNew, func(b *clusterBook) {
		b.recordShared.Wrap(func(right recording) recording {
			return func(s, another *Server, gates map[string]bool) (*service.Rules, error) {
				rules, err := right(s, another, gates)
				if err == nil {
					s.freeNew(rules)
				}
				return rules, err
			}
		})
	}},
	{fault.SecondRangeIgnored, func(b *clusterBook) { b.rangesChanged.Off() }},
	{fault.ExistingBecomeDualStack, func(b *clusterBook) {
		b.rangesChanged.Wrap(func(right func(*Server, []netip.Prefix)) func(*Server, []netip.Prefix) {
			return func(s *Server, prefixes []netip.Prefix) {
				right(s, prefixes)
				stored, _ := s.store.list(services, "")
				for _, e := range stored {
					changed := e.stored.(*corev1.Service).DeepCopy()
					changed.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyPreferDualStack)
					_, _ = s.store.update(services, e, changed, s.viewer(services), nil)
				}
			}
		})
	}},
	{fault.KubernetesNotOnFirst, func(b *clusterBook) {
		b.kubernetesAddress.Wrap(func(right func(netip.Prefix) netip.Addr) func(netip.Prefix) netip.Addr {
			return func(primary netip.Prefix) netip.Addr { return right(primary).Next() }
		})
	}},
	{fault.SelectorAllNamespaces, func(b *clusterBook) { b.podsInReach.Replace(func(string) string { return "" }) }},
}

// ownRecord makes rules that know what is in use now, and nothing that another server gives out later.
func (s *Server) ownRecord() (*service.Rules, error) {
	rules, err := service.New(s.rulesConfig())
	if err != nil {
		return nil, err
	}
	return rules, s.cluster.recordRestored.Do(s, rules)
}

// freeNew frees the addresses of all Services that have just been created, as if their creation had failed half-way.
func (s *Server) freeNew(rules *service.Rules) {
	all, _ := s.store.list(services, "")
	for _, e := range all {
		if svc := e.stored.(*corev1.Service); time.Since(svc.CreationTimestamp.Time) < time.Minute {
			rules.Delete(svc)
		}
	}
}

// What can be wrong with ServiceCIDRs.
var cidrFaults = []clusterWrong{
	{fault.ServiceCIDRHostBits, func(b *clusterBook) {
		b.newCIDRs.Wrap(func(right ranging) ranging {
			return func(texts []string) ([]netip.Prefix, field.ErrorList) { return right(masked(texts)) }
		})
	}},
	{fault.ServiceCIDRMutable, func(b *clusterBook) {
		b.cidrsKept.Replace(func(texts, _ []string) ([]netip.Prefix, field.ErrorList) { return parseCIDRs(texts) })
	}},
	{fault.ServiceCIDRIgnored, func(b *clusterBook) { b.rangeAdded.Off() }},
	{fault.ServiceCIDRDeletedGives, func(b *clusterBook) { b.leavingGivesNothing.Off() }},
	{fault.ServiceCIDRGoneInUse, func(b *clusterBook) { b.leavingWaits.Off() }},
	{fault.ServiceCIDRNotReady, func(b *clusterBook) { b.defaultReady.Off() }},
	{fault.ServiceCIDRNotRestored, func(b *clusterBook) { b.defaultRestored.Off() }},
	{fault.ControllersForgetGap, func(b *clusterBook) { b.controllersCatchUp.Off() }},
	{fault.ControllersAddAfterGap, func(b *clusterBook) {
		b.controllersCatchUp.Replace(func(s *Server) {
			s.controlServices("", func(svc *corev1.Service) bool { return len(s.slicesOf(svc)) == 0 })
		})
	}},
	{fault.SliceEditsKept, func(b *clusterBook) { b.slicesRestored.Off() }},
	{fault.ServiceCIDREditKept, func(b *clusterBook) { b.defaultKept.Off() }},
}

// masked clears the host bits of CIDRs.
func masked(texts []string) []string {
	masked := slices.Clone(texts)
	for i, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			masked[i] = p.Masked().String()
		}
	}
	return masked
}

// What can be wrong with IPAddresses.
var ipAddressFaults = []clusterWrong{
	{fault.IPAddressAnyName, func(b *clusterBook) { b.ipAddressName.Off() }},
	{fault.IPAddressIgnored, func(b *clusterBook) {
		b.ipAddressReserves.Replace(func(*Server, netip.Addr, *networkingv1.IPAddress) (transaction, error) { return noTransaction{}, nil })
	}},
	{fault.IPAddressTakenOver, func(b *clusterBook) {
		b.ipAddressReserves.Replace(func(s *Server, ip netip.Addr, _ *networkingv1.IPAddress) (transaction, error) {
			s.addressReleased(ip)
			return noTransaction{}, nil
		})
	}},
	{fault.IPAddressMutable, func(b *clusterBook) { b.ipAddressParent.Off() }},
	{fault.IPAddressUnlabeled, func(b *clusterBook) { b.ipAddressLabels.Off() }},
	{fault.IPAddressNotRestored, func(b *clusterBook) { b.missingRestored.Off() }},
	{fault.IPAddressOrphanKept, func(b *clusterBook) { b.unusedRemoved.Off() }},
}

// What can be wrong with the schema.
var schemaFaults = []clusterWrong{
	schemaWithout(fault.OpenAPIWithoutKind, "x-kubernetes-group-version-kind"),
	schemaWithout(fault.OpenAPIWithoutIPMode, "ipMode"),
	schemaWithout(fault.OpenAPIWithoutField, "healthCheckNodePort"),
	schemaWithout(fault.OpenAPIWithoutRequired, "required"),
	schemaWithout(fault.OpenAPIWithoutListTypes, "x-kubernetes-list-type"),
	schemaWithout(fault.OpenAPIWithoutPatchKeys, "x-kubernetes-patch-merge-key"),
	schemaWithout(fault.OpenAPIWithoutEnumeration, "enum"),
	schemaWithout(fault.OpenAPIWithoutDefaults, "default"),
}

// schemaWithout is a fault: a key is missing everywhere in the schema of Services.
func schemaWithout(f *fault.Fault, key string) clusterWrong {
	return clusterWrong{f, func(b *clusterBook) {
		b.schemaPublished.Wrap(func(right publishing) publishing {
			return func(gv schema.GroupVersion) *openAPIDocument {
				d := right(gv)
				if gv != services.groupVersion() || d.err != nil {
					return d
				}
				wrong := *d
				wrong.data, wrong.err = withoutKey(d.data, key)
				return &wrong
			}
		})
	}}
}

func withoutKey(data []byte, key string) ([]byte, error) {
	var document any
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, err
	}
	removeKeys(document, func(k string, _ any) bool { return k == key })
	return json.Marshal(document)
}
