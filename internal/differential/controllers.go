package differential

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// following is how long the controllers of Kubernetes may take until what they make is that of the reference, unless a Pair says otherwise. Where it never is, a
// comparison takes so long.
const following = 10 * time.Second

// Nodes gives both servers the Nodes that Pods of stories are on. Two have zones.
func (p *Pair) Nodes(ctx context.Context) error {
	for _, server := range []Server{p.Reference, p.Real} {
		for name, zone := range map[string]string{"node-1": "zone-a", "node-2": "zone-b", "node-3": ""} {
			labels := map[string]string{"kubernetes.io/hostname": name}
			if zone != "" {
				labels["topology.kubernetes.io/zone"] = zone
			}
			node := shown(map[string]any{"metadata": map[string]any{"name": name, "labels": labels}})
			a, err := server.send(ctx, "POST /api/v1/nodes", "", "", []byte(node))
			if err != nil {
				return err
			}
			if a.code != http.StatusCreated {
				return fmt.Errorf("make Node %s: %d %s", name, a.code, a.text)
			}
			ready := `{"status":{"conditions":[{"type":"Ready","status":"True"}],"allocatable":{"cpu":"4"}}}`
			if _, err := server.send(ctx, "PATCH /api/v1/nodes/"+name+"/status", mergePatch, "", []byte(ready)); err != nil {
				return err
			}
		}
	}
	return nil
}

// CompareControllers tells a story of Pods to both servers. After each request it compares what controllers have made, once those of Kubernetes have followed.
func (p *Pair) CompareControllers(ctx context.Context, slot int, s Story) ([]Told, error) {
	return p.tell(ctx, slot, s, nil, func(told *both) ([]Told, bool, error) {
		if told.want.code != told.got.code {
			return []Told{{Request: told.request, What: "code", Reference: shown(told.want.code), Real: shown(told.got.code)}}, true, nil
		}
		if told.want.code >= http.StatusBadRequest {
			return nil, false, nil
		}
		found, err := followed(ctx, told.reference, told.other, cmp.Or(p.Following, following))
		for i := range found {
			found[i].Request, found[i].Listed = told.request, true
		}
		return found, len(found) > 0, err
	})
}

// followed waits until controllers have made the same on both sides, and says what differs if they never do.
func followed(ctx context.Context, reference, other *telling, within time.Duration) (found []Told, err error) {
	var want, got any
	err = wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, within, true, func(context.Context) (bool, error) {
		var err error
		if want, err = reference.made(ctx); err != nil {
			return false, err
		}
		got, err = other.made(ctx)
		return err == nil && reflect.DeepEqual(want, got), err
	})
	if !wait.Interrupted(err) || ctx.Err() != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	for _, path := range paths("", want, got) {
		found = append(found, Told{What: path, Reference: shown(at(want, path)), Real: shown(at(got, path))})
	}
	return found, nil
}

// ShrinkControllers is Shrink for a story of Pods.
func (p *Pair) ShrinkControllers(ctx context.Context, slot int, s Story, d Told) (Story, Told, error) {
	return p.shrink(ctx, slot, s, d, p.CompareControllers)
}

// made is what controllers have made in the namespace: each endpoint with the ports, family and labels that it is listed with, of EndpointSlices and of Endpoints. How they
// are divided into slices and subsets, and which slices are empty, is left open.
func (t *telling) made(ctx context.Context) (any, error) {
	var slicesMade discoveryv1.EndpointSliceList
	var objects corev1.EndpointsList
	for path, list := range map[string]any{"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices": &slicesMade, kinds[2].path: &objects} {
		a, err := t.server.send(ctx, "GET "+t.here.Replace(path), "", "", nil)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(a.text), list); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	all := map[string][]string{}
	add := func(what, endpoint string) {
		// A path has dots between its parts.
		what = strings.NewReplacer(t.namespace, "{namespace}", ".", "·").Replace(what)
		all[what] = append(all[what], strings.ReplaceAll(endpoint, t.namespace, "{namespace}"))
	}
	for i := range slicesMade.Items {
		slice := &slicesMade.Items[i]
		slices.SortFunc(slice.Ports, func(a, b discoveryv1.EndpointPort) int { return cmp.Compare(shown(a), shown(b)) })
		for j := range slice.Endpoints {
			if ref := slice.Endpoints[j].TargetRef; ref != nil {
				ref.UID = ""
			}
			add(fmt.Sprintf("slices %s ports %s labels %s", slice.AddressType, shown(slice.Ports), shown(slice.Labels)), shown(slice.Endpoints[j]))
		}
	}
	for i := range objects.Items {
		object := &objects.Items[i]
		what := fmt.Sprintf("endpoints %s labels %s capacity %s", object.Name, shown(object.Labels), object.Annotations[corev1.EndpointsOverCapacity])
		for _, subset := range object.Subsets {
			for ready, addresses := range map[string][]corev1.EndpointAddress{"ready": subset.Addresses, "not ready": subset.NotReadyAddresses} {
				for _, address := range addresses {
					if ref := address.TargetRef; ref != nil {
						ref.UID = ""
					}
					for _, port := range subset.Ports {
						add(what, ready+" "+shown(address)+" "+shown(port))
					}
					if len(subset.Ports) == 0 {
						add(what, ready+" "+shown(address))
					}
				}
			}
		}
	}
	listed := map[string]any{}
	for what, texts := range all {
		slices.Sort(texts)
		listed[what] = strings.Join(texts, "\n")
	}
	return listed, nil
}
