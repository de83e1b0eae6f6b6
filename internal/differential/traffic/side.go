package traffic

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/differential/manifest"
)

// Side is a data plane with the pods that all topologies share. Its methods are safe for concurrent use.
type Side struct {
	// Name is for people.
	Name string
	// withoutAffinity says that affinity is left out, so that every endpoint that can be met is met.
	withoutAffinity bool
	// virtual says that time passes at once.
	virtual bool

	plane     candidate.DataPlane
	api       apiclient.Interface
	namespace string
	nodes     []candidate.Node
	senders   []candidate.Pod // by node
	backends  []candidate.Pod
	numbers   map[candidate.PodName]int // of backends
	externals map[int][]netip.Addr      // by family
}

// namespace is where everything is made. Labs and references are new, so nobody else has it.
const namespace = "differential"

// balancerClass keeps everybody else from making load balancers.
const balancerClass = "service-conformance/differential"

// NewSide starts the pods on a candidate, which nobody else uses, and which the side ends with.
func NewSide(ctx context.Context, name string, of candidate.Candidate) (*Side, error) {
	plane, err := of.DataPlane(ctx, candidate.DataPlaneRequest{DualStack: true})
	if err != nil {
		return nil, err
	}
	what := of.Describe()
	api, err := manifest.ClientOf(plane.Access())
	if err != nil {
		return nil, err
	}
	s := &Side{Name: name, virtual: what.Has(spec.VirtualClock), plane: plane, api: api, namespace: namespace, nodes: plane.Nodes()[:nodes], numbers: map[candidate.PodName]int{}, externals: map[int][]netip.Addr{}}
	_, err = api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	for _, a := range plane.ExternalAddresses() {
		s.externals[familyOf(a)] = append(s.externals[familyOf(a)], a)
	}
	for family, all := range s.externals {
		if len(all) < externals {
			return nil, fmt.Errorf("there are %d external addresses of family %d, and %d are needed", len(all), family, externals)
		}
	}
	var ports []candidate.PodPort
	for _, number := range []int{firstBackendPort, secondBackendPort} {
		for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
			ports = append(ports, candidate.PodPort{Protocol: protocol, Number: number})
		}
	}
	s.senders, s.backends = make([]candidate.Pod, nodes), make([]candidate.Pod, backends)
	errs := make([]error, nodes+backends)
	var starts sync.WaitGroup
	for i := range nodes + backends {
		starts.Go(func() {
			if i < nodes {
				s.senders[i], errs[i] = plane.StartPod(ctx, candidate.Pod{PodName: candidate.PodName{Namespace: namespace, Name: fmt.Sprintf("client-%d", i)}, Node: s.nodes[i].Name})
				return
			}
			b := i - nodes
			s.backends[b], errs[i] = plane.StartPod(ctx, candidate.Pod{PodName: candidate.PodName{Namespace: namespace, Name: fmt.Sprintf("backend-%d", b)}, Node: s.nodes[b%nodes].Name, Ports: ports})
		})
	}
	starts.Wait()
	for b, p := range s.backends {
		s.numbers[p.PodName] = b
	}
	return s, errors.Join(errs...)
}

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return 4
	}
	return 6
}

func ofFamily(addresses []netip.Addr, family int) netip.Addr {
	for _, a := range addresses {
		if familyOf(a) == family {
			return a
		}
	}
	return netip.Addr{}
}

// placed is a topology on a side.
type placed struct {
	side *Side
	// slot tells topologies apart that are there at the same time: names and ports follow from it.
	slot int
	// made are the Services and slices that there are, as the server has stored them.
	services map[int]*corev1.Service
	slices   map[int]*discoveryv1.EndpointSlice
}

func (s *Side) place(slot int) *placed {
	return &placed{side: s, slot: slot, services: map[int]*corev1.Service{}, slices: map[int]*discoveryv1.EndpointSlice{}}
}

// firstPort is the number of the first port of the first topology.
const firstPort = 1000

func (p *placed) port(service, place int) int32 {
	return int32(firstPort + (p.slot*maxServices+service)*maxPorts + place)
}

func (p *placed) name(service int) string { return fmt.Sprintf("t%d-service-%d", p.slot, service) }

