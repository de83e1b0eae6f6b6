package dns

import (
	"context"
	"slices"

	"github.com/service-conformance/conformance/internal/differential/random"
)

// Shrink returns the smallest zone that it finds which still differs in the same way. Each step tries to leave something out. It ends with the context, with what it has.
func (c *Pair) Shrink(ctx context.Context, z Zone, d Difference) (Zone, Difference, error) {
	z = random.Clone(z)
	z.States = z.States[:d.State+1]
	for i := range z.States {
		z.States[i].Questions = nil
	}
	if !d.Refused {
		z.States[d.State].Questions = []Question{d.Question}
	}
	for smaller := true; smaller; {
		smaller = false
		for _, less := range reductions(z) {
			found, err := c.Compare(ctx, 0, less)
			if ctx.Err() != nil {
				return z, d, nil //nolint:nilerr // what was not compared to its end says nothing
			}
			if err != nil {
				return z, d, err
			}
			if k := slices.IndexFunc(found, func(f Difference) bool { return f.Class() == d.Class() }); k >= 0 {
				z, d, smaller = less, found[k], true
				break
			}
		}
	}
	return z, d, nil
}

// reductions are zones with a little less, what leaves out most first.
func reductions(z Zone) (out []Zone) {
	add := func(change func(*Zone)) {
		less := random.Clone(z)
		change(&less)
		out = append(out, less)
	}
	if len(z.States) > 1 {
		add(func(n *Zone) { n.States = n.States[len(n.States)-1:] })
		for i := range z.States[:len(z.States)-1] {
			add(func(n *Zone) { n.States = slices.Delete(n.States, i, i+1) })
		}
	}
	for id := range maxServices {
		if slices.ContainsFunc(z.States, func(s State) bool { return s.service(id) != nil }) {
			add(func(n *Zone) {
				for i := range n.States {
					s := &n.States[i]
					s.Services = slices.DeleteFunc(s.Services, func(v Service) bool { return v.ID == id })
					s.Slices = slices.DeleteFunc(s.Slices, func(l Slice) bool { return l.Service == id })
				}
			})
		}
	}
	for i := range z.States {
		for k := range z.States[i].Slices {
			add(func(n *Zone) { n.States[i].Slices = slices.Delete(n.States[i].Slices, k, k+1) })
			l := z.States[i].Slices[k]
			for e := range l.Endpoints {
				add(func(n *Zone) {
					n.States[i].Slices[k].Endpoints = slices.Delete(n.States[i].Slices[k].Endpoints, e, e+1)
				})
				if one := l.Endpoints[e]; one.Ready != nil || one.Serving != nil || one.Terminating != nil {
					add(func(n *Zone) {
						one := &n.States[i].Slices[k].Endpoints[e]
						one.Ready, one.Serving, one.Terminating = nil, nil, nil
					})
				}
			}
			for p := range l.Ports {
				add(func(n *Zone) {
					n.States[i].Slices[k].Ports = slices.Delete(n.States[i].Slices[k].Ports, p, p+1)
				})
			}
		}
	}
	return out
}
