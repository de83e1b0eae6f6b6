package proxy

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/reference/rule"
)

// What can be wrong with the start and the end of the proxy, and with its configuration.
var startFaults = []wrong{
	{fault.IPVSUnchecked, func(b *book) { // it runs as if all were well, and serves nothing
		b.verified.Replace(func(*candidate.ProxyConfiguration) bool { return true })
	}},
	{fault.IPVSFallsBack, func(b *book) {
		b.verified.Wrap(func(right func(*candidate.ProxyConfiguration) bool) func(*candidate.ProxyConfiguration) bool {
			return func(config *candidate.ProxyConfiguration) bool {
				if !right(config) {
					config.Mode = "iptables"
				}
				return true
			}
		})
	}},
	{fault.ModeIgnored, configuredBy(func(_ *Node, config *candidate.ProxyConfiguration) { config.Mode = "iptables" })},
	{fault.ConfigurationLost, configuredBy(func(n *Node, config *candidate.ProxyConfiguration) {
		if n.Own {
			*config = candidate.ProxyConfiguration{Mode: config.Mode}
		}
	})},
	{fault.FlagsWin, func(b *book) {
		b.configured.Wrap(func(right func(*Node, *candidate.ProxyConfiguration)) func(*Node, *candidate.ProxyConfiguration) {
			return func(n *Node, config *candidate.ProxyConfiguration) {
				right(n, config)
				for _, flag := range config.Flags {
					name, value, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
					n.setByFlag(name, value)
				}
			}
		})
	}},
	{fault.MinSyncDefaultLong, minSyncOf(func(config *candidate.ProxyConfiguration, right time.Duration) time.Duration {
		if config.MinSyncPeriod == "default" || config.MinSyncPeriod == "" {
			return 10 * time.Second
		}
		return right
	})},
	{fault.MinSyncZeroIgnored, minSyncOf(func(_ *candidate.ProxyConfiguration, right time.Duration) time.Duration {
		if right == 0 {
			return defaultMinSync
		}
		return right
	})},
	{fault.ConfigurationReloaded, func(b *book) {
		b.rewritten.Replace(func(n *Node, config *candidate.ProxyConfiguration) { n.Start(*config) })
	}},
	{fault.RestartFlushes, func(b *book) {
		b.started.Wrap(func(right func(*Node)) func(*Node) {
			return func(n *Node) {
				right(n)
				if n.programmed != nil {
					n.programmed, n.lastSync = nil, farFuture
				}
			}
		})
	}},
	{fault.StartedProxyRefuses, func(b *book) {
		refused := map[*Node]map[types.UID]int{} // how many more connections
		b.started.Wrap(func(right func(*Node)) func(*Node) {
			return func(n *Node) {
				right(n)
				refused[n] = map[types.UID]int{}
				if n.programmed != nil {
					for _, s := range n.programmed.services {
						refused[n][s.UID] = 3
					}
				}
			}
		})
		for _, r := range []*rule.Rule[governing]{&b.clusterPolicy, &b.localPolicy} {
			r.Wrap(func(right governing) governing {
				return func(c *connection, all []*Endpoint) ([]*Endpoint, Answer) {
					if uid := c.dest.port.service.UID; refused[c.Node][uid] > 0 {
						refused[c.Node][uid]--
						return nil, Refuse
					}
					return right(c, all)
				}
			})
		}
	}},
	{fault.OneNodeStopsFollowing, func(b *book) {
		var stuck *Node
		rule.Find(b.writes, servicesWritten.Name).Wrap(func(right writing) writing {
			return func(n *Node, earlier, current *Objects) {
				if stuck == nil && earlier != nil && !n.Own {
					stuck = n
				}
				if n != stuck {
					right(n, earlier, current)
				}
			}
		})
	}},
	{fault.StartedProxyKeepsGone, func(b *book) {
		before := map[*Node]*Objects{} // what was programmed when the proxy started again
		b.started.Wrap(func(right func(*Node)) func(*Node) {
			return func(n *Node) {
				right(n)
				if n.programmed != nil {
					before[n] = n.programmed
				}
			}
		})
		rule.Find(b.writes, servicesWritten.Name).Wrap(func(right writing) writing {
			return func(n *Node, earlier, current *Objects) {
				right(n, earlier, current)
				if was := before[n]; was != nil {
					n.programmed = current.withGone(was)
				}
			}
		})
	}},
	{fault.ReconnectedKeepsGone, keepsGone(func(b *book) *rule.Rule[func(*Node)] { return &b.reconnected })},
	{fault.ExpiredWatchKeepsGone, keepsGone(func(b *book) *rule.Rule[func(*Node)] { return &b.listedAnew })},
	{fault.ReconnectedDeaf, func(b *book) { // its watch has ended, and it does not notice
		b.reconnected.Replace(func(n *Node) { n.cutOff = true })
	}},
	{fault.ExpiredWatchDeaf, func(b *book) { // it asks for what it missed, is told that nobody knows, and asks again
		b.listedAnew.Replace(func(n *Node) { n.cutOff = true })
	}},
	{fault.RestartedServerUnheard, func(b *book) { // it goes on to listen to the one that has gone
		b.serverMetAgain.Replace(func(n *Node) { n.cutOff = true })
	}},
	{fault.NeighboursFlushed, func(b *book) { b.neighboursKept.Replace(func(n *Node) { n.neighbours = false }) }},
	{fault.NeighboursDisturb, func(b *book) {
		b.changeDue.Wrap(func(right timing) timing {
			return func(n *Node, current *Objects, since time.Duration) bool {
				return !n.neighbours && right(n, current, since)
			}
		})
		b.periodDue.Wrap(func(right timing) timing {
			return func(n *Node, current *Objects, since time.Duration) bool {
				return !n.neighbours && right(n, current, since)
			}
		})
	}},
	{fault.RemovalsLinger, func(b *book) {
		type change struct {
			last, before *Objects
			until        time.Time
		}
		changes := map[*Node]*change{}
		b.synced.Wrap(func(right func(*Node, time.Time, *Objects)) func(*Node, time.Time, *Objects) {
			return func(n *Node, now time.Time, current *Objects) {
				right(n, now, current)
				if n.Own {
					return
				}
				c := changes[n]
				if c == nil {
					c = &change{last: current}
					changes[n] = c
				}
				if c.last != current {
					c.before, c.last, c.until = c.last, current, now.Add(15*time.Second)
				}
				if now.Before(c.until) {
					n.programmed = current.withGone(c.before)
				}
			}
		})
	}},
	{fault.StopFlushes, func(b *book) {
		b.stopped.Wrap(func(right func(*Node)) func(*Node) {
			return func(n *Node) {
				right(n)
				n.programmed = nil
			}
		})
	}},
}

