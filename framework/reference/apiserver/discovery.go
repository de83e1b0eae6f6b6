package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/munnerz/goautoneg"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apimachineryruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// ServiceCIDRMinor is the first minor version of Kubernetes that serves ServiceCIDR and IPAddress as networking.k8s.io/v1 (KEP-1880).
const ServiceCIDRMinor = 33

// groupVersions are the groups that the server's version serves, in the order of discovery.
func (s *Server) groupVersions() []schema.GroupVersion {
	if s.minor < ServiceCIDRMinor || s.lacks(spec.FeatureServiceCIDR) {
		return slices.DeleteFunc(slices.Clone(groupVersions), func(gv schema.GroupVersion) bool { return gv == networkingv1.SchemeGroupVersion })
	}
	return groupVersions
}

// serves reports whether the server has resources of a group version.
func (s *Server) serves(gv schema.GroupVersion) bool { return slices.Contains(s.groupVersions(), gv) }

// serveGroups answers /api and /apis: in the classic form, or with everything at once if the client accepts that (KEP-3352).
func (s *Server) serveGroups(w http.ResponseWriter, r *http.Request, path string) error {
	if contentType, ok := acceptsAggregated(r); ok {
		return s.serveAggregated(w, contentType, path == "/api")
	}
	if path == "/api" {
		return s.writeDiscovery(w, r, &metav1.APIVersions{
			TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
			Versions:                   []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: r.Host}},
		})
	}
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
	for _, gv := range s.groupVersions() {
		if gv.Group != "" {
			list.Groups = append(list.Groups, apiGroup(gv))
		}
	}
	return s.writeDiscovery(w, r, list)
}

func apiGroup(gv schema.GroupVersion) metav1.APIGroup {
	version := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
	return metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
}

// serveGroup answers /apis/<group>.
func (s *Server) serveGroup(w http.ResponseWriter, r *http.Request, group string) error {
	served := s.groupVersions()
	i := slices.IndexFunc(served, func(gv schema.GroupVersion) bool { return gv.Group == group && group != "" })
	switch {
	case i < 0:
		return unknownPath()
	case r.Method != http.MethodGet:
		return methodNotAllowed()
	}
	g := apiGroup(served[i])
	g.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}
	return s.writeDiscovery(w, r, &g)
}

// serveResources answers /api/v1 and /apis/<group>/<version>.
func (s *Server) serveResources(w http.ResponseWriter, r *http.Request, gv schema.GroupVersion) error {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: gv.String()}
	for _, res := range resources {
		if res.groupVersion() != gv {
			continue
		}
		list.APIResources = append(list.APIResources, s.book(res).discovered.Do(res)...)
	}
	return s.writeDiscovery(w, r, list)
}

var discovered = rule.New("resource-discovered", func(res *resource) []metav1.APIResource {
	list := []metav1.APIResource{{
		Name: res.name, SingularName: res.singular, Namespaced: res.namespaced, Kind: res.gvk.Kind,
		Verbs: res.verbs(), ShortNames: res.shortNames, Categories: res.categories,
	}}
	for _, sub := range res.subresources {
		kind, verbs := res.subresourceKind(sub)
		list = append(list, metav1.APIResource{Name: res.name + "/" + sub, Namespaced: res.namespaced, Kind: kind, Verbs: verbs})
	}
	return list
}, spec.APIDiscoveryVerbs, spec.APIDiscoveryNames, spec.APIDiscoverySubresources)

// subresourceKind is the kind that a subresource speaks, and its verbs.
func (r *resource) subresourceKind(sub string) (string, []string) {
	switch sub {
	case "proxy":
		return "ServiceProxyOptions", []string{"create", "delete", "get", "patch", "update"}
	case "finalize":
		return r.gvk.Kind, []string{"update"}
	}
	return r.gvk.Kind, []string{"get", "patch", "update"}
}

func (s *Server) writeDiscovery(w http.ResponseWriter, r *http.Request, obj apimachineryruntime.Object) error {
	e, err := negotiate(r, false)
	if err != nil {
		return err
	}
	e.as = ""
	s.write(w, e, http.StatusOK, obj)
	return nil
}

