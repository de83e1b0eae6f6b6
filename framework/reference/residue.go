package reference

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/apiserver"
)

var _ candidate.Accountable = (*Reference)(nil)

// CloseAndAccount implements candidate.Accountable: it looks for objects that checks have left in control planes that they share. One that a check has for itself ends
// with it.
func (r *Reference) CloseAndAccount(ctx context.Context, run string) (candidate.Residue, error) {
	found := candidate.Residue{Looked: []string{"Namespaces", "Nodes", "ServiceCIDRs"}}
	r.mu.Lock()
	servers := slices.Collect(maps.Values(r.shared))
	own := map[string]bool{"ServiceCIDR kubernetes": true}
	if r.world != nil {
		r.world.mu.Lock()
		r.world.current() // the controller of load balancers lets the Services of the last check go
		r.world.mu.Unlock()
		servers = append(servers, r.world.server)
		for _, h := range r.world.shared {
			own["Node "+h.Node.Node.Name] = true
		}
	}
	r.mu.Unlock()
	var looked error
	for _, server := range servers {
		for _, kind := range []struct{ kind, path string }{
			{"Namespace", "/api/v1/namespaces?labelSelector=" + url.QueryEscape(candidate.RunLabel+"="+run)},
			{"ServiceCIDR", "/apis/networking.k8s.io/v1/servicecidrs"},
			{"Node", "/api/v1/nodes"},
		} {
			names, err := namesOf(ctx, server, kind.path)
			looked = errors.Join(looked, err)
			for _, name := range names {
				if name = kind.kind + " " + name; !own[name] {
					found.Left = append(found.Left, name)
				}
			}
		}
	}
	slices.Sort(found.Left)
	return found, errors.Join(r.Close(ctx), looked)
}

// namesOf lists the names of objects; there are none of a kind that the server does not know.
func namesOf(ctx context.Context, server *apiserver.Server, path string) (names []string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL()+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+server.Token())
	response, err := server.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("look for what is left: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	var list metav1.PartialObjectMetadataList
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", path, response.Status, err)
	}
	for _, o := range list.Items {
		names = append(names, o.Name)
	}
	return names, nil
}
