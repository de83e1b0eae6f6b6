// Package proxy is the reference's own reading of how a node treats packets for Services. It decides which Service they
// are for, which of its endpoints get them, and what those see. It decides from the objects, the node where a packet
// enters and the time; it sends nothing.
package proxy

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// Rules are the rules of the proxies of one cluster. All of its nodes and objects share them.
type Rules struct{ *book }

// Objects are the Services, EndpointSlices and Service ranges of one moment, indexed for packets. They are immutable and safe for concurrent use.
type Objects struct {
	// Version tells moments apart.
	Version uint64
	// ServiceRanges are those that virtual IPs are taken from.
	ServiceRanges []netip.Prefix

	*book
	services   []*service
	byTarget   map[target][]*destination
	virtualIPs map[netip.Addr]bool // those that there are
	healths    map[int]*service    // by health check node port
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

// NewObjects indexes Services and EndpointSlices. Moments are indexed one after the other.
func (r *Rules) NewObjects(version uint64, services []*corev1.Service, slices []*discoveryv1.EndpointSlice, ranges []netip.Prefix) *Objects {
	o := &Objects{Version: version, ServiceRanges: ranges, book: r.book, byTarget: map[target][]*destination{}, virtualIPs: map[netip.Addr]bool{}, healths: map[int]*service{}}
	o.indexed.Do(o, services, slices)
	return o
}

// A Service is served while it is there, also while it is being deleted, and with all of its ports.
var indexed = rule.New("proxy-services-served", func(o *Objects, services []*corev1.Service, slices []*discoveryv1.EndpointSlice) {
	bySvc := map[string][]*discoveryv1.EndpointSlice{}
	for _, s := range slices {
		if name := s.Labels[serviceLabel]; name != "" {
			bySvc[s.Namespace+"/"+name] = append(bySvc[s.Namespace+"/"+name], s)
		}
	}
	for _, svc := range services {
		if o.leaves(svc) {
			continue
		}
		s := &service{Service: svc}
		o.services = append(o.services, s)
		for _, p := range svc.Spec.Ports {
			sp := &servicePort{service: s, port: p}
			o.joined.Do(o, sp, bySvc[svc.Namespace+"/"+svc.Name])
			s.ports = append(s.ports, sp)
			if o.portServed.Do(sp) {
				for i := range o.announces {
					o.announces[i].Do(o, sp)
				}
			}
		}
		o.healthPort.Do(o, s)
	}
}, spec.ProxyServiceAdded, spec.ProxyServiceRemoved, spec.ProxyFinalizerKeepsTraffic, spec.ProxyManyServices, spec.ProxyVIPForEveryType,
	spec.ProxyDualStackTransition)

// leaves reports whether this proxy has nothing to do with a Service.
func (b *book) leaves(svc *corev1.Service) bool {
	for i := range b.unserved {
		if b.unserved[i].Do(svc) {
			return true
		}
	}
	return false
}

// Rules for Services that this proxy does not serve.
var (
	ofAnotherProxy = rule.New("proxy-name-of-another", func(svc *corev1.Service) bool {
		return svc.Labels[labelProxyName] != ""
	}, spec.ProxyServiceProxyName)

	externalNameLeft = rule.New("proxy-not-for-external-name", func(svc *corev1.Service) bool {
		return svc.Spec.Type == corev1.ServiceTypeExternalName
	}, spec.ProxyExternalNameNotProxied, spec.ProxyExternalNameStopsProxying)

	headlessLeft = rule.New("proxy-not-for-headless", func(svc *corev1.Service) bool {
		return svc.Spec.ClusterIP == corev1.ClusterIPNone
	}, spec.ProxyHeadlessNotProxied, spec.ProxyHeadlessLabel)
)

// Rules for the addresses that lead to a port of a Service.
var (
	// Every port is served, whatever its protocol is and whether or not somebody knows its appProtocol.
	portServed = rule.New("proxy-every-port-served", func(*servicePort) bool {
		return true
	}, spec.ProxyTCPForwarded, spec.ProxyUDPForwarded, spec.ProxySCTPForwarded, spec.ProxyAppProtocolForwarded, spec.ProxyPortsIndependent)

	// A virtual IP is known whatever its ports are: what is sent to a port that is not there is refused.
	virtualIPKnown = rule.New("proxy-virtual-ip-known", func(o *Objects, sp *servicePort) {
		for _, ip := range sp.service.Spec.ClusterIPs {
			if a, err := netip.ParseAddr(ip); err == nil {
				o.virtualIPs[a] = true
			}
		}
	}, spec.ProxyCapturesPort, spec.ProxyNftablesUnusedPortRejected)

	clusterIPServed = rule.New("proxy-cluster-ip-served", func(o *Objects, sp *servicePort) {
		for _, ip := range sp.service.Spec.ClusterIPs {
			o.lead(ClusterIP, ip, sp.port.Port, sp)
		}
	}, spec.ProxyClusterIPReachable, spec.ProxyVIPForEveryType, spec.ProxyNodePortClusterIP, spec.ProxyDualStackAddresses)

	externalIPServed = rule.New("proxy-external-ip-served", func(o *Objects, sp *servicePort) {
		for _, ip := range sp.service.Spec.ExternalIPs {
			o.lead(ExternalIP, ip, sp.port.Port, sp)
		}
	}, spec.ProxyExternalIPReachable, spec.ProxyExternalIPShared, spec.ProxyExternalIPOtherFamily, spec.ProxyExternalIPOfNode)

	loadBalancerServed = rule.New("proxy-load-balancer-served", func(o *Objects, sp *servicePort) {
		for i := range sp.service.Status.LoadBalancer.Ingress {
			if in := &sp.service.Status.LoadBalancer.Ingress[i]; in.IP != "" && o.captured.Do(in) {
				o.lead(LoadBalancer, in.IP, sp.port.Port, sp)
			}
		}
	}, spec.ProxyLoadBalancerReachable, spec.ProxyLoadBalancerFromCluster, spec.ProxyLoadBalancerWithoutNodePorts, spec.ProxyLoadBalancerMixedProtocols,
		spec.ProxyLoadBalancerAddressShared, spec.ProxyLoadBalancerOtherFamily)

	// The node takes traffic for a load-balancer address itself with ipMode VIP, which is the default (KEP-1860).
	captured = rule.New("proxy-ip-mode", func(in *corev1.LoadBalancerIngress) bool {
		return in.IPMode == nil || *in.IPMode != corev1.LoadBalancerIPModeProxy
	}, spec.ProxyLoadBalancerIPModeVIP, spec.ProxyLoadBalancerIPModeProxy)

	nodePortServed = rule.New("proxy-node-port-served", func(o *Objects, sp *servicePort) {
		if sp.port.NodePort != 0 {
			o.lead(NodePort, "", sp.port.NodePort, sp)
		}
	}, spec.ProxyNodePortReachable, spec.ProxyNodePortSameEndpoints, spec.ProxyClusterIPClusterInternal)

	healthPort = rule.New("proxy-health-check-node-port", func(o *Objects, s *service) {
		if port := int(s.Spec.HealthCheckNodePort); port != 0 {
			o.healths[port] = s
		}
	}, spec.ProxyHealthCheckPortFollows, spec.ProxyHealthCheckPortCloses)
)

// lead makes an address and a port lead to a port of a Service. An empty address stands for every one of a node.
func (o *Objects) lead(kind Kind, address string, port int32, to *servicePort) {
	var a netip.Addr
	if address != "" {
		var err error
		if a, err = netip.ParseAddr(address); err != nil {
			return
		}
	}
	t := o.targeted.Do(a, uint16(port), to.port.Protocol)
	o.byTarget[t] = append(o.byTarget[t], &destination{kind: kind, port: to})
}
