package endpoints

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// slot is a slice as it will be, and as it is; was is nil for one that does not exist yet.
type slot struct{ was, is *discoveryv1.EndpointSlice }

// settle turns the existing slices of a controller into the desired ones with few changes. An endpoint stays in its
// slice, and new ones go where there is room. A slice that is no longer needed becomes one that is, if its address type
// admits.
func (c *Changes) settle(existing []*discoveryv1.EndpointSlice, desired []*group, f *form) {
	idle := slices.Clone(existing)
	unplaced := make([][]discoveryv1.Endpoint, len(desired))
	var slots []*slot
	for i, g := range desired {
		var kept []*slot
		kept, idle = g.keep(idle)
		unplaced[i] = g.fill(kept)
		slots = append(slots, kept...)
		if g.placeholder && len(kept) == 0 {
			slots = append(slots, g.open(&idle, nil))
		}
	}
	for i, g := range desired { // once it is known which slices are idle
		for endpoints := range slices.Chunk(unplaced[i], g.capacity) {
			slots = append(slots, g.open(&idle, endpoints))
		}
	}
	for _, s := range slots {
		f.shape(s.is)
		switch {
		case s.was == nil:
			c.Create = append(c.Create, s.is)
		case !equality.Semantic.DeepEqual(s.was, s.is):
			c.Update = append(c.Update, s.is)
		}
	}
	c.Delete = append(c.Delete, idle...)
}

// keep returns the slices that are of this group, each with those of its endpoints that are still wanted, and the other slices. One that would
// be empty is not kept, but for the placeholder.
func (g *group) keep(existing []*discoveryv1.EndpointSlice) (kept []*slot, others []*discoveryv1.EndpointSlice) {
	wanted := map[string]*discoveryv1.Endpoint{}
	for i := range g.endpoints {
		wanted[identity(&g.endpoints[i])] = &g.endpoints[i]
	}
	for _, was := range existing {
		var endpoints []discoveryv1.Endpoint
		if was.AddressType == g.addressType && samePorts(was.Ports, g.ports) {
			for i := range was.Endpoints {
				id := identity(&was.Endpoints[i])
				if e := wanted[id]; e != nil && len(endpoints) < g.capacity {
					endpoints = append(endpoints, *e)
					delete(wanted, id)
				}
			}
			if len(endpoints) > 0 || g.placeholder && len(kept) == 0 {
				is := was.DeepCopy()
				is.Endpoints = endpoints
				kept = append(kept, &slot{was, is})
				continue
			}
		}
		others = append(others, was)
	}
	return kept, others
}

// fill puts the endpoints that are in none of the slots where there is room, and returns those for which there is none.
func (g *group) fill(slots []*slot) (rest []discoveryv1.Endpoint) {
	placed := map[string]bool{}
	for _, s := range slots {
		for i := range s.is.Endpoints {
			placed[identity(&s.is.Endpoints[i])] = true
		}
	}
	for i := range g.endpoints {
		e := g.endpoints[i]
		id := identity(&e)
		if placed[id] {
			continue
		}
		placed[id] = true
		if k := slices.IndexFunc(slots, func(s *slot) bool { return len(s.is.Endpoints) < g.capacity }); k >= 0 {
			slots[k].is.Endpoints = append(slots[k].is.Endpoints, e)
		} else {
			rest = append(rest, e)
		}
	}
	return rest
}

// open makes a further slice of the group: one of the idle ones, or a new one.
func (g *group) open(idle *[]*discoveryv1.EndpointSlice, endpoints []discoveryv1.Endpoint) *slot {
	s := &slot{is: &discoveryv1.EndpointSlice{AddressType: g.addressType}}
	if i := slices.IndexFunc(*idle, func(e *discoveryv1.EndpointSlice) bool { return e.AddressType == g.addressType }); i >= 0 {
		s.was, s.is = (*idle)[i], (*idle)[i].DeepCopy()
		*idle = slices.Delete(*idle, i, i+1)
	}
	s.is.Ports, s.is.Endpoints = g.ports, endpoints
	return s
}
