package allocation

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/history"
)

// story records what several clients do at the same time. Each Service is changed by the client that created it, and read by all. So a request that is refused has
// held nothing for a moment, and a conflict is with somebody whose request was accepted.
type story struct {
	servers []*check.ControlPlane
	ranges  []netip.Prefix // the Service range, and one that comes and goes
	bands   check.Bands
	all     []string // the addresses of the Service range
	upper   []string // those of its upper band
	began   time.Time
	latest  atomic.Int64 // the latest moment that was read
	took    time.Duration
	sent    int

	requests atomic.Int64 // that clients have begun
	died     atomic.Int64 // those without an answer
	mu       sync.Mutex
	history  history.History
	names    []string // of Services that have been created
	down     []window // when the first server was not there
	// settled is how old an alias is that is given an address. kube-apiserver may take the address away from one that was created in the same second: that is another
	// requirement, AllocUpgradeSecondaryUnique.
	settled time.Duration
	watched bool          // whether the candidate has IPAddress objects
	objects []object      // what became of them
	another chan struct{} // has something when there may be more of them
}

// object is an event of an IPAddress object.
type object struct {
	at   time.Duration
	kind watch.EventType
	ip   *networkingv1.IPAddress
}

// window is a time between two moments; it has not ended while its end is Never.
type window struct{ from, to time.Duration }

// newStory makes the story of clients that use the servers in turn.
func newStory(ctx context.Context, servers ...*check.ControlPlane) *story {
	ginkgo.GinkgoHelper()
	cp := servers[0]
	s := &story{servers: servers, ranges: []netip.Prefix{cp.CIDR(), netip.MustParsePrefix(storiedFurther)}, bands: check.BandsOf(cp.CIDR())}
	s.history.Initially = map[string]string{}
	for ip := range cp.AddressesInUse(ctx, cp.CIDR()) {
		s.history.Initially[ip.String()] = "somebody else"
	}
	for ip := s.bands.First; ip.Compare(s.bands.Last) <= 0; ip = ip.Next() {
		s.all = append(s.all, ip.String())
		if s.bands.InDynamic(ip) {
			s.upper = append(s.upper, ip.String())
		}
	}
	// Dynamic allocation may look for free addresses in a copy of what is stored, which follows within this time. On a virtual clock no time passes meanwhile.
	if !cp.Has(spec.VirtualClock) {
		s.history.Lag, s.settled = reuse, 2*time.Second
	}
	for _, f := range []string{spec.FeatureDryRun, spec.FeatureExternalName, spec.FeatureServiceCIDR} { // whichever the dice come to, the report says the same
		if f != spec.FeatureServiceCIDR || s.servers[0].Has(spec.ManageServiceCIDRs) {
			s.servers[0].Claims(f)
		}
	}
	s.began = time.Now()
	s.watchObjects(ctx)
	return s
}

// watchObjects follows the IPAddress objects, where there are any.
func (s *story) watchObjects(ctx context.Context) {
	ginkgo.GinkgoHelper()
	last := s.servers[len(s.servers)-1] // which stays
	if !last.Has(spec.ServiceCIDRAPI) {
		return
	}
	events, err := last.Client().NetworkingV1().IPAddresses().Watch(ctx, metav1.ListOptions{})
	check.Must(err)
	ginkgo.DeferCleanup(events.Stop)
	s.watched, s.another = true, make(chan struct{}, 1)
	go func() {
		defer close(s.another)
		for e := range events.ResultChan() {
			ip, isAddress := e.Object.(*networkingv1.IPAddress)
			if !isAddress {
				continue
			}
			s.mu.Lock()
			s.objects = append(s.objects, object{s.now(), e.Type, ip})
			s.mu.Unlock()
			select {
			case s.another <- struct{}{}:
			default:
			}
		}
	}()
}

