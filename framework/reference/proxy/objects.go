// Package proxy is the reference's own reading of how a node treats packets for Services: which Service they are for, which of its
// endpoints get them, and what those see. It decides from the objects, the node where a packet enters and the time; it sends nothing.
package proxy

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// Rules are the rules of the proxies of one cluster.
type Rules struct {
	*book
	faults fault.Set
}

// Objects are the Services, EndpointSlices and Service ranges of one moment, indexed for packets. They are immutable and safe for concurrent use.
type Objects struct {
	// Version tells moments apart.
	Version uint64
	// ServiceRanges are those that virtual IPs are taken from.
	ServiceRanges []netip.Prefix

	*book
	faults     fault.Set
	services   []*service
	byTarget   map[target][]*destination
	virtualIPs map[netip.Addr]bool // those that there are
	healths    map[int]*service    // by health check node port

	firstHealths map[types.UID]int // for a fault
}

// ServiceLabel names the Service of an EndpointSlice.
const serviceLabel = discoveryv1.LabelServiceName

// labelProxyName leaves a Service to another proxy (KEP-2447).
const labelProxyName = "service.kubernetes.io/service-proxy-name"

// service is a Service with its endpoints.
type service struct {
	*corev1.Service
	ports []*servicePort
}

// servicePort is a port of a Service with the endpoints that serve it, by family.
type servicePort struct {
	service *service
	port    corev1.ServicePort
	v4, v6  []*Endpoint
}

func (p *servicePort) endpoints(ipv6 bool) []*Endpoint {
	if ipv6 {
		return p.v6
	}
	return p.v4
}

// target is what a packet is sent to.
type target struct {
	address  netip.Addr // invalid stands for every address of a node
	port     uint16
	protocol corev1.Protocol
}

// Kind is the kind of address that a packet was sent to.
type Kind int

// The kinds.
const (
	ClusterIP Kind = iota
	ExternalIP
	LoadBalancer
	NodePort
)

// destination is a port of a Service behind one kind of address.
type destination struct {
	kind Kind
	port *servicePort
}

// NewObjects indexes Services and EndpointSlices. earlier is what was known before; only faults look at it.
func (r *Rules) NewObjects(version uint64, services []*corev1.Service, slices []*discoveryv1.EndpointSlice, ranges []netip.Prefix, earlier *Objects) *Objects {
	o := &Objects{Version: version, ServiceRanges: ranges, book: r.book, faults: r.faults, byTarget: map[target][]*destination{}, virtualIPs: map[netip.Addr]bool{}, healths: map[int]*service{}}
	bySvc := map[string][]*discoveryv1.EndpointSlice{}
	for _, s := range slices {
		if name := s.Labels[serviceLabel]; name != "" {
			bySvc[s.Namespace+"/"+name] = append(bySvc[s.Namespace+"/"+name], s)
		}
	}
	services = o.withFormer(services, earlier)
	endpoints := 0
	for _, svc := range services {
		if !o.proxied(svc) || len(o.services) == fewServices && o.faults.On(fault.ServicesBeyondTable) {
			continue
		}
		s := &service{Service: svc}
		o.services = append(o.services, s)
		for _, p := range svc.Spec.Ports {
			sp := &servicePort{service: s, port: p}
			o.join(sp, bySvc[svc.Namespace+"/"+svc.Name], earlier)
			if endpoints += len(sp.v4); endpoints > fewEndpoints && o.faults.On(fault.EndpointsBeyondTable) {
				sp.v4 = sp.v4[:min(1, len(sp.v4))]
			}
			s.ports = append(s.ports, sp)
			o.announce(sp)
		}
		if svc.Spec.HealthCheckNodePort != 0 {
			o.healths[int(svc.Spec.HealthCheckNodePort)] = s
		}
	}
	o.keepHealths(earlier)
	return o
}

// Beyond these numbers faults begin.
const (
	fewServices  = 500
	fewEndpoints = 5000
)

// keepHealths is where faults keep health check node ports open that were open earlier.
func (o *Objects) keepHealths(earlier *Objects) {
	if o.faults.On(fault.HealthCheckPortFirst) {
		o.onFirstHealth(earlier)
	}
	if earlier == nil || !o.faults.On(fault.HealthCheckPortKept) && !o.faults.On(fault.HealthCheckPortUnneeded) {
		return
	}
	now := map[types.UID]*service{}
	for _, s := range o.services {
		now[s.UID] = s
	}
	for port, s := range earlier.healths {
		is := now[s.UID]
		switch {
		case o.healths[port] != nil:
		case is == nil && o.faults.On(fault.HealthCheckPortKept):
			o.healths[port] = s
		case is != nil && is.Spec.HealthCheckNodePort == 0 && o.faults.On(fault.HealthCheckPortUnneeded):
			o.healths[port] = is
		}
	}
}

// onFirstHealth leaves every Service on the first health check node port that it ever had.
func (o *Objects) onFirstHealth(earlier *Objects) {
	o.firstHealths = map[types.UID]int{}
	for _, s := range o.services {
		port := int(s.Spec.HealthCheckNodePort)
		if earlier != nil && earlier.firstHealths[s.UID] != 0 {
			delete(o.healths, port)
			if o.firstHealths[s.UID] = earlier.firstHealths[s.UID]; port != 0 {
				o.healths[o.firstHealths[s.UID]] = s
			}
		} else if port != 0 {
			o.firstHealths[s.UID] = port
		}
	}
}

