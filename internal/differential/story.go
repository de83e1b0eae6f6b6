package differential

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
)

// Story is requests that follow each other, in a namespace of its own. Objects without a namespace have its name in theirs, or are addresses of the story.
type Story struct {
	Steps []Request `json:"steps"`
}

// Request is one of a story. In its texts, {namespace} is the namespace of the story. {address N}, {port N} and {range N} are a static address, a node port and a part
// of the Service range that no other story names. {version NAME} and {uid NAME} are those of the object of this name that the server has answered last.
type Request struct {
	// Request is a method and a path with its query.
	Request string `json:"request"`
	// Type is the media type of the body, and Accept that of the answer.
	Type   string `json:"type,omitempty"`
	Accept string `json:"accept,omitempty"`
	Body   string `json:"body,omitempty"`
}

// ParseStory reads a story.
func ParseStory(data []byte) (Story, error) {
	var s Story
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return s, err
	}
	if len(s.Steps) == 0 {
		return s, errors.New("a story has at least one request")
	}
	for i, r := range s.Steps {
		if method, path, ok := strings.Cut(r.Request, " "); !ok || method == "" || !strings.HasPrefix(path, "/") {
			return s, fmt.Errorf("request %d is no method with a path: %q", i+1, r.Request)
		}
	}
	return s, nil
}

// stepsPerStory is how many requests a random story has.
const stepsPerStory = 24

// staticAddresses, staticPorts and staticRanges are how many a story may name.
const staticAddresses, staticPorts, staticRanges = 6, 4, 3

type teller struct{ *rand.Rand }

// RandomStory makes a story.
func RandomStory(r *rand.Rand) (s Story) {
	t := teller{r}
	for range stepsPerStory {
		r := t.request()
		s.Steps = append(s.Steps, r)
		if strings.Contains(r.Body, "Foreground") || strings.Contains(r.Body, "Orphan") {
			break // a garbage collector goes on, which one side has
		}
		if strings.HasPrefix(r.Request, "DELETE ") && strings.Contains(r.Request, "/servicecidrs") {
			break // the controller of Kubernetes lets a ServiceCIDR go after ten seconds
		}
	}
	return s
}

func (t teller) once(n int) bool { return t.IntN(n) == 0 }

func one[T any](t teller, from ...T) T { return from[t.IntN(len(from))] }

// name is one of few, so that requests meet each other's objects.
func (t teller) name() string { return one(t, "a", "a", "b", "b", "c") }

