package fault

import "github.com/service-conformance/conformance/framework/spec"

// Bugs that only large contents meet.
var (
	FragmentsLost = New("fragments-lost", "Datagrams that take more than one packet are lost where a Service redirects them.",
		spec.ProxyLargeDatagrams)
	FragmentsNeedFirst = New("fragments-need-first", "Packets of a datagram that come before its first one are lost where a Service redirects them.",
		spec.ProxyLargeDatagrams)
	FragmentsLostBetweenNodes = New("fragments-lost-between-nodes", "Datagrams that take more than one packet are lost where the backend is on another node.",
		spec.ProxyLargeDatagrams)
	DirectReturnTooBig = New("direct-return-too-big", "What fills its packets is lost where a load-balancer address leads clients outside to another node.",
		spec.ProxyLargeDatagrams, spec.ProxyLargeStreams, spec.ProxyNarrowLinks)
	StreamsCut = New("streams-cut", "A stream through a Service stands still after 64 KiB.",
		spec.ProxyLargeStreams)
	TooBigUntoldToClients = New("too-big-untold-to-clients", "A client is not told that its packets are too big for the link of the backend.",
		spec.ProxyNarrowLinks)
	TooBigUntoldToBackends = New("too-big-untold-to-backends", "A backend is not told that its packets are too big for the link of the client.",
		spec.ProxyNarrowLinks)
	OutsideBackendsUnserved = New("outside-backends-unserved", "Endpoints that are neither pods nor nodes get no connections.",
		spec.ProxyOutsideBackends)
	OutsideBackendsFromOutside = New("outside-backends-from-outside", "Clients outside of the cluster reach no endpoints outside of it.",
		spec.ProxyOutsideBackends)
)