// recordObjects records what became of the IPAddress objects of an address.
func (s *story) recordObjects(ip string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var said []string
	for _, o := range s.objects {
		if o.ip.Name == ip {
			parent := "nobody"
			if o.ip.Spec.ParentRef != nil {
				parent = o.ip.Spec.ParentRef.Name
			}
			said = append(said, fmt.Sprintf("%s %s for %s", moment(o.at), strings.ToLower(string(o.kind)), parent))
		}
	}
	if len(said) > 0 {
		check.Record("IPAddress "+ip, "%s", strings.Join(said, ", "))
	}
}

// now is a moment since the story began. What happens after it has a later moment, whichever processor reads its clock.
func (s *story) now() time.Duration {
	for {
		latest := s.latest.Load()
		now := max(int64(time.Since(s.began)), latest+1)
		if s.latest.CompareAndSwap(latest, now) {
			return time.Duration(now)
		}
	}
}

// tell lets the clients send their requests, and do what happens when half of them have been sent. Afterwards it deletes what there is, and names every address.
func (s *story) tell(ctx context.Context, meanwhile func()) {
	ginkgo.GinkgoHelper()
	clients := make([]*client, storyClients)
	for i := range clients {
		clients[i] = &client{story: s, id: i, server: i % len(s.servers), random: rand.New(rand.NewPCG(s.servers[0].Rand().Uint64(), 0))}
	}
	begun := s.now()
	half := make(chan struct{})
	turn := sync.OnceFunc(func() { close(half) })
	check.Concurrently(storyClients+1, func(i int) {
		if i == storyClients {
			select {
			case <-half:
				meanwhile()
			case <-ctx.Done():
			}
			return
		}
		defer turn() // if a client fails, nobody waits for it
		for ctx.Err() == nil && s.now()-begun < storyTime {
			n := s.requests.Add(1)
			if n >= storyLength/2 || s.now()-begun > storyTime/2 {
				turn()
			}
			if n > storyLength {
				return
			}
			clients[i].act(ctx)
		}
	})
	s.took, s.sent = s.now()-begun, len(s.history.Operations)
	check.Concurrently(storyClients, func(i int) { clients[i].leave(ctx) })
	clients[0].removeRange(ctx)
	for i, ip := range s.all {
		if s.history.Initially[ip] == history.Free {
			last := clients[i%len(clients)]
			last.create(ctx, ip)
			last.leave(ctx)
		}
	}
}

// restart kills the first server and starts it again.
func (s *story) restart(ctx context.Context) {
	ginkgo.GinkgoHelper()
	s.mu.Lock()
	s.down = append(s.down, window{s.now(), history.Never})
	s.mu.Unlock()
	s.servers[0].Restart(ctx)
	s.mu.Lock()
	s.down[len(s.down)-1].to = s.now()
	s.mu.Unlock()
}

// wasDown reports whether the first server was not there at a moment of an operation.
func (s *story) wasDown(from, to time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.down, func(w window) bool { return w.from <= to && from <= w.to })
}

// client sends one request after the other.
type client struct {
	*story
	id, server int
	random     *rand.Rand
	own        []*owned
	further    string // the ServiceCIDR object that there is
}

// owned is a Service of a client, and what it knows of it.
type owned struct {
	name, state string             // an address, alias, or Free
	made        time.Duration      // when it had been created
	lost        *history.Operation // the last request, if nobody knows what became of it
	wished      *string            // the address that the lost request named, empty if it named none; nil if it was to take none
}

// alias is the state of a Service that has no address.
const alias = "an alias"

// service is the register of a Service.
func service(name string) string { return servicePrefix + name }

const servicePrefix = "Service "

