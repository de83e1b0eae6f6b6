package allocation

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/history"
)

// client sends one request after the other.
type client struct {
	*story
	id, server int
	random     *rand.Rand
	own        []*owned
	object     string // the ServiceCIDR object that there is
}

// owned is a Service of a client, and what it knows of it.
type owned struct {
	name  string
	form  *form
	gone  bool     // whether there is no such Service
	holds []string // registers
	made  time.Duration
	lost  *lost // the last request, if nobody knows what became of it
}

// lost is a request without an answer.
type lost struct {
	operation *history.Operation
	form      *form  // that the Service was to have, nil if it was to go
	wanted    string // what it named
}

// value is the value of the register of the Service.
func (c *client) value(own *owned) string {
	if own.gone {
		return history.Free
	}
	return c.stateOf(own.holds)
}

// send sends a request. It is lost if the server died meanwhile: nobody knows then what became of it.
func (c *client) send(ctx context.Context, method, path, kind, body string, options ...check.RequestOption) (a check.Response, o *history.Operation, died bool) {
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
	o.Answer = c.answerOf(a)
	return a, o, false
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

// act does something at random.
func (c *client) act(ctx context.Context) {
	ginkgo.GinkgoHelper()
	dice, live := c.random.IntN(100), c.live()
	some := func() *owned { return live[c.random.IntN(len(live))] }
	creates := 55 // of 100 requests, after others
	if c.requests.Load()/tide%2 == 0 {
		creates = 94
	}
	switch now := c.now(); {
	case c.wasDown(now, now):
		// Clients only read while a server starts again. kube-apiserver compares all addresses and node ports with its Services then, and ends after a minute where others
		// create some meanwhile. It may not have seen an IPAddress yet whose Service it has seen: to make it again fails, and is not tried again
		// (ipallocator/controller/repairip.go, v1.37.1, lines 230-263). Node ports it tries to write four times within half a second
		// (portallocator/controller/repair.go, lines 99-107).
		c.requests.Add(-1)
		c.get(ctx)
	case dice < 2:
		c.list(ctx)
	case dice < 20:
		c.get(ctx)
	case dice < 22 && c.id == 0 && c.further:
		c.turnRange(ctx)
	case dice < 30 && c.servers[0].Claims(spec.FeatureDryRun):
		c.try(ctx, live)
	case len(live) == 0 || dice < creates && len(live) < c.crowd:
		f := c.anyForm()
		c.create(ctx, f, f.named.wish(c.random))
	case dice < (creates+100)/2:
		own := some()
		if f := c.nextForm(own); f != nil && (len(f.gains(own.holds)) == 0 || c.now()-own.made >= c.settled) {
			c.change(ctx, own, f, c.wishFor(own, f))
		}
	default:
		c.delete(ctx, some())
	}
}

// anyForm is a form for a new Service.
func (c *client) anyForm() *form {
	all := 0
	for _, f := range c.forms {
		all += f.weight
	}
	at := c.random.IntN(all)
	for _, f := range c.forms {
		if at -= f.weight; at < 0 {
			return f
		}
	}
	return c.forms[0]
}

// nextForm is one that a Service can be changed to, nil if there is none.
func (c *client) nextForm(own *owned) *form {
	if len(own.form.next) == 0 {
		return nil
	}
	return own.form.next[c.random.IntN(len(own.form.next))]
}

// wishFor is what a client names when it changes a Service. To get another one it has to name it.
func (c *client) wishFor(own *owned, f *form) string {
	p := f.nameable(own.holds)
	if p != nil && len(f.gains(own.holds)) == 0 {
		return p.named[c.random.IntN(len(p.named))]
	}
	return p.wish(c.random)
}

const (
	merge     = "application/merge-patch+json"
	plainJSON = "application/json"
)

func newService(name, specification string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":%q},"spec":{%s}}`, name, specification)
}

func patchTo(specification string) string { return fmt.Sprintf(`{"spec":{%s}}`, specification) }

// becomes notes what an answer leaves of a Service that was to become one of a form, and returns the effects.
func (c *client) becomes(o *history.Operation, a check.Response, own *owned, f *form, wanted string) []history.Effect {
	gains := f.gains(own.holds)
	switch {
	case !a.Accepted() && c.wasDown(o.Begin, o.End):
		return nil // a server that has just started may know no range yet
	case !a.Accepted() && wanted != "":
		if c.named(wanted) {
			return []history.Effect{history.Refuse(wanted, own.name)}
		}
		return nil // the further range may not have been there
	case !a.Accepted():
		for _, p := range gains {
			if p.upper != nil {
				o.Held = p.named
				c.full.Add(1)
				return nil
			}
		}
		return []history.Effect{impossible(service(own.name))}
	case a.Service == nil:
		return []history.Effect{impossible(service(own.name))}
	}
	before, holds := c.value(own), c.holds(a.Service)
	effects := []history.Effect{history.Turn(service(own.name), before, c.stateOf(holds))}
	if !f.has(holds, wanted) {
		effects = []history.Effect{impossible(service(own.name))}
	}
	for _, r := range own.holds {
		if !slices.Contains(holds, r) {
			effects = append(effects, history.Give(r, own.name))
		}
	}
	for _, r := range holds {
		if slices.Contains(own.holds, r) {
			continue
		}
		effects = append(effects, history.Take(r, own.name))
		for _, p := range gains {
			if r != wanted && p.upper != nil && slices.Contains(p.named, r) && !slices.Contains(p.upper, r) {
				o.Held = p.upper
				c.lower.Add(1)
			}
		}
	}
	own.form, own.holds, own.gone = f, holds, false
	return effects
}

// has reports whether what a Service holds is what one of this form has.
func (f *form) has(holds []string, wanted string) bool {
	if len(holds) != len(f.pools) || wanted != "" && !slices.Contains(holds, wanted) {
		return false
	}
	for _, p := range f.pools {
		if !slices.ContainsFunc(holds, p.has) {
			return false
		}
	}
	return true
}

// create creates a Service, which may name something.
func (c *client) create(ctx context.Context, f *form, wanted string) {
	ginkgo.GinkgoHelper()
	own := &owned{name: c.servers[0].Name("s"), form: f, gone: true}
	a, o, died := c.send(ctx, http.MethodPost, c.path(""), plainJSON, newService(own.name, f.set(nil, wanted)))
	if died {
		own.lost = &lost{o, f, wanted}
		c.own = append(c.own, own)
		return
	}
	c.add(o, c.becomes(o, a, own, f, wanted)...)
	if own.gone {
		return
	}
	own.made = o.End
	c.own = append(c.own, own)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = append(c.names, own.name)
}

// change makes a Service one of another form.
func (c *client) change(ctx context.Context, own *owned, f *form, wanted string) {
	ginkgo.GinkgoHelper()
	a, o, died := c.send(ctx, http.MethodPatch, c.path(own.name), merge, patchTo(f.set(own.holds, wanted)))
	if died {
		own.lost = &lost{o, f, wanted}
		return
	}
	c.add(o, c.becomes(o, a, own, f, wanted)...)
}

func (c *client) delete(ctx context.Context, own *owned) {
	ginkgo.GinkgoHelper()
	a, o, died := c.send(ctx, http.MethodDelete, c.path(own.name), "", "")
	if died {
		own.lost = &lost{operation: o}
		return
	}
	if !a.Accepted() {
		c.add(o, impossible(service(own.name)))
	} else {
		c.add(o, c.goes(own)...)
	}
	c.own = slices.DeleteFunc(c.own, func(x *owned) bool { return x == own })
}

// goes are the effects of a deletion.
func (c *client) goes(own *owned) []history.Effect {
	effects := []history.Effect{history.Turn(service(own.name), c.value(own), history.Free)}
	for _, r := range own.holds {
		effects = append(effects, history.Give(r, own.name))
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
	a, o, died := c.send(ctx, http.MethodGet, c.path(name), "", "")
	switch {
	case died:
	case a.Code == http.StatusNotFound:
		c.add(o, history.See(service(name), history.Free))
	case a.Service == nil:
		c.add(o, impossible(service(name)))
	default:
		effects := []history.Effect{history.See(service(name), c.stored(a.Service))}
		for _, r := range c.holds(a.Service) {
			effects = append(effects, history.See(r, name))
		}
		c.add(o, effects...)
	}
	return a.Service
}

// list reads all Services, as they were at one moment.
func (c *client) list(ctx context.Context) {
	ginkgo.GinkgoHelper()
	a, o, died := c.send(ctx, http.MethodGet, c.path(""), "", "")
	var list corev1.ServiceList
	if died || json.Unmarshal(a.Body, &list) != nil {
		return
	}
	var effects []history.Effect
	holders := map[string]string{}
	for i := range list.Items {
		svc := &list.Items[i]
		effects = append(effects, history.See(service(svc.Name), c.stored(svc)))
		for _, r := range c.holds(svc) {
			if other, twice := holders[r]; twice {
				holders[r] = other + together + svc.Name
			} else {
				holders[r] = svc.Name
			}
		}
	}
	for register, holder := range holders {
		effects = append(effects, history.See(register, holder))
	}
	o.Answer += fmt.Sprintf(", %d Services", len(list.Items))
	c.add(o, effects...)
}

// try does something dry, which has no effect whatever is answered.
func (c *client) try(ctx context.Context, live []*owned) {
	ginkgo.GinkgoHelper()
	f := c.anyForm()
	method, path, kind, body := http.MethodPost, c.path(""), plainJSON, newService(c.servers[0].Name("dry"), f.set(nil, f.named.wish(c.random)))
	if len(live) > 0 && c.random.IntN(2) == 0 {
		own := live[c.random.IntN(len(live))]
		method, path, kind, body = http.MethodDelete, c.path(own.name), "", ""
		if f := c.nextForm(own); f != nil && c.random.IntN(2) == 0 {
			method, kind, body = http.MethodPatch, merge, patchTo(f.set(own.holds, c.wishFor(own, f)))
		}
	}
	if _, o, died := c.send(ctx, method, path, kind, body, check.DryRun()); !died {
		c.add(o)
	}
}

// turnRange makes the further range come, or go.
func (c *client) turnRange(ctx context.Context) {
	ginkgo.GinkgoHelper()
	if c.object != "" {
		c.removeRange(ctx)
		return
	}
	cp := c.servers[0]
	if !cp.Has(spec.ManageServiceCIDRs) || !cp.Claims(spec.FeatureServiceCIDR) {
		return
	}
	name := cp.Name(cp.Namespace())
	if _, o, died := c.send(ctx, http.MethodPost, check.ServiceCIDRs, plainJSON, string(check.ServiceCIDR(name, storiedFurther))); !died {
		c.add(o)
	}
	c.object = name
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) {
		c.servers[len(c.servers)-1].Do(ctx, http.MethodDelete, check.ServiceCIDRs+"/"+name, "", nil)
	})
}

