package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// balancers are the load balancers of the world, and the controller that makes them: it writes to the API as that of a cloud does.
type balancers struct {
	of    map[types.UID]*balancer
	taken int
}

// balancer is the load balancer of a Service.
type balancer struct {
	addresses []netip.Addr
	nodes     []string
	ports     []corev1.ServicePort
	health    int // port of the nodes that says whether they have endpoints; 0 for none
}

// balancerRanges are those that load balancers have their addresses of (RFC 5737, RFC 3849).
var balancerRanges = map[corev1.IPFamily]netip.Prefix{
	corev1.IPv4Protocol: netip.MustParsePrefix("198.51.100.0/24"), corev1.IPv6Protocol: netip.MustParsePrefix("2001:db8:1b::/120"),
}

// balance makes, changes and cleans up load balancers, and reports whether it wrote to the API.
func (w *world) balance(services []*corev1.Service) (wrote bool) {
	return !w.absent.Has(spec.FeatureLoadBalancer) && w.book.balancersMade.Do(w, services)
}

// Rules for load balancers (document "Service", type LoadBalancer; KEP-980).
var (
	balancersMade = rule.New("load-balancers-made", func(w *world, services []*corev1.Service) (wrote bool) {
		left := map[types.UID]bool{}
		for _, svc := range services {
			left[svc.UID] = true
			wrote = w.balanceOne(svc) || wrote
		}
		for uid := range w.balancers.of {
			if !left[uid] {
				delete(w.balancers.of, uid)
			}
		}
		return wrote
	}, spec.ProxyLoadBalancerCreated, spec.ProxyLoadBalancerClassDefault)

	// A class names another implementation.
	balancerWanted = rule.New("load-balancer-of-default-class", func(_ *world, svc *corev1.Service) bool {
		return svc.Spec.Type == corev1.ServiceTypeLoadBalancer && svc.Spec.LoadBalancerClass == nil
	}, spec.ProxyLoadBalancerClassDefault, spec.ProxyLoadBalancerClassIgnored)

	// The finalizer is there before the load balancer is.
	finalizerFirst = rule.New("load-balancer-finalizer-first", func(svc *corev1.Service) bool {
		return !slices.Contains(svc.Finalizers, candidate.BalancerCleanup)
	}, spec.ProxyLoadBalancerCleanupFinalizer)

	deletedCleanedUp = rule.New("load-balancer-of-deleted-cleaned-up", func(svc *corev1.Service) bool {
		return svc.DeletionTimestamp != nil
	}, spec.ProxyLoadBalancerCleanupDeletion)

	retypedCleanedUp = rule.New("load-balancer-of-other-type-cleaned-up", func(svc *corev1.Service) bool {
		return svc.DeletionTimestamp == nil
	}, spec.ProxyLoadBalancerCleanupType)

	// A load balancer follows the Nodes and its Service.
	balancerUpdated = rule.New("load-balancer-updated", func(b *balancer, nodes []string, svc *corev1.Service) {
		b.nodes, b.ports, b.health = nodes, svc.Spec.Ports, int(svc.Spec.HealthCheckNodePort)
	}, spec.ProxyLoadBalancerCreated, spec.ProxyLoadBalancerLocal, spec.ProxyLoadBalancerNodeDeleted)

	// The finalizer goes after the load balancer has gone.
	balancerDeleted = rule.New("load-balancer-deleted", func(w *world, of *corev1.Service) {
		delete(w.balancers.of, of.UID)
	}, spec.ProxyLoadBalancerCleanupDeletion, spec.ProxyLoadBalancerCleanupType)

	// A node without endpoints fails its health check.
	balancerAsks = rule.New("load-balancer-health-check", func(h *host, port int, ipv6 bool) bool {
		like := netip.IPv4Unspecified()
		if ipv6 {
			like = netip.IPv6Unspecified()
		}
		answer := h.HealthCheck(netip.AddrPortFrom(h.Address(like), uint16(port)), candidate.HealthCheckPath, false)
		return answer != nil && answer.Code == http.StatusOK
	}, spec.ProxyLoadBalancerLocal)

	balancedNodes = rule.New("load-balancer-nodes-of-now", (*world).nodesForBalancers, spec.ProxyLoadBalancerNodeDeleted)

	// KEP-1143.
	balancesAmong = rule.New("load-balancer-nodes", func(node *corev1.Node) bool {
		_, excluded := node.Labels[corev1.LabelNodeExcludeBalancers]
		return !excluded
	}, spec.ProxyLoadBalancerNodeExclusion)
)