const (
	jsonType      = "application/json"
	yamlType      = "application/yaml"
	mergePatch    = "application/merge-patch+json"
	strategic     = "application/strategic-merge-patch+json"
	jsonPatch     = "application/json-patch+json"
	applyPatch    = "application/apply-patch+yaml"
	protobufType  = "application/vnd.kubernetes.protobuf"
	tableType     = "application/json;as=Table;v=v1;g=meta.k8s.io"
	metadataType  = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	metadatasType = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

// kind is what requests are about.
type kind struct {
	// weight is how often, beside the other kinds. Stories of requests have none of weight 0.
	weight                 int
	path, apiVersion, name string
	status                 bool
	// named makes the name of an object, and object the rest of it.
	named  func(t teller) string
	object func(t teller, name string) map[string]any
}

const cidrsPath, addressesPath = "/apis/networking.k8s.io/v1/servicecidrs", "/apis/networking.k8s.io/v1/ipaddresses"

var kinds = []kind{
	{8, "/api/v1/namespaces/{namespace}/services", "v1", "Service", true, teller.name, teller.service},
	{2, "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices", "discovery.k8s.io/v1", "EndpointSlice", false, teller.name, teller.slice},
	{2, "/api/v1/namespaces/{namespace}/endpoints", "v1", "Endpoints", false, teller.name, teller.endpoints},
	{1, cidrsPath, "networking.k8s.io/v1", "ServiceCIDR", false, func(t teller) string { return "{namespace}-" + t.name() }, teller.serviceCIDR},
	{2, addressesPath, "networking.k8s.io/v1", "IPAddress", false, teller.address, teller.ipAddress},
	{0, podsPath, "v1", "Pod", true, nil, nil},
}

// shared reports whether other stories see the objects too.
func (k *kind) shared() bool { return !strings.Contains(k.path, "{namespace}") }

func (t teller) kind() *kind {
	sum := 0
	for i := range kinds {
		sum += kinds[i].weight
	}
	n := t.IntN(sum)
	for i := range kinds {
		if n -= kinds[i].weight; n < 0 {
			return &kinds[i]
		}
	}
	panic("unreachable: n is below the sum")
}

// request is one that is answered in JSON or, for some that write, in protobuf. Those that read have further types.
func (t teller) request() Request {
	r := t.requestInJSON()
	if r.Accept == "" && t.once(12) {
		r.Accept = protobufType
	}
	return r
}

func (t teller) requestInJSON() Request {
	k := t.kind()
	name := k.named(t)
	query := url.Values{}
	if t.once(10) {
		query.Set("dryRun", one(t, "All", "All", "All", "Some"))
	}
	if t.once(8) {
		query.Set("fieldValidation", one(t, "Strict", "Warn", "Ignore", "Strange"))
	}
	object := k.object(t, name)
	object["apiVersion"], object["kind"] = k.apiVersion, k.name
	if k.shared() && !t.once(20) {
		object["metadata"].(map[string]any)["labels"] = map[string]any{"story": "{namespace}"}
	}
	path := k.path + "/" + name
	switch n := t.IntN(100); {
	case n < 30:
		t.metadata(object, true)
		return t.sent(Request{Request: "POST " + withQuery(k.path, query)}, object)
	case n < 42:
		t.metadata(object, false)
		if k.status && t.once(6) {
			path += "/status"
		}
		return t.sent(Request{Request: "PUT " + withQuery(path, query)}, object)
	case n < 70:
		if k.status && t.once(8) {
			path += "/status"
		}
		return t.patch(path, query, object)
	case n < 80:
		return t.deletion(path)
	case n < 82:
		query = url.Values{}
		if t.once(2) {
			query.Set("labelSelector", one(t, "k=v", "k!=v", "k in (v,w)", "none"))
		}
		if t.once(4) {
			query.Set("limit", "1")
		}
		t.own(k, query)
		return Request{Request: "DELETE " + withQuery(k.path, query)}
	case n < 90:
		return Request{Request: "GET " + path, Accept: one(t, "", "", "", tableType, metadataType, protobufType)}
	case n < 91 && t.once(2) && k.path != cidrsPath: // what the controller adds there are changes of their own
		query = url.Values{"watch": {"true"}, "timeoutSeconds": {"1"}, "resourceVersion": {"{since " + name + "}"}}
		if t.once(3) {
			query.Set("labelSelector", one(t, "k=v", "k!=v", "!k"))
		}
		t.own(k, query)
		return Request{Request: "GET " + withQuery(k.path, query), Accept: jsonType}
	}
	query = url.Values{}
	for _, parameter := range []struct {
		name   string
		values []string
	}{
		{"labelSelector", []string{"k=v", "k!=v", "k in (v,w)", "!k", "k=="}},
		{"fieldSelector", []string{"metadata.name=a", "metadata.name!=a", "spec.clusterIP=None", "spec.type=NodePort", "metadata.none=x"}},
		{"limit", []string{"1", "2", "500"}}, {"resourceVersion", []string{"0"}},
	} {
		if t.once(5) {
			query.Set(parameter.name, one(t, parameter.values...))
		}
	}
	t.own(k, query)
	return Request{Request: "GET " + withQuery(k.path, query), Accept: one(t, "", "", "", tableType, metadatasType, protobufType)}
}

// own restricts a request about many objects to those of the story.
func (t teller) own(k *kind, query url.Values) {
	if !k.shared() {
		return
	}
	selector := "story={namespace}"
	if own := query.Get("labelSelector"); own != "" {
		selector += "," + own
	}
	query.Set("labelSelector", selector)
}

// withQuery leaves placeholders as they are.
func withQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + strings.NewReplacer("%7B", "{", "%7D", "}", "since+", "since ").Replace(query.Encode())
}

