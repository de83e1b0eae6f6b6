package dns

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/differential/manifest"
)

// Side is a cluster with DNS. Its methods are safe for concurrent use.
type Side struct {
	// Name is for people.
	Name string
	// virtual says that time passes at once.
	virtual bool
	plane   candidate.DataPlane
	api     apiclient.Interface
}

// namespace is where everything is made. Labs and references are new, so nobody else has it.
const namespace = "differential"

// NewSide takes a candidate, which nobody else uses, and which the side ends with.
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
	_, err = api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	return &Side{Name: name, virtual: what.Has(spec.VirtualClock), plane: plane, api: api}, nil
}

// placed is a zone on a side.
type placed struct {
	side *Side
	// slot tells zones apart that are there at the same time: names and addresses follow from it.
	slot int
	// services and slices are those that there are, as the server has stored them.
	services map[int]*corev1.Service
	slices   map[int]*discoveryv1.EndpointSlice
	kinds    map[int]Service
}

func (s *Side) place(slot int) *placed {
	return &placed{side: s, slot: slot, services: map[int]*corev1.Service{}, slices: map[int]*discoveryv1.EndpointSlice{}, kinds: map[int]Service{}}
}

func (p *placed) name(v *Service) string {
	if v.Digit {
		return fmt.Sprintf("%d-service-%d", p.slot, v.ID)
	}
	return fmt.Sprintf("z%d-service-%d", p.slot, v.ID)
}

// address is that of an endpoint: of ranges for benchmarks and documents, which nothing is sent to.
func (p *placed) address(service, family, number int) netip.Addr {
	n := (p.slot*maxServices+service)*addresses + number
	if family == 6 {
		return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 12: byte(n >> 24), 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)})
	}
	return netip.AddrFrom4([4]byte{198, 18 + byte(n>>16), byte(n >> 8), byte(n)})
}

// apply brings about a state. It returns what the server answers to each Service that it refuses, by ID.
func (p *placed) apply(ctx context.Context, s *State) (refused map[int]int32, err error) {
	refused = map[int]int32{}
	for id, slice := range p.slices {
		if !slices.ContainsFunc(s.Slices, func(l Slice) bool { return l.ID == id }) {
			if err := p.side.api.DiscoveryV1().EndpointSlices(namespace).Delete(ctx, slice.Name, metav1.DeleteOptions{}); err != nil {
				return nil, err
			}
			delete(p.slices, id)
		}
	}
	for id, svc := range p.services {
		if again(p.kinds[id], s.service(id)) {
			if err := p.side.api.CoreV1().Services(namespace).Delete(ctx, svc.Name, metav1.DeleteOptions{}); err != nil {
				return nil, err
			}
			delete(p.services, id)
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

// again reports whether a Service has to be made anew to become another one, or is to go.
func again(before Service, now *Service) bool {
	return now == nil || before.Digit != now.Digit || before.Families != now.Families && before.Kind != Alias && now.Kind != Alias ||
		before.Kind != now.Kind && (before.Kind == Headless || now.Kind == Headless)
}

func (p *placed) applyService(ctx context.Context, v *Service) error {
	all := p.side.api.CoreV1().Services(namespace)
	svc := p.service(v)
	var err error
	if stored := p.services[v.ID]; stored == nil {
		svc, err = all.Create(ctx, svc, metav1.CreateOptions{})
	} else {
		svc.ResourceVersion = stored.ResourceVersion
		if v.Kind == Virtual {
			svc.Spec.ClusterIP, svc.Spec.ClusterIPs = stored.Spec.ClusterIP, stored.Spec.ClusterIPs
		}
		svc, err = all.Update(ctx, svc, metav1.UpdateOptions{})
	}
	if err == nil {
		p.services[v.ID], p.kinds[v.ID] = svc, *v
	}
	return err
}

// service is the Service as it is sent.
func (p *placed) service(v *Service) *corev1.Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: p.name(v), Namespace: namespace}}
	for _, port := range v.Ports {
		svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: port.Name, Protocol: port.Protocol, Port: port.Number})
	}
	switch v.Kind {
	case Alias:
		svc.Spec.Type, svc.Spec.ExternalName = corev1.ServiceTypeExternalName, v.Target
		var id int
		if n, _ := fmt.Sscanf(v.Target, "service %d", &id); n == 1 {
			svc.Spec.ExternalName = p.name(&Service{ID: id}) + "." + namespace + ".svc.cluster.local"
		}
		return svc
	case Headless:
		svc.Spec.ClusterIP = corev1.ClusterIPNone
	}
	svc.Spec.Type, svc.Spec.IPFamilyPolicy = corev1.ServiceTypeClusterIP, new(corev1.IPFamilyPolicySingleStack)
	for _, f := range v.Families {
		svc.Spec.IPFamilies = append(svc.Spec.IPFamilies, manifest.Family(int(f-'0')))
	}
	if len(v.Families) > 1 {
		svc.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
	}
	return svc
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
	of := Service{ID: l.Service}
	if v, known := p.kinds[l.Service]; known {
		of = v
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("z%d-slice-%d", p.slot, l.ID), Namespace: namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: p.name(&of), discoveryv1.LabelManagedBy: "differential"},
		},
		AddressType: discoveryv1.AddressType(manifest.Family(l.Family)),
		Endpoints:   []discoveryv1.Endpoint{},
	}
	for _, port := range l.Ports {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: port.Name, Protocol: new(port.Protocol), Port: port.Number})
	}
	for _, e := range l.Endpoints {
		one := discoveryv1.Endpoint{
			Addresses:  []string{p.address(l.Service, l.Family, e.Address).String()},
			Conditions: discoveryv1.EndpointConditions{Ready: e.Ready, Serving: e.Serving, Terminating: e.Terminating},
		}
		if e.Hostname != "" {
			one.Hostname = new(e.Hostname)
		}
		slice.Endpoints = append(slice.Endpoints, one)
	}
	return slice
}

