package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/lab/network"
)

// node is a node of the lab: a network namespace, a Node object, and a proxy.
type node struct {
	world   *world
	name    string
	zone    string
	network *network.Node
	// prepared is set while what the node-setup command did stands.
	prepared bool

	mu    sync.Mutex
	proxy *process // nil while none was started
}

// addNode makes a node and waits until its proxy has synchronised.
func (w *world) addNode(ctx context.Context, as candidate.Node, proxy candidate.ProxyConfiguration) (_ *node, err error) {
	n := &node{world: w, name: as.Name, zone: as.Zone}
	if n.network, err = w.fabric.AddNode(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = n.remove(ctx) // the error that matters is the first one
		}
	}()
	if err := n.register(ctx); err != nil {
		return nil, err
	}
	if proxy.Absent {
		return n, nil
	}
	if err := n.setUp(ctx); err != nil {
		return nil, err
	}
	if err := n.startProxy(proxy); err != nil {
		return nil, err
	}
	if err := n.waitUntilItServes(ctx); err != nil {
		return nil, err
	}
	if w.complete {
		return n, nil
	}
	return n, n.label(ctx)
}

// label sets the zone of a shared node. It comes after the proxy has started, as it does where a cloud provider sets it: kube-proxy may miss the zone that
// a node has from the beginning, see the deviations of proxy-topology-hints-used.
func (n *node) label(ctx context.Context) error {
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, corev1.LabelTopologyZone, n.zone)
	err := candidate.Patch(ctx, n.world.api.CoreV1().Nodes(), n.name, types.MergePatchType, patch)
	if err != nil {
		return fmt.Errorf("label node %s: %w", n.name, err)
	}
	return nil
}

// register makes the Node object as a kubelet would.
func (n *node) register(ctx context.Context) error {
	object := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{
			corev1.LabelHostname: n.name, corev1.LabelOSStable: "linux",
		}},
	}
	if n.world.complete { // a ready node without a zone, be it for a moment, takes topology-aware hints from all Services
		object.Labels[corev1.LabelTopologyZone] = n.zone
	}
	for _, r := range n.network.PodRanges {
		object.Spec.PodCIDRs = append(object.Spec.PodCIDRs, r.String())
	}
	object.Spec.PodCIDR = object.Spec.PodCIDRs[0]
	capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110")}
	status := corev1.NodeStatus{
		Capacity: capacity, Allocatable: capacity,
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}},
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: n.name}},
	}
	for _, a := range n.network.Addresses {
		status.Addresses = append(status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
	}
	nodes := n.world.api.CoreV1().Nodes()
	created, err := candidate.Create(ctx, nodes, object)
	if err != nil {
		return fmt.Errorf("create node %s: %w", n.name, err)
	}
	created.Status = status
	if err := candidate.SetStatus(ctx, nodes, created); err != nil {
		return fmt.Errorf("set the status of node %s: %w", n.name, err)
	}
	return nil
}

// described is the node as checks see it.
func (n *node) described() candidate.Node {
	return candidate.Node{Name: n.name, Zone: n.zone, Addresses: n.network.Addresses, SecondaryAddresses: n.network.Secondary}
}

func (n *node) file(suffix string) string { return n.world.parts.dir.file("proxy-" + n.name + suffix) }

// configure writes the configuration file of the proxy.
func (n *node) configure(p candidate.ProxyConfiguration) error {
	content, err := kubeProxyConfiguration(n.name, n.world.kubeconfig, n.world.parts.proxy.Mode, network.PodRanges, p)
	if err != nil {
		return err
	}
	return os.WriteFile(n.file(".yaml"), content, 0o600) // in place, as an administrator would: kube-proxy watches the file
}

// environment is what programs on the node have beside that of all servers. iptables takes a lock on a file, which on a machine is that machine's: nodes
// that shared one would wait for each other, kube-proxy for five seconds at most.
func (n *node) environment() []string {
	return []string{"PATH=" + beforeOwnPath(n.world.path), "XTABLES_LOCKFILE=" + n.file(".lock")}
}

