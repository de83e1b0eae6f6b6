package reference

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/apiserver"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// The kinds of rules.
type (
	// An asking rule is a question about a Service.
	asking = func(*corev1.Service) bool
	// A wanting rule reports whether a Service is to have a load balancer.
	wanting = func(w *world, svc *corev1.Service) bool
	// An updating rule brings a load balancer in step with the nodes that it may use, and with its Service.
	updating = func(b *balancer, nodes []string, svc *corev1.Service)
	// A nodal rule is a question about a node.
	nodal = func(*corev1.Node) bool
	// An asked rule is what a load balancer learns from the health check node port of a node.
	asked = func(h *host, port int, ipv6 bool) bool
)

// book is the rules of the world: of its load balancers, nodes, pods and packets. It is read only once it is in use.
type book struct {
	// Load balancers.
	balancersMade    rule.Rule[func(w *world, services []*corev1.Service) (wrote bool)]
	balancerWanted   rule.Rule[wanting]
	finalizerFirst   rule.Rule[asking]
	deletedCleanedUp rule.Rule[asking]
	retypedCleanedUp rule.Rule[asking]
	balancerUpdated  rule.Rule[updating]
	balancerDeleted  rule.Rule[func(w *world, of *corev1.Service)]
	balancedNodes    rule.Rule[func(w *world) []string]
	balancesAmong    rule.Rule[nodal]
	balancerAsks     rule.Rule[asked]

	// Nodes and pods.
	deletedNodeDrains rule.Rule[nodal]
	zoneFollowed      rule.Rule[func(h *host, object *corev1.Node)]
	servesBeforeNode  rule.Rule[nodal]
	probeDecides      rule.Rule[func(answers bool) bool]
	terminatingLives  rule.Rule[func(life int) int]

	// Packets.
	headlessPassed    rule.Rule[func(d *dataPlane, p *candidate.Probe) netip.AddrPort]
	replyFromVIP      rule.Rule[func(source, to netip.AddrPort) bool]
	payloadCarried    rule.Rule[func(c *carriage) bool]
	outsideReached    rule.Rule[func(from *sender) bool]
	wayOpen           rule.Rule[func(w *way) bool]
	flowLookedAt      rule.Rule[func(f *flow, busy bool) bool]
	connectionKept    rule.Rule[func(f *flow, six bool) bool]
	endedForgotten    rule.Rule[func() bool]
	healthLookedAt    rule.Rule[func(connected bool) bool]
	missForgotten     rule.Rule[func(ago time.Duration) bool]
	reverseForgotten  rule.Rule[func(before, now candidate.Resolution) candidate.Resolution]
	flowsToldApart    rule.Rule[func() bool]
	rangesForNFTables rule.Rule[func(*apiserver.Server) []netip.Prefix]
}

// newBook is the right rules.
func newBook() *book {
	return &book{
		balancersMade:    balancersMade,
		balancerWanted:   balancerWanted,
		finalizerFirst:   finalizerFirst,
		deletedCleanedUp: deletedCleanedUp,
		retypedCleanedUp: retypedCleanedUp,
		balancerUpdated:  balancerUpdated,
		balancerDeleted:  balancerDeleted,
		balancedNodes:    balancedNodes,
		balancesAmong:    balancesAmong,
		balancerAsks:     balancerAsks,

		deletedNodeDrains: deletedNodeDrains,
		zoneFollowed:      zoneFollowed,
		servesBeforeNode:  servesBeforeNode,
		probeDecides:      probeDecides,
		terminatingLives:  terminatingLives,

		headlessPassed:    headlessPassed,
		replyFromVIP:      replyFromVIP,
		payloadCarried:    payloadCarried,
		outsideReached:    outsideReached,
		wayOpen:           wayOpen,
		flowLookedAt:      flowLookedAt,
		connectionKept:    connectionKept,
		endedForgotten:    endedForgotten,
		healthLookedAt:    healthLookedAt,
		missForgotten:     missForgotten,
		reverseForgotten:  reverseForgotten,
		flowsToldApart:    flowsToldApart,
		rangesForNFTables: rangesForNFTables,
	}
}

// Rules for nodes and pods.
var (
	// KEP-3836.
	deletedNodeDrains = rule.New("proxy-deleted-node-drains", func(n *corev1.Node) bool {
		return n.DeletionTimestamp != nil
	}, spec.ProxyNodeDrainHealth)

	probeDecides = rule.New("pod-ready-as-probe-answers", func(answers bool) bool { return answers }, spec.ProxyUnreadyEndpointAvoided)

	// A connection ends with the life that it was opened in.
	terminatingLives = rule.New("pod-lives-while-terminating", func(life int) int { return life }, spec.ProxyTerminatingConnectionsKept)
)

// Rules for packets.
var (
	// What no Service claims goes to the address that the client has named.
	headlessPassed = rule.New("packet-of-headless-service-passed", func(_ *dataPlane, p *candidate.Probe) netip.AddrPort {
		return p.To
	}, spec.ProxyHeadlessNotProxied)

	// The client hears from the address that it has sent to.
	replyFromVIP = rule.New("packet-reply-from-virtual-ip", func(_, _ netip.AddrPort) bool { return true }, spec.ProxyRedirectTransparent, spec.ProxyClusterIPReachable)

	// However fast datagrams follow each other, one comes to be looked at anew. The flow is nil where nobody has answered it yet.
	flowLookedAt = rule.New("packet-of-flow-looked-at-anew", func(*flow, bool) bool { return true }, spec.ProxyUDPFlowFollowsEndpoints)

	// A connection goes on whatever becomes of the proxy.
	connectionKept = rule.New("packet-of-connection-kept", func(*flow, bool) bool { return true }, spec.ProxyRestartKeepsTraffic)

	// Each connection is looked at for itself, whatever came from the same port of the client before, or goes to another address now.
	endedForgotten = rule.New("packet-of-ended-connection-forgotten", func() bool { return true }, spec.ProxyEndpointRemoved)
	// What is told of a Service on a connection is what is so now.
	healthLookedAt = rule.New("packet-health-asked-anew", func(bool) bool { return true }, spec.ProxyHealthCheckPortCloses)

	// Who has asked for a name too early learns of it as soon as anybody else.
	reverseForgotten = rule.New("dns-reverse-forgotten", func(_, now candidate.Resolution) candidate.Resolution { return now }, spec.ProxyDNSReverse)

	missForgotten = rule.New("dns-miss-forgotten", func(time.Duration) bool { return true }, spec.ProxyDNSClusterIP, spec.ProxyDNSHeadless, spec.ProxyDNSHeadlessHostnames)

	flowsToldApart = rule.New("packet-of-one-port-told-apart", func() bool { return true }, spec.ProxyRedirectTransparent)

	rangesForNFTables = rule.New("proxy-nftables-all-ranges", (*apiserver.Server).ServiceRanges, spec.ProxyNftablesUnallocatedRangeAdded)
)
