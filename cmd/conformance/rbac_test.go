package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/cluster"
	"github.com/service-conformance/conformance/framework/reference"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/runner"
	"github.com/service-conformance/conformance/framework/spec"
)

// sent is a request to an API server, and what came of it.
type sent struct {
	Method      string `json:"method"`
	URI         string `json:"uri"`
	ContentType string `json:"contentType,omitempty"`
	By          string `json:"by"` // the User-Agent, which names the check
	Code        int    `json:"code"`
}

// recorder keeps the requests that pass it. Safe for concurrent use.
type recorder struct {
	mu   sync.Mutex
	sent []sent
}

func (r *recorder) add(request *http.Request, code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, sent{request.Method, request.URL.RequestURI(), request.Header.Get("Content-Type"), request.UserAgent(), code})
}

// recorded is a transport whose requests are recorded.
type recorded struct {
	http.RoundTripper
	recorder *recorder
}

func (r recorded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.RoundTripper.RoundTrip(request)
	if err == nil {
		r.recorder.add(request, response.StatusCode)
	}
	return response, err
}

// asCluster is the reference as a cluster in use. Its control plane is that of the stand-in, offered by the tier
// itself. Traffic goes through the data plane of the reference, without what the tier does not have.
type asCluster struct {
	*cluster.Cluster
	reference *reference.Reference
	recorder  *recorder
}

func (c *asCluster) Describe() candidate.Description {
	d := c.Cluster.Describe()
	d.Capabilities = append(slices.Clone(d.Capabilities), spec.VirtualClock) // the reference lets no time pass by itself
	d.Declarations = maps.Clone(c.reference.Describe().Declarations)         // it is no kube-proxy, whose configuration the stand-in shows
	delete(d.Declarations, spec.LoadBalancers)                               // nodes would be labelled, which the role does not grant
	return d
}

func (c *asCluster) DataPlane(ctx context.Context, request candidate.DataPlaneRequest) (candidate.DataPlane, error) {
	request.LendNamespace = false // the pods of the reference have namespaces of their own
	if _, err := c.Cluster.DataPlane(ctx, request); err != nil {
		return nil, err
	}
	plane, err := c.reference.DataPlane(ctx, request)
	return &asClusterLease{plane, c.recorder}, err
}

// asClusterLease has no nodes of its own, as the tier has none, and leaves the rest to the reference.
type asClusterLease struct {
	candidate.DataPlane
	recorder *recorder
}

func (l *asClusterLease) Access() candidate.Access {
	a := l.DataPlane.Access()
	a.Direct = recorded{a.Direct, l.recorder}
	return a
}

// asRecorder tells a process of this test that it runs all checks on a cluster, by its cluster.Options, and prints what they sent.
const asRecorder = "CONFORMANCE_TEST_AS_RECORDER"

// recording is what it prints.
type recording struct {
	Sent    []sent         `json:"sent"` // to the data plane; the stand-in sees the rest
	Results []check.Result `json:"results"`
}

func recordChecks() int {
	var r recorder
	var out recording
	err := func() error {
		var o cluster.Options
		if err := json.Unmarshal([]byte(os.Getenv(asRecorder)), &o); err != nil {
			return err
		}
		c, err := cluster.Open(context.Background(), o)
		if err != nil {
			return err
		}
		behind, err := reference.New(reference.Options{Seed: 1, Version: c.Describe().Version})
		if err != nil {
			return err
		}
		return runner.Run(context.Background(), runner.Options{
			Selection: runner.Selection{Slow: true}, Candidate: &asCluster{c, behind, &r}, Parallel: 1, Seed: 1,
			Sink: func(e check.Event) {
				if e.Result != nil {
					out.Results = append(out.Results, *e.Result)
				}
			},
		})
	}()
	out.Sent = r.sent
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return report.ExitHarness
	}
	return 0
}

// checksOn returns what all checks send to a cluster.
func checksOn(t *testing.T, like standInOptions) []sent {
	t.Helper()
	var r recorder
	like.after = r.add
	s := startStandIn(t, like)
	options, err := json.Marshal(s.tier())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asRecorder+"="+string(options))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var said recording
	if err := json.Unmarshal(out.Bytes(), &said); err != nil {
		t.Fatal(err)
	}
	decided := 0
	for _, result := range said.Results {
		switch result.Verdict {
		case check.Conformant:
			decided++
		case check.NotApplicable, check.NotJudged:
		default: // a check that stopped on the way has not sent all that it would
			t.Errorf("%s is %s: %s %+v", result.Check, result.Verdict, result.Reason, result.Failure)
		}
	}
	if decided < 400 {
		t.Errorf("%d checks were decided: that cannot be what a cluster in use decides", decided)
	}
	return append(r.sent, said.Sent...)
}

