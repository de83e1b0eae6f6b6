package traffic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/internal/differential/manifest"
)

// Kubectl are the commands that bring the topology about on the side, a state after the other.
func (s *Side) Kubectl(t Topology) (string, error) {
	var b strings.Builder
	p := s.place(0)
	before := State{}
	for i := range t.States {
		state := &t.States[i]
		if i > 0 {
			fmt.Fprintf(&b, "# then, after all nodes have followed\n")
		}
		for _, v := range before.Services {
			if state.service(v.ID) == nil {
				fmt.Fprintf(&b, "kubectl delete service -n %s %s\n", s.namespace, p.name(v.ID))
			}
		}
		for _, l := range before.Slices {
			if !slices.ContainsFunc(state.Slices, func(o Slice) bool { return o.ID == l.ID }) {
				fmt.Fprintf(&b, "kubectl delete endpointslice -n %s %s\n", s.namespace, p.slice(&l).Name)
			}
		}
		var objects []any
		for k := range state.Services {
			objects = append(objects, p.service(&state.Services[k]))
		}
		for k := range state.Slices {
			objects = append(objects, p.slice(&state.Slices[k]))
		}
		text, err := manifest.Apply(objects...)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
		for k := range state.Services {
			points := p.ingress(&state.Services[k])
			old := before.service(state.Services[k].ID)
			if len(points) == 0 && (old == nil || len(old.Ingress) == 0) {
				continue
			}
			patch, err := json.Marshal(map[string]any{"status": map[string]any{"loadBalancer": corev1.LoadBalancerStatus{Ingress: points}}})
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "kubectl patch service -n %s %s --subresource=status --type=merge -p '%s'\n", s.namespace, p.name(state.Services[k].ID), patch)
		}
		before = *state
	}
	return b.String(), nil
}
