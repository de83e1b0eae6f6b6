package check

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

// Claiming makes the check apply only to candidates that claim the features, beside those of its requirements: it cannot do without them.
func Claiming(features ...string) Option {
	return func(d *Declaration) { d.claiming = append(d.claiming, features...) }
}

// claimed reports whether the candidate claims a feature.
func claimed(feature string) bool {
	if refusedFeature(feature) != "" || setup.Features != nil && !slices.Contains(setup.Features, feature) {
		return false
	}
	return setup.Profiles == nil || !spec.IsOptional(feature) || slices.Contains(setup.Profiles, spec.Profile(feature))
}

// Claims reports whether the check may use a feature that its requirements are not about. Where it may, the report says that it did.
func (cp *ControlPlane) Claims(feature string) bool {
	if !claimed(feature) {
		return false
	}
	uses(feature)
	return true
}

var usesLock sync.Mutex

// uses records that the running check uses a feature which none of its requirements is about.
func uses(feature string) {
	if current == nil || about(current.declared, feature) {
		return
	}
	usesLock.Lock()
	defer usesLock.Unlock()
	if r := &current.result; !slices.Contains(r.Uses, feature) {
		r.Uses = append(r.Uses, feature)
		slices.Sort(r.Uses)
	}
}

// about reports whether a requirement of the check belongs to the feature.
func about(d *Declaration, feature string) bool {
	return d != nil && slices.ContainsFunc(d.Requirements, func(id spec.ID) bool { return spec.Default().Get(id).Feature == feature })
}

// needClaimed ends the check as not applicable if it is about to use a feature that the candidate does not claim.
func needClaimed(features []string) {
	ginkgo.GinkgoHelper()
	for _, f := range features {
		if !claimed(f) {
			ginkgo.Skip(notClaimed(f))
		}
		uses(f)
	}
}

func notClaimed(features ...string) string {
	for _, f := range features {
		if why := refusedFeature(f); why != "" {
			return fmt.Sprintf("it uses %s, which the admission of this candidate refuses: %s", f, why)
		}
	}
	return fmt.Sprintf("it uses %s, which is not claimed or declared", strings.Join(features, ", "))
}

// featureWords are words in the body of a request that only a Service has which uses the feature, whatever the form of the body.
var featureWords = map[string][]string{
	spec.FeatureExternalIPs:         {"externalIPs"},
	spec.FeatureExternalName:        {"ExternalName"},
	spec.FeatureHealthCheckNodePort: {"healthCheckNodePort"},
	spec.FeatureLoadBalancer:        {"LoadBalancer"},
	spec.FeatureNodePort:            {"NodePort", "nodePort"},
	spec.FeatureSCTP:                {"SCTP"},
	spec.FeatureSessionAffinity:     {"ClientIP"},
	spec.FeatureSourceRanges:        {"loadBalancerSourceRanges"},
	spec.FeatureTrafficDistribution: {"trafficDistribution"},
}

// headlessForms are how the body of a request says that a Service is headless.
var headlessForms = [][]byte{[]byte(`"clusterIP":"None"`), []byte(`"clusterIP": "None"`), []byte("clusterIP: None")}

// featuresOf are the optional features that a request uses, sorted.
func featuresOf(contentType string, body []byte, options []RequestOption) (features []string) {
	for feature, words := range featureWords {
		if slices.ContainsFunc(words, func(w string) bool { return containsWord(body, w) }) {
			features = append(features, feature)
		}
	}
	if slices.ContainsFunc(headlessForms, func(form []byte) bool { return bytes.Contains(body, form) }) {
		features = append(features, spec.FeatureHeadlessService)
	}
	if strings.HasPrefix(contentType, string(types.ApplyPatchType)) {
		features = append(features, spec.FeatureServerSideApply)
	}
	if len(options) > 0 {
		query := url.Values{}
		for _, o := range options {
			o(query)
		}
		if query.Has("dryRun") {
			features = append(features, spec.FeatureDryRun)
		}
		if query.Has("fieldValidation") {
			features = append(features, spec.FeatureFieldValidation)
		}
	}
	slices.Sort(features)
	return features
}