// keepsGone is a fault: from a moment on, the proxy goes on to serve what had been programmed then.
func keepsGone(from func(*book) *rule.Rule[func(*Node)]) func(*book) {
	return func(b *book) {
		before := map[*Node]*Objects{}
		from(b).Replace(func(n *Node) { before[n] = n.programmed })
		rule.Find(b.writes, servicesWritten.Name).Wrap(func(right writing) writing {
			return func(n *Node, earlier, current *Objects) {
				right(n, earlier, current)
				if was := before[n]; was != nil {
					n.programmed = current.withGone(was)
				}
			}
		})
	}
}

// farFuture is later than any check: the proxy of a node that last synced then does not sync.
var farFuture = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// configuredBy is a fault: the proxy reads another configuration than it is given.
func configuredBy(change func(*Node, *candidate.ProxyConfiguration)) func(*book) {
	return func(b *book) {
		b.configured.Wrap(func(right func(*Node, *candidate.ProxyConfiguration)) func(*Node, *candidate.ProxyConfiguration) {
			return func(n *Node, config *candidate.ProxyConfiguration) {
				change(n, config)
				right(n, config)
			}
		})
	}
}

func (n *Node) setByFlag(name, value string) {
	switch name {
	case "nodeport-addresses":
		n.config.NodePortAddresses = strings.Split(value, ",")
	case "proxy-mode":
		n.config.Mode = value
	case "iptables-min-sync-period":
		n.minSync = duration(value, n.minSync)
	case "iptables-sync-period":
		n.period = duration(value, n.period)
	}
}

// minSyncOf is a fault: minSyncPeriod is another one.
func minSyncOf(wrong func(config *candidate.ProxyConfiguration, right time.Duration) time.Duration) func(*book) {
	return func(b *book) {
		b.minSyncPeriod.Wrap(func(right func(*candidate.ProxyConfiguration) time.Duration) func(*candidate.ProxyConfiguration) time.Duration {
			return func(config *candidate.ProxyConfiguration) time.Duration { return wrong(config, right(config)) }
		})
	}
}

