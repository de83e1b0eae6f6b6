package proxy

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/reference/rule"
)

// What can be wrong with which Services are served.
var serviceFaults = []wrong{
	{fault.ProxyNameIgnored, func(b *book) { rule.Find(b.unserved, ofAnotherProxy.Name).Off() }},
	{fault.HeadlessLabelObeyed, func(b *book) {
		b.unserved = append(b.unserved, bug(func(svc *corev1.Service) bool {
			_, labelled := svc.Labels[corev1.IsHeadlessService]
			return labelled
		}))
	}},
	{fault.ExternalNameProxied, func(b *book) { // with a cluster IP of None, too
		rule.Find(b.unserved, externalNameLeft.Name).Off()
		rule.Find(b.unserved, headlessLeft.Name).Wrap(func(right func(*corev1.Service) bool) func(*corev1.Service) bool {
			return func(svc *corev1.Service) bool { return svc.Spec.Type != corev1.ServiceTypeExternalName && right(svc) }
		})
	}},
	{fault.HeadlessProxied, func(b *book) { rule.Find(b.unserved, headlessLeft.Name).Off() }},
	{fault.DeletedServiceStops, func(b *book) {
		b.unserved = append(b.unserved, bug(func(svc *corev1.Service) bool { return svc.DeletionTimestamp != nil }))
	}},
	{fault.DualStackIgnored, func(b *book) {
		b.unserved = append(b.unserved, bug(func(svc *corev1.Service) bool { return len(svc.Spec.ClusterIPs) > 1 }))
		announceIf(clusterIPServed, func(sp *servicePort) bool {
			policy := sp.service.Spec.IPFamilyPolicy
			return policy == nil || *policy == corev1.IPFamilyPolicySingleStack
		})(b)
	}},
	{fault.ServicesBeyondTable, func(b *book) {
		b.indexed.Wrap(func(right indexing) indexing {
			return func(o *Objects, services []*corev1.Service, of []*discoveryv1.EndpointSlice) {
				var few []*corev1.Service
				for _, svc := range services {
					if len(few) < fewServices && !b.leaves(svc) {
						few = append(few, svc)
					}
				}
				right(o, few, of)
			}
		})
	}},
	{fault.DeletedServiceServed, keepServing(func(now *corev1.Service) bool { return now == nil })},
	{fault.ExternalNameKeepsClusterIP, keepServing(func(now *corev1.Service) bool {
		return now != nil && now.Spec.Type == corev1.ServiceTypeExternalName
	})},
}

// fewServices is where faults of many Services begin.
const fewServices = 500

// keepServing is a fault: what a Service was before goes on to be served, by what has become of the Service.
func keepServing(some func(now *corev1.Service) bool) func(*book) {
	return remembering(func(b *book, earlier func() *Objects) {
		b.indexed.Wrap(func(right indexing) indexing {
			return func(o *Objects, services []*corev1.Service, of []*discoveryv1.EndpointSlice) {
				now := map[types.UID]*corev1.Service{}
				for _, s := range services {
					now[s.UID] = s
				}
				all := append([]*corev1.Service{}, services...)
				for _, s := range earlier().services {
					if some(now[s.UID]) {
						all = append(all, s.Service)
					}
				}
				right(o, all, of)
			}
		})
	})
}

// HeadlessTarget is where a fault sends a packet for a pod on the port of a headless Service that it is an endpoint of.
func (o *Objects) HeadlessTarget(to netip.AddrPort, protocol corev1.Protocol) (netip.AddrPort, bool) {
	for _, s := range o.services {
		if s.Spec.ClusterIP != corev1.ClusterIPNone {
			continue
		}
		for _, sp := range s.ports {
			if uint16(sp.port.Port) != to.Port() || sp.port.Protocol != protocol {
				continue
			}
			for _, e := range sp.endpoints(to.Addr().Is6()) {
				if e.Address.Addr() == to.Addr() {
					return netip.AddrPortFrom(to.Addr(), uint16(sp.port.TargetPort.IntVal)), true
				}
			}
		}
	}
	return netip.AddrPort{}, false
}

