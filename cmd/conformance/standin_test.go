package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/cluster"
	"github.com/service-conformance/conformance/framework/reference/apiserver"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/agent"
)

// standIn is a cluster behind HTTP, for tests of what a run sends to one. It has the API server of the reference, three
// nodes, and DNS and kube-proxy as kubeadm leaves them. Its kubelet starts every pod at once. The agents of pods say
// that they did as they were told.
type standIn struct {
	kubeconfig string
	admin      kubernetes.Interface // whose requests nobody sees

	standInOptions
	server *apiserver.Server
}

// standInNodes are those that the data plane of the reference has, too.
var standInNodes = []string{"node-1", "node-2", "node-3"}

// standInOptions say what a cluster is like.
type standInOptions struct {
	version string // of Kubernetes; empty is the default
	cidrs   string // its Service ranges, joined by a comma
	mode    string // of kube-proxy
	// streamless API servers list and then watch: they do not know how to stream a list.
	streamless bool
	// before sees each request and may hold it back, givesUp lets the server answer 504, after sees the code of an answer. All may be nil.
	before  func(*http.Request)
	givesUp func(*http.Request) bool
	after   func(*http.Request, int)
}

// startStandIn starts a cluster.
func startStandIn(t *testing.T, o standInOptions) *standIn {
	t.Helper()
	ranges, err := spec.ParseUsableServiceCIDRs(o.cidrs)
	if err != nil {
		t.Fatal(err)
	}
	server, err := apiserver.New(apiserver.Options{ServiceCIDRs: ranges, Version: o.version, Controllers: true})
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	s := &standIn{standInOptions: o, server: server, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	if s.admin, err = kubernetes.NewForConfig(&rest.Config{Host: server.URL(), Transport: server, QPS: -1}); err != nil {
		t.Fatal(err)
	}
	for i, name := range standInNodes {
		if err := server.StoreNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("172.18.0.%d", i+2)}},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	dns := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "kube-dns"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 53}}}}
	if _, err := s.admin.CoreV1().Services(metav1.NamespaceSystem).Create(t.Context(), dns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	writeKubeconfig(t, s.kubeconfig, front.URL)
	return s
}

// writeKubeconfig writes a kubeconfig of a server that asks for no token.
func writeKubeconfig(t *testing.T, path, url string) {
	t.Helper()
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q}}],`+
		`"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, url)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tier are the options by which the tier opens it and offers all that it can.
func (s *standIn) tier() cluster.Options {
	return cluster.Options{
		Kubeconfig: s.kubeconfig, AgentImage: "agent", ServiceCIDRs: s.server.ServiceCIDRs(), AllowDisruptive: true,
		Outside: &cluster.Outside{URL: "http://127.0.0.1:1", Token: "none", Gateways: standInNodes},
	}
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.before != nil {
		s.before(r)
	}
	if s.givesUp != nil && s.givesUp(r) {
		http.Error(w, "too much to do", http.StatusGatewayTimeout)
		return
	}
	seen := &codeWriter{ResponseWriter: w, code: http.StatusOK}
	if err := s.serve(seen, r); err != nil {
		http.Error(seen, err.Error(), http.StatusInternalServerError)
	}
	if s.after != nil {
		s.after(r, seen.code)
	}
}

func (s *standIn) serve(w http.ResponseWriter, r *http.Request) error {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // api v1 namespaces NAMESPACE RESOURCE NAME SUBRESOURCE …
	if len(parts) < 5 || parts[2] != "namespaces" {
		s.server.ServeHTTP(w, r)
		return nil
	}
	namespace, resource := parts[3], parts[4]
	switch {
	case s.streamless && r.URL.Query().Has("sendInitialEvents"):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		refusal := apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
		return json.NewEncoder(w).Encode(refusal.Status())
	case resource == "configmaps":
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: parts[5], Namespace: namespace},
			Data: map[string]string{"config.conf": "mode: " + s.mode},
		})
	case resource == "pods" && namespace == metav1.NamespaceSystem && r.Method == http.MethodGet:
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		for _, node := range standInNodes {
			list.Items = append(list.Items, corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "kube-proxy-" + node, Namespace: namespace}, Spec: corev1.PodSpec{NodeName: node},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: readiness(true)},
			})
		}
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(list)
	case resource == "pods" && len(parts) > 6 && parts[6] == "proxy":
		return s.command(w, r, namespace, strings.Split(parts[5], ":")[1], "/"+parts[7])
	case resource == "pods" && r.Method == http.MethodPost && len(parts) == 5:
		return s.start(w, r, namespace)
	case resource == "pods" && r.Method == http.MethodPatch && len(parts) == 7 && parts[6] == "status":
		s.server.ServeHTTP(w, r)
		return s.followGates(r.Context(), namespace, parts[5])
	}
	s.server.ServeHTTP(w, r)
	return nil
}