// remove deletes everything.
func (p *placed) remove(ctx context.Context) error {
	_, err := p.apply(ctx, &State{})
	return err
}

// question is what is asked on the side; false if the Service has no such address there.
func (p *placed) question(q *Question) (candidate.Question, bool) {
	v, known := p.kinds[q.Service]
	if !known || p.services[q.Service] == nil {
		v = Service{ID: q.Service}
	}
	asked := candidate.Question{Type: q.Type, Name: p.name(&v) + "." + namespace + ".svc"}
	switch q.Of {
	case OfService:
		svc := p.services[q.Service]
		if svc == nil {
			return asked, false
		}
		i := slices.IndexFunc(svc.Spec.ClusterIPs, func(ip string) bool {
			a, err := netip.ParseAddr(ip)
			return err == nil && a.Is4() == (q.Family == 4)
		})
		if i < 0 {
			return asked, false
		}
		asked.Name = candidate.ReverseName(netip.MustParseAddr(svc.Spec.ClusterIPs[i]))
		return asked, true
	case OfEndpoint: // of a Service that was refused, or has a virtual address, no document says anything
		if svc := p.services[q.Service]; svc == nil || svc.Spec.ClusterIP != corev1.ClusterIPNone {
			return asked, false
		}
		asked.Name = candidate.ReverseName(p.address(q.Service, q.Family, q.Address))
		return asked, true
	}
	if q.Below != "" {
		asked.Name = q.Below + "." + asked.Name
	}
	if q.Capital {
		asked.Name = strings.ToUpper(asked.Name)
	}
	return asked, true
}

// ask returns the answers in the words of both sides.
func (p *placed) ask(ctx context.Context, questions []Question) ([]string, error) {
	said := make([]string, len(questions))
	var asked []candidate.Question
	var of []int
	for i := range questions {
		q, exists := p.question(&questions[i])
		if !exists {
			said[i] = "no such address"
			continue
		}
		asked, of = append(asked, q), append(of, i)
	}
	answers, err := p.side.plane.Resolve(ctx, asked)
	if err != nil {
		return nil, err
	}
	for k, a := range answers {
		said[of[k]] = p.words(asked[k], a)
	}
	return said, nil
}

// words are an answer with what differs from side to side left out: addresses that the server has chosen, and names that the DNS has.
func (p *placed) words(q candidate.Question, a candidate.Resolution) string {
	if a.Said != candidate.Found {
		return string(a.Said)
	}
	var all []string
	for _, r := range a.Records {
		text := string(r.Type) + " "
		if !strings.EqualFold(r.Name, q.Name) {
			text = r.Name + " " + text
		}
		switch r.Type {
		case candidate.A, candidate.AAAA:
			text += p.whose(r.Address)
		case candidate.SRV:
			text += fmt.Sprintf("%s:%d", known(r.Target), r.Port)
		case candidate.TXT:
			text += r.Text
		default:
			text += known(r.Target)
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// whose is an address; one that a server has chosen is that of its Service.
func (p *placed) whose(a netip.Addr) string {
	for id, svc := range p.services {
		if i := slices.Index(svc.Spec.ClusterIPs, a.String()); i >= 0 {
			return fmt.Sprintf("cluster IP %d of Service %d", i, id)
		}
	}
	return a.String()
}

// known is a name; the first label of one that the DNS has made of an address is left out.
func known(name string) string {
	first, rest, _ := strings.Cut(name, ".")
	if strings.HasPrefix(first, "198-") || strings.HasPrefix(first, "2001-") {
		return "(a name)." + rest
	}
	return name
}

// Commands are those that bring the zone about on the side, a state after the other, and then ask the question.
func (s *Side) Commands(z Zone, q Question) (string, error) {
	var b strings.Builder
	p := s.place(0)
	before := State{}
	for i := range z.States {
		state := &z.States[i]
		if i > 0 {
			b.WriteString("# then, after the DNS has followed\n")
		}
		for _, l := range before.Slices {
			if !slices.ContainsFunc(state.Slices, func(o Slice) bool { return o.ID == l.ID }) {
				fmt.Fprintf(&b, "kubectl delete endpointslice -n %s %s\n", namespace, p.slice(&l).Name)
			}
		}
		for _, v := range before.Services {
			if again(v, state.service(v.ID)) {
				fmt.Fprintf(&b, "kubectl delete service -n %s %s\n", namespace, p.name(&v))
			}
		}
		var objects []any
		for k := range state.Services {
			v := &state.Services[k]
			p.kinds[v.ID], p.services[v.ID] = *v, p.service(v)
			objects = append(objects, p.services[v.ID])
		}
		for k := range state.Slices {
			objects = append(objects, p.slice(&state.Slices[k]))
		}
		text, err := manifest.Apply(objects...)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
		before = *state
	}
	asked, exists := p.question(&q)
	if name := asked.Name; !exists {
		fmt.Fprintf(&b, "# %s\n", q)
	} else if strings.HasSuffix(name, ".") {
		fmt.Fprintf(&b, "dig %s %s\n", asked.Type, name)
	} else {
		fmt.Fprintf(&b, "dig %s %s.cluster.local.\n", asked.Type, name)
	}
	return b.String(), nil
}