// tierOn returns what the tier itself sends: everything that checks can ask it for, and `conformance cleanup`.
func tierOn(t *testing.T, like standInOptions) []sent {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var r recorder
	like.after = r.add
	s := startStandIn(t, like)
	c, err := cluster.Open(ctx, s.tier())
	must(err)
	namespace := func(name string) string {
		_, err := s.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{candidate.RunLabel: "run"},
		}}, metav1.CreateOptions{})
		must(err)
		return name
	}
	lease, err := c.DataPlane(ctx, candidate.DataPlaneRequest{})
	must(err)
	ns := namespace("conformance-lease")
	names := []candidate.PodName{{Namespace: ns, Name: "ready"}, {Namespace: ns, Name: "unready"}}
	for i, name := range names {
		_, err = lease.StartPod(ctx, candidate.Pod{PodName: name, Node: lease.Nodes()[0].Name, Unready: i == 1})
		must(err)
	}
	must(lease.SetReady(ctx, names[0], false))
	must(lease.Kill(ctx, names[1]))
	must(lease.Terminate(ctx, names[1]))
	must(lease.Remove(ctx, names[1]))
	for _, from := range []candidate.Client{{Pod: names[0]}, {Node: lease.Nodes()[1].Name}} {
		_, err = lease.Send(ctx, []candidate.Probe{{From: from}})
		must(err)
	}
	_, err = lease.Resolve(ctx, []candidate.Question{{Name: "kubernetes.default.svc", Type: candidate.A}})
	must(err)
	own, err := s.admin.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	must(err)
	_, err = lease.Diagnose(ctx, netip.AddrPortFrom(addressOf(t, own.Spec.ClusterIP), 443))
	must(err)
	lease.Release()
	lendTwice(t, s, c)
	must(c.Close(ctx))

	left := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/held"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	_, err = s.admin.CoreV1().Services(namespace("conformance-left")).Create(ctx, left, metav1.CreateOptions{})
	must(err)
	client, err := cluster.Connect(s.kubeconfig)
	must(err)
	_, err = cluster.Cleanup(ctx, client, 0)
	must(err)
	return r.sent
}

// lendTwice demands that a second lease is lent the namespace of the first one, without anything of it, and its pod.
func lendTwice(t *testing.T, s *standIn, c *cluster.Cluster) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	wanted := candidate.Pod{PodName: candidate.PodName{Name: "app-1"}, AnyName: true, Labels: map[string]string{"app": "first"}}
	first, err := c.DataPlane(ctx, candidate.DataPlaneRequest{LendNamespace: true})
	must(err)
	wanted.Namespace, wanted.Node = first.(candidate.NamespaceLender).LentNamespace(), first.Nodes()[0].Name
	kept, err := first.StartPod(ctx, wanted)
	must(err)
	must(first.SetReady(ctx, kept.PodName, false))
	ended, err := first.StartPod(ctx, wanted)
	must(err)
	must(first.Terminate(ctx, ended.PodName))
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{}}
	_, err = s.admin.DiscoveryV1().EndpointSlices(wanted.Namespace).Create(ctx, slice, metav1.CreateOptions{})
	must(err)
	first.Release()

	second, err := c.DataPlane(ctx, candidate.DataPlaneRequest{LendNamespace: true})
	must(err)
	if got := second.(candidate.NamespaceLender).LentNamespace(); got != wanted.Namespace {
		t.Fatalf("the second lease has the namespace %s, want %s", got, wanted.Namespace)
	}
	slices, err := s.admin.DiscoveryV1().EndpointSlices(wanted.Namespace).List(ctx, metav1.ListOptions{})
	must(err)
	pods, err := s.admin.CoreV1().Pods(wanted.Namespace).List(ctx, metav1.ListOptions{})
	must(err)
	if len(slices.Items) > 0 || len(pods.Items) != 1 || pods.Items[0].Name != kept.Name || pods.Items[0].Labels["app"] != "" {
		t.Errorf("left of the first lease: %d slices, pods %+v", len(slices.Items), pods.Items)
	}
	wanted.Labels = map[string]string{"app": "second"}
	again, err := second.StartPod(ctx, wanted)
	must(err)
	other, err := second.StartPod(ctx, wanted)
	must(err)
	object, err := s.admin.CoreV1().Pods(wanted.Namespace).Get(ctx, again.Name, metav1.GetOptions{})
	must(err)
	if again.PodName != kept.PodName || object.Labels["app"] != "second" {
		t.Errorf("lent %s with %v, want %s", again.PodName, object.Labels, kept.PodName)
	}
	if other.PodName == kept.PodName || other.PodName == ended.PodName {
		t.Errorf("%s was lent twice, or has ended", other.PodName)
	}
	second.Release()
}