// containsWord reports whether text contains a word, not as a part of another one.
func containsWord(text []byte, word string) bool {
	for rest := text; ; {
		i := bytes.Index(rest, []byte(word))
		if i < 0 {
			return false
		}
		before, after := i == 0 || !letter(rest[i-1]), i+len(word) == len(rest) || !letter(rest[i+len(word)])
		if before && after {
			return true
		}
		rest = rest[i+len(word):]
	}
}

func letter(b byte) bool { return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' }

// claimedForm is the Service without what the candidate does not claim and the check can do without: external addresses and node ports. What is sent to them is
// left out by Expect.
func (n *Network) claimedForm(svc *corev1.Service) *corev1.Service {
	ginkgo.GinkgoHelper()
	n.belong(spec.FeatureExternalIPs, svc.Spec.ExternalIPs...)
	if setup.Features == nil && setup.Profiles == nil && admission() == nil {
		return svc
	}
	svc = svc.DeepCopy()
	var lost []string
	if len(svc.Spec.ExternalIPs) > 0 && !claimed(spec.FeatureExternalIPs) {
		svc.Spec.ExternalIPs, lost = nil, append(lost, spec.FeatureExternalIPs)
	}
	if svc.Spec.Type == corev1.ServiceTypeLoadBalancer && !claimed(spec.FeatureLoadBalancer) {
		svc.Spec.Type, svc.Spec.LoadBalancerClass, svc.Spec.AllocateLoadBalancerNodePorts = corev1.ServiceTypeNodePort, nil, nil
		lost = append(lost, spec.FeatureLoadBalancer)
	}
	if svc.Spec.Type == corev1.ServiceTypeNodePort && !claimed(spec.FeatureNodePort) {
		svc.Spec.Type, lost = corev1.ServiceTypeClusterIP, append(lost, spec.FeatureNodePort)
	}
	if svc.Spec.Type == corev1.ServiceTypeLoadBalancer && !claimed(spec.FeatureNodePort) {
		svc.Spec.AllocateLoadBalancerNodePorts = new(false)
	}
	if svc.Spec.ExternalTrafficPolicy != "" && svc.Spec.Type == corev1.ServiceTypeClusterIP && len(svc.Spec.ExternalIPs) == 0 && len(lost) > 0 {
		ginkgo.Skip(notClaimed(lost...))
	}
	return svc
}

// belong notes the feature by which a Service of the check has addresses.
func (n *Network) belong(feature string, addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.features == nil {
		n.features = map[netip.Addr]string{}
	}
	for _, text := range addresses {
		if a, err := netip.ParseAddr(text); err == nil {
			n.features[a] = feature
		}
	}
}

// beyondClaims is the feature that a case needs and the candidate does not claim, or the declaration that rules the
// case out. It is empty if the case can be judged.
func (n *Network) beyondClaims(c *Case) string {
	if i := slices.IndexFunc(n.featuresOf(c), func(f string) bool { return !claimed(f) }); i >= 0 {
		return n.featuresOf(c)[i]
	}
	switch {
	case n.isPod(c.To): // what follows is about Services
		return ""
	case c.From.Node != "" && !n.ofNode(c) && n.Declared(spec.HostAccess) != "served":
		return string(spec.HostAccess)
	case n.isBackend(c.From.Pod) && !n.hairpins(c.To.Addr()):
		return string(spec.Hairpin)
	}
	return ""
}

// featuresOf are the optional features that a case uses.
func (n *Network) featuresOf(c *Case) (features []string) {
	switch c.Protocol {
	case corev1.ProtocolUDP:
		features = append(features, spec.FeatureUDP)
	case corev1.ProtocolSCTP:
		features = append(features, spec.FeatureSCTP)
	}
	if n.isNodePort(c) {
		features = append(features, spec.FeatureNodePort)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if f := n.features[c.To.Addr()]; f != "" {
		features = append(features, f)
	}
	return features
}

// addressed reports whether a feature shows in where a case is sent and by which protocol. Others are properties of a Service, which all its cases share.
func addressed(feature string) bool {
	switch feature {
	case spec.FeatureUDP, spec.FeatureSCTP, spec.FeatureNodePort, spec.FeatureExternalIPs, spec.FeatureLoadBalancer:
		return true
	}
	return false
}

// unmetUses are the optional features that the unmet cases of a failure use, one list for each kind of case.
func (n *Network) unmetUses(cases []Case, outcomes [][]candidate.Outcome) (kinds [][]string) {
	for i := range cases {
		if cases[i].Want.Met(outcomes[i]) {
			continue
		}
		used := n.featuresOf(&cases[i])
		if current != nil {
			used = append(used, current.declared.claiming...)
			used = append(used, slices.DeleteFunc(slices.Clone(current.result.Uses), addressed)...)
		}
		slices.Sort(used)
		used = slices.Compact(used)
		if !slices.ContainsFunc(kinds, func(k []string) bool { return slices.Equal(k, used) }) {
			kinds = append(kinds, used)
		}
	}
	return kinds
}

// isPod reports whether a pod of the check answers there. Of an address that is a node's only the ports of its host-network pods count.
func (n *Network) isPod(to netip.AddrPort) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.pods, func(p candidate.Pod) bool {
		listens := func(port candidate.PodPort) bool { return port.Number == int(to.Port()) }
		return slices.Contains(p.Addresses, to.Addr()) && (!p.HostNetwork || slices.ContainsFunc(p.Ports, listens))
	})
}