// send sends a request. It is lost if the server died meanwhile: nobody knows then what became of it.
func (c *client) send(ctx context.Context, method, path, kind, body string, options ...check.RequestOption) (a check.Response, o *history.Operation, lost bool) {
	ginkgo.GinkgoHelper()
	cp := c.servers[c.server]
	if from := c.now(); c.server == 0 && len(c.servers) > 1 && c.wasDown(from, from) {
		cp = c.servers[1] // until the other one is there again
	}
	o = &history.Operation{Client: c.id, Begin: c.now()}
	a, err := cp.Ask(ctx, method, path, kind, []byte(body), options...)
	o.End = c.now()
	o.Command = cp.CommandOf(method, path, kind, []byte(body), options...)
	if err != nil {
		if !c.wasDown(o.Begin, o.End) {
			check.Must(err)
		}
		c.died.Add(1)
		o.End, o.Answer = history.Never, "the server died"
		return a, o, true
	}
	o.Answer = fmt.Sprint(a.Code)
	switch {
	case a.Status != nil && a.Status.Status == metav1.StatusFailure:
		o.Answer = fmt.Sprintf("%d %s: %s", a.Code, a.Status.Reason, a.Status.Message)
	case a.Service != nil:
		o.Answer = fmt.Sprintf("%d, %s", a.Code, stateOf(a.Service))
	}
	return a, o, false
}

// add puts an operation into the history.
func (s *story) add(o *history.Operation, effects ...history.Effect) {
	o.Effects = effects
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.Operations = append(s.history.Operations, *o)
}

// impossible is an effect that no order explains: the answer says something that is never so.
func impossible(register string) history.Effect { return history.See(register, "what cannot be") }

// stateOf is the value of the register of a Service.
func stateOf(svc *corev1.Service) string {
	switch {
	case svc.Spec.Type == corev1.ServiceTypeExternalName:
		return alias
	case svc.Spec.ClusterIP == "":
		return "without an address"
	}
	return svc.Spec.ClusterIP
}

// live are the Services that the client may change.
func (c *client) live() (live []*owned) {
	for _, o := range c.own {
		if o.lost == nil {
			live = append(live, o)
		}
	}
	return live
}

// tide is after how many requests Services become more, and then fewer again. So the range is full now and then.
const tide = 300

// crowd is how many Services a client has at most. All clients together want more addresses than there are.
const crowd = 12

// act does something at random.
func (c *client) act(ctx context.Context) {
	ginkgo.GinkgoHelper()
	dice, live := c.random.IntN(100), c.live()
	some := func() *owned { return live[c.random.IntN(len(live))] }
	cp := c.servers[0]
	creates := 55 // of 100 requests, after others
	if c.requests.Load()/tide%2 == 0 {
		creates = 94
	}
	switch {
	case dice < 2:
		c.list(ctx)
	case dice < 20:
		c.get(ctx)
	case dice < 22 && c.id == 0:
		c.turnRange(ctx)
	case dice < 30 && cp.Claims(spec.FeatureDryRun):
		c.try(ctx, live)
	case len(live) == 0 || dice < creates && len(live) < crowd:
		if c.random.IntN(12) == 0 && cp.Claims(spec.FeatureExternalName) {
			c.createAlias(ctx)
			return
		}
		c.create(ctx, c.wish())
	case dice < (creates+100)/2 && cp.Claims(spec.FeatureExternalName):
		switch o := some(); {
		case o.state != alias:
			c.toAlias(ctx, o)
		case c.now()-o.made >= c.settled:
			c.toAddress(ctx, o, c.wish())
		}
	default:
		c.delete(ctx, some())
	}
}

// wish is an address that the client names, or none.
func (c *client) wish() string {
	switch n := c.random.IntN(20); {
	case n < 11:
		return ""
	case n < 12:
		first := c.ranges[1].Addr().Next()
		for range c.random.IntN(6) {
			first = first.Next()
		}
		return first.String()
	}
	return c.all[c.random.IntN(len(c.all))]
}

const (
	merge     = "application/merge-patch+json"
	plainJSON = "application/json"
)

// withAddress is the specification of a Service that has an address, with or without naming it.
func withAddress(ip string) string {
	named := ""
	if ip != "" {
		named = fmt.Sprintf(`"clusterIP":%q,`, ip)
	}
	return fmt.Sprintf(`"spec":{%s"type":"ClusterIP","externalName":null,"ports":[{"port":80}]}`, named)
}

const asAlias = `"spec":{"type":"ExternalName","externalName":"example.org"}`

func newService(name, specification string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":%q},%s}`, name, specification)
}

