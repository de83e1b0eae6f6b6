package apiserver

import (
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/munnerz/goautoneg"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/service-conformance/conformance/framework/reference/rule"
	conformance "github.com/service-conformance/conformance/framework/spec"
)

// openAPIDocument is one encoded document of /openapi/v3. It is made by Prepare or at first use, and shared by all servers.
type openAPIDocument struct {
	data []byte
	hash string
	err  error
}

var openAPIDocuments = struct {
	mu   sync.Mutex
	made map[schema.GroupVersion]*openAPIDocument
}{made: map[schema.GroupVersion]*openAPIDocument{}}

func openAPIOf(gv schema.GroupVersion) *openAPIDocument {
	openAPIDocuments.mu.Lock()
	defer openAPIDocuments.mu.Unlock()
	d := openAPIDocuments.made[gv]
	if d == nil {
		d = newOpenAPIDocument(gv)
		openAPIDocuments.made[gv] = d
	}
	return d
}

func newOpenAPIDocument(gv schema.GroupVersion) *openAPIDocument {
	data, err := json.Marshal(buildOpenAPI(gv))
	sum := sha512.Sum512(data)
	return &openAPIDocument{data: data, hash: strings.ToUpper(hex.EncodeToString(sum[:])), err: err}
}

// The schema tells clients what the API reference says.
var schemaPublished = rule.New("schema-published", openAPIOf,
	conformance.APIOpenapiPublished, conformance.APIOpenapiIPMode, conformance.APIOpenapiFields, conformance.APIOpenapiRequired,
	conformance.APIOpenapiListTypes, conformance.APIOpenapiPatchStrategy, conformance.APIOpenapiEnums, conformance.APIOpenapiDefaults)

// openAPIPath is where the document of a group version is served, below /openapi/v3/.
func openAPIPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.Group + "/" + gv.Version
}

// serveOpenAPI answers /openapi/v3: the list of documents, or one of them (KEP-2896).
func (s *Server) serveOpenAPI(w http.ResponseWriter, r *http.Request, path string) error {
	if !acceptsJSON(r) {
		return notAcceptable()
	}
	if path == "" {
		type location struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		}
		paths := map[string]location{}
		for _, gv := range s.groupVersions() {
			d := openAPIOf(gv)
			paths[openAPIPath(gv)] = location{"/openapi/v3/" + openAPIPath(gv) + "?hash=" + d.hash}
		}
		return writeJSON(w, mediaJSON, map[string]any{"paths": paths})
	}
	for _, gv := range s.groupVersions() {
		if path != openAPIPath(gv) {
			continue
		}
		d := s.cluster.schemaPublished.Do(gv)
		if d.err != nil {
			return d.err
		}
		etag := strconv.Quote(d.hash)
		w.Header().Set("Etag", etag)
		w.Header().Set("Vary", "Accept")
		if r.URL.Query().Get("hash") == d.hash {
			w.Header().Set("Cache-Control", "public, immutable")
		}
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
		w.Header().Set("Content-Type", mediaJSON)
		w.Header().Set("Content-Length", strconv.Itoa(len(d.data)))
		_, _ = w.Write(d.data) // a client that is gone cannot be told
		return nil
	}
	return unknownPath()
}

func acceptsJSON(r *http.Request) bool {
	header := r.Header.Get("Accept")
	if header == "" {
		return true
	}
	for _, clause := range goautoneg.ParseAccept(header) {
		if clause.Type == "*" || clause.Type == "application" && (clause.SubType == "*" || clause.SubType == "json") {
			return true
		}
	}
	return false
}

// buildOpenAPI makes the document of a group version: enough for clients to explain, validate, diff and patch.
func buildOpenAPI(gv schema.GroupVersion) *spec3.OpenAPI {
	b := &schemaBuilder{schemas: map[string]*spec.Schema{}}
	example := namespaces.newObject()
	example.GetObjectKind().SetGroupVersionKind(namespaces.gvk)
	if typed, err := typeConverter().ObjectToTyped(example); err == nil {
		b.merge = typed.Schema()
	}
	doc := &spec3.OpenAPI{
		Version:    "3.0.0",
		Info:       &spec.Info{InfoProps: spec.InfoProps{Title: "Kubernetes", Version: DefaultVersion}},
		Paths:      &spec3.Paths{Paths: map[string]*spec3.Path{}},
		Components: &spec3.Components{Schemas: b.schemas},
	}
	status := b.add(reflect.TypeFor[metav1.Status]())
	deleteOptions := b.add(reflect.TypeFor[metav1.DeleteOptions]())
	b.add(reflect.TypeFor[metav1.WatchEvent]())
	patch := reflect.TypeFor[metav1.Patch]()
	for _, res := range resources {
		if res.groupVersion() != gv {
			continue
		}
		object := b.add(reflect.TypeOf(res.newObject()).Elem())
		list := b.add(reflect.TypeOf(res.newList(metav1.ListMeta{}, nil)).Elem())
		markKind(b.schemas[object], res.gvk)
		markKind(b.schemas[list], gv.WithKind(res.gvk.Kind+"List"))
		p := pathBuilder{resource: res, object: object, list: list, status: status, deleteOptions: deleteOptions, patch: b.add(patch)}
		p.addTo(doc.Paths.Paths)
	}
	return doc
}

