package proxy

import (
	"hash/fnv"
	"net/netip"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// choose picks the endpoint of a connection: at random or, in ipvs mode, as the scheduler says (virtual-ips#proxy-mode-ipvs).
func (c *connection) choose(among []*Endpoint) *Endpoint {
	if !c.ipvs() {
		return c.anyEndpoint.Do(c, among)
	}
	switch c.config.Scheduler {
	case "", "rr":
		return c.roundRobin.Do(c, among)
	case "lc":
		return c.leastConnection.Do(c, among)
	case "sed":
		return c.shortestDelay.Do(c, among)
	case "nq":
		return c.neverQueue.Do(c, among)
	case "dh":
		return c.destinationHash.Do(c, among)
	case "sh":
		return c.sourceHash.Do(c, among)
	}
	return atRandom(c, among)
}

var anyEndpoint = rule.New("proxy-endpoint-at-random", atRandom,
	spec.ProxyIptablesRandom, spec.ProxyIptablesAffinityOrRandom, spec.ProxyIptablesNoRetry, spec.ProxyInternalClusterAllEndpoints, spec.ProxyExternalClusterAllEndpoints)

// atRandom gives each endpoint the same probability. Nobody looks whether the endpoint answers.
func atRandom(c *connection, among []*Endpoint) *Endpoint { return among[c.random.IntN(len(among))] }

// Rules for the IPVS schedulers.
var (
	roundRobin = rule.New("proxy-scheduler-rr", func(c *connection, among []*Endpoint) *Endpoint {
		c.turns[c.dest.port]++
		return among[c.turns[c.dest.port]%len(among)]
	}, spec.ProxyIPVSSchedulerRr)

	leastConnection = rule.New("proxy-scheduler-lc", leastConnected, spec.ProxyIPVSSchedulerLc)

	// All weights are the same, so the delay of one connection more is the shortest where the fewest are open.
	shortestDelay = rule.New("proxy-scheduler-sed", leastConnected, spec.ProxyIPVSSchedulerSed)

	neverQueue = rule.New("proxy-scheduler-nq", func(c *connection, among []*Endpoint) *Endpoint {
		for _, e := range among {
			if c.open(e.Address) <= 0 {
				return e
			}
		}
		return leastConnected(c, among)
	}, spec.ProxyIPVSSchedulerNq)

	destinationHash = rule.New("proxy-scheduler-dh", func(c *connection, among []*Endpoint) *Endpoint {
		return among[hashed(c.To.Addr())%len(among)]
	}, spec.ProxyIPVSSchedulerDh)

	sourceHash = rule.New("proxy-scheduler-sh", func(c *connection, among []*Endpoint) *Endpoint {
		return among[hashed(c.Source.Addr())%len(among)]
	}, spec.ProxyIPVSSchedulerSh)
)

func leastConnected(c *connection, among []*Endpoint) *Endpoint {
	best := among[0]
	for _, e := range among[1:] {
		if max(0, c.open(e.Address)) < max(0, c.open(best.Address)) {
			best = e
		}
	}
	return best
}

func hashed(a netip.Addr) int {
	h := fnv.New32a()
	_, _ = h.Write(a.AsSlice())
	return int(h.Sum32() & 0x7fffffff)
}