func addressOf(t *testing.T, text string) netip.Addr {
	t.Helper()
	a, err := netip.ParseAddr(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// attributes are what RBAC decides a request by.
type attributes struct {
	verb, group, resource string // with its subresource: pods/proxy
	name                  string
	path                  string // of a request for no resource; the rest but verb is empty then
}

func (a attributes) String() string {
	if a.path != "" {
		return a.verb + " " + a.path
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", a.verb, schema.GroupResource{Group: a.group, Resource: a.resource}, a.name))
}

// attributesOf are those of a request as the API server finds them (k8s.io/apiserver, pkg/endpoints/request). A PUT or
// an apply of an object that does not exist creates it, so it needs the right to create as well
// (pkg/endpoints/handlers).
func attributesOf(t *testing.T, s sent) []attributes {
	t.Helper()
	at, err := url.ParseRequestURI(s.URI)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(strings.Trim(at.Path, "/"), "/")
	a := attributes{verb: strings.ToLower(s.Method)}
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		a.group, parts = parts[1], parts[3:]
	default:
		a.path = at.Path
		return []attributes{a}
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	a.resource = parts[0]
	if len(parts) > 1 {
		a.name = parts[1]
	}
	if len(parts) > 2 {
		a.resource += "/" + parts[2]
	}
	switch s.Method {
	case http.MethodGet, http.MethodHead:
		switch {
		case a.name != "":
			a.verb = "get"
		case at.Query().Get("watch") == "true" || at.Query().Get("watch") == "1":
			a.verb = "watch"
		default:
			a.verb = "list"
		}
	case http.MethodPost:
		a.verb = "create"
	case http.MethodPut:
		a.verb = "update"
	case http.MethodDelete:
		if a.name == "" {
			a.verb = "deletecollection"
		}
	}
	all := []attributes{a}
	creates := s.Method == http.MethodPut || s.Method == http.MethodPatch && s.ContentType == string(types.ApplyPatchType)
	if creates && (s.Code == http.StatusCreated || s.Code == http.StatusNotFound) {
		a.verb = "create"
		all = append(all, a)
	}
	return all
}

func TestRequestsHaveTheAttributesThatTheAPIServerFinds(t *testing.T) {
	const apply = "application/apply-patch+yaml"
	for _, c := range []struct {
		request sent
		want    string
	}{
		{sent{Method: "GET", URI: "/api/v1/namespaces/ns/services/web"}, "get services web"},
		{sent{Method: "GET", URI: "/api/v1/namespaces/ns/services/"}, "list services"},
		{sent{Method: "GET", URI: "/api/v1/services?watch=true"}, "watch services"},
		{sent{Method: "DELETE", URI: "/api/v1/namespaces/ns/services"}, "deletecollection services"},
		{sent{Method: "DELETE", URI: "/api/v1/namespaces/ns"}, "delete namespaces ns"},
		{sent{Method: "POST", URI: "/api/v1/namespaces/ns/pods/http:web:80/proxy/probe?lease=1"}, "create pods/proxy http:web:80"},
		{sent{Method: "PUT", URI: "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices/web", Code: 200}, "update endpointslices.discovery.k8s.io web"},
		{sent{Method: "PUT", URI: "/api/v1/namespaces/ns/services/web/status", Code: 404}, "update services/status web, create services/status web"},
		{sent{Method: "PATCH", URI: "/api/v1/namespaces/ns/services/web", ContentType: apply, Code: 201}, "patch services web, create services web"},
		{sent{Method: "PATCH", URI: "/api/v1/namespaces/ns/services/web", ContentType: "application/merge-patch+json", Code: 404}, "patch services web"},
		{sent{Method: "GET", URI: "/apis/networking.k8s.io/v1/servicecidrs/kubernetes"}, "get servicecidrs.networking.k8s.io kubernetes"},
		{sent{Method: "GET", URI: "/apis/networking.k8s.io/v1"}, "get /apis/networking.k8s.io/v1"},
		{sent{Method: "GET", URI: "/version?timeout=10s"}, "get /version"},
	} {
		var all []string
		for _, a := range attributesOf(t, c.request) {
			all = append(all, a.String())
		}
		if got := strings.Join(all, ", "); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.request.Method, c.request.URI, got, c.want)
		}
	}
}

// everybody may read these: Kubernetes binds its roles system:discovery and system:public-info-viewer to everybody who is authenticated
// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#discovery-roles).
func everybody(a attributes) bool {
	if a.verb != "get" {
		return false
	}
	for _, path := range []string{"/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz"} {
		if a.path == path || strings.HasPrefix(a.path, path+"/") {
			return true
		}
	}
	return false
}

// grants reports whether a rule allows a request.
func grants(rule rbacv1.PolicyRule, a attributes) bool {
	return a.path == "" && slices.Contains(rule.Verbs, a.verb) && slices.Contains(rule.APIGroups, a.group) &&
		slices.Contains(rule.Resources, a.resource) && (len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.name))
}