// apply brings about a state. It returns what the server answers to each Service that it refuses, by ID.
func (p *placed) apply(ctx context.Context, s *State) (refused map[int]int32, err error) {
	api, refused := p.side.api, map[int]int32{}
	for id, svc := range p.services {
		if s.service(id) == nil {
			if err := api.CoreV1().Services(p.side.namespace).Delete(ctx, svc.Name, metav1.DeleteOptions{}); err != nil {
				return nil, err
			}
			delete(p.services, id)
		}
	}
	for id, slice := range p.slices {
		if !slices.ContainsFunc(s.Slices, func(l Slice) bool { return l.ID == id }) {
			if err := api.DiscoveryV1().EndpointSlices(p.side.namespace).Delete(ctx, slice.Name, metav1.DeleteOptions{}); err != nil {
				return nil, err
			}
			delete(p.slices, id)
		}
	}
	for i := range s.Services {
		if err := p.applyService(ctx, &s.Services[i]); err != nil {
			code := manifest.Refusal(err)
			if code == 0 {
				return nil, err
			}
			refused[s.Services[i].ID] = code
		}
	}
	for i := range s.Slices {
		if err := p.applySlice(ctx, &s.Slices[i]); err != nil {
			return nil, err
		}
	}
	if p.side.virtual {
		err = p.side.plane.Pass(ctx, time.Minute)
	}
	return refused, err
}

func (p *placed) applyService(ctx context.Context, v *Service) error {
	services := p.side.api.CoreV1().Services(p.side.namespace)
	svc := p.service(v)
	var err error
	if stored := p.services[v.ID]; stored == nil {
		svc, err = services.Create(ctx, svc, metav1.CreateOptions{})
	} else {
		svc.ResourceVersion = stored.ResourceVersion
		svc.Spec.ClusterIP, svc.Spec.ClusterIPs = stored.Spec.ClusterIP, stored.Spec.ClusterIPs
		if svc.Spec.HealthCheckNodePort == 0 && svc.Spec.Type == stored.Spec.Type && svc.Spec.ExternalTrafficPolicy == stored.Spec.ExternalTrafficPolicy {
			svc.Spec.HealthCheckNodePort = stored.Spec.HealthCheckNodePort
		}
		if svc.Spec.Type != corev1.ServiceTypeClusterIP {
			for i := range svc.Spec.Ports {
				if i < len(stored.Spec.Ports) && !v.NoBalancerPorts {
					svc.Spec.Ports[i].NodePort = stored.Spec.Ports[i].NodePort
				}
			}
		}
		svc, err = services.Update(ctx, svc, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	p.services[v.ID] = svc
	svc = svc.DeepCopy()
	svc.Status.LoadBalancer.Ingress = p.ingress(v)
	if svc, err = services.UpdateStatus(ctx, svc, metav1.UpdateOptions{}); err != nil {
		return err
	}
	p.services[v.ID] = svc
	return nil
}

// service is the Service as it is sent.
func (p *placed) service(v *Service) *corev1.Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: p.name(v.ID), Namespace: p.side.namespace}, Spec: corev1.ServiceSpec{
		Type: v.Type, PublishNotReadyAddresses: v.PublishNotReady, IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack),
	}}
	if v.Type == "" {
		svc.Spec.Type = corev1.ServiceTypeClusterIP
	}
	for _, f := range families(v) {
		svc.Spec.IPFamilies = append(svc.Spec.IPFamilies, manifest.Family(f))
	}
	if len(svc.Spec.IPFamilies) > 1 {
		svc.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
	}
	for i, port := range v.Ports {
		svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: port.Name, Protocol: port.Protocol, Port: p.port(v.ID, i), TargetPort: intstr.FromInt32(firstBackendPort)})
	}
	if v.InternalLocal {
		svc.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
	}
	if v.ExternalLocal {
		svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}
	if v.Affinity && !p.side.withoutAffinity {
		svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	}
	if v.Distribution != "" {
		svc.Spec.TrafficDistribution = new(v.Distribution)
	}
	for _, e := range v.External {
		for _, f := range families(v) {
			svc.Spec.ExternalIPs = append(svc.Spec.ExternalIPs, p.side.externals[f][e].String())
		}
	}
	if v.Type == corev1.ServiceTypeLoadBalancer {
		svc.Spec.LoadBalancerClass, svc.Spec.LoadBalancerSourceRanges = new(balancerClass), p.sources(v)
		if v.NoBalancerPorts {
			svc.Spec.AllocateLoadBalancerNodePorts = new(false)
		}
	}
	return svc
}

