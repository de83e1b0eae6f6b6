package proxy

import (
	"net/netip"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/reference/rule"
)

// What can be wrong where a proxy goes by what was before, or by what other Services have.
var rememberedFaults = []wrong{
	{fault.AffinityLostWithEndpoints, func(b *book) {
		lost := noting(b, func(was, now *service) bool { return was != nil && was.hasEndpoints() && !now.hasEndpoints() })
		noAffinity(func(d *destination) bool { return lost[d.port.service.UID] })(b)
	}},
	{fault.AffinityChangeUnserves, func(b *book) {
		changed := noting(b, func(was, now *service) bool {
			return was != nil && was.Spec.SessionAffinity != now.Spec.SessionAffinity
		})
		ignore(func(_ *connection, d *destination) bool { return changed[d.port.service.UID] })(b)
	}},
	{fault.NodePortOfNewOnly, func(b *book) {
		without := noting(b, func(was, now *service) bool { return was == nil && now.Spec.Type == corev1.ServiceTypeClusterIP })
		announceIf(nodePortServed, func(sp *servicePort) bool { return !without[sp.service.UID] })(b)
	}},
	{fault.PortAddedLaterUnserved, func(b *book) {
		first := map[types.UID][]*servicePort{}
		noting(b, func(was, now *service) bool {
			if was == nil {
				first[now.UID] = now.ports
			}
			return false
		})
		ignore(func(_ *connection, d *destination) bool {
			return !slices.ContainsFunc(first[d.port.service.UID], func(sp *servicePort) bool {
				return sp.port.Port == d.port.port.Port && sp.port.Protocol == d.port.port.Protocol
			})
		})(b)
	}},
	{fault.RemovedPortServed, remembering(func(b *book, earlier func() *Objects) {
		afterIndexing(b, func(o *Objects) {
			for t, ds := range earlier().byTarget {
				if now := o.findService(ds[0].port.service.UID); now != nil && len(o.byTarget[t]) == 0 && ds[0].kind == ClusterIP && len(now.ports) > 0 && now.Spec.ClusterIP == t.address.String() {
					o.byTarget[t] = ds
				}
			}
		})
	})},
	{fault.LaterFamilyUnserved, func(b *book) {
		four, six := map[types.UID]bool{}, map[types.UID]bool{}
		afterIndexing(b, func(o *Objects) {
			for _, s := range o.services {
				for _, sp := range s.ports {
					if !four[s.UID] && !six[s.UID] {
						four[s.UID], six[s.UID] = len(sp.v4) > 0, len(sp.v6) > 0
					}
					if !four[s.UID] {
						sp.v4 = nil
					}
					if !six[s.UID] {
						sp.v6 = nil
					}
				}
			}
		})
	}},
	{fault.SourceRangesChangeRefuses, func(b *book) {
		changed := noting(b, func(was, now *service) bool {
			return was != nil && !reflect.DeepEqual(was.Spec.LoadBalancerSourceRanges, now.Spec.LoadBalancerSourceRanges)
		})
		refuse(b, func(c *connection) bool { return c.dest.kind == LoadBalancer && changed[c.dest.port.service.UID] })
	}},
	{fault.SourceRangesOfOthers, func(b *book) {
		refuse(b, func(c *connection) bool {
			return c.dest.kind == LoadBalancer && len(c.serviceSpec().LoadBalancerSourceRanges) == 0 &&
				slices.ContainsFunc(c.programmed.services, func(s *service) bool { return len(s.Spec.LoadBalancerSourceRanges) > 0 })
		})
	}},
	{fault.OtherFamilyIngressBlocks, remembering(func(b *book, earlier func() *Objects) {
		afterIndexing(b, func(o *Objects) {
			if slices.ContainsFunc(o.services, ingressOfOtherFamily) {
				o.services, o.byTarget, o.virtualIPs, o.healths = earlier().services, earlier().byTarget, earlier().virtualIPs, earlier().healths
			}
		})
	})},
	{fault.HeadlessTwinUnserves, func(b *book) {
		b.indexed.Wrap(func(right indexing) indexing {
			return func(o *Objects, services []*corev1.Service, of []*discoveryv1.EndpointSlice) {
				right(o, services, of)
				for _, headless := range services {
					if headless.Spec.ClusterIP != corev1.ClusterIPNone || len(headless.Spec.Selector) == 0 {
						continue
					}
					for t, ds := range o.byTarget {
						if s := ds[0].port.service; s.Namespace == headless.Namespace && reflect.DeepEqual(s.Spec.Selector, headless.Spec.Selector) {
							delete(o.byTarget, t)
						}
					}
				}
			}
		})
	}},
	{fault.SharedIngressOneProtocol, func(b *book) {
		afterIndexing(b, func(o *Objects) {
			for t, ds := range o.byTarget {
				other := t
				other.protocol = corev1.ProtocolTCP
				if others := o.byTarget[other]; t.protocol == corev1.ProtocolUDP && ds[0].kind == LoadBalancer && len(others) > 0 && others[0].port.service != ds[0].port.service {
					delete(o.byTarget, t)
				}
			}
		})
	}},
	{fault.NodePortsOnOthersAddresses, func(b *book) {
		b.claims.Wrap(func(right claiming) claiming {
			return func(c *connection, t target) *destination {
				if d := right(c, t); d != nil {
					return d
				}
				everyAddress := t
				everyAddress.address = netip.Addr{}
				for u, ds := range c.programmed.byTarget {
					if u.address == t.address && (ds[0].kind == ExternalIP || ds[0].kind == LoadBalancer) {
						if nodePorts := c.programmed.byTarget[everyAddress]; len(nodePorts) > 0 {
							return nodePorts[0]
						}
					}
				}
				return nil
			}
		})
	}},
	{fault.ExternalIPNewEndpointLost, func(b *book) {
		type member struct {
			service types.UID
			at      netip.AddrPort
		}
		joined, until, last := map[member]bool{}, map[member]time.Time{}, &Objects{}
		afterIndexing(b, func(o *Objects) {
			for _, s := range o.services {
				was := last.findService(s.UID)
				if was == nil || !was.hasEndpoints() {
					continue
				}
				for _, sp := range s.ports {
					for _, e := range slices.Concat(sp.v4, sp.v6) {
						joined[member{s.UID, e.Address}] = joined[member{s.UID, e.Address}] || !was.lists(e.Address)
					}
				}
			}
			last = o
		})
		b.clusterPolicy.Wrap(func(right governing) governing {
			return func(c *connection, all []*Endpoint) ([]*Endpoint, Answer) {
				chosen, none := right(c, all)
				if c.dest.kind != ExternalIP || len(chosen) == 0 {
					return chosen, none
				}
				e := chosen[c.random.IntN(len(chosen))]
				m := member{c.dest.port.service.UID, e.Address}
				if joined[m] && until[m].IsZero() {
					until[m] = c.now.Add(time.Minute)
				}
				if c.now.Before(until[m]) {
					return nil, Drop
				}
				return []*Endpoint{e}, none
			}
		})
	}},
	{fault.OtherFamilyNodePortSwallowed, unanswered(func(c *connection) bool {
		return c.dest.kind == NodePort && !slices.Contains(c.serviceSpec().IPFamilies, familyOf(c.To.Addr()))
	})},
	{fault.ExternalIPFirstPort, func(b *book) {
		b.claims.Wrap(func(right claiming) claiming {
			return func(c *connection, t target) *destination {
				d := right(c, t)
				if d != nil && d.kind == ExternalIP {
					return &destination{kind: d.kind, port: d.port.service.ports[0]}
				}
				return d
			}
		})
	}},
	{fault.AffinityOutsideUnserved, func(b *book) {
		for _, r := range []rule.Rule[announcing]{externalIPServed, loadBalancerServed, nodePortServed} {
			announceIf(r, func(sp *servicePort) bool { return sp.service.Spec.SessionAffinity != corev1.ServiceAffinityClientIP })(b)
		}
	}},
	{fault.NodePortsFirstAddress, nodePortsIf(func(n *Node, a netip.Addr, right bool) bool {
		first := slices.IndexFunc(n.Addresses, func(b netip.Addr) bool { return b.Is4() == a.Is4() })
		return right && (a.IsLoopback() || first >= 0 && n.Addresses[first] == a)
	})},
	{fault.UnreadyAtStopForgotten, func(b *book) {
		forgotten := map[*Node]map[netip.AddrPort]bool{}
		b.stopped.Wrap(func(right func(*Node)) func(*Node) {
			return func(n *Node) {
				right(n)
				if n.programmed == nil {
					return
				}
				unready := map[netip.AddrPort]bool{}
				for _, s := range n.programmed.services {
					for _, sp := range s.ports {
						for _, e := range slices.Concat(sp.v4, sp.v6) {
							if !e.Ready {
								unready[e.Address] = true
							}
						}
					}
				}
				forgotten[n] = unready
			}
		})
		among(b, func(c *connection, e *Endpoint) bool { return !forgotten[c.Node][e.Address] })
	}},
	{fault.FormerModeRefuses, func(b *book) {
		refused := map[*Node]map[types.UID]bool{}
		b.configured.Wrap(func(right func(*Node, *candidate.ProxyConfiguration)) func(*Node, *candidate.ProxyConfiguration) {
			return func(n *Node, config *candidate.ProxyConfiguration) {
				if n.programmed != nil && n.config.Mode != config.Mode {
					refused[n] = map[types.UID]bool{}
					for _, s := range n.programmed.services {
						refused[n][s.UID] = !s.hasEndpoints()
					}
				}
				right(n, config)
			}
		})
		among(b, func(c *connection, _ *Endpoint) bool { return !refused[c.Node][c.dest.port.service.UID] })
	}},
	{fault.BigServiceStopsSync, func(b *book) {
		stuck := map[*Node]bool{}
		rule.Find(b.writes, servicesWritten.Name).Wrap(func(right writing) writing {
			return func(n *Node, earlier, current *Objects) {
				stuck[n] = stuck[n] || slices.ContainsFunc(current.services, func(s *service) bool { return s.endpointsOfFamily() > 800 })
				if !stuck[n] || earlier == nil {
					right(n, earlier, current)
				}
			}
		})
	}},
	{fault.BigServiceUnserved, ignore(func(_ *connection, d *destination) bool { return d.port.service.endpointsOfFamily() > 900 })},
	{fault.BalancerPolicyOfCreation, func(b *book) {
		known, wasLocal := map[types.UID]bool{}, map[types.UID]bool{}
		afterIndexing(b, func(o *Objects) {
			for _, s := range o.services {
				if !known[s.UID] {
					known[s.UID], wasLocal[s.UID] = true, local(&s.Spec, LoadBalancer)
				}
			}
		})
		b.externalLocal.Wrap(func(right asking) asking {
			return func(c *connection) bool {
				if c.dest.kind == LoadBalancer {
					return wasLocal[c.dest.port.service.UID]
				}
				return right(c)
			}
		})
	}},
	{fault.NewIngressGoesWithOld, func(b *book) {
		gone, last := map[types.UID]bool{}, &Objects{}
		balanced := func(s *service) bool { return len(s.Status.LoadBalancer.Ingress) > 0 }
		afterIndexing(b, func(o *Objects) {
			for _, was := range last.services {
				if !balanced(was) || o.findService(was.UID) != nil {
					continue
				}
				var newest *service
				for _, s := range o.services {
					if balanced(s) && (newest == nil || newest.CreationTimestamp.Before(&s.CreationTimestamp)) {
						newest = s
					}
				}
				if newest != nil {
					gone[newest.UID] = true
				}
			}
			last = o
		})
		ignore(func(_ *connection, d *destination) bool { return d.kind == LoadBalancer && gone[d.port.service.UID] })(b)
	}},
	{fault.RestartSharedPortsLost, func(b *book) {
		lost := map[*Node]map[types.UID]bool{}
		b.started.Wrap(func(right func(*Node)) func(*Node) {
			return func(n *Node) {
				right(n)
				if n.programmed == nil {
					return
				}
				lost[n] = map[types.UID]bool{}
				first := map[string]types.UID{}
				for _, s := range n.programmed.services {
					for _, in := range s.Status.LoadBalancer.Ingress {
						if of, taken := first[in.IP]; taken && of != s.UID {
							lost[n][s.UID] = true
							continue
						}
						first[in.IP] = s.UID
					}
				}
			}
		})
		ignore(func(c *connection, d *destination) bool {
			return d.kind == LoadBalancer && lost[c.Node][d.port.service.UID]
		})(b)
	}},
	{fault.SwappedPortsStale, remembering(func(b *book, earlier func() *Objects) {
		afterIndexing(b, func(o *Objects) {
			for t, ds := range o.byTarget {
				was := earlier().byTarget[t]
				if ds[0].kind == LoadBalancer && len(was) > 0 && was[0].port.service.UID != ds[0].port.service.UID && o.findService(was[0].port.service.UID) != nil {
					o.byTarget[t] = was
				}
			}
		})
	})},
	{fault.SecondaryMasqueraded, func(b *book) {
		b.localMasquerades.Wrap(func(right asking) asking {
			return func(c *connection) bool { return right(c) || slices.Contains(c.SecondaryAddresses, c.To.Addr()) }
		})
	}},
	{fault.NoEndpointsHostRefused, unanswered(func(c *connection) bool { return !c.Host })},
	{fault.NoEndpointsNodePortHangs, unanswered(func(c *connection) bool { return c.dest.kind == NodePort })},
}