// acceptsAggregated reports whether a client prefers aggregated discovery, and the content type of the answer to it.
func acceptsAggregated(r *http.Request) (string, bool) {
	header := r.Header.Get("Accept")
	if !strings.Contains(header, "apidiscovery.k8s.io") {
		return "", false
	}
	for _, clause := range goautoneg.ParseAccept(header) {
		if clause.Type != "application" || clause.SubType != "json" && clause.SubType != "*" {
			continue
		}
		if clause.Params["g"] == apidiscoveryv2.GroupName && clause.Params["as"] == "APIGroupDiscoveryList" {
			if clause.Params["v"] == "v2" {
				return "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", true
			}
			continue
		}
		return "", false
	}
	return "", false
}

func (s *Server) serveAggregated(w http.ResponseWriter, contentType string, legacy bool) error {
	list := apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{APIVersion: apidiscoveryv2.SchemeGroupVersion.String(), Kind: "APIGroupDiscoveryList"},
	}
	for _, gv := range s.groupVersions() {
		if (gv.Group == "") != legacy {
			continue
		}
		version := apidiscoveryv2.APIVersionDiscovery{Version: gv.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
		for _, res := range resources {
			if res.groupVersion() == gv {
				version.Resources = append(version.Resources, res.discovery())
			}
		}
		group := apidiscoveryv2.APIGroupDiscovery{Versions: []apidiscoveryv2.APIVersionDiscovery{version}}
		group.Name = gv.Group
		list.Items = append(list.Items, group)
	}
	return writeJSON(w, contentType, list)
}

func (r *resource) discovery() apidiscoveryv2.APIResourceDiscovery {
	scope := apidiscoveryv2.ScopeCluster
	if r.namespaced {
		scope = apidiscoveryv2.ScopeNamespace
	}
	kind := func(k string) *metav1.GroupVersionKind {
		return &metav1.GroupVersionKind{Group: r.gvk.Group, Version: r.gvk.Version, Kind: k}
	}
	d := apidiscoveryv2.APIResourceDiscovery{
		Resource: r.name, ResponseKind: kind(r.gvk.Kind), Scope: scope, SingularResource: r.singular, Verbs: r.verbs(), ShortNames: r.shortNames, Categories: r.categories,
	}
	for _, sub := range r.subresources {
		k, verbs := r.subresourceKind(sub)
		d.Subresources = append(d.Subresources, apidiscoveryv2.APISubresourceDiscovery{Subresource: sub, ResponseKind: kind(k), Verbs: verbs})
	}
	return d
}

// writeJSON answers with something that is no Kubernetes object of the scheme.
func writeJSON(w http.ResponseWriter, contentType string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) // a client that is gone cannot be told
	return nil
}

// index lists the paths of the server.
func (s *Server) index(w http.ResponseWriter) error {
	paths := []string{"/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"}
	for _, gv := range s.groupVersions() {
		if gv.Group != "" {
			paths = append(paths, "/apis/"+gv.Group, "/apis/"+gv.String())
		}
	}
	slices.Sort(paths)
	return writeJSON(w, mediaJSON, metav1.RootPaths{Paths: paths})
}

func (s *Server) serveVersion(w http.ResponseWriter) error {
	return writeJSON(w, mediaJSON, apiversion.Info{
		Major: "1", Minor: strconv.Itoa(s.minor), GitVersion: s.options.Version, GitTreeState: "clean",
		BuildDate: time.Unix(0, 0).UTC().Format(time.RFC3339), GoVersion: runtime.Version(), Compiler: runtime.Compiler,
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	})
}

func isHealthCheck(path string) bool {
	for _, check := range []string{"/healthz", "/livez", "/readyz"} {
		if path == check || strings.HasPrefix(path, check+"/") {
			return true
		}
	}
	return false
}

// health answers the health checks. A server that answers at all is healthy: there is nothing that it waits for.
func (s *Server) health(w http.ResponseWriter, r *http.Request, path string) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return methodNotAllowed()
	}
	check := path[1:]
	if _, name, single := strings.Cut(check, "/"); single && name != "ping" {
		return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", fmt.Sprintf("there is no health check %q", name), 0, false)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	text := "ok"
	if _, verbose := r.URL.Query()["verbose"]; verbose {
		text = "[+]ping ok\n" + check + " check passed\n"
	}
	_, _ = w.Write([]byte(text)) // a client that is gone cannot be told
	return nil
}