// sent gives a request the object as its body.
func (t teller) sent(r Request, object map[string]any) Request {
	data, err := json.Marshal(object)
	if err != nil {
		panic(err) // of plain values
	}
	r.Body, r.Type = string(data), jsonType
	if t.once(12) {
		r.Type = yamlType // of which JSON is a part
	}
	return r
}

// metadata adds to what an object has: labels, a version, finalizers.
func (t teller) metadata(object map[string]any, created bool) {
	m := object["metadata"].(map[string]any)
	name, _ := m["name"].(string)
	label := func(key, value string) {
		labels, _ := m["labels"].(map[string]any)
		if labels == nil {
			labels = map[string]any{}
			m["labels"] = labels
		}
		labels[key] = value
	}
	if t.once(2) {
		label(one(t, "k", "l"), one(t, "v", "w", ""))
	}
	if t.once(6) {
		m["annotations"] = map[string]any{"note": "n"}
	}
	if t.once(20) {
		label("bad key!", "v")
	}
	if t.once(12) {
		m["finalizers"] = []any{one(t, "example.com/held", "bad")}
	}
	if created {
		return
	}
	switch t.IntN(4) {
	case 0:
		m["resourceVersion"] = fmt.Sprintf("{version %s}", name)
	case 1:
		if t.once(4) {
			m["resourceVersion"] = "1"
		}
	}
	if t.once(20) {
		m["uid"] = one(t, fmt.Sprintf("{uid %s}", name), "11111111-1111-1111-1111-111111111111")
	}
	if t.once(30) {
		m["name"] = "other"
	}
}

// patch sends parts of an object.
func (t teller) patch(path string, query url.Values, object map[string]any) Request {
	how := one(t, mergePatch, mergePatch, strategic, strategic, jsonPatch, applyPatch, applyPatch)
	switch how {
	case applyPatch:
		if !t.once(15) {
			query.Set("fieldManager", one(t, "m", "m", "n"))
		}
		if t.once(3) {
			query.Set("force", "true")
		}
		r := t.sent(Request{Request: "PATCH " + withQuery(path, query)}, object)
		r.Type = how
		return r
	case jsonPatch:
		var ops []any
		for range 1 + t.IntN(2) {
			ops = append(ops, one(t,
				map[string]any{"op": "replace", "path": "/spec/type", "value": one(t, "ClusterIP", "NodePort", "LoadBalancer")},
				map[string]any{"op": "add", "path": "/metadata/labels", "value": map[string]any{"k": "v"}},
				map[string]any{"op": "remove", "path": "/spec/ports/0"},
				map[string]any{"op": "test", "path": "/metadata/name", "value": "a"},
				map[string]any{"op": "replace", "path": "/spec/ports/0/port", "value": one[any](t, 81, 0, "x")},
				map[string]any{"op": "add", "path": "/spec/externalIPs", "value": []any{"192.0.2.9"}},
				map[string]any{"op": "remove", "path": "/spec/none"},
				map[string]any{"op": "add", "path": "/spec/cidrs/-", "value": "{range 2}"},
				map[string]any{"op": "replace", "path": "/spec/parentRef/name", "value": "b"},
			))
		}
		data, _ := json.Marshal(ops) // of plain values
		return Request{Request: "PATCH " + withQuery(path, query), Type: how, Body: string(data)}
	}
	delete(object, "apiVersion")
	delete(object, "kind")
	for key := range object {
		fields, ok := object[key].(map[string]any)
		if !ok {
			continue
		}
		for field := range fields {
			switch {
			case t.once(2):
				delete(fields, field)
			case t.once(8):
				fields[field] = nil
			}
		}
	}
	if t.once(3) {
		delete(object, "metadata")
	}
	r := t.sent(Request{Request: "PATCH " + withQuery(path, query)}, object)
	r.Type = how
	return r
}