// isBackend reports whether a pod may be an endpoint of a Service: it answers, and is not there to send from.
func (n *Network) isBackend(name candidate.PodName) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.lent[name] && !n.senders[name] && slices.ContainsFunc(n.pods, func(p candidate.Pod) bool { return p.PodName == name && len(p.Ports) > 0 })
}

// isNodePort reports whether a case is sent to a node port; that of a Service without any is 0.
func (n *Network) isNodePort(c *Case) bool {
	if c.To.Port() == 0 || c.Path != "" || !n.isNode(c.To.Addr()) {
		return c.To.Port() == 0
	}
	first, last := n.NodePorts()
	return int(c.To.Port()) >= first && int(c.To.Port()) <= last
}

// ofNode reports whether a case asks a node for something of its own, such as the health of its proxy.
func (n *Network) ofNode(c *Case) bool { return c.Path != "" && n.isNode(c.To.Addr()) }

// isNode reports whether the address is one that a node has.
func (n *Network) isNode(a netip.Addr) bool {
	n.mu.Lock()
	own := slices.Clone(n.nodes)
	n.mu.Unlock()
	return a.IsLoopback() || slices.ContainsFunc(append(own, n.plane.Nodes()...), func(node candidate.Node) bool {
		return slices.Contains(node.Addresses, a) || slices.Contains(node.SecondaryAddresses, a)
	})
}

// hairpins reports whether a backend is declared to reach itself through an address of its Service.
func (n *Network) hairpins(a netip.Addr) bool {
	n.mu.Lock()
	virtual := n.exposed[a.String()]
	n.mu.Unlock()
	served := n.Declared(spec.Hairpin)
	return served == "every-address" || served == "cluster-ip" && virtual
}

// WithinClaims returns the cases that can be judged by what the candidate claims and declares. A check of which nothing is left does not apply.
func (n *Network) WithinClaims(cases ...Case) []Case {
	ginkgo.GinkgoHelper()
	judged, _ := n.withinClaims(cases)
	return judged
}

// withinClaims is WithinClaims with the places of what is left among all cases.
func (n *Network) withinClaims(cases []Case) (judged []Case, places []int) {
	ginkgo.GinkgoHelper()
	var beyond []string
	for i := range cases {
		if f := n.beyondClaims(&cases[i]); f == "" {
			judged, places = append(judged, cases[i]), append(places, i)
		} else if !slices.Contains(beyond, f) {
			beyond = append(beyond, f)
		}
	}
	if len(judged) == 0 && len(beyond) > 0 {
		ginkgo.Skip(notClaimed(beyond...))
	}
	if left := len(cases) - len(judged); left > 0 {
		Record("left out", "%d of %d cases, for they need %s", left, len(cases), strings.Join(beyond, ", "))
	}
	return judged, places
}

// Watcher is the client itself, or a pod on its node where the host network is not served. It shows whether a node has
// followed a change.
func (n *Network) Watcher(ctx context.Context, client candidate.Client) candidate.Client {
	ginkgo.GinkgoHelper()
	if client.Node == "" || n.Declared(spec.HostAccess) == "served" {
		return client
	}
	return n.ClientPod(ctx, client.Node)
}
