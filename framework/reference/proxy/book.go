package proxy

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/rule"
)

// The kinds of rules.
type (
	// An indexing rule fills in what there is at a moment.
	indexing = func(o *Objects, services []*corev1.Service, slices []*discoveryv1.EndpointSlice)
	// A joining rule fills in the endpoints of a port from the slices of its Service.
	joining = func(o *Objects, sp *servicePort, of []*discoveryv1.EndpointSlice)
	// A numbering rule returns the number that the endpoints of a slice have for a port of the Service.
	numbering = func(sp *servicePort, slice *discoveryv1.EndpointSlice, p *discoveryv1.EndpointPort) int32
	// An announcing rule enters addresses of one kind that lead to a port.
	announcing = func(o *Objects, sp *servicePort)
	// An asking rule is a question about a connection.
	asking = func(c *connection) bool
	// A claiming rule returns what a packet to a target is for; nil if that is no Service.
	claiming = func(c *connection, t target) *destination
	// An ignoring rule says that what is sent to a destination does not concern the node.
	ignoring = func(c *connection, d *destination) bool
	// An addressing rule says whether node ports are served on an address of the node.
	addressing = func(n *Node, a netip.Addr) bool
	// A governing rule is a traffic policy. It returns the endpoints that a connection may be given, and what to do if there are none.
	governing = func(c *connection, all []*Endpoint) (among []*Endpoint, none Answer)
	// A selecting rule returns some of the endpoints.
	selecting = func(n *Node, es []*Endpoint) []*Endpoint
	// A narrowing rule returns some of the ready endpoints by the hints of all.
	narrowing = func(n *Node, ready, all []*Endpoint) []*Endpoint
	// A hinting rule says whether an endpoint has a kind of hints, and whether these fit the node.
	hinting = func(n *Node, e *Endpoint) (has, fits bool)
	// A choosing rule picks the endpoint of a connection among those that it may be given, of which there is one at least.
	choosing = func(c *connection, among []*Endpoint) *Endpoint
	// A keying rule says what affinity holds for.
	keying = func(sp *servicePort, client netip.Addr) affinityKey
	// A timing rule says whether the proxy syncs, so long since it did.
	timing = func(n *Node, current *Objects, since time.Duration) bool
	// A writing rule is what a sync does to the kernel. There is nothing earlier at the first sync.
	writing = func(n *Node, earlier, current *Objects)
	// A reporting rule says whether the proxy is well.
	reporting = func(n *Node, now time.Time) bool
	// A measuring rule returns metrics as text.
	measuring = func(n *Node) string
	// A keeping rule returns the endpoint that a client had before and keeps; nil if it has to be given another one.
	keeping = func(sp *servicePort, among []*Endpoint, was netip.AddrPort) *Endpoint
)