func (c *client) removeRange(ctx context.Context) {
	ginkgo.GinkgoHelper()
	if c.object == "" {
		return
	}
	if _, o, died := c.send(ctx, http.MethodDelete, check.ServiceCIDRs+"/"+c.object, "", ""); !died {
		c.add(o)
	}
	c.object = ""
}

// leave finds out what became of lost requests, and deletes the Services of the client.
func (c *client) leave(ctx context.Context) {
	ginkgo.GinkgoHelper()
	for _, own := range slices.Clone(c.own) {
		if own.lost != nil {
			c.resolve(ctx, own)
		}
		if !own.gone {
			c.delete(ctx, own)
		}
	}
	c.own = nil
}

// resolve gives a lost request the effects that it has had. What it took or gave back before the server died may stay so for a while, until somebody repairs it.
func (c *client) resolve(ctx context.Context, own *owned) {
	ginkgo.GinkgoHelper()
	l, before, held := own.lost, c.value(own), own.holds
	svc := c.read(ctx, own.name)
	own.lost, own.gone, own.holds = nil, svc == nil, nil
	if svc != nil {
		own.holds = c.holds(svc)
	}
	after := c.value(own)
	if after == before {
		switch {
		case l.form == nil: // it was to take nothing
		case l.wanted != "":
			c.cloud(l.operation.Begin, l.wanted)
		default:
			for _, p := range l.form.gains(held) {
				c.cloud(l.operation.Begin, p.named...)
			}
		}
		return
	}
	effects := []history.Effect{history.Turn(service(own.name), before, after)}
	for _, r := range held {
		if !slices.Contains(own.holds, r) {
			effects = append(effects, history.Give(r, own.name))
		}
	}
	for _, r := range own.holds {
		if !slices.Contains(held, r) {
			effects = append(effects, history.Take(r, own.name))
		}
	}
	c.add(l.operation, effects...)
}