// proxied reports whether this proxy serves the Service.
func (o *Objects) proxied(svc *corev1.Service) bool {
	switch {
	case svc.Labels[labelProxyName] != "" && !o.faults.On(fault.ProxyNameIgnored):
		return false
	case svc.Spec.Type == corev1.ServiceTypeExternalName:
		return o.faults.On(fault.ExternalNameProxied)
	case svc.Spec.ClusterIP == corev1.ClusterIPNone:
		return o.faults.On(fault.HeadlessProxied)
	case svc.DeletionTimestamp != nil && o.faults.On(fault.DeletedServiceStops):
		return false
	case len(svc.Spec.ClusterIPs) > 1 && o.faults.On(fault.DualStackIgnored):
		return false
	}
	return true
}

// announce enters the addresses that lead to a port.
func (o *Objects) announce(sp *servicePort) {
	svc := sp.service.Service
	protocol := sp.port.Protocol
	switch {
	case protocol == corev1.ProtocolUDP && o.faults.On(fault.UDPNotServed), protocol == corev1.ProtocolSCTP && o.faults.On(fault.SCTPNotServed),
		protocol == corev1.ProtocolTCP && o.faults.On(fault.TCPNotServed), sp.port.AppProtocol != nil && o.faults.On(fault.AppProtocolNotServed),
		sp != sp.service.first() && o.faults.On(fault.FirstPortOnly):
		return
	}
	enter := func(kind Kind, address string, port int32) {
		var to netip.Addr
		if address != "" {
			a, err := netip.ParseAddr(address)
			if err != nil {
				return
			}
			to = a
		}
		t := o.targeted.Do(to, uint16(port), protocol)
		d := &destination{kind: kind, port: sp}
		o.byTarget[t] = append(o.byTarget[t], d)
	}
	for i, ip := range svc.Spec.ClusterIPs {
		if ip == corev1.ClusterIPNone {
			continue
		}
		if a, err := netip.ParseAddr(ip); err == nil {
			o.virtualIPs[a] = true
		}
		if o.hidesClusterIP(svc, i) {
			continue
		}
		enter(ClusterIP, ip, sp.port.Port)
	}
	for _, ip := range svc.Spec.ExternalIPs {
		enter(ExternalIP, ip, sp.port.Port)
	}
	for _, in := range svc.Status.LoadBalancer.Ingress {
		if o.captures(sp, in) {
			enter(LoadBalancer, in.IP, sp.port.Port)
		}
	}
	if sp.port.NodePort != 0 && !o.faults.On(fault.NodePortNotServed) && !(sp != sp.service.first() && o.faults.On(fault.NodePortOfFirstOnly)) {
		enter(NodePort, "", sp.port.NodePort)
	}
	if svc.Spec.Type == corev1.ServiceTypeClusterIP && o.faults.On(fault.ClusterIPOnNodes) {
		enter(NodePort, "", sp.port.Port)
	}
}

func (s *service) first() *servicePort {
	if len(s.ports) == 0 {
		return nil // the port that asks is the first one
	}
	return s.ports[0]
}

// hidesClusterIP is where faults keep a virtual IP from being served.
func (o *Objects) hidesClusterIP(svc *corev1.Service, i int) bool {
	switch {
	case o.faults.On(fault.ClusterIPNotServed):
		return true
	case svc.Spec.Type != corev1.ServiceTypeClusterIP && o.faults.On(fault.ClusterIPLostWithNodePort):
		return true
	case i > 0 && o.faults.On(fault.SecondaryNotServed):
		return true
	case i == 0 && len(svc.Spec.ClusterIPs) == 1 && svc.Spec.IPFamilyPolicy != nil && *svc.Spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack && o.faults.On(fault.DualStackIgnored):
		return true
	}
	return false
}

// captures reports whether the node takes traffic for a load-balancer address itself: with ipMode VIP, which is the default (KEP-1860).
func (o *Objects) captures(sp *servicePort, in corev1.LoadBalancerIngress) bool {
	proxy := in.IPMode != nil && *in.IPMode == corev1.LoadBalancerIPModeProxy
	switch {
	case in.IP == "" || o.faults.On(fault.LoadBalancerNotServed):
		return false
	case proxy:
		return o.faults.On(fault.IPModeProxyCaptured)
	case in.IPMode != nil && o.faults.On(fault.IPModeVIPIgnored):
		return false
	case sp.port.NodePort == 0 && o.faults.On(fault.LoadBalancerNeedsNodePort):
		return false
	case sp != sp.service.first() && sp.service.first() != nil && sp.service.first().port.Protocol != sp.port.Protocol && o.faults.On(fault.LoadBalancerOneProtocol):
		return false
	}
	return true
}

// withFormer is where a fault keeps serving the virtual IP of a Service that has become ExternalName.
func (o *Objects) withFormer(services []*corev1.Service, earlier *Objects) []*corev1.Service {
	if earlier == nil || !o.faults.On(fault.ExternalNameKeepsClusterIP) && !o.faults.On(fault.DeletedServiceServed) {
		return services
	}
	now := map[string]*corev1.Service{}
	for _, s := range services {
		now[string(s.UID)] = s
	}
	out := append([]*corev1.Service{}, services...)
	for _, s := range earlier.services {
		is := now[string(s.UID)]
		if is == nil && o.faults.On(fault.DeletedServiceServed) || is != nil && is.Spec.Type == corev1.ServiceTypeExternalName && o.faults.On(fault.ExternalNameKeepsClusterIP) {
			out = append(out, s.Service)
		}
	}
	return out
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