func (c *client) path(name string) string { return c.servers[0].Path(name) }

// takes are the effects of an answer that should give a Service an address.
func (c *client) takes(o *history.Operation, a check.Response, name, before, wanted string) (state string, effects []history.Effect) {
	switch {
	case a.Accepted() && a.Service != nil:
		state = stateOf(a.Service)
		ip, err := netip.ParseAddr(state)
		inRange := err == nil && slices.ContainsFunc(c.ranges, func(p netip.Prefix) bool { return p.Contains(ip) })
		if !inRange || wanted != "" && wanted != state {
			return state, []history.Effect{impossible(service(name))}
		}
		if wanted == "" && c.bands.InStatic(ip) && c.ranges[0].Contains(ip) {
			o.Held = c.upper
		}
		return state, []history.Effect{history.Take(state, name), history.Turn(service(name), before, state)}
	case a.Accepted():
		return before, []history.Effect{impossible(service(name))}
	case c.wasDown(o.Begin, o.End):
		return before, nil // a server that has just started may know no range yet
	case wanted == "":
		o.Held = c.all
		return before, nil
	case c.ranges[0].Contains(netip.MustParseAddr(wanted)):
		return before, []history.Effect{history.Refuse(wanted, name)}
	}
	return before, nil // the further range may not have been there
}

// create creates a Service that names an address, or none.
func (c *client) create(ctx context.Context, wanted string) {
	ginkgo.GinkgoHelper()
	c.createAs(ctx, withAddress(wanted), &wanted, func(o *history.Operation, a check.Response, name string) (string, []history.Effect) {
		return c.takes(o, a, name, history.Free, wanted)
	})
}

func (c *client) createAlias(ctx context.Context) {
	ginkgo.GinkgoHelper()
	c.createAs(ctx, asAlias, nil, func(_ *history.Operation, a check.Response, name string) (string, []history.Effect) {
		if !a.Accepted() {
			return history.Free, []history.Effect{impossible(service(name))}
		}
		return alias, []history.Effect{history.Turn(service(name), history.Free, alias)}
	})
}

func (c *client) createAs(ctx context.Context, specification string, wished *string, effects func(*history.Operation, check.Response, string) (string, []history.Effect)) {
	ginkgo.GinkgoHelper()
	name := c.servers[0].Name("s")
	a, o, lost := c.send(ctx, http.MethodPost, c.path(""), plainJSON, newService(name, specification))
	own := &owned{name: name}
	if lost {
		own.lost, own.wished = o, wished
		c.own = append(c.own, own)
		return
	}
	state, does := effects(o, a, name)
	c.add(o, does...)
	if state == history.Free {
		return
	}
	own.state, own.made = state, o.End
	c.own = append(c.own, own)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = append(c.names, name)
}

// toAlias takes the address away from a Service.
func (c *client) toAlias(ctx context.Context, own *owned) {
	ginkgo.GinkgoHelper()
	a, o, lost := c.send(ctx, http.MethodPatch, c.path(own.name), merge, "{"+asAlias+"}")
	switch {
	case lost:
		own.lost, own.wished = o, nil
	case !a.Accepted():
		c.add(o, impossible(service(own.name)))
	default:
		c.add(o, history.Turn(service(own.name), own.state, alias), history.Give(own.state, own.name))
		own.state = alias
	}
}

// toAddress gives one to an alias.
func (c *client) toAddress(ctx context.Context, own *owned, wanted string) {
	ginkgo.GinkgoHelper()
	a, o, lost := c.send(ctx, http.MethodPatch, c.path(own.name), merge, "{"+withAddress(wanted)+"}")
	if lost {
		own.lost, own.wished = o, &wanted
		return
	}
	state, effects := c.takes(o, a, own.name, alias, wanted)
	c.add(o, effects...)
	own.state = state
}

