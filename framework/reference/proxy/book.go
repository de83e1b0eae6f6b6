package proxy

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/reference/rule"
)

// The kinds of rules.
type (
	// A choosing rule picks the endpoint of a connection among those that it may be given, of which there is one at least.
	choosing = func(c *connection, among []*Endpoint) *Endpoint
	// A keying rule says what affinity holds for.
	keying = func(sp *servicePort, client netip.Addr) affinityKey
	// A keeping rule returns the endpoint that a client had before and keeps; nil if it has to be given another one.
	keeping = func(sp *servicePort, among []*Endpoint, was netip.AddrPort) *Endpoint
)

// book is the rules of the proxy. It is read only once it is in use.
type book struct {
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
}

// newBook is the right rules.
func newBook() *book {
	return &book{
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
	}
}

// Book returns the rules of the proxy with the requirements that they follow, sorted by name.
func Book() []rule.Entry { return rule.Entries(newBook()) }