func kindExtension(gvk schema.GroupVersionKind) map[string]any {
	return map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}
}

func markKind(s *spec.Schema, gvk schema.GroupVersionKind) {
	s.AddExtension("x-kubernetes-group-version-kind", []any{kindExtension(gvk)})
}

// pathBuilder makes the paths of one resource. Its other fields are names of schemas.
type pathBuilder struct {
	resource                                   *resource
	object, list, status, deleteOptions, patch string
}

func (b pathBuilder) addTo(paths map[string]*spec3.Path) {
	res := b.resource
	base := "/" + openAPIPath(res.groupVersion())
	collection := base + "/" + res.name
	parameters := []*spec3.Parameter{queryParameter("pretty", "string")}
	if res.namespaced {
		paths[collection] = &spec3.Path{PathProps: spec3.PathProps{Get: b.operation("list", b.list, "", listParameters...)}}
		collection = base + "/namespaces/{namespace}/" + res.name
		parameters = append(parameters, pathParameter("namespace"))
	}
	whole := &spec3.Path{PathProps: spec3.PathProps{
		Parameters: parameters,
		Get:        b.operation("list", b.list, "", listParameters...),
		Post:       b.operation("post", b.object, b.object, writeParameters...),
	}}
	if !res.noDeleteCollection {
		whole.Delete = b.operation("deletecollection", b.status, b.deleteOptions, append([]string{"dryRun"}, listParameters...)...)
	}
	paths[collection] = whole
	named := append([]*spec3.Parameter{pathParameter("name")}, parameters...)
	paths[collection+"/{name}"] = &spec3.Path{PathProps: spec3.PathProps{
		Parameters: named,
		Get:        b.operation("get", b.object, ""),
		Put:        b.operation("put", b.object, b.object, writeParameters...),
		Patch:      b.operation("patch", b.object, b.patch, append([]string{"force"}, writeParameters...)...),
		Delete:     b.operation("delete", b.status, b.deleteOptions, "dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"),
	}}
	for _, sub := range res.subresources {
		path := &spec3.Path{PathProps: spec3.PathProps{Parameters: named}}
		switch sub {
		case "status":
			path.Get = b.operation("get", b.object, "")
			path.Put = b.operation("put", b.object, b.object, writeParameters...)
			path.Patch = b.operation("patch", b.object, b.patch, append([]string{"force"}, writeParameters...)...)
		case "finalize":
			path.Put = b.operation("put", b.object, b.object, writeParameters...)
		default:
			continue
		}
		paths[collection+"/{name}/"+sub] = path
	}
}

var (
	writeParameters = []string{"dryRun", "fieldManager", "fieldValidation"}
	listParameters  = []string{"allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
		"resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch"}
)

func (b pathBuilder) operation(action, answer, body string, parameters ...string) *spec3.Operation {
	op := &spec3.Operation{OperationProps: spec3.OperationProps{
		Tags: []string{openAPIPath(b.resource.groupVersion())},
		Responses: &spec3.Responses{ResponsesProps: spec3.ResponsesProps{StatusCodeResponses: map[int]*spec3.Response{
			http.StatusOK: {ResponseProps: spec3.ResponseProps{Description: "OK", Content: contentOf(answer, acceptedMedia...)}},
		}}},
	}}
	op.AddExtension("x-kubernetes-action", action)
	op.AddExtension("x-kubernetes-group-version-kind", kindExtension(b.resource.gvk))
	if body != "" {
		media := acceptedMedia
		if action == "patch" {
			media = []string{string(types.ApplyYAMLPatchType), string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType)}
		}
		op.RequestBody = &spec3.RequestBody{RequestBodyProps: spec3.RequestBodyProps{Content: contentOf(body, media...)}}
	}
	for _, name := range parameters {
		kind := "string"
		switch name {
		case "watch", "force", "allowWatchBookmarks", "sendInitialEvents", "orphanDependents":
			kind = "boolean"
		case "limit", "timeoutSeconds", "gracePeriodSeconds":
			kind = "integer"
		}
		op.Parameters = append(op.Parameters, queryParameter(name, kind))
	}
	return op
}

func contentOf(name string, media ...string) map[string]*spec3.MediaType {
	content := map[string]*spec3.MediaType{}
	for _, m := range media {
		content[m] = &spec3.MediaType{MediaTypeProps: spec3.MediaTypeProps{
			Schema: &spec.Schema{SchemaProps: spec.SchemaProps{Ref: spec.MustCreateRef(schemaReference + name)}},
		}}
	}
	return content
}

func queryParameter(name, kind string) *spec3.Parameter {
	return &spec3.Parameter{ParameterProps: spec3.ParameterProps{
		Name: name, In: "query", Schema: &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{kind}, UniqueItems: true}},
	}}
}

func pathParameter(name string) *spec3.Parameter {
	return &spec3.Parameter{ParameterProps: spec3.ParameterProps{
		Name: name, In: "path", Required: true, Schema: &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"string"}, UniqueItems: true}},
	}}
}