func (c *client) delete(ctx context.Context, own *owned) {
	ginkgo.GinkgoHelper()
	a, o, lost := c.send(ctx, http.MethodDelete, c.path(own.name), "", "")
	if lost {
		own.lost, own.wished = o, nil
		return
	}
	if !a.Accepted() {
		c.add(o, impossible(service(own.name)))
	} else {
		c.add(o, gone(own)...)
	}
	c.own = slices.DeleteFunc(c.own, func(x *owned) bool { return x == own })
}

// gone are the effects of a deletion.
func gone(own *owned) []history.Effect {
	effects := []history.Effect{history.Turn(service(own.name), own.state, history.Free)}
	if own.state != alias {
		effects = append(effects, history.Give(own.state, own.name))
	}
	return effects
}

// seen are the effects of a Service that was read.
func seen(svc *corev1.Service) []history.Effect {
	state := stateOf(svc)
	effects := []history.Effect{history.See(service(svc.Name), state)}
	if state != alias {
		effects = append(effects, history.See(state, svc.Name))
	}
	return effects
}

// get reads a Service of anybody, mostly one that was created lately.
func (c *client) get(ctx context.Context) {
	ginkgo.GinkgoHelper()
	const lately = 24
	c.mu.Lock()
	names := c.names[max(0, len(c.names)-lately):]
	c.mu.Unlock()
	if len(names) == 0 {
		return
	}
	c.read(ctx, names[c.random.IntN(len(names))])
}

// read reads a Service, and returns it, nil if there is none.
func (c *client) read(ctx context.Context, name string) *corev1.Service {
	ginkgo.GinkgoHelper()
	a, o, lost := c.send(ctx, http.MethodGet, c.path(name), "", "")
	switch {
	case lost:
	case a.Code == http.StatusNotFound:
		c.add(o, history.See(service(name), history.Free))
	case a.Service == nil:
		c.add(o, impossible(service(name)))
	default:
		c.add(o, seen(a.Service)...)
	}
	return a.Service
}

// list reads all Services, as they were at one moment.
func (c *client) list(ctx context.Context) {
	ginkgo.GinkgoHelper()
	a, o, lost := c.send(ctx, http.MethodGet, c.path(""), "", "")
	var list corev1.ServiceList
	if lost || json.Unmarshal(a.Body, &list) != nil {
		return
	}
	var effects []history.Effect
	holders := map[string]string{}
	for i := range list.Items {
		svc := &list.Items[i]
		state := stateOf(svc)
		effects = append(effects, history.See(service(svc.Name), state))
		if other, twice := holders[state]; twice {
			holders[state] = other + " and " + svc.Name
		} else if state != alias {
			holders[state] = svc.Name
		}
	}
	for ip, holder := range holders {
		effects = append(effects, history.See(ip, holder))
	}
	o.Answer += fmt.Sprintf(", %d Services", len(list.Items))
	c.add(o, effects...)
}

// try does something dry, which has no effect whatever is answered.
func (c *client) try(ctx context.Context, live []*owned) {
	ginkgo.GinkgoHelper()
	method, path, kind, body := http.MethodPost, c.path(""), plainJSON, newService(c.servers[0].Name("dry"), withAddress(c.wish()))
	if len(live) > 0 && c.random.IntN(2) == 0 {
		own := live[c.random.IntN(len(live))]
		method, path, kind, body = http.MethodDelete, c.path(own.name), "", ""
		switch {
		case c.random.IntN(2) == 0 || !c.servers[0].Claims(spec.FeatureExternalName):
		case own.state == alias:
			method, kind, body = http.MethodPatch, merge, "{"+withAddress(c.wish())+"}"
		default:
			method, kind, body = http.MethodPatch, merge, "{"+asAlias+"}"
		}
	}
	if _, o, lost := c.send(ctx, method, path, kind, body, check.DryRun()); !lost {
		c.add(o)
	}
}