// balanceOne makes, changes or cleans up the load balancer of a Service, and reports whether it wrote to the API.
func (w *world) balanceOne(svc *corev1.Service) (wrote bool) {
	holds, b := slices.Contains(svc.Finalizers, candidate.BalancerCleanup), w.balancers.of[svc.UID]
	switch {
	case svc.DeletionTimestamp == nil && w.book.balancerWanted.Do(w, svc):
		if w.book.finalizerFirst.Do(svc) {
			if wrote = true; !w.patchFinalizers(svc, append(slices.Clone(svc.Finalizers), candidate.BalancerCleanup)) {
				return true
			}
		}
		if b == nil {
			b = w.newBalancer(svc)
		}
		w.book.balancerUpdated.Do(b, w.book.balancedNodes.Do(w), svc)
		return w.showIngress(svc, b.addresses) || wrote
	case holds && (w.book.deletedCleanedUp.Do(svc) || w.book.retypedCleanedUp.Do(svc)):
		w.book.balancerDeleted.Do(w, svc)
		if w.patchFinalizers(svc, slices.DeleteFunc(slices.Clone(svc.Finalizers), func(f string) bool { return f == candidate.BalancerCleanup })) {
			w.showIngress(svc, nil)
		}
		return true
	case b != nil && !holds:
		w.book.balancerDeleted.Do(w, svc)
	}
	return false
}

func (w *world) newBalancer(svc *corev1.Service) *balancer {
	b := &balancer{}
	w.balancers.taken++
	for _, family := range svc.Spec.IPFamilies {
		a := balancerRanges[family].Addr().AsSlice()
		a[len(a)-1] = byte(1 + w.balancers.taken%250)
		address, _ := netip.AddrFromSlice(a)
		b.addresses = append(b.addresses, address)
	}
	w.balancers.of[svc.UID] = b
	return b
}

// nodesForBalancers are the nodes that load balancers use, in the order of their names.
func (w *world) nodesForBalancers() (names []string) {
	for name := range w.nodes {
		node := w.server.Node(name)
		if node == nil || node.DeletionTimestamp != nil {
			continue
		}
		if w.book.balancesAmong.Do(node) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// showIngress sets the ingress points of the status, and reports whether they were others.
func (w *world) showIngress(svc *corev1.Service, addresses []netip.Addr) bool {
	points := []map[string]string{}
	same := len(svc.Status.LoadBalancer.Ingress) == len(addresses)
	for i, a := range addresses {
		points = append(points, map[string]string{"ip": a.String()})
		same = same && svc.Status.LoadBalancer.Ingress[i].IP == a.String()
	}
	if same {
		return false
	}
	return w.patch(svc, "/status", map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": points}}})
}

// patchFinalizers sets the finalizers unless somebody has changed the Service meanwhile.
func (w *world) patchFinalizers(svc *corev1.Service, finalizers []string) bool {
	return w.patch(svc, "", map[string]any{"metadata": map[string]any{"finalizers": finalizers, "resourceVersion": svc.ResourceVersion}})
}

// patch reports whether the server has accepted a merge patch of the Service. What it refuses is looked at anew.
func (w *world) patch(svc *corev1.Service, subresource string, patch map[string]any) bool {
	body, _ := json.Marshal(patch) // of plain values
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPatch, w.server.URL()+"/api/v1/namespaces/"+svc.Namespace+"/services/"+svc.Name+subresource, bytes.NewReader(body))
	if err != nil {
		return false
	}
	request.Header.Set("Content-Type", string(types.MergePatchType))
	request.Header.Set("Authorization", "Bearer "+w.server.Token())
	response, err := w.server.RoundTrip(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// balancedBy is the node by which the k-th connection to an address and port enters the cluster. It also says where the
// load balancer sends it there: to the node port, if there is one. There is no node if no load balancer takes it. What
// is not sent to the addresses of load balancers takes the way by the first node. Nodes of other leases are as if they
// were not there.
func (d *dataPlane) balancedBy(p *candidate.Probe, k int) (by *host, to netip.AddrPort) {
	if a := p.To.Addr(); !balancerRanges[corev1.IPv4Protocol].Contains(a) && !balancerRanges[corev1.IPv6Protocol].Contains(a) {
		return d.world.shared[0], p.To
	}
	for _, b := range d.world.balancers.of {
		port := slices.IndexFunc(b.ports, func(s corev1.ServicePort) bool { return uint16(s.Port) == p.To.Port() && s.Protocol == p.Protocol })
		if !slices.Contains(b.addresses, p.To.Addr()) || port < 0 {
			continue
		}
		var known []*host
		for _, name := range b.nodes {
			h := d.world.nodes[name]
			if h == nil || d.nodes[name] != h && !slices.Contains(d.world.shared, h) {
				continue
			}
			if b.health == 0 || d.world.book.balancerAsks.Do(h, b.health, p.To.Addr().Is6()) {
				known = append(known, h)
			}
		}
		if len(known) == 0 {
			return nil, p.To
		}
		by = known[k%len(known)]
		if number := b.ports[port].NodePort; number != 0 {
			return by, netip.AddrPortFrom(by.Address(p.To.Addr()), uint16(number))
		}
		return by, p.To
	}
	return nil, p.To
}

// shootBalanced is shoot of the k-th shot of a client outside of the cluster where load balancers are.
func (d *dataPlane) shootBalanced(p candidate.Probe, k int) (candidate.Outcome, error) {
	node, to := d.balancedBy(&p, k)
	if node == nil {
		return candidate.Outcome{Result: candidate.Unreachable, Error: "no route to host"}, nil
	}
	from, err := d.sender(candidate.Client{Gateway: node.Name})
	if err != nil {
		return candidate.Outcome{}, err
	}
	p.To = to
	return d.shoot(&p, &from), nil
}