func (t teller) deletion(path string) Request {
	options := map[string]any{}
	if t.once(4) {
		options["propagationPolicy"] = one(t, "Background", "Foreground", "Orphan", "Never")
	}
	if t.once(6) {
		options["preconditions"] = map[string]any{"uid": one(t, "{uid a}", "11111111-1111-1111-1111-111111111111")}
	}
	if t.once(6) {
		options["preconditions"] = map[string]any{"resourceVersion": one(t, "{version a}", "1")}
	}
	if t.once(8) {
		options["dryRun"] = []any{"All"}
	}
	if t.once(8) {
		options["gracePeriodSeconds"] = 0
	}
	if len(options) == 0 {
		return Request{Request: "DELETE " + path}
	}
	data, _ := json.Marshal(options) // of plain values
	return Request{Request: "DELETE " + path, Type: jsonType, Body: string(data)}
}

func (t teller) address() string {
	return one(t, "{address 0}", "{address 0}", fmt.Sprintf("{address %d}", t.IntN(staticAddresses)), fmt.Sprintf("{address %d}", t.IntN(staticAddresses)))
}

func (t teller) nodePort() string { return fmt.Sprintf("{port %d}", t.IntN(staticPorts)) }

// service is a Service with a few random fields.
func (t teller) service(name string) map[string]any {
	spec := map[string]any{}
	kindOf := one(t, "", "", "ClusterIP", "NodePort", "NodePort", "LoadBalancer", "LoadBalancer", "ExternalName", "None")
	if kindOf != "" {
		spec["type"] = kindOf
	}
	if kindOf == "None" && !t.once(6) {
		spec["type"], spec["clusterIP"] = "ClusterIP", "None"
	}
	if kindOf == "ExternalName" || t.once(20) {
		spec["externalName"] = one(t, "example.com", "example.com.", "not a name", "10.0.0.1")
	}
	if kindOf != "ExternalName" || t.once(2) {
		spec["ports"] = t.ports()
	}
	set := func(odds int, field string, values ...any) {
		if t.once(odds) {
			spec[field] = one(t, values...)
		}
	}
	if t.once(4) {
		a := t.address()
		spec["clusterIP"] = a
		if t.once(3) {
			spec["clusterIPs"] = []any{one(t, a, a, t.address())}
		}
	}
	set(30, "clusterIP", "10.97.0.1", "banana", "", "fd00:10:96::5")
	set(30, "clusterIPs", []any{"None"}, []any{}, []any{"10.97.0.1"}, []any{"None", "None"})
	set(5, "ipFamilyPolicy", "SingleStack", "PreferDualStack", "RequireDualStack", "Strange")
	set(8, "ipFamilies", []any{"IPv4"}, []any{"IPv6"}, []any{"IPv4", "IPv6"}, []any{"IPv6", "IPv4"}, []any{"IPv4", "IPv4"}, []any{"IPv5"})
	set(3, "selector", map[string]any{"app": "a"}, map[string]any{}, map[string]any{"bad key!": "v"})
	set(6, "sessionAffinity", "ClientIP", "None", "Strange")
	set(12, "sessionAffinityConfig", map[string]any{"clientIP": map[string]any{"timeoutSeconds": one(t, 1, 0, 86400, 86401)}}, map[string]any{})
	set(10, "externalIPs", []any{"192.0.2.1"}, []any{"192.0.2.1", "192.0.2.2"}, []any{"127.0.0.1"}, []any{"::ffff:1.2.3.4"}, []any{"2001:db8::1"}, []any{"01.2.3.4"}, []any{})
	set(8, "externalTrafficPolicy", "Local", "Cluster", "Strange", "")
	set(8, "internalTrafficPolicy", "Local", "Cluster", "Strange")
	set(14, "healthCheckNodePort", "{port 3}", 0, 70000, -1)
	set(10, "allocateLoadBalancerNodePorts", true, false)
	set(10, "loadBalancerClass", "example.com/class", "other/class", "Bad Class")
	set(14, "loadBalancerIP", "192.0.2.7", "banana")
	set(10, "loadBalancerSourceRanges", []any{"10.0.0.0/8"}, []any{"10.0.0.1/8"}, []any{" 10.0.0.0/8 "}, []any{"banana"}, []any{"::ffff:10.0.0.0/104"}, []any{})
	set(10, "publishNotReadyAddresses", true, false)
	set(10, "trafficDistribution", "PreferClose", "PreferSameZone", "PreferSameNode", "Strange", "")
	set(25, "surprise", 1)
	set(40, "ports", "none")
	object := map[string]any{"metadata": map[string]any{"name": name}, "spec": spec}
	if t.once(6) {
		object["status"] = map[string]any{"loadBalancer": map[string]any{"ingress": []any{t.ingress()}}}
	}
	if t.once(15) {
		object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "T", "status": one(t, "True", "Strange"), "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}}}
	}
	return object
}