// turnRange makes the further range come, or go.
func (c *client) turnRange(ctx context.Context) {
	ginkgo.GinkgoHelper()
	if c.further != "" {
		c.removeRange(ctx)
		return
	}
	cp := c.servers[0]
	if !cp.Has(spec.ManageServiceCIDRs) || !cp.Claims(spec.FeatureServiceCIDR) {
		return
	}
	name := cp.Name(cp.Namespace())
	if _, o, lost := c.send(ctx, http.MethodPost, check.ServiceCIDRs, plainJSON, string(check.ServiceCIDR(name, storiedFurther))); !lost {
		c.add(o)
	}
	c.further = name
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) {
		c.servers[len(c.servers)-1].Do(ctx, http.MethodDelete, check.ServiceCIDRs+"/"+name, "", nil)
	})
}

func (c *client) removeRange(ctx context.Context) {
	ginkgo.GinkgoHelper()
	if c.further == "" {
		return
	}
	if _, o, lost := c.send(ctx, http.MethodDelete, check.ServiceCIDRs+"/"+c.further, "", ""); !lost {
		c.add(o)
	}
	c.further = ""
}

// leave finds out what became of lost requests, and deletes the Services of the client.
func (c *client) leave(ctx context.Context) {
	ginkgo.GinkgoHelper()
	for _, own := range slices.Clone(c.own) {
		if own.lost != nil {
			c.resolve(ctx, own)
		}
		if own.state != history.Free {
			c.delete(ctx, own)
		}
	}
	c.own = nil
}

// resolve gives a lost request the effects that it has had. What it took or gave back before the server died may stay so for a while, until somebody repairs it.
func (c *client) resolve(ctx context.Context, own *owned) {
	ginkgo.GinkgoHelper()
	o, before := own.lost, own.state
	svc := c.read(ctx, own.name)
	own.lost = nil
	after := history.Free
	if svc != nil {
		after = stateOf(svc)
	}
	own.state = after
	switch {
	case after == before && own.wished == nil:
		return
	case after == before && *own.wished == "":
		c.cloud(o.Begin, c.all...)
		return
	case after == before:
		c.cloud(o.Begin, *own.wished)
		return
	}
	effects := []history.Effect{history.Turn(service(own.name), before, after)}
	if before != history.Free && before != alias {
		effects = append(effects, history.Give(before, own.name))
	}
	if after != history.Free && after != alias {
		effects = append(effects, history.Take(after, own.name))
	}
	c.add(o, effects...)
}

// cloud notes addresses that may be held by a request that was lost.
func (s *story) cloud(from time.Duration, addresses ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ip := range addresses {
		s.history.Clouds = append(s.history.Clouds, history.Cloud{Register: ip, From: from})
	}
}

// takenAgain are the addresses that were given back and then taken once more for a Service that is gone, see AddressObject. The object of a Service is another one
// than the object that stood for it before.
func (s *story) takenAgain(ctx context.Context) (again []string) {
	ginkgo.GinkgoHelper()
	if !s.watched {
		return nil
	}
	last := s.servers[len(s.servers)-1]
	now, err := last.Client().NetworkingV1().IPAddresses().List(ctx, metav1.ListOptions{})
	check.Must(err)
	left := map[string]*networkingv1.IPAddress{}
	for i := range now.Items {
		if ip := &now.Items[i]; s.history.Initially[ip.Name] == history.Free && slices.Contains(s.all, ip.Name) {
			left[ip.Name] = ip
		}
	}
	if len(left) == 0 {
		return nil
	}
	check.Record("addresses that no Service has", "%d at the end", len(left))
	look := func() (again []string, all bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		seen := map[string]bool{}
		for _, o := range s.objects {
			now := left[o.ip.Name]
			switch {
			case now == nil:
			case o.ip.UID == now.UID:
				seen[now.Name] = true
			case o.kind == watch.Deleted && reflect.DeepEqual(o.ip.Spec.ParentRef, now.Spec.ParentRef) && !slices.Contains(again, now.Name):
				again = append(again, now.Name)
			}
		}
		return again, len(seen) == len(left)
	}
	for {
		again, all := look()
		if all {
			return again
		}
		select {
		case _, open := <-s.another:
			if !open {
				again, _ = look()
				return again
			}
		case <-ctx.Done():
			return again
		}
	}
}