func (p *placed) ingress(v *Service) (points []corev1.LoadBalancerIngress) {
	for _, in := range v.Ingress {
		for _, f := range families(v) {
			point := corev1.LoadBalancerIngress{IP: p.side.externals[f][in.Address].String()}
			if in.Mode != "" {
				point.IPMode = new(in.Mode)
			}
			points = append(points, point)
		}
	}
	return points
}

func (p *placed) sources(v *Service) (ranges []string) {
	for _, source := range v.Sources {
		for _, f := range families(v) {
			var of netip.Prefix
			switch source {
			case Everybody:
				of = netip.MustParsePrefix(map[int]string{4: "0.0.0.0/0", 6: "::/0"}[f])
			case NobodyElse:
				of = netip.MustParsePrefix(map[int]string{4: "203.0.113.0/24", 6: "2001:db8:1::/64"}[f])
			case FirstPod:
				a := ofFamily(p.side.senders[0].Addresses, f)
				of = netip.PrefixFrom(a, a.BitLen())
			case FirstNode:
				a := ofFamily(p.side.nodes[0].Addresses, f)
				of = netip.PrefixFrom(a, a.BitLen())
			}
			ranges = append(ranges, of.String())
		}
	}
	return ranges
}

func (p *placed) applySlice(ctx context.Context, l *Slice) error {
	slice, err := manifest.PutSlice(ctx, p.side.api, p.slices[l.ID], p.slice(l))
	if err == nil {
		p.slices[l.ID] = slice
	}
	return err
}

// slice is the EndpointSlice as it is sent.
func (p *placed) slice(l *Slice) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("t%d-slice-%d", p.slot, l.ID), Namespace: p.side.namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: p.name(l.Service), discoveryv1.LabelManagedBy: "differential"},
		},
		AddressType: discoveryv1.AddressType(manifest.Family(l.Family)),
		Endpoints:   []discoveryv1.Endpoint{},
	}
	for _, port := range l.Ports {
		of := discoveryv1.EndpointPort{Name: port.Name}
		if port.Protocol != "" {
			of.Protocol = new(port.Protocol)
		}
		if port.Number != 0 {
			of.Port = new(port.Number)
		}
		slice.Ports = append(slice.Ports, of)
	}
	for _, e := range l.Endpoints {
		pod := p.side.backends[e.Pod]
		of := discoveryv1.Endpoint{
			Addresses:  []string{ofFamily(pod.Addresses, l.Family).String()},
			Conditions: discoveryv1.EndpointConditions{Ready: e.Ready, Serving: e.Serving, Terminating: e.Terminating},
		}
		switch e.Node {
		case OwnNode:
			of.NodeName = new(pod.Node)
		case OtherNode:
			of.NodeName = new(p.side.nodes[(e.Pod+1)%nodes].Name)
		case UnknownNode:
			of.NodeName = new("node-that-is-not")
		}
		if len(e.Zones)+len(e.Nodes) > 0 {
			of.Hints = &discoveryv1.EndpointHints{}
			for _, n := range e.Zones {
				if zone := p.side.nodes[n].Zone; !slices.Contains(of.Hints.ForZones, discoveryv1.ForZone{Name: zone}) {
					of.Hints.ForZones = append(of.Hints.ForZones, discoveryv1.ForZone{Name: zone})
				}
			}
			for _, n := range e.Nodes {
				of.Hints.ForNodes = append(of.Hints.ForNodes, discoveryv1.ForNode{Name: p.side.nodes[n].Name})
			}
		}
		slice.Endpoints = append(slice.Endpoints, of)
	}
	return slice
}

// remove deletes everything.
func (p *placed) remove(ctx context.Context) error {
	_, err := p.apply(ctx, &State{})
	return err
}
