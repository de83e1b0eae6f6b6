package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient"
	"github.com/service-conformance/conformance/internal/agent"
)

// proxyServer answers for the agents of pods as the API server's pod proxy does, and counts the requests to each pod.
func proxyServer(t *testing.T, token string) (apiclient.Interface, map[string]int) {
	t.Helper()
	var mu sync.Mutex
	requests := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(r.URL.Path, "/") // /api/v1/namespaces/NS/pods/http:NAME:PORT/proxy/probe
		if len(parts) != 9 || parts[7] != "proxy" || "/"+parts[8] != agent.PathProbe || r.Header.Get(agent.TokenHeader) != token {
			http.Error(w, "unexpected "+r.URL.Path, http.StatusBadRequest)
			return
		}
		name := strings.Split(parts[6], ":")[1]
		mu.Lock()
		requests[name]++
		mu.Unlock()
		var probes []candidate.Probe
		if err := json.NewDecoder(r.Body).Decode(&probes); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		outcomes := make([][]candidate.Outcome, len(probes))
		for i, p := range probes {
			outcomes[i] = []candidate.Outcome{{Result: candidate.Answered, Pod: candidate.PodName{Namespace: name, Name: p.To.String()}}}
		}
		_ = json.NewEncoder(w).Encode(outcomes)
	}))
	t.Cleanup(server.Close)
	client, err := apiclient.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client, requests
}

// TestSendAsksEachClientOnce demands that all probes of a client go in one request, and that the outcomes come back in the order of the probes.
func TestSendAsksEachClientOnce(t *testing.T) {
	client, requests := proxyServer(t, "secret")
	c := &Cluster{client: client, token: "secret"}
	d := &dataPlane{controlPlane: controlPlane{cluster: c}, id: "1"}
	var probes []candidate.Probe
	for i, name := range []string{"a", "b", "a", "b", "a"} {
		pn := candidate.PodName{Namespace: "ns", Name: name}
		if err := d.pods.AddOwn(pn, &pod{Pod: candidate.Pod{PodName: pn}, cluster: c, agent: c.agentOf(pn, controlPort)}); err != nil {
			t.Fatal(err)
		}
		probes = append(probes, candidate.Probe{From: candidate.Client{Pod: pn}, To: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), uint16(i+1)), Protocol: corev1.ProtocolTCP})
	}
	outcomes, err := d.Send(context.Background(), probes)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range probes {
		if got := outcomes[i][0].Pod; got.Namespace != p.From.Pod.Name || got.Name != p.To.String() {
			t.Errorf("probe %d from %s to %s has the outcome of %v", i, p.From, p.To, got)
		}
	}
	if requests["a"] != 1 || requests["b"] != 1 {
		t.Errorf("requests to the agents: %v, not one each", requests)
	}
}

func TestSendFromOutsideIsUnavailable(t *testing.T) {
	client, _ := proxyServer(t, "")
	d := &dataPlane{controlPlane: controlPlane{cluster: &Cluster{client: client}}}
	_, err := d.Send(context.Background(), []candidate.Probe{{From: candidate.Client{Gateway: "node-1"}}})
	if !candidate.IsUnavailable(err) {
		t.Errorf("a client that this tier does not have: %v", err)
	}
}

func TestNodesThatMayNotStayAreLeftOut(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus, labels map[string]string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: "172.18.0.2"}},
		}}
	}
	with := func(spec corev1.NodeSpec) corev1.Node {
		n := node("leaving", corev1.ConditionTrue, nil)
		n.Spec = spec
		return n
	}
	control := node("control", corev1.ConditionTrue, map[string]string{"node-role.kubernetes.io/control-plane": ""})
	control.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
	nodes := nodesOf(&corev1.NodeList{Items: []corev1.Node{
		control,
		with(corev1.NodeSpec{Unschedulable: true}),
		with(corev1.NodeSpec{Taints: []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}}}),
		with(corev1.NodeSpec{Taints: []corev1.Taint{{Key: "example.com/maintenance", Effect: corev1.TaintEffectNoExecute}}}),
		node("broken", corev1.ConditionFalse, nil),
		node("windows", corev1.ConditionTrue, map[string]string{corev1.LabelOSStable: "windows"}),
		node("worker", corev1.ConditionTrue, map[string]string{corev1.LabelTopologyZone: "zone-a"}),
	}})
	if len(nodes) != 2 || nodes[0].Name != "worker" || nodes[1].Name != "control" || nodes[0].Zone != "zone-a" || len(nodes[0].Addresses) != 1 {
		t.Errorf("nodes: %+v", nodes)
	}
}