// What can be wrong with the addresses that lead to a port.
var announceFaults = []wrong{
	{fault.TCPNotServed, noPort(func(sp *servicePort) bool { return sp.port.Protocol == corev1.ProtocolTCP })},
	{fault.UDPNotServed, noPort(func(sp *servicePort) bool { return sp.port.Protocol == corev1.ProtocolUDP })},
	{fault.SCTPNotServed, noPort(func(sp *servicePort) bool { return sp.port.Protocol == corev1.ProtocolSCTP })},
	{fault.AppProtocolNotServed, noPort(func(sp *servicePort) bool { return sp.port.AppProtocol != nil })},
	{fault.FirstPortOnly, noPort(func(sp *servicePort) bool { return !isFirst(sp) })},

	{fault.ClusterIPNotServed, func(b *book) { rule.Find(b.announces, clusterIPServed.Name).Off() }},
	{fault.ClusterIPLostWithNodePort, announceIf(clusterIPServed, func(sp *servicePort) bool {
		return sp.service.Spec.Type == corev1.ServiceTypeClusterIP
	})},
	{fault.SecondaryNotServed, func(b *book) {
		rule.Find(b.announces, clusterIPServed.Name).Replace(func(o *Objects, sp *servicePort) {
			for _, ip := range sp.service.Spec.ClusterIPs[:min(1, len(sp.service.Spec.ClusterIPs))] {
				o.lead(ClusterIP, ip, sp.port.Port, sp)
			}
		})
	}},

	{fault.LoadBalancerNotServed, func(b *book) { rule.Find(b.announces, loadBalancerServed.Name).Off() }},
	{fault.LoadBalancerNeedsNodePort, announceIf(loadBalancerServed, func(sp *servicePort) bool { return sp.port.NodePort != 0 })},
	{fault.LoadBalancerOneProtocol, announceIf(loadBalancerServed, func(sp *servicePort) bool {
		return sp.port.Protocol == sp.service.ports[0].port.Protocol
	})},
	{fault.IPModeProxyCaptured, func(b *book) { b.captured.Replace(func(*corev1.LoadBalancerIngress) bool { return true }) }},
	{fault.IPModeVIPIgnored, func(b *book) {
		b.captured.Replace(func(in *corev1.LoadBalancerIngress) bool { return in.IPMode == nil })
	}},

	{fault.NodePortNotServed, func(b *book) { rule.Find(b.announces, nodePortServed.Name).Off() }},
	{fault.NodePortOfFirstOnly, announceIf(nodePortServed, isFirst)},
	{fault.OtherFamilyExternalIPBlocks, noPort(func(sp *servicePort) bool {
		return slices.ContainsFunc(sp.service.Spec.ExternalIPs, func(ip string) bool {
			a, err := netip.ParseAddr(ip)
			family := corev1.IPv4Protocol
			if a.Is6() {
				family = corev1.IPv6Protocol
			}
			return err == nil && !slices.Contains(sp.service.Spec.IPFamilies, family)
		})
	})},
	{fault.SharedAddressGoesWithFirst, loseShared},
	{fault.ClusterIPOnNodes, func(b *book) {
		b.announces = append(b.announces, bug(func(o *Objects, sp *servicePort) {
			if sp.service.Spec.Type == corev1.ServiceTypeClusterIP {
				o.lead(NodePort, "", sp.port.Port, sp)
			}
		}))
	}},
}

// loseShared is a fault: with a Service, the addresses go that others have in common with it.
func loseShared(b *book) {
	lost := map[target]types.UID{} // of whom
	remembering(func(b *book, earlier func() *Objects) {
		b.indexed.Wrap(func(right indexing) indexing {
			return func(o *Objects, services []*corev1.Service, of []*discoveryv1.EndpointSlice) {
				right(o, services, of)
				there := map[types.UID]bool{}
				for _, s := range o.services {
					there[s.UID] = true
				}
				gone := map[netip.Addr]bool{}
				for t, ds := range earlier().byTarget {
					if d := ds[0]; (d.kind == ExternalIP || d.kind == LoadBalancer) && !there[d.port.service.UID] {
						gone[t.address] = true
					}
				}
				for t, ds := range o.byTarget {
					uid := ds[0].port.service.UID
					if gone[t.address] && len(earlier().byTarget[t]) > 0 {
						lost[t] = uid
					}
					if lost[t] == uid {
						delete(o.byTarget, t)
					}
				}
			}
		})
	})(b)
}

func isFirst(sp *servicePort) bool { return sp == sp.service.ports[0] }

// noPort is a fault: some ports are not served.
func noPort(some func(*servicePort) bool) func(*book) {
	return func(b *book) {
		b.portServed.Wrap(func(right func(*servicePort) bool) func(*servicePort) bool {
			return func(sp *servicePort) bool { return right(sp) && !some(sp) }
		})
	}
}

// announceIf is a fault: addresses of one kind lead to some ports only.
func announceIf(r rule.Rule[announcing], some func(*servicePort) bool) func(*book) {
	return func(b *book) {
		rule.Find(b.announces, r.Name).Wrap(func(right announcing) announcing {
			return func(o *Objects, sp *servicePort) {
				if some(sp) {
					right(o, sp)
				}
			}
		})
	}
}

// What can be wrong with which health check node ports there are.
var healthPortFaults = []wrong{
	{fault.HealthCheckPortKept, keepHealths(func(was, now *service) *service {
		if now == nil {
			return was
		}
		return nil
	})},
	{fault.HealthCheckPortUnneeded, keepHealths(func(_, now *service) *service {
		if now != nil && now.Spec.HealthCheckNodePort == 0 {
			return now
		}
		return nil
	})},
	{fault.HealthCheckPortFirst, func(b *book) {
		first := map[types.UID]int{} // the first port that a Service ever had
		b.healthPort.Wrap(func(right func(*Objects, *service)) func(*Objects, *service) {
			return func(o *Objects, s *service) {
				switch port := int(s.Spec.HealthCheckNodePort); {
				case port == 0:
				case first[s.UID] == 0:
					first[s.UID] = port
					right(o, s)
				default:
					o.healths[first[s.UID]] = s
				}
			}
		})
	}},
}

// keepHealths is a fault: a port that was open stays open for the Service that keep returns, if any.
func keepHealths(keep func(was, now *service) *service) func(*book) {
	return remembering(func(b *book, earlier func() *Objects) {
		b.indexed.Wrap(func(right indexing) indexing {
			return func(o *Objects, services []*corev1.Service, of []*discoveryv1.EndpointSlice) {
				right(o, services, of)
				now := map[types.UID]*service{}
				for _, s := range o.services {
					now[s.UID] = s
				}
				for port, was := range earlier().healths {
					if o.healths[port] != nil {
						continue
					}
					if s := keep(was, now[was.UID]); s != nil {
						o.healths[port] = s
					}
				}
			}
		})
	})
}
