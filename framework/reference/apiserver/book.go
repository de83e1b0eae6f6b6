package apiserver

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/reference/service"
)

// The kinds of rules of a control plane.
type (
	// A recording rule makes the rules of Services for another server beside s, with a record of what is in use.
	recording = func(s, another *Server, gates map[string]bool) (*service.Rules, error)
	// A ranging rule reads the CIDRs of a ServiceCIDR.
	ranging = func(texts []string) ([]netip.Prefix, field.ErrorList)
	// A publishing rule returns the schema of a group version.
	publishing = func(schema.GroupVersion) *openAPIDocument
)

// clusterBook is the rules of a control plane that are not about requests: what it makes by itself, and what the objects behind
// allocation do. It is read only once it is in use.
type clusterBook struct {
	// Starts and restarts.
	recordRestored    rule.Rule[func(s *Server, rules *service.Rules) error]
	recordShared      rule.Rule[recording]
	rangesChanged     rule.Rule[func(s *Server, prefixes []netip.Prefix)]
	kubernetesAddress rule.Rule[func(primary netip.Prefix) netip.Addr]
	schemaPublished   rule.Rule[publishing]
	podsInReach       rule.Rule[func(namespace string) string]

	// ServiceCIDRs.
	newCIDRs            rule.Rule[ranging]
	cidrsKept           rule.Rule[func(texts, old []string) ([]netip.Prefix, field.ErrorList)]
	rangeAdded          rule.Rule[func(s *Server, cidr *networkingv1.ServiceCIDR, prefixes []netip.Prefix)]
	leavingGivesNothing rule.Rule[func(s *Server, name string)]
	leavingWaits        rule.Rule[func(s *Server, leaving *networkingv1.ServiceCIDR) bool]
	defaultReady        rule.Rule[func(*networkingv1.ServiceCIDR)]
	defaultRestored     rule.Rule[func(*Server)]

	// IPAddresses.
	ipAddressName     rule.Rule[func(name string, prefix bool) []string]
	ipAddressReserves rule.Rule[func(s *Server, ip netip.Addr, address *networkingv1.IPAddress) (transaction, error)]
	ipAddressParent   rule.Rule[func(parent, old *networkingv1.ParentReference) field.ErrorList]
	ipAddressLabels   rule.Rule[func(netip.Addr) map[string]string]
	missingRestored   rule.Rule[func(s *Server, ip netip.Addr, owner *corev1.Service)]
	unusedRemoved     rule.Rule[func(s *Server, name string)]
}

func newClusterBook() *clusterBook {
	return &clusterBook{
		recordRestored:    recordRestored,
		recordShared:      recordShared,
		rangesChanged:     rangesChanged,
		kubernetesAddress: kubernetesAddress,
		schemaPublished:   schemaPublished,
		podsInReach:       podsInReach,

		newCIDRs:            newCIDRs,
		cidrsKept:           cidrsKept,
		rangeAdded:          rangeAdded,
		leavingGivesNothing: leavingGivesNothing,
		leavingWaits:        leavingWaits,
		defaultReady:        defaultReady,
		defaultRestored:     defaultRestored,

		ipAddressName:     ipAddressName,
		ipAddressReserves: ipAddressReserves,
		ipAddressParent:   ipAddressParent,
		ipAddressLabels:   ipAddressLabels,
		missingRestored:   missingRestored,
		unusedRemoved:     unusedRemoved,
	}
}

// Book returns the rules of the API server with the requirements that they follow, sorted by name.
func Book() []rule.Entry { return rule.Entries(newClusterBook()) }
