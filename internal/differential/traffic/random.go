package traffic

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/internal/differential/random"
)

// The sizes of what is random. Every node has as many backends, and the tiers have at least as many nodes and external addresses.
const (
	nodes, backends, externals = 3, 6, 4
	maxServices, maxPorts      = 3, 2
	maxStates                  = 3
	maxSlices, maxEndpoints    = 3, 4
	probesPerState             = 12
)

// The ports that backends answer on, and one where nobody listens.
const firstBackendPort, secondBackendPort, nobodysPort = 8080, 9090, 8081

// Random makes a topology.
func Random(r *rand.Rand) Topology {
	var t Topology
	state := randomState(r)
	free := len(state.Slices) // the ID of the next slice: none is used again
	t.States = append(t.States, state)
	for n := r.IntN(maxStates); n > 0; n-- {
		next := random.Clone(state)
		changeState(r, &next, &free)
		t.States = append(t.States, next)
		state = next
	}
	return t
}

func randomState(r *rand.Rand) State {
	var s State
	for id := range 1 + r.IntN(maxServices) {
		s.Services = append(s.Services, randomService(r, id))
	}
	for id := range 1 + r.IntN(maxSlices*len(s.Services)) {
		s.Slices = append(s.Slices, randomSlice(r, &s, id))
	}
	s.decided()
	s.Probes = randomProbes(r, &s)
	return s
}

// runs and ends report whether an endpoint does not terminate, and whether it terminates and is not published all the same.
func (e *Endpoint) runs() bool { return e.Terminating == nil || !*e.Terminating }
func (e *Endpoint) ends() bool { return !e.runs() && e.Ready != nil && !*e.Ready }

// decided leaves out what no document decides: which of two endpoints with one address counts, unless one runs and the other one ends.
func (s *State) decided() {
	type address struct{ service, family, pod int }
	first, pairs := map[address]Endpoint{}, map[address]bool{}
	for i := range s.Slices {
		l := &s.Slices[i]
		l.Endpoints = slices.DeleteFunc(l.Endpoints, func(e Endpoint) bool {
			at := address{l.Service, l.Family, e.Pod}
			before, known := first[at]
			if !known {
				first[at] = e
				return false
			}
			pair := !pairs[at] && (before.runs() && e.ends() || before.ends() && e.runs())
			pairs[at] = pairs[at] || pair
			return !pair
		})
	}
}

func randomService(r *rand.Rand, id int) Service {
	v := Service{
		ID: id, Type: random.Pick(r, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer), Families: random.Pick(r, "4", "4", "4", "6", "46", "64"),
		InternalLocal: random.One(r, 4), Affinity: random.One(r, 6), PublishNotReady: random.One(r, 8),
	}
	switch r.IntN(4) {
	case 0:
		v.Ports = []Port{{Name: "a", Protocol: corev1.ProtocolTCP}, {Name: "b", Protocol: random.Pick(r, corev1.ProtocolTCP, corev1.ProtocolUDP)}}
	case 1:
		v.Ports = []Port{{Protocol: corev1.ProtocolUDP}}
	case 2:
		v.Ports = []Port{{Name: "a", Protocol: corev1.ProtocolTCP}}
	default:
		v.Ports = []Port{{Protocol: corev1.ProtocolTCP}}
	}
	if random.One(r, 5) {
		v.Distribution = random.Pick(r, corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)
	}
	if random.One(r, 3) {
		v.External = []int{r.IntN(externals / 2)}
	}
	if v.Type != corev1.ServiceTypeClusterIP || len(v.External) > 0 {
		v.ExternalLocal = random.One(r, 2)
	}
	if v.Type == corev1.ServiceTypeLoadBalancer {
		for n := r.IntN(3); n > 0; n-- { // none is one that nobody has made yet
			v.Ingress = append(v.Ingress, Ingress{Address: externals/2 + n - 1, Mode: random.Pick(r, "", "", corev1.LoadBalancerIPModeVIP, corev1.LoadBalancerIPModeProxy)})
		}
		if random.One(r, 3) {
			v.Sources = random.Pick(r, []Source{Everybody}, []Source{NobodyElse}, []Source{FirstPod}, []Source{FirstNode}, []Source{FirstNode, FirstPod})
		}
		v.NoBalancerPorts = random.One(r, 4)
	}
	return v
}

func randomSlice(r *rand.Rand, s *State, id int) Slice {
	v := random.Pick(r, s.Services...)
	l := Slice{ID: id, Service: v.ID, Family: random.Pick(r, families(&v)...)}
	if random.One(r, 12) {
		l.Family = 10 - l.Family // the Service may not have it
	}
	for i, p := range v.Ports {
		if random.One(r, 8) {
			continue // one port of the Service is in another slice, or nowhere
		}
		port := SlicePort{Name: new(p.Name), Protocol: p.Protocol, Number: random.Pick[int32](r, firstBackendPort, firstBackendPort, firstBackendPort, secondBackendPort)}
		switch r.IntN(12) {
		case 0:
			port.Name = new(fmt.Sprintf("other-%d", i))
		case 1:
			if p.Name == "" {
				port.Name = nil
			}
		case 2:
			port.Number = nobodysPort
		}
		l.Ports = append(l.Ports, port)
	}
	for range r.IntN(maxEndpoints + 1) {
		l.Endpoints = append(l.Endpoints, randomEndpoint(r))
	}
	return l
}