// What can be wrong with syncs.
var syncFaults = []wrong{
	// When there is one.
	{fault.MinSyncIgnored, func(b *book) {
		b.changeDue.Replace(func(n *Node, current *Objects, since time.Duration) bool { return n.changed(current) && since >= 0 })
		b.writes = append(b.writes, bug(func(n *Node, earlier, current *Objects) {
			if n.Own && earlier != nil {
				n.syncs += int(current.Version - earlier.Version) // one for each change
			}
		}))
	}},
	{fault.ProgrammedLate, func(b *book) {
		b.changeDue.Replace(func(n *Node, current *Objects, since time.Duration) bool {
			return n.changed(current) && since >= n.period
		})
	}},
	{fault.PeriodicSyncMissing, func(b *book) { b.periodDue.Off() }},
	{fault.IPVSNotFollowing, func(b *book) {
		first := func(right timing) timing {
			return func(n *Node, current *Objects, since time.Duration) bool {
				return !(n.ipvs() && n.programmed != nil) && right(n, current, since)
			}
		}
		b.changeDue.Wrap(first)
		b.periodDue.Wrap(first)
	}},
	{fault.LateAmongMany, func(b *book) {
		b.sharedDue.Replace(func(_ *Node, current *Objects, since time.Duration) bool {
			return len(current.services) <= fewServices || since >= 2*time.Minute
		})
	}},
	{fault.MergedChangesLost, func(b *book) {
		b.synced.Wrap(func(right func(*Node, time.Time, *Objects)) func(*Node, time.Time, *Objects) {
			return func(n *Node, now time.Time, current *Objects) {
				if n.Own && n.programmed != nil && current.Version > n.programmed.Version+20 && now.Sub(n.lastSync) >= n.minSync {
					n.lastSync, n.syncs = now, n.syncs+1 // a burst, of which it believes that it was programmed
					n.programmed = n.programmed.as(current.Version)
					return
				}
				right(n, now, current)
			}
		})
	}},

	// What it writes.
	{fault.PartialSyncLoses, func(b *book) {
		rule.Find(b.writes, servicesWritten.Name).Wrap(func(right writing) writing {
			return func(n *Node, earlier, current *Objects) {
				right(n, earlier, current)
				if earlier != nil {
					n.programmed = current.without(earlier)
				}
			}
		})
	}},
	{fault.FlushNotRepaired, repairIf(flushRepaired, func(_ *Node, first bool) bool { return first })},
	{fault.FlushRepairedOnce, func(b *book) {
		repaired := map[*Node]bool{}
		repairIf(flushRepaired, func(n *Node, first bool) bool {
			if n.flushed && !first && repaired[n] {
				return false
			}
			repaired[n] = repaired[n] || n.flushed
			return true
		})(b)
	}},
	{fault.DroppedRulesNotRepaired, func(b *book) { rule.Find(b.writes, dropRepaired.Name).Off() }},
	{fault.VirtualServersKept, func(b *book) { rule.Find(b.writes, virtualServersCleared.Name).Off() }},
	{fault.RealServersNotRepaired, func(b *book) { rule.Find(b.writes, realServersRepaired.Name).Off() }},
}

// as is the same with another version.
func (o *Objects) as(version uint64) *Objects {
	c := *o
	c.Version = version
	return &c
}

// without is what there is without what has not changed, which a fault loses: every second Service that was there before.
func (o *Objects) without(earlier *Objects) *Objects {
	lost := map[string]bool{}
	for i, s := range earlier.services {
		if i%2 == 0 {
			lost[string(s.UID)] = true
		}
	}
	c := *o
	c.byTarget = map[target][]*destination{}
	for t, ds := range o.byTarget {
		kept := slices.DeleteFunc(slices.Clone(ds), func(d *destination) bool { return lost[string(d.port.service.UID)] })
		if len(kept) > 0 {
			c.byTarget[t] = kept
		}
	}
	return &c
}

// withGone is what there is with what there was before and is no longer: Services, and endpoints of Services.
func (o *Objects) withGone(before *Objects) *Objects {
	c := *o
	c.byTarget = map[target][]*destination{}
	maps.Copy(c.byTarget, before.byTarget)
	for t, ds := range o.byTarget {
		all := slices.Clone(ds)
		for i, d := range all {
			if was := before.find(d.port); was != nil {
				both := *d.port
				both.v4, both.v6 = joinedWith(d.port.v4, was.v4), joinedWith(d.port.v6, was.v6)
				all[i] = &destination{kind: d.kind, port: &both}
			}
		}
		c.byTarget[t] = all
	}
	return &c
}

// joinedWith are the endpoints of now and those of before that are not among them.
func joinedWith(now, before []*Endpoint) []*Endpoint {
	all := slices.Clone(now)
	for _, e := range before {
		if indexOf(all, e.Address) < 0 {
			all = append(all, e)
		}
	}
	return all
}

// repairIf is a fault: a sync repairs something only sometimes.
func repairIf(r rule.Rule[writing], some func(n *Node, first bool) bool) func(*book) {
	return func(b *book) {
		rule.Find(b.writes, r.Name).Wrap(func(right writing) writing {
			return func(n *Node, earlier, current *Objects) {
				if some(n, earlier == nil) {
					right(n, earlier, current)
				}
			}
		})
	}
}