// start creates a Pod and then is its kubelet. The client learns of it when the pod runs.
func (s *standIn) start(w http.ResponseWriter, r *http.Request, namespace string) error {
	answer := httptest.NewRecorder()
	s.server.ServeHTTP(answer, r)
	pending, err := s.admin.CoreV1().Pods(namespace).List(r.Context(), metav1.ListOptions{FieldSelector: "status.phase=Pending"})
	if err != nil {
		return err
	}
	for _, p := range pending.Items {
		var config agent.Config
		for _, v := range p.Spec.Containers[0].Env {
			if v.Name == agent.ConfigVariable {
				if err := json.Unmarshal([]byte(v.Value), &config); err != nil {
					return err
				}
			}
		}
		p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, "10.244.0.2", []corev1.PodIP{{IP: "10.244.0.2"}}
		p.Status.Conditions = readiness(!config.Unready && len(p.Spec.ReadinessGates) == 0)
		if _, err := s.admin.CoreV1().Pods(namespace).UpdateStatus(r.Context(), &p, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, err = w.Write(answer.Body.Bytes())
	return err
}

func readiness(ready bool) []corev1.PodCondition {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
}

// command answers for the agent of a pod.
func (s *standIn) command(w http.ResponseWriter, r *http.Request, namespace, name, path string) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	body = bytes.TrimSpace(body)
	switch path {
	case agent.PathProbe:
		var probes []candidate.Probe
		if err := json.Unmarshal(body, &probes); err != nil {
			return err
		}
		outcomes := make([][]candidate.Outcome, len(probes))
		for i, p := range probes {
			outcomes[i] = make([]candidate.Outcome, max(1, p.Count))
		}
		return json.NewEncoder(w).Encode(outcomes)
	case agent.PathResolve:
		var asked struct{ Questions []candidate.Question }
		if err := json.Unmarshal(body, &asked); err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(make([]candidate.Resolution, len(asked.Questions)))
	case agent.PathReady:
		var said struct{ Ready bool }
		if err := json.Unmarshal(body, &said); err != nil {
			return err
		}
		return s.setReady(r.Context(), namespace, name, said.Ready)
	}
	_, err = io.WriteString(w, "null")
	return err
}

// setReady is what a kubelet does when the answer of a readiness probe changes.
func (s *standIn) setReady(ctx context.Context, namespace, name string, ready bool) error {
	p, err := s.admin.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	p.Status.Conditions = readiness(ready)
	_, err = s.admin.CoreV1().Pods(namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{})
	return err
}

// followGates is what a kubelet does when a readiness gate of a pod changes.
func (s *standIn) followGates(ctx context.Context, namespace, name string) error {
	p, err := s.admin.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	ready := true
	var conditions []corev1.PodCondition
	for _, gate := range p.Spec.ReadinessGates {
		i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == gate.ConditionType })
		ready = ready && i >= 0 && p.Status.Conditions[i].Status == corev1.ConditionTrue
		if i >= 0 {
			conditions = append(conditions, p.Status.Conditions[i])
		}
	}
	conditions = append(conditions, readiness(ready)...)
	p.Status.Conditions = conditions
	_, err = s.admin.CoreV1().Pods(namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{})
	return err
}

// codeWriter keeps the code of an answer.
type codeWriter struct {
	http.ResponseWriter
	code int
}

func (w *codeWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap lets a watch flush.
func (w *codeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