func families(v *Service) (out []int) {
	for _, f := range v.Families {
		out = append(out, int(f-'0'))
	}
	return out
}

func randomEndpoint(r *rand.Rand) Endpoint {
	e := Endpoint{Pod: r.IntN(backends), Node: random.Pick(r, OwnNode, OwnNode, OwnNode, OwnNode, OwnNode, NoNode, OtherNode, UnknownNode)}
	condition := func() *bool { return random.Pick(r, nil, new(true), new(true), new(false)) }
	switch r.IntN(4) {
	case 0: // any mix
		e.Ready, e.Serving, e.Terminating = condition(), condition(), condition()
	case 1: // terminating, as controllers write it
		e.Ready, e.Serving, e.Terminating = new(false), new(random.One(r, 2)), new(true)
	case 2:
		e.Ready, e.Serving, e.Terminating = new(true), new(true), new(false)
	}
	switch r.IntN(5) {
	case 0:
		for range 1 + r.IntN(2) {
			e.Zones = append(e.Zones, r.IntN(nodes))
		}
	case 1:
		e.Nodes = []int{r.IntN(nodes)}
		e.Zones = []int{r.IntN(nodes)}
	}
	return e
}

// randomProbes chooses from where to where traffic is sent.
func randomProbes(r *rand.Rand, s *State) (probes []Probe) {
	for range probesPerState {
		v := random.Pick(r, s.Services...)
		p := Probe{From: random.Pick(r, FromPod, FromPod, FromBackend, FromHost, FromOutside, FromOutside), Node: r.IntN(nodes), Service: v.ID, Port: r.IntN(len(v.Ports)), Family: random.Pick(r, families(&v)...)}
		to := []To{ToClusterIP}
		if v.Type != corev1.ServiceTypeClusterIP {
			to = append(to, ToNodePort)
		}
		if len(v.External) > 0 {
			to = append(to, ToExternal)
		}
		if len(v.Ingress) > 0 {
			to = append(to, ToIngress, ToIngress)
		}
		if v.Type == corev1.ServiceTypeLoadBalancer && v.ExternalLocal {
			to = append(to, ToHealth)
		}
		p.To = random.Pick(r, to...)
		switch p.To {
		case ToClusterIP:
			if p.From == FromOutside { // nobody promises anything
				p.From = FromPod
			}
		case ToNodePort, ToHealth:
			if v.ExternalLocal && p.To == ToNodePort { // a client inside may meet either policy (API reference of Service)
				p.From = FromOutside
			}
			p.At = r.IntN(nodes)
			if p.From == FromOutside {
				p.At = p.Node
			}
		case ToExternal:
			p.At = r.IntN(len(v.External))
		case ToIngress:
			p.At = r.IntN(len(v.Ingress))
			if p.From == FromHost && slices.Contains(v.Sources, FirstNode) { // which of its addresses a node takes is its own matter
				p.From = FromPod
			}
		}
		probes = append(probes, p)
	}
	return probes
}

// changeState changes one to three things of a state.
func changeState(r *rand.Rand, s *State, free *int) {
	for range 1 + r.IntN(3) {
		switch r.IntN(8) {
		case 0:
			i := r.IntN(len(s.Services))
			old := s.Services[i]
			s.Services[i] = randomService(r, old.ID)
			s.Services[i].Families, s.Services[i].Ports = old.Families, old.Ports // the first is immutable, and slices have the names of the second
		case 1:
			v := &s.Services[r.IntN(len(s.Services))]
			v.InternalLocal = !v.InternalLocal
			if v.Type != corev1.ServiceTypeClusterIP || len(v.External) > 0 {
				v.ExternalLocal = !v.ExternalLocal
			}
		case 2:
			s.Slices = append(s.Slices, randomSlice(r, s, *free))
			*free++
		case 3:
			if len(s.Slices) > 0 {
				i := r.IntN(len(s.Slices))
				s.Slices = append(s.Slices[:i:i], s.Slices[i+1:]...)
			}
		default:
			if len(s.Slices) == 0 {
				continue
			}
			l := &s.Slices[r.IntN(len(s.Slices))]
			switch {
			case len(l.Endpoints) == 0 || random.One(r, 4):
				l.Endpoints = append(l.Endpoints, randomEndpoint(r))
			case random.One(r, 3):
				i := r.IntN(len(l.Endpoints))
				l.Endpoints = append(l.Endpoints[:i:i], l.Endpoints[i+1:]...)
			default:
				e := &l.Endpoints[r.IntN(len(l.Endpoints))]
				pod := e.Pod
				*e = randomEndpoint(r)
				e.Pod = pod
			}
		}
	}
	s.decided()
	s.Probes = randomProbes(r, s)
}
