package reference

import (
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/apiserver"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/reference/proxy"
)

// Faults are the deliberate bugs that are switched on.
type Faults = fault.Set

// wrong is a fault and what it changes in the book of rules.
type wrong fault.Edit[book]

// wrongs are all faults of the world itself.
var wrongs = slices.Concat(balancerFaults, podFaults, packetFaults, wayFaults)

// bookWith makes the rules of one world with the deliberate bugs that are switched on.
func bookWith(faults Faults) *book { return fault.Apply(newBook(), wrongs, faults) }

// What can be wrong with load balancers.
var balancerFaults = []wrong{
	{fault.BalancersNeverMade, func(b *book) { b.balancersMade.Off() }},
	{fault.BalancersOfAnyClass, func(b *book) {
		foreign := map[types.UID]bool{} // Services whose status somebody else has set
		b.balancerWanted.Wrap(func(right wanting) wanting {
			return func(w *world, svc *corev1.Service) bool {
				if svc.Spec.Type != corev1.ServiceTypeLoadBalancer || svc.Spec.LoadBalancerClass == nil {
					return right(w, svc)
				}
				if len(svc.Status.LoadBalancer.Ingress) > 0 && w.balancers.of[svc.UID] == nil {
					foreign[svc.UID] = true
				}
				return !foreign[svc.UID]
			}
		})
	}},
	{fault.BalancerFinalizerMissing, func(b *book) { b.finalizerFirst.Off() }},
	{fault.BalancerFinalizerStays, func(b *book) { b.deletedCleanedUp.Off() }},
	{fault.BalancerOutlivesType, func(b *book) { b.retypedCleanedUp.Off() }},
	{fault.BalancerLeftBehind, balancerKept(func(svc *corev1.Service) bool { return svc.DeletionTimestamp != nil })},
	{fault.BalancerServesOn, balancerKept(func(svc *corev1.Service) bool { return svc.DeletionTimestamp == nil })},
	{fault.BalancerNotRemade, func(b *book) {
		had := map[types.UID]bool{}
		b.balancerDeleted.Wrap(func(right func(*world, *corev1.Service)) func(*world, *corev1.Service) {
			return func(w *world, of *corev1.Service) {
				right(w, of)
				had[of.UID] = true
			}
		})
		b.balancerWanted.Wrap(func(right wanting) wanting {
			return func(w *world, svc *corev1.Service) bool { return !had[svc.UID] && right(w, svc) }
		})
	}},
	{fault.BalancerKeepsFirstPolicy, func(b *book) {
		b.balancerUpdated.Wrap(func(right updating) updating {
			return func(b *balancer, nodes []string, svc *corev1.Service) {
				was := *b
				right(b, nodes, svc)
				if was.ports != nil {
					b.health = was.health
				}
			}
		})
	}},
	{fault.BalancerKeepsDeletedNodes, func(b *book) {
		used := map[string]bool{}
		b.balancedNodes.Wrap(func(right func(*world) []string) func(*world) []string {
			return func(w *world) []string {
				names := right(w)
				for _, name := range names {
					used[name] = true
				}
				for name := range used {
					if w.nodes[name] != nil && w.server.Node(name) == nil {
						names = append(names, name)
					}
				}
				slices.Sort(names)
				return names
			}
		})
	}},
	{fault.BalancerRemadeByNodes, func(b *book) {
		type former struct {
			*balancer
			nodes []string
		}
		gone := map[types.UID]former{}
		b.balancerDeleted.Wrap(func(right func(*world, *corev1.Service)) func(*world, *corev1.Service) {
			return func(w *world, of *corev1.Service) {
				if was := w.balancers.of[of.UID]; was != nil && gone[of.UID].balancer == nil {
					gone[of.UID] = former{was, w.book.balancedNodes.Do(w)}
				}
				right(w, of)
			}
		})
		b.balancersMade.Wrap(func(right func(*world, []*corev1.Service) bool) func(*world, []*corev1.Service) bool {
			return func(w *world, services []*corev1.Service) bool {
				wrote := right(w, services)
				for _, svc := range services {
					was := gone[svc.UID]
					if svc.DeletionTimestamp != nil && was.balancer != nil && !slices.Equal(was.nodes, w.book.balancedNodes.Do(w)) {
						w.balancers.of[svc.UID] = was.balancer
					}
				}
				return wrote
			}
		})
	}},
	{fault.BalancerAsksNobody, func(b *book) { b.balancerAsks.Replace(func(*host, int, bool) bool { return true }) }},
	{fault.BalancerAsksOnce, func(b *book) {
		type place struct {
			node string
			port int
			ipv6 bool
		}
		said := map[place]bool{} // of nodes that had endpoints
		b.balancerAsks.Wrap(func(right asked) asked {
			return func(h *host, port int, ipv6 bool) bool {
				at := place{h.Name, port, ipv6}
				said[at] = said[at] || right(h, port, ipv6)
				return said[at]
			}
		})
	}},
	{fault.BalancerUsesExcluded, func(b *book) { b.balancesAmong.Replace(func(*corev1.Node) bool { return true }) }},
}