// startProxy starts the proxy, which does not run.
func (n *node) startProxy(p candidate.ProxyConfiguration) error {
	parts := n.world.parts
	c := command{name: string(KubeProxy), path: parts.binaries.Path(KubeProxy), log: n.file(".log"), ends: n.world.complete && !slices.Contains(n.world.shared, n)}
	if parts.proxy.Command != "" {
		c.name, c.path, c.foreign, c.ends = "proxy command", systemShell, true, false
		c.args = shellLine(proxyCommand(parts.proxy.Command, n.name, n.world.kubeconfig, n.network.Cgroup(), network.PodRanges))
		c.environment = parts.dir.mark()
	} else {
		if err := n.configure(p); err != nil {
			return err
		}
		c.args = append([]string{"--config=" + n.file(".yaml"), "--v=2"}, p.Flags...)
	}
	enter := spawnIn(n.network.Namespace)
	c.spawn = func(cmd *exec.Cmd) error {
		cmd.Env = append(cmd.Env, n.environment()...)
		return enter(cmd)
	}
	proxy, err := startProcess(c)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.proxy = proxy
	n.mu.Unlock()
	return parts.dir.add(proxy)
}

// stopProxy kills the proxy if it runs.
func (n *node) stopProxy() {
	n.mu.Lock()
	proxy := n.proxy
	n.proxy = nil
	n.mu.Unlock()
	if proxy != nil {
		proxy.kill()
		n.world.parts.dir.forget(proxy)
	}
}

// proxyDied says how the proxy ended, unless it runs, was stopped, or may end.
func (n *node) proxyDied() error {
	n.mu.Lock()
	proxy := n.proxy
	n.mu.Unlock()
	if proxy == nil || !proxy.died() {
		return nil
	}
	return fmt.Errorf("%s: %w", n.name, proxy.diedError())
}

func (n *node) proxyState() candidate.ProxyState {
	n.mu.Lock()
	proxy := n.proxy
	n.mu.Unlock()
	if proxy == nil {
		return candidate.ProxyState{}
	}
	return candidate.ProxyState{Running: proxy.alive(), Log: logTail(proxy.log, 5)}
}

// waitUntilItServes waits until the proxy is known to serve.
func (n *node) waitUntilItServes(ctx context.Context) error {
	if n.world.parts.proxy.Command == "" {
		return n.waitSynchronised(ctx)
	}
	return n.waitReady(ctx)
}

// waitSynchronised waits until the health endpoint of kube-proxy says that its rules are up to date.
func (n *node) waitSynchronised(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("its health endpoint does not answer 200 after %s", startTimeout))
	defer cancel()
	url := fmt.Sprintf("http://%s/healthz", netip.AddrPortFrom(n.network.Addresses[0], candidate.ProxyHealthPort))
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if response, err := client.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-n.proxy.done:
			return fmt.Errorf("%s: %w", n.name, n.proxy.diedError())
		case <-ctx.Done():
			return fmt.Errorf("wait for kube-proxy on %s: %w; its log ends with: %s", n.name, context.Cause(ctx), logTail(n.proxy.log, 3))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// lastSync is the metric of kube-proxy that tells when it has last written its rules, for each family: absent or zero until it has.
const lastSync = "kubeproxy_sync_proxy_rules_last_timestamp_seconds"

// waitFirstSync waits until kube-proxy has written its rules: its health endpoint says that it is healthy while it starts, too.
func (n *node) waitFirstSync(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("its metrics tell of no sync after %s", startTimeout))
	defer cancel()
	var dialer net.Dialer
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = n.network.Do(func() (err error) {
			conn, err = dialer.DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}}}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", candidate.ProxyMetricsPort), nil)
		if err != nil {
			return err
		}
		if response, err := client.Do(request); err == nil {
			text, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err == nil && hasSynced(string(text)) {
				return nil
			}
		}
		select {
		case <-n.proxy.done:
			return fmt.Errorf("%s: %w", n.name, n.proxy.diedError())
		case <-ctx.Done():
			return fmt.Errorf("wait for kube-proxy on %s: %w; its log ends with: %s", n.name, context.Cause(ctx), logTail(n.proxy.log, 3))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// hasSynced reads the metrics of kube-proxy.
func hasSynced(metrics string) bool {
	synced := false
	for line := range strings.Lines(metrics) {
		if !strings.HasPrefix(line, lastSync) {
			continue
		}
		fields := strings.Fields(line)
		if at, err := strconv.ParseFloat(fields[len(fields)-1], 64); err != nil || at == 0 {
			return false
		}
		synced = true
	}
	return synced
}

// remove takes the node away: its proxy, its object and its network. An interruption does not keep it from that.
func (n *node) remove(ctx context.Context) error {
	n.stopProxy()
	n.tearDown()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), candidate.InsistTimeout)
	defer cancel()
	err := candidate.Delete(ctx, n.world.api.CoreV1().Nodes(), n.name, metav1.DeleteOptions{})
	n.world.forgetOutside(n)
	n.network.Remove()
	leaveNothing(n.file(".yaml"))
	return errors.Join(err)
}
