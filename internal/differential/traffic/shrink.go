package traffic

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/service-conformance/conformance/internal/differential/random"
)

// triedAtOnce is how many smaller topologies are tried at a time.
const triedAtOnce = 12

// Shrink returns the smallest topology that it finds which still differs in the same way. Each step tries to leave something out. It ends with the context, with what it
// has. No other topology of the pair has slots 0 to triedAtOnce then.
func (c *Pair) Shrink(ctx context.Context, t Topology, d Difference) (Topology, Difference, error) {
	t = random.Clone(t)
	t.States = t.States[:d.State+1]
	for i := range t.States {
		t.States[i].Probes = nil
	}
	if d.Probe.To != toAPI {
		t.States[len(t.States)-1].Probes = []Probe{d.Probe}
	}
	for {
		smaller := false
		all := reductions(t)
		for len(all) > 0 && !smaller {
			some := all[:min(triedAtOnce, len(all))]
			all = all[len(some):]
			found, errs := make([][]Difference, len(some)), make([]error, len(some))
			var tries sync.WaitGroup
			for i, one := range some {
				tries.Go(func() { found[i], errs[i] = c.Compare(ctx, i, one) })
			}
			tries.Wait()
			if ctx.Err() != nil { // what was not compared to its end says nothing
				return t, d, nil //nolint:nilerr // the errors are those of the end
			}
			if err := errors.Join(errs...); err != nil {
				return t, d, err
			}
			for i, one := range some {
				if k := slices.IndexFunc(found[i], func(f Difference) bool { return f.Class() == d.Class() }); k >= 0 {
					t, d, smaller = one, found[i][k], true
					break
				}
			}
		}
		if !smaller {
			return t, d, nil
		}
	}
}

// reductions are topologies with a little less, what leaves out most first.
func reductions(t Topology) (out []Topology) {
	add := func(change func(*Topology) bool) {
		smaller := random.Clone(t)
		if change(&smaller) {
			out = append(out, smaller)
		}
	}
	if len(t.States) > 1 {
		add(func(n *Topology) bool { n.States = n.States[len(n.States)-1:]; return true })
		for i := range t.States[:len(t.States)-1] {
			add(func(n *Topology) bool { n.States = slices.Delete(n.States, i, i+1); return true })
		}
	}
	// What goes, goes from all states: else it would be a change more.
	for _, v := range everyService(t) {
		add(func(n *Topology) bool { return n.withoutService(v) })
	}
	for _, id := range everySlice(t) {
		add(func(n *Topology) bool {
			n.eachSlice(id, func(s *State, i int) { s.Slices = slices.Delete(s.Slices, i, i+1) })
			return true
		})
	}
	for i := range t.States {
		for k := range t.States[i].Slices {
			for e := range t.States[i].Slices[k].Endpoints {
				add(func(n *Topology) bool {
					l := &n.States[i].Slices[k]
					l.Endpoints = slices.Delete(l.Endpoints, e, e+1)
					return true
				})
			}
		}
	}
	for _, v := range everyService(t) {
		for _, simpler := range []func(*Service) bool{
			func(s *Service) bool { changed := s.Affinity; s.Affinity = false; return changed },
			func(s *Service) bool { changed := s.InternalLocal; s.InternalLocal = false; return changed },
			func(s *Service) bool { changed := s.ExternalLocal; s.ExternalLocal = false; return changed },
			func(s *Service) bool { changed := s.Distribution != ""; s.Distribution = ""; return changed },
			func(s *Service) bool { changed := s.PublishNotReady; s.PublishNotReady = false; return changed },
			func(s *Service) bool { changed := len(s.Sources) > 0; s.Sources = nil; return changed },
			func(s *Service) bool { changed := s.NoBalancerPorts; s.NoBalancerPorts = false; return changed },
		} {
			add(func(n *Topology) bool {
				changed := false
				for i := range n.States {
					if s := n.States[i].service(v); s != nil {
						changed = simpler(s) || changed
					}
				}
				return changed
			})
		}
	}
	for i := range t.States {
		for k := range t.States[i].Slices {
			for e := range t.States[i].Slices[k].Endpoints {
				for _, simpler := range []func(*Endpoint) bool{
					func(e *Endpoint) bool {
						changed := len(e.Zones)+len(e.Nodes) > 0
						e.Zones, e.Nodes = nil, nil
						return changed
					},
					func(e *Endpoint) bool { changed := e.Node != OwnNode; e.Node = OwnNode; return changed },
					func(e *Endpoint) bool {
						changed := e.Ready != nil || e.Serving != nil || e.Terminating != nil
						e.Ready, e.Serving, e.Terminating = nil, nil, nil
						return changed
					},
				} {
					add(func(n *Topology) bool { return simpler(&n.States[i].Slices[k].Endpoints[e]) })
				}
			}
		}
	}
	return out
}

func everyService(t Topology) (ids []int) {
	for _, s := range t.States {
		for _, v := range s.Services {
			if !slices.Contains(ids, v.ID) {
				ids = append(ids, v.ID)
			}
		}
	}
	return ids
}

func everySlice(t Topology) (ids []int) {
	for _, s := range t.States {
		for _, l := range s.Slices {
			if !slices.Contains(ids, l.ID) {
				ids = append(ids, l.ID)
			}
		}
	}
	return ids
}

// withoutService leaves a Service out with its slices, unless a probe asks it.
func (t *Topology) withoutService(id int) bool {
	for i := range t.States {
		s := &t.States[i]
		if slices.ContainsFunc(s.Probes, func(p Probe) bool { return p.Service == id }) {
			return false
		}
		s.Services = slices.DeleteFunc(s.Services, func(v Service) bool { return v.ID == id })
		s.Slices = slices.DeleteFunc(s.Slices, func(l Slice) bool { return l.Service == id })
	}
	return true
}

func (t *Topology) eachSlice(id int, do func(s *State, i int)) {
	for k := range t.States {
		s := &t.States[k]
		if i := slices.IndexFunc(s.Slices, func(l Slice) bool { return l.ID == id }); i >= 0 {
			do(s, i)
		}
	}
}