// book is the rules of the proxy. It is read only once it is in use.
type book struct {
	// Which Services are served, where, and by which endpoints.
	indexed      rule.Rule[indexing]
	unserved     []rule.Rule[func(svc *corev1.Service) bool]
	portServed   rule.Rule[func(sp *servicePort) bool]
	announces    []rule.Rule[announcing]
	captured     rule.Rule[func(in *corev1.LoadBalancerIngress) bool]
	healthPort   rule.Rule[func(o *Objects, s *service)]
	joined       rule.Rule[joining]
	endpointPort rule.Rule[func(sp *servicePort, p *discoveryv1.EndpointPort) bool]
	targetPort   rule.Rule[numbering]
	countedOnce  rule.Rule[func(o *Objects, list []*Endpoint, e *Endpoint) []*Endpoint]
	outweighs    rule.Rule[func(e, other *Endpoint) bool]
	readyUnset   rule.Rule[func(c *discoveryv1.EndpointConditions) bool]
	servingUnset rule.Rule[func(c *discoveryv1.EndpointConditions) bool]

	// What a packet is for, and who may send it.
	inEffect        rule.Rule[func(n *Node) bool]
	servesNodePorts rule.Rule[addressing]
	nodePortDefault rule.Rule[addressing]
	targeted        rule.Rule[func(address netip.Addr, port uint16, protocol corev1.Protocol) target]
	claims          rule.Rule[claiming]
	ignores         []rule.Rule[ignoring]
	takenForNode    rule.Rule[asking]
	unusedPort      rule.Rule[func(n *Node) Answer]
	unallocated     rule.Rule[func(n *Node) Answer]
	admits          []rule.Rule[asking]
	sourceRangesOf  rule.Rule[asking]
	inSourceRange   rule.Rule[func(r netip.Prefix, client netip.Addr) bool]

	// Which endpoints a connection may be given.
	internalLocal     rule.Rule[asking]
	externalLocal     rule.Rule[asking]
	externalTraffic   rule.Rule[asking]
	clusterPolicy     rule.Rule[governing]
	localPolicy       rule.Rule[governing]
	onlyElsewhere     rule.Rule[governing]
	ready             rule.Rule[func(e *Endpoint) bool]
	lastResort        rule.Rule[func(e *Endpoint) bool]
	clusterLastResort rule.Rule[selecting]
	localLastResort   rule.Rule[selecting]
	nodeEndpoints     rule.Rule[selecting]
	onNode            rule.Rule[func(n *Node, e *Endpoint) bool]
	hinted            rule.Rule[narrowing]
	hintsComplete     rule.Rule[func(n *Node, kind hinting, ready, all []*Endpoint) bool]
	hints             []rule.Rule[hinting] // the first kind counts first

	// Session affinity.
	affinityAsked    rule.Rule[func(d *destination) bool]
	affinityKey      rule.Rule[keying]
	affinityTimeout  rule.Rule[func(s *corev1.ServiceSpec) time.Duration]
	affinityEndpoint rule.Rule[keeping]
	affinityRenewed  rule.Rule[func(e *affinityEntry, now time.Time)]

	// Which endpoint is chosen: at random or, in ipvs mode, by a scheduler.
	anyEndpoint     rule.Rule[choosing]
	roundRobin      rule.Rule[choosing]
	leastConnection rule.Rule[choosing]
	shortestDelay   rule.Rule[choosing]
	neverQueue      rule.Rule[choosing]
	destinationHash rule.Rule[choosing]
	sourceHash      rule.Rule[choosing]

	// What the endpoint sees, and flows of datagrams.
	clusterIPMasquerades rule.Rule[asking]
	clusterMasquerades   rule.Rule[asking]
	localMasquerades     rule.Rule[asking]
	hairpinAnswered      rule.Rule[func(n *Node, d Decision) bool]
	flowKept             rule.Rule[func(d Decision, es []*Endpoint) bool]
	flowOutlives         rule.Rule[func() bool]

	// How the proxy starts, and when it programs what.
	verified       rule.Rule[func(config *candidate.ProxyConfiguration) bool]
	configured     rule.Rule[func(n *Node, config *candidate.ProxyConfiguration)]
	minSyncPeriod  rule.Rule[func(config *candidate.ProxyConfiguration) time.Duration]
	rewritten      rule.Rule[func(n *Node, config *candidate.ProxyConfiguration)]
	started        rule.Rule[func(n *Node)]
	stopped        rule.Rule[func(n *Node)]
	reconnected    rule.Rule[func(n *Node)]
	serverMetAgain rule.Rule[func(n *Node)]
	listedAnew     rule.Rule[func(n *Node)]
	neighboursKept rule.Rule[func(n *Node)]
	changeDue      rule.Rule[timing]
	periodDue      rule.Rule[timing]
	sharedDue      rule.Rule[timing]
	synced         rule.Rule[func(n *Node, now time.Time, current *Objects)]
	writes         []rule.Rule[writing]

	// What the proxy tells of itself and of Services.
	countsForHealth rule.Rule[func(n *Node, e *Endpoint) bool]
	healthOn        rule.Rule[addressing]
	healthOpened    rule.Rule[func(n *Node, s *service, taken bool) bool]
	healthPorts     rule.Rule[func(s *service) []*servicePort]
	healthCode      rule.Rule[func(n *Node, count int) int]
	healthAnswer    rule.Rule[func(s *service, count int) *candidate.HTTPAnswer]
	healthAddress   rule.Rule[func(loopback bool) bool]
	healthz         rule.Rule[reporting]
	livez           rule.Rule[reporting]
	overdue         rule.Rule[reporting]
	metrics         []rule.Rule[measuring]
}

