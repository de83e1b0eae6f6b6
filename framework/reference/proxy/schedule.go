package proxy

import (
	"hash/fnv"
	"math/rand/v2"
	"net/netip"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// choose picks the endpoint of a connection: at random, each with the same probability, or, in ipvs mode, as the scheduler says
// (virtual-ips#proxy-mode-ipvs).
func (n *Node) choose(p *Packet, sp *servicePort, among []*Endpoint, random *rand.Rand, open func(netip.AddrPort) int) *Endpoint {
	if !n.ipvs() && n.faults.On(fault.BalancedUnevenly) && len(among) > 1 && random.IntN(10) < 8 {
		return among[0]
	}
	if !n.ipvs() && n.faults.On(fault.RetriesDead) { // it looks whether the endpoint is there, and takes another one if it is not
		for range 20 {
			if e := among[random.IntN(len(among))]; open(e.Address) >= 0 {
				return e
			}
		}
	}
	if !n.ipvs() && n.faults.On(fault.LastGetsRest) {
		for _, e := range among[:len(among)-1] {
			if random.IntN(len(among)) == 0 {
				return e
			}
		}
		return among[len(among)-1]
	}
	if !n.ipvs() {
		return among[random.IntN(len(among))]
	}
	scheduler := n.config.Scheduler
	if scheduler == "" {
		scheduler = "rr"
	}
	if n.faults.On(schedulerFaults[scheduler]) {
		return among[random.IntN(len(among))]
	}
	least := func(cost func(int) int) *Endpoint {
		best := among[0]
		for _, e := range among[1:] {
			if cost(max(0, open(e.Address))) < cost(max(0, open(best.Address))) {
				best = e
			}
		}
		return best
	}
	switch scheduler {
	case "rr":
		n.turns[sp]++
		return among[n.turns[sp]%len(among)]
	case "lc":
		return least(func(c int) int { return c })
	case "sed":
		return least(func(c int) int { return c + 1 }) // the delay of one more, all weights being the same
	case "nq":
		for _, e := range among {
			if open(e.Address) <= 0 {
				return e
			}
		}
		return least(func(c int) int { return c + 1 })
	case "dh":
		return among[hashed(p.To.Addr())%len(among)]
	case "sh":
		return among[hashed(p.Source.Addr())%len(among)]
	}
	return among[random.IntN(len(among))]
}

var schedulerFaults = map[string]*fault.Fault{
	"rr": fault.SchedulerRRRandom, "lc": fault.SchedulerLCRandom, "dh": fault.SchedulerDHRandom,
	"sh": fault.SchedulerSHRandom, "sed": fault.SchedulerSEDRandom, "nq": fault.SchedulerNQRandom,
}

func hashed(a netip.Addr) int {
	h := fnv.New32a()
	_, _ = h.Write(a.AsSlice())
	return int(h.Sum32() & 0x7fffffff)
}
