package traffic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
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
		var objects []string
		add := func(apiVersion, kind string, object any) error {
			data, err := json.Marshal(object)
			if err != nil {
				return err
			}
			var fields map[string]any
			if err := json.Unmarshal(data, &fields); err != nil {
				return err
			}
			delete(fields, "status")
			fields["apiVersion"], fields["kind"] = apiVersion, kind
			text, err := yaml.Marshal(fields)
			objects = append(objects, string(text))
			return err
		}
		for k := range state.Services {
			if err := add("v1", "Service", p.service(&state.Services[k])); err != nil {
				return "", err
			}
		}
		for k := range state.Slices {
			if err := add("discovery.k8s.io/v1", "EndpointSlice", p.slice(&state.Slices[k])); err != nil {
				return "", err
			}
		}
		fmt.Fprintf(&b, "kubectl apply -f - <<EOF\n%sEOF\n", strings.Join(objects, "---\n"))
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