// newBook is the right rules.
func newBook() *book {
	return &book{
		indexed:      indexed,
		unserved:     []rule.Rule[func(*corev1.Service) bool]{ofAnotherProxy, externalNameLeft, headlessLeft},
		portServed:   portServed,
		announces:    []rule.Rule[announcing]{virtualIPKnown, clusterIPServed, externalIPServed, loadBalancerServed, nodePortServed},
		captured:     captured,
		healthPort:   healthPort,
		joined:       joined,
		endpointPort: endpointPort,
		targetPort:   targetPort,
		countedOnce:  countedOnce,
		outweighs:    outweighs,
		readyUnset:   readyUnset,
		servingUnset: servingUnset,

		inEffect:        inEffect,
		servesNodePorts: nodePortAddress,
		nodePortDefault: nodePortDefault,
		targeted:        targeted,
		claims:          claims,
		ignores:         []rule.Rule[ignoring]{externalIPsOff},
		takenForNode:    takenForNode,
		unusedPort:      unusedPort,
		unallocated:     unallocated,
		admits:          []rule.Rule[asking]{sourceRanges},
		sourceRangesOf:  sourceRangesOf,
		inSourceRange:   inSourceRange,

		internalLocal:     internalLocal,
		externalLocal:     externalLocal,
		externalTraffic:   externalTraffic,
		clusterPolicy:     clusterPolicy,
		localPolicy:       localPolicy,
		onlyElsewhere:     onlyElsewhere,
		ready:             readyEndpoint,
		lastResort:        lastResort,
		clusterLastResort: clusterLastResort,
		localLastResort:   localLastResort,
		nodeEndpoints:     nodeEndpoints,
		onNode:            onNode,
		hinted:            hinted,
		hintsComplete:     hintsComplete,
		hints:             []rule.Rule[hinting]{nodeHint, zoneHint},

		affinityAsked:    affinityAsked,
		affinityKey:      affinityKeyed,
		affinityTimeout:  affinityTimeout,
		affinityEndpoint: affinityEndpoint,
		affinityRenewed:  affinityRenewed,

		anyEndpoint:     anyEndpoint,
		roundRobin:      roundRobin,
		leastConnection: leastConnection,
		shortestDelay:   shortestDelay,
		neverQueue:      neverQueue,
		destinationHash: destinationHash,
		sourceHash:      sourceHash,

		clusterIPMasquerades: clusterIPMasquerades,
		clusterMasquerades:   clusterMasquerades,
		localMasquerades:     localMasquerades,
		hairpinAnswered:      hairpinAnswered,
		flowKept:             flowKept,
		flowOutlives:         flowOutlives,

		verified:       verified,
		configured:     configured,
		minSyncPeriod:  minSyncPeriod,
		rewritten:      rewritten,
		started:        started,
		stopped:        stopped,
		reconnected:    reconnected,
		serverMetAgain: serverMetAgain,
		listedAnew:     listedAnew,
		neighboursKept: neighboursKept,
		changeDue:      changeDue,
		periodDue:      periodDue,
		sharedDue:      sharedDue,
		synced:         synced,
		writes:         []rule.Rule[writing]{servicesWritten, flushRepaired, dropRepaired, virtualServersCleared, realServersRepaired},

		countsForHealth: countsForHealth,
		healthOn:        healthOn,
		healthOpened:    healthOpened,
		healthPorts:     healthPorts,
		healthCode:      healthCode,
		healthAnswer:    healthAnswer,
		healthAddress:   healthAddress,
		healthz:         healthz,
		livez:           livez,
		overdue:         overdue,
		metrics:         []rule.Rule[measuring]{syncMetric, programmingMetric, restoreMetrics, noLocalMetric},
	}
}

// Book returns the rules of the proxy with the requirements that they follow, sorted by name.
func Book() []rule.Entry { return rule.Entries(newBook()) }
