package proxy

import "github.com/service-conformance/conformance/framework/reference/fault"

// What can be wrong with the choice of an endpoint.
var scheduleFaults = []wrong{
	{fault.BalancedUnevenly, func(b *book) {
		b.anyEndpoint.Wrap(func(right choosing) choosing {
			return func(c *connection, among []*Endpoint) *Endpoint {
				if len(among) > 1 && c.random.IntN(10) < 8 {
					return among[0]
				}
				return right(c, among)
			}
		})
	}},
	{fault.RetriesDead, func(b *book) { // it looks whether the endpoint is there, and takes another one if it is not
		b.anyEndpoint.Wrap(func(right choosing) choosing {
			return func(c *connection, among []*Endpoint) *Endpoint {
				for range 20 {
					if e := right(c, among); c.open(e.Address) >= 0 {
						return e
					}
				}
				return right(c, among)
			}
		})
	}},
	{fault.LastGetsRest, func(b *book) {
		b.anyEndpoint.Replace(func(c *connection, among []*Endpoint) *Endpoint {
			for _, e := range among[:len(among)-1] {
				if c.random.IntN(len(among)) == 0 {
					return e
				}
			}
			return among[len(among)-1]
		})
	}},
	{fault.SchedulerRRRandom, func(b *book) { b.roundRobin.Replace(atRandom) }},
	{fault.SchedulerLCRandom, func(b *book) { b.leastConnection.Replace(atRandom) }},
	{fault.SchedulerSEDRandom, func(b *book) { b.shortestDelay.Replace(atRandom) }},
	{fault.SchedulerNQRandom, func(b *book) { b.neverQueue.Replace(atRandom) }},
	{fault.SchedulerDHRandom, func(b *book) { b.destinationHash.Replace(atRandom) }},
	{fault.SchedulerSHRandom, func(b *book) { b.sourceHash.Replace(atRandom) }},
}