func (t teller) ingress() map[string]any {
	in := map[string]any{}
	if !t.once(4) {
		in["ip"] = one(t, "192.0.2.8", "2001:db8::8", "banana", "::ffff:1.2.3.4", "01.2.3.4")
	}
	if t.once(3) {
		in["hostname"] = one(t, "lb.example.com", "Bad_Host")
	}
	if t.once(3) {
		in["ipMode"] = one(t, "VIP", "Proxy", "Strange")
	}
	if t.once(5) {
		in["ports"] = []any{map[string]any{"port": one(t, 80, 0), "protocol": one(t, "TCP", "Strange")}}
	}
	return in
}

func (t teller) ports() []any {
	ports := []any{}
	for i := range one(t, 1, 1, 1, 2, 2, 3, 0) {
		p := map[string]any{"port": one[any](t, 80, 80, 81, 443, 0, 65536)}
		if t.once(2) {
			p["port"] = 80 + i
		}
		if !t.once(3) || i > 0 {
			p["name"] = one(t, fmt.Sprintf("p%d", i), fmt.Sprintf("p%d", i), "p", "Bad Name", "")
		}
		if t.once(3) {
			p["protocol"] = one(t, "TCP", "UDP", "SCTP", "tcp")
		}
		if t.once(3) {
			p["targetPort"] = one[any](t, 8080, "http", 0, "not a port name", "8080")
		}
		if t.once(4) {
			p["nodePort"] = one[any](t, t.nodePort(), t.nodePort(), t.nodePort(), 80, 0)
		}
		if t.once(8) {
			p["appProtocol"] = one(t, "http", "kubernetes.io/h2c", "bad/", "")
		}
		ports = append(ports, p)
	}
	return ports
}

func (t teller) slice(name string) map[string]any {
	object := map[string]any{
		"metadata":    map[string]any{"name": name, "labels": map[string]any{"kubernetes.io/service-name": one(t, "a", "b")}},
		"addressType": one(t, "IPv4", "IPv4", "IPv4", "IPv6", "FQDN", "Strange", ""), "endpoints": []any{},
	}
	var endpoints []any
	for range t.IntN(3) {
		e := map[string]any{"addresses": one(t, []any{"10.1.2.3"}, []any{"10.1.2.4"}, []any{"2001:db8::1"}, []any{"a.example.com"}, []any{"127.0.0.1"}, []any{}, []any{"10.1.2.3", "10.1.2.4"})}
		if t.once(2) {
			e["conditions"] = map[string]any{one(t, "ready", "serving", "terminating"): one(t, true, false)}
		}
		if t.once(3) {
			e["nodeName"] = one(t, "node-1", "Bad Node", "")
		}
		if t.once(4) {
			e["hints"] = map[string]any{"forZones": []any{map[string]any{"name": one(t, "zone-a", "", "Bad Zone!")}}}
		}
		if t.once(5) {
			e["targetRef"] = map[string]any{"kind": "Pod", "name": "p"}
		}
		if t.once(8) {
			e["hostname"] = one(t, "h", "Bad Host")
		}
		endpoints = append(endpoints, e)
	}
	if endpoints != nil {
		object["endpoints"] = endpoints
	}
	if !t.once(4) {
		ports := []any{}
		for i := range t.IntN(3) {
			p := map[string]any{"port": one[any](t, 80, 443, 0, 65536)}
			if t.once(2) {
				p["name"] = one(t, fmt.Sprintf("p%d", i), "p", "", "Bad Name")
			}
			if t.once(3) {
				p["protocol"] = one(t, "TCP", "UDP", "SCTP", "tcp")
			}
			ports = append(ports, p)
		}
		object["ports"] = ports
	}
	return object
}