// rbacObjects reads fixtures/rbac.yaml, strictly.
func rbacObjects(t *testing.T) (namespace corev1.Namespace, account corev1.ServiceAccount, role rbacv1.ClusterRole, binding rbacv1.ClusterRoleBinding) {
	t.Helper()
	byKind := map[string]any{"Namespace": &namespace, "ServiceAccount": &account, "ClusterRole": &role, "ClusterRoleBinding": &binding}
	for _, text := range documents(t, filepath.Join("..", "..", "fixtures", "rbac.yaml")) {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(text, &kind); err != nil {
			t.Fatal(err)
		}
		into := byKind[kind.Kind]
		if into == nil {
			t.Fatalf("rbac.yaml has a second %q, or one that nobody expects", kind.Kind)
		}
		delete(byKind, kind.Kind)
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Fatalf("rbac.yaml, %s: %v", kind.Kind, err)
		}
	}
	if len(byKind) > 0 {
		t.Fatalf("rbac.yaml lacks %v", byKind)
	}
	return namespace, account, role, binding
}

// documents are the YAML documents of a file.
func documents(t *testing.T, path string) (texts [][]byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
}

// TestRBACGrantsWhatIsSentAndNothingElse compares both directions. A check with a new kind of request, or one that goes, must change the manifest.
func TestRBACGrantsWhatIsSentAndNothingElse(t *testing.T) {
	_, account, role, binding := rbacObjects(t)
	bound := rbacv1.Subject{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}
	if binding.RoleRef.Name != role.Name || !slices.Equal(binding.Subjects, []rbacv1.Subject{bound}) {
		t.Errorf("the role %s is not bound to the service account %s/%s: %+v", role.Name, account.Namespace, account.Name, binding)
	}
	used := map[attributes]string{} // who sends it
	for _, like := range []standInOptions{
		{cidrs: "10.96.0.0/16", mode: "iptables"},
		{cidrs: "fd00:10:96::/108,10.96.0.0/16", mode: "nftables"},
		{cidrs: "10.96.0.0/16", mode: "ipvs", version: "v1.31.0", streamless: true},
	} {
		for _, s := range append(checksOn(t, like), tierOn(t, like)...) {
			for _, a := range attributesOf(t, s) {
				if !slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.ResourceNames, a.name) }) {
					a.name = "" // or there would be one of each
				}
				used[a] = s.By
			}
		}
	}
	for a, by := range used {
		if !everybody(a) && !slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return grants(rule, a) }) {
			t.Errorf("%s is sent by %s and not granted", a, by)
		}
	}
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					one := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: rule.ResourceNames}
					if !slices.ContainsFunc(slices.Collect(maps.Keys(used)), func(a attributes) bool { return grants(one, a) }) {
						t.Errorf("%s %s %v is granted and not sent by anybody", verb, schema.GroupResource{Group: group, Resource: resource}, rule.ResourceNames)
					}
				}
			}
		}
	}
}