// What can be wrong with nodes and pods.
var podFaults = []wrong{
	{fault.ProxyAwaitsAddress, func(b *book) {
		b.servesBeforeNode.Replace(func(n *corev1.Node) bool { return n != nil && len(n.Status.Addresses) > 0 })
	}},
	{fault.ProxyAwaitsNode, func(b *book) { b.servesBeforeNode.Replace(func(n *corev1.Node) bool { return n != nil }) }},
	{fault.ZoneChangeMissed, func(b *book) { b.zoneFollowed.Off() }},
	{fault.NodeDeletionIgnored, func(b *book) { b.deletedNodeDrains.Off() }},
	{fault.ReadinessProbeIgnored, func(b *book) { b.probeDecides.Replace(func(bool) bool { return true }) }},
	{fault.TerminatingCut, func(b *book) { b.terminatingLives.Replace(func(life int) int { return life + 1 }) }},
}

// What can be wrong with packets.
var packetFaults = []wrong{
	{fault.OutsideBackendsUnserved, func(b *book) { b.outsideReached.Off() }},
	{fault.OutsideBackendsFromOutside, func(b *book) { b.outsideReached.Replace(func(from *sender) bool { return from.inside }) }},
	{fault.FragmentsLost, losing(func(c *carriage) bool { return c.protocol == corev1.ProtocolUDP && c.payload > packetRoom })},
	{fault.FragmentsNeedFirst, losing(func(c *carriage) bool { return c.reversed && c.served })},
	{fault.FragmentsLostBetweenNodes, losing(func(c *carriage) bool { return c.protocol == corev1.ProtocolUDP && c.payload > packetRoom && c.away })},
	{fault.DirectReturnTooBig, losing(func(c *carriage) bool { return c.outward && c.away && c.payload > packetRoom })},
	{fault.StreamsCut, losing(func(c *carriage) bool { return c.protocol == corev1.ProtocolTCP && c.payload > streamRoom })},
	{fault.TooBigUntoldToClients, losing(func(c *carriage) bool { return c.toNarrow && c.payload > candidate.NarrowMTU })},
	{fault.TooBigUntoldToBackends, losing(func(c *carriage) bool { return c.fromNarrow && c.payload > candidate.NarrowMTU })},
	{fault.HeadlessProxied, func(b *book) {
		b.headlessPassed.Replace(func(d *dataPlane, p *candidate.Probe) netip.AddrPort {
			if d.world.byAddr[p.To.Addr()] != nil {
				if to, ok := d.world.current().HeadlessTarget(p.To, p.Protocol); ok {
					return to
				}
			}
			return p.To
		})
	}},
	{fault.ReplyFromPod, func(b *book) { b.replyFromVIP.Off() }}, // and the client does not know who answers there
	{fault.BusyFlowStale, func(b *book) { b.flowLookedAt.Replace(func(f *flow, busy bool) bool { return f == nil || !busy }) }},
	{fault.UDPFlowOlderThanProxyStale, func(b *book) {
		b.flowLookedAt.Replace(func(f *flow, _ bool) bool { return f == nil || f.starts == f.node.Starts() })
	}},
	{fault.RestartCutsFurtherSlices, func(b *book) {
		b.connectionKept.Replace(func(f *flow, six bool) bool {
			return f.decision.Answer != proxy.Forward || f.starts == f.node.Starts() || f.node.IsFirst(f.decision, six)
		})
	}},
	{fault.HealthOfConnectedKept, func(b *book) { b.healthLookedAt.Replace(func(connected bool) bool { return !connected }) }},
	{fault.EndedConnectionRemembered, func(b *book) { b.endedForgotten.Off() }},
	{fault.FlowsOfOnePortConfused, func(b *book) { b.flowsToldApart.Off() }},
	{fault.DNSReverseRemembered, func(b *book) {
		b.reverseForgotten.Replace(func(before, now candidate.Resolution) candidate.Resolution { return before })
	}},
	{fault.DNSMissRemembered, func(b *book) { b.missForgotten.Replace(func(ago time.Duration) bool { return ago > time.Minute }) }},
	{fault.EqualPortsUnanswered, func(b *book) {
		b.replyFromVIP.Replace(func(source, to netip.AddrPort) bool { return source.Port() != to.Port() })
	}},
	{fault.BusyFlowLost, func(b *book) { b.flowLookedAt.Replace(func(f *flow, busy bool) bool { return f != nil || !busy }) }},
	{fault.UDPFlowBegunEarlyLost, func(b *book) { b.flowLookedAt.Replace(func(f *flow, _ bool) bool { return f != nil }) }},
	{fault.NFTablesRangeNotAdded, func(b *book) { b.rangesForNFTables.Replace((*apiserver.Server).ServiceCIDRs) }},
}

// balancerKept is a fault: the load balancers of some Services are not deleted.
func balancerKept(of func(*corev1.Service) bool) func(*book) {
	return func(b *book) {
		b.balancerDeleted.Wrap(func(right func(*world, *corev1.Service)) func(*world, *corev1.Service) {
			return func(w *world, svc *corev1.Service) {
				if !of(svc) {
					right(w, svc)
				}
			}
		})
	}
}

// packetRoom is what a packet holds of a datagram, streamRoom what faulty proxies let through of a stream.
const packetRoom, streamRoom = 1472, 64 << 10

// losing is a fault: some of what Services redirect is lost.
func losing(lost func(*carriage) bool) func(*book) {
	return func(b *book) { b.payloadCarried.Replace(func(c *carriage) bool { return !c.served || !lost(c) }) }
}