// hasEndpoints reports whether any port of the Service has some.
func (s *service) hasEndpoints() bool {
	return slices.ContainsFunc(s.ports, func(sp *servicePort) bool { return len(sp.v4)+len(sp.v6) > 0 })
}

// lists reports whether an endpoint of any port of the Service has the address.
func (s *service) lists(at netip.AddrPort) bool {
	return slices.ContainsFunc(s.ports, func(sp *servicePort) bool { return indexOf(sp.v4, at) >= 0 || indexOf(sp.v6, at) >= 0 })
}

// findService returns a Service of this moment; nil if it is gone.
func (o *Objects) findService(uid types.UID) *service {
	if i := slices.IndexFunc(o.services, func(s *service) bool { return s.UID == uid }); i >= 0 {
		return o.services[i]
	}
	return nil
}

// ingressOfOtherFamily reports whether the status of a Service has an address of a family that the Service has not.
func ingressOfOtherFamily(s *service) bool {
	for _, in := range s.Status.LoadBalancer.Ingress {
		a, err := netip.ParseAddr(in.IP)
		if err == nil && !slices.Contains(s.Spec.IPFamilies, familyOf(a)) {
			return true
		}
	}
	return false
}

func familyOf(a netip.Addr) corev1.IPFamily {
	if a.Is6() {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// endpointsOfFamily is how many endpoints a port of the Service has in one family, at most.
func (s *service) endpointsOfFamily() (most int) {
	for _, sp := range s.ports {
		most = max(most, len(sp.v4), len(sp.v6))
	}
	return most
}

// among is a fault: some endpoints are never chosen.
func among(b *book, some func(*connection, *Endpoint) bool) {
	for _, r := range []*rule.Rule[governing]{&b.clusterPolicy, &b.localPolicy} {
		r.Wrap(func(right governing) governing {
			return func(c *connection, all []*Endpoint) ([]*Endpoint, Answer) {
				chosen, none := right(c, all)
				return filter(chosen, func(e *Endpoint) bool { return some(c, e) }), none
			}
		})
	}
}

// afterIndexing changes what was indexed.
func afterIndexing(b *book, change func(*Objects)) {
	b.indexed.Wrap(func(right indexing) indexing {
		return func(o *Objects, services []*corev1.Service, of []*discoveryv1.EndpointSlice) {
			right(o, services, of)
			change(o)
		}
	})
}

// noting collects the Services of which something was true at a moment; was is nil when the Service is new.
func noting(b *book, some func(was, now *service) bool) map[types.UID]bool {
	noted, last := map[types.UID]bool{}, &Objects{}
	afterIndexing(b, func(o *Objects) {
		for _, now := range o.services {
			if some(last.findService(now.UID), now) {
				noted[now.UID] = true
			}
		}
		last = o
	})
	return noted
}

// refuse is a fault: some connections are dropped.
func refuse(b *book, some func(*connection) bool) {
	b.admits = append(b.admits, bug(func(c *connection) bool { return !some(c) }))
}

// unanswered is a fault: some clients of a Service without endpoints hear nothing.
func unanswered(some func(*connection) bool) func(*book) {
	return func(b *book) {
		for _, r := range []*rule.Rule[governing]{&b.clusterPolicy, &b.localPolicy} {
			r.Wrap(func(right governing) governing {
				return func(c *connection, all []*Endpoint) ([]*Endpoint, Answer) {
					among, none := right(c, all)
					if none == Refuse && some(c) {
						none = Drop
					}
					return among, none
				}
			})
		}
	}
}
