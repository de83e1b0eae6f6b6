package dns

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"

	"github.com/service-conformance/conformance/internal/differential/random"
)

// The sizes of what is random. addresses is how many endpoints of a Service can have.
const (
	maxServices, addresses  = 3, 5
	maxStates               = 3
	maxSlices, maxEndpoints = 2, 3
	questionsPerState       = 12
)

var hostnames = []string{"web-0", "web-1", "9"}

// Random makes a zone.
func Random(r *rand.Rand) Zone {
	var z Zone
	state := randomState(r)
	free := len(state.Slices) // the ID of the next slice: none is used again
	z.States = append(z.States, state)
	for n := r.IntN(maxStates); n > 0; n-- {
		next := random.Clone(state)
		changeState(r, &next, &free)
		next.Questions = randomQuestions(r, &next)
		z.States = append(z.States, next)
		state = next
	}
	return z
}

func randomState(r *rand.Rand) State {
	var s State
	for id := range 1 + r.IntN(maxServices) {
		s.Services = append(s.Services, randomService(r, id))
	}
	for range r.IntN(maxSlices*len(s.Services) + 1) {
		s.Slices = append(s.Slices, randomSlice(r, &s, len(s.Slices)))
	}
	s.Questions = randomQuestions(r, &s)
	return s
}

func randomService(r *rand.Rand, id int) Service {
	v := Service{ID: id, Kind: random.Pick(r, Virtual, Virtual, Headless, Headless, Headless, Alias), Digit: random.One(r, 6)}
	web := Port{Name: "web", Protocol: corev1.ProtocolTCP, Number: 80}
	switch r.IntN(5) {
	case 0:
		v.Ports = []Port{web, {Name: random.Pick(r, "log", "9p"), Protocol: random.Pick(r, corev1.ProtocolTCP, corev1.ProtocolUDP), Number: 514}}
	case 1:
		v.Ports = []Port{{Protocol: corev1.ProtocolTCP, Number: 80}}
	case 2:
		v.Ports = []Port{web, {Name: "web-udp", Protocol: corev1.ProtocolUDP, Number: 80}}
	case 3:
		if v.Kind == Virtual {
			v.Ports = []Port{web}
		}
	default:
		v.Ports = []Port{web}
	}
	if v.Kind == Alias {
		v.Target = random.Pick(r, "www.example.com", "www.example.com.", fmt.Sprintf("service %d", r.IntN(maxServices)), "missing.default.svc.cluster.local")
		return v
	}
	v.Families = random.Pick(r, "4", "4", "6", "46", "64")
	return v
}

func randomSlice(r *rand.Rand, s *State, id int) Slice {
	v := random.Pick(r, s.Services...)
	l := Slice{ID: id, Service: v.ID, Family: random.Pick(r, 4, 6)}
	if v.Families != "" && !random.One(r, 10) { // a Service may have slices of a family that it has not
		l.Family = int(v.Families[r.IntN(len(v.Families))] - '0')
	}
	for i, p := range v.Ports {
		if random.One(r, 8) {
			continue
		}
		port := SlicePort{Name: new(p.Name), Protocol: p.Protocol, Number: new(int32(random.Pick(r, 8080, int(p.Number))))}
		if random.One(r, 10) {
			port.Name = new(fmt.Sprintf("other-%d", i))
		}
		l.Ports = append(l.Ports, port)
	}
	for range r.IntN(maxEndpoints + 1) {
		l.Endpoints = append(l.Endpoints, randomEndpoint(r))
	}
	return l
}

func randomEndpoint(r *rand.Rand) Endpoint {
	e := Endpoint{Address: r.IntN(addresses), Hostname: random.Pick(r, append([]string{"", ""}, hostnames...)...)}
	condition := func() *bool { return random.Pick(r, nil, new(true), new(true), new(false)) }
	switch r.IntN(3) {
	case 0: // any mix
		e.Ready, e.Serving, e.Terminating = condition(), condition(), condition()
	case 1:
		e.Ready, e.Serving, e.Terminating = new(true), new(true), new(false)
	}
	return e
}

// randomQuestions asks for names of Services, of their ports and endpoints, and of addresses.
func randomQuestions(r *rand.Rand, s *State) (all []Question) {
	for range questionsPerState {
		q := Question{Service: r.IntN(maxServices), Capital: random.One(r, 6)} // there may be no such Service
		v := s.service(q.Service)
		switch r.IntN(6) {
		case 0, 1:
			q.Type = random.Pick(r, candidate.A, candidate.AAAA, candidate.A, candidate.CNAME)
		case 2, 3:
			q.Type, q.Below = candidate.SRV, fmt.Sprintf("_%s._%s", random.Pick(r, "web", "log", "9p", "web-udp", "80", "other-0"), random.Pick(r, "tcp", "tcp", "udp"))
		case 4:
			q.Type, q.Below = random.Pick(r, candidate.A, candidate.AAAA), random.Pick(r, append([]string{"missing", "a.b"}, hostnames...)...)
		default:
			if q.Type = candidate.A; v != nil && v.Kind != Alias {
				q = randomAddress(r, s, v)
			}
		}
		all = append(all, q)
	}
	return all
}

// randomAddress asks for the names of an address that the Service has, or that a ready endpoint of it has: no document says more of others.
func randomAddress(r *rand.Rand, s *State, v *Service) Question {
	q := Question{Service: v.ID, Type: candidate.PTR, Of: OfService, Family: int(v.Families[r.IntN(len(v.Families))] - '0')}
	if v.Kind == Virtual {
		return q
	}
	var found []Question
	for _, l := range s.Slices {
		for _, e := range l.Endpoints {
			if l.Service == v.ID && (e.Ready == nil || *e.Ready) {
				found = append(found, Question{Service: v.ID, Type: candidate.PTR, Of: OfEndpoint, Address: e.Address, Family: l.Family})
			}
		}
	}
	if len(found) == 0 {
		return Question{Service: v.ID, Type: candidate.A}
	}
	return random.Pick(r, found...)
}

func changeState(r *rand.Rand, s *State, free *int) {
	for range 1 + r.IntN(3) {
		switch r.IntN(7) {
		case 0: // anything else of that name, or nothing
			i := r.IntN(len(s.Services))
			if id := s.Services[i].ID; len(s.Services) > 1 && random.One(r, 2) {
				s.Services = slices.Delete(s.Services, i, i+1)
				s.Slices = slices.DeleteFunc(s.Slices, func(l Slice) bool { return l.Service == id })
			} else {
				s.Services[i] = randomService(r, id)
			}
		case 1:
			v := &s.Services[r.IntN(len(s.Services))]
			if v.Kind == Alias {
				v.Target = random.Pick(r, "www.example.com", "other.example.com")
			} else if len(v.Ports) > 0 {
				v.Ports[0].Number = random.Pick[int32](r, 80, 81)
			}
		case 2:
			s.Slices = append(s.Slices, randomSlice(r, s, *free))
			*free++
		case 3:
			if len(s.Slices) > 0 {
				i := r.IntN(len(s.Slices))
				s.Slices = slices.Delete(s.Slices, i, i+1)
			}
		default:
			if len(s.Slices) == 0 {
				continue
			}
			l := &s.Slices[r.IntN(len(s.Slices))]
			if len(l.Endpoints) == 0 || random.One(r, 3) {
				l.Endpoints = append(l.Endpoints, randomEndpoint(r))
			} else if i := r.IntN(len(l.Endpoints)); random.One(r, 3) {
				l.Endpoints = slices.Delete(l.Endpoints, i, i+1)
			} else {
				l.Endpoints[i] = randomEndpoint(r)
			}
		}
	}
}