// TestPodsAreRestricted demands what the restricted pod security standard does.
func TestPodsAreRestricted(t *testing.T) {
	c := &Cluster{options: Options{AgentImage: "agent:1"}, runID: "run"}
	o := c.podObject(&pod{Pod: candidate.Pod{PodName: candidate.PodName{Namespace: "ns", Name: "p"}, Node: "n", Labels: map[string]string{"app": "x"}}}, controlPort, "{}")
	container := o.Spec.Containers[0].SecurityContext
	if !*o.Spec.SecurityContext.RunAsNonRoot || o.Spec.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		*container.AllowPrivilegeEscalation || len(container.Capabilities.Drop) != 1 || container.Capabilities.Drop[0] != "ALL" || len(o.Spec.Volumes) != 0 {
		t.Errorf("the pod asks for more than the restricted standard allows: %+v %+v", o.Spec.SecurityContext, container)
	}
	if o.Labels["app"] != "x" || o.Labels[candidate.RunLabel] != "run" || *o.Spec.AutomountServiceAccountToken {
		t.Errorf("labels %v, token of the service account %t", o.Labels, *o.Spec.AutomountServiceAccountToken)
	}
}

// TestAPodThatDoesNotAnswerIsNotLentAgain: a kubelet may end a pod, and all that sends from it later would know nothing.
func TestAPodThatDoesNotAnswerIsNotLentAgain(t *testing.T) {
	var mu sync.Mutex
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, r.Method+" "+r.URL.Path)
		if strings.Contains(r.URL.Path, "http:ended:") {
			http.Error(w, "no such container", http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	client, err := apiclient.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{client: client}
	for _, name := range []string{"ended", "runs"} {
		pn := candidate.PodName{Namespace: "hosts", Name: name}
		c.hosts.idle.Return("node", &pod{Pod: candidate.Pod{PodName: pn, Node: "node"}, cluster: c, agent: c.agentOf(pn, controlPort)})
	}
	d := &dataPlane{controlPlane: controlPlane{cluster: c}, id: "1"}
	lent, err := d.LendPod(t.Context(), "node", nil)
	if err != nil || lent.Name != "runs" {
		t.Fatalf("pod %q is lent (%v), not the one that runs", lent.Name, err)
	}
	if deleted := "DELETE /api/v1/namespaces/hosts/pods/ended"; !slices.Contains(requests, deleted) {
		t.Errorf("the pod that has ended stays: %v", requests)
	}
	d.Release()
	if again, _, found := c.hosts.idle.Take("node"); !found || again.Name != "runs" {
		t.Errorf("after the lease %v is idle", again)
	}
	if _, _, found := c.hosts.idle.Take("node"); found {
		t.Error("the pod that has ended is idle")
	}
}

func TestNobodyIsWithinThePodRangesOfANode(t *testing.T) {
	ready := corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
	list := &corev1.NodeList{Items: []corev1.Node{
		{Spec: corev1.NodeSpec{PodCIDRs: []string{"10.244.0.0/24"}}, Status: ready},
		{Spec: corev1.NodeSpec{PodCIDRs: []string{"10.244.1.0/24", "fd00:10:244:1::/64"}}, Status: ready},
		{Spec: corev1.NodeSpec{PodCIDRs: []string{"10.244.2.0/24"}}}, // not ready
	}}
	if got := fmt.Sprint(nobodyIn(list)); got != "[10.244.1.254 fd00:10:244:1:ffff:ffff:ffff:fffe]" {
		t.Errorf("nobody has %s", got)
	}
	list.Items[1].Spec.PodCIDRs = []string{"10.244.1.0/26", "junk"}
	if got := fmt.Sprint(nobodyIn(list)); got != "[10.244.0.254]" {
		t.Errorf("beside a small range, nobody has %s", got)
	}
	if got := nobodyIn(&corev1.NodeList{Items: []corev1.Node{{Status: ready}}}); got != nil {
		t.Errorf("without pod ranges, nobody has %v", got)
	}
}