func (t teller) endpoints(name string) map[string]any {
	var subsets []any
	for range t.IntN(3) {
		subset := map[string]any{}
		address := func() map[string]any {
			a := map[string]any{"ip": one(t, "10.1.2.3", "10.1.2.4", "2001:db8::1", "127.0.0.1", "banana", "169.254.1.1")}
			if t.once(4) {
				a["nodeName"] = "node-1"
			}
			if t.once(6) {
				a["hostname"] = one(t, "h", "Bad Host")
			}
			return a
		}
		if !t.once(3) {
			subset["addresses"] = []any{address()}
		}
		if t.once(3) {
			subset["notReadyAddresses"] = []any{address()}
		}
		if !t.once(4) {
			p := map[string]any{"port": one[any](t, 80, 443, 0)}
			if t.once(2) {
				p["name"] = one(t, "p", "Bad Name")
			}
			subset["ports"] = []any{p}
		}
		subsets = append(subsets, subset)
	}
	object := map[string]any{"metadata": map[string]any{"name": name}}
	if subsets != nil {
		object["subsets"] = subsets
	}
	return object
}

// serviceCIDR is a ServiceCIDR whose ranges are parts of the one that the servers have. So no address depends on it alone, and no other story feels it.
func (t teller) serviceCIDR(name string) map[string]any {
	spec := map[string]any{}
	if !t.once(30) {
		spec["cidrs"] = one(t,
			[]any{"{range 0}"}, []any{"{range 0}"}, []any{"{range 0}"}, []any{"{range 0}", "{range 2}"}, []any{"{range 0}", "{range 2}"}, []any{"{range 2}"},
			[]any{"{range 2}", "{range 0}"}, []any{"{range 0}", "{range 1}"}, []any{"{range 1}"}, []any{}, []any{"banana"}, []any{"10.96.8.1/28"}, []any{"010.96.8.0/28"},
			[]any{"FD00:10:96::/120"}, []any{"{range 0}", "{range 2}", "{range 1}"}, []any{"{range 0}", "banana"}, []any{"::ffff:10.96.8.0/124"}, []any{""})
	}
	return map[string]any{"metadata": map[string]any{"name": name}, "spec": spec}
}

// ipAddress is an IPAddress of somebody's.
func (t teller) ipAddress(name string) map[string]any {
	if t.once(25) {
		name = one(t, "banana", "010.96.0.16", "FD00:10:96::5", "10.96.0.16/32", "192.0.2.200", "fd00:10:96:0::5")
	}
	parent := map[string]any{"resource": one(t, "services", "services", "things"), "name": one(t, "a", "a", "b", "Any Name", "a/b"), "namespace": "{namespace}"}
	for _, field := range []string{"resource", "name", "namespace"} {
		if t.once(15) {
			delete(parent, field)
		}
	}
	if t.once(4) {
		parent["group"] = one(t, "example.com", "", "Bad Group")
	}
	spec := map[string]any{"parentRef": parent}
	if t.once(20) {
		delete(spec, "parentRef")
	}
	return map[string]any{"metadata": map[string]any{"name": name}, "spec": spec}
}

// clone is a copy with its own steps.
func (s Story) clone() Story { return Story{slices.Clone(s.Steps)} }
