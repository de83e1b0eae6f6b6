package dataplane

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
	"github.com/service-conformance/conformance/internal/lab/controlplane"
	"github.com/service-conformance/conformance/internal/lab/network"
	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

// Node is a node of the lab: a network namespace, a Node object, and a proxy.
type Node struct {
	world   *World
	Name    string
	zone    string
	network *network.Node
	// prepared is set while what the node-setup command did stands.
	prepared bool

	mu    sync.Mutex
	proxy *process.Process // nil while none was started
}

// addNode makes a node and waits until its proxy has synchronised.
func (w *World) addNode(ctx context.Context, as candidate.Node, proxy candidate.ProxyConfiguration) (_ *Node, err error) {
	n := &Node{world: w, Name: as.Name, zone: as.Zone}
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
	if err := n.setUp(ctx); err != nil {
		return nil, err
	}
	if proxy.Absent {
		return n, nil
	}
	if err := n.StartProxy(proxy); err != nil {
		return nil, err
	}
	if err := n.WaitUntilItServes(ctx); err != nil {
		return nil, err
	}
	if w.complete {
		return n, nil
	}
	return n, n.label(ctx)
}

// label sets the zone of a shared node. It comes after the proxy has started, as it does where a cloud provider sets
// it. kube-proxy may miss a zone that a node has from the beginning, see the deviations of proxy-topology-hints-used.
func (n *Node) label(ctx context.Context) error {
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, corev1.LabelTopologyZone, n.zone)
	err := candidate.Patch(ctx, n.world.Api.CoreV1().Nodes(), n.Name, types.MergePatchType, patch)
	if err != nil {
		return fmt.Errorf("label node %s: %w", n.Name, err)
	}
	return nil
}

// register makes the Node object as a kubelet would.
func (n *Node) register(ctx context.Context) error {
	object := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: map[string]string{
			corev1.LabelHostname: n.Name, corev1.LabelOSStable: "linux",
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
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: n.Name}},
	}
	for _, a := range n.network.Addresses {
		status.Addresses = append(status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
	}
	nodes := n.world.Api.CoreV1().Nodes()
	created, err := candidate.Create(ctx, nodes, object)
	if err != nil {
		return fmt.Errorf("create node %s: %w", n.Name, err)
	}
	created.Status = status
	if err := candidate.SetStatus(ctx, nodes, created); err != nil {
		return fmt.Errorf("set the status of node %s: %w", n.Name, err)
	}
	return nil
}

// Described is the node as checks see it.
func (n *Node) Described() candidate.Node {
	return candidate.Node{Name: n.Name, Zone: n.zone, Addresses: n.network.Addresses, SecondaryAddresses: n.network.Secondary}
}

// File is the path of a file of the node's proxy in the folder of the lab, by its suffix.
func (n *Node) File(suffix string) string { return n.world.parts.Dir.File("proxy-" + n.Name + suffix) }

// configure writes the configuration file of the proxy.
func (n *Node) configure(p candidate.ProxyConfiguration) error {
	content, err := kubeProxyConfiguration(n.Name, n.world.Kubeconfig, n.world.parts.Proxy, network.PodRanges, p)
	if err != nil {
		return err
	}
	return os.WriteFile(n.File(".yaml"), content, 0o600) // in place, as an administrator would: kube-proxy watches the file
}

// environment is what programs on the node have beside that of all servers. iptables takes a lock on a file. Nodes that
// shared the file would wait for each other, kube-proxy for five seconds at most.
func (n *Node) environment() []string {
	return []string{"PATH=" + process.BeforeOwnPath(n.world.Path), "XTABLES_LOCKFILE=" + n.File(".lock")}
}

// StartProxy starts the proxy, which does not run.
func (n *Node) StartProxy(p candidate.ProxyConfiguration) error {
	parts := n.world.parts
	c := process.Command{Name: string(programs.KubeProxy), Path: parts.Binaries.Path(programs.KubeProxy), Log: n.File(".log"), Ends: n.world.complete && !slices.Contains(n.world.Shared, n)}
	if parts.Proxy.Command != "" {
		c.Name, c.Path, c.Foreign, c.Ends = "proxy command", process.Shell, true, false
		c.Args = process.ShellLine(proxyCommand(parts.Proxy.Command, n.Name, n.world.Kubeconfig, n.network.Cgroup(), network.PodRanges))
		c.Environment = parts.Dir.Mark()
	} else {
		if err := n.configure(p); err != nil {
			return err
		}
		c.Args = append([]string{"--config=" + n.File(".yaml"), "--v=2"}, p.Flags...)
	}
	enter := process.SpawnIn(n.network.Namespace)
	c.Spawn = func(cmd *exec.Cmd) error {
		cmd.Env = append(cmd.Env, n.environment()...)
		return enter(cmd)
	}
	proxy, err := process.Start(c)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.proxy = proxy
	n.mu.Unlock()
	return parts.Dir.Add(proxy)
}

// StopProxy kills the proxy if it runs.
func (n *Node) StopProxy() {
	n.mu.Lock()
	proxy := n.proxy
	n.proxy = nil
	n.mu.Unlock()
	if proxy != nil {
		proxy.Kill()
		n.world.parts.Dir.Forget(proxy)
	}
}

// proxyDied says how the proxy ended, unless it runs, was stopped, or may end.
func (n *Node) proxyDied() error {
	n.mu.Lock()
	proxy := n.proxy
	n.mu.Unlock()
	if proxy == nil || !proxy.Died() {
		return nil
	}
	return fmt.Errorf("%s: %w", n.Name, proxy.DiedError())
}

func (n *Node) proxyState() candidate.ProxyState {
	n.mu.Lock()
	proxy := n.proxy
	n.mu.Unlock()
	if proxy == nil {
		return candidate.ProxyState{}
	}
	return candidate.ProxyState{Running: proxy.Alive(), Log: process.LogTail(proxy.Log, 5)}
}

// WaitUntilItServes waits until the proxy is known to serve.
func (n *Node) WaitUntilItServes(ctx context.Context) error {
	if n.world.parts.Proxy.Command == "" {
		return n.waitSynchronised(ctx)
	}
	return n.waitReady(ctx)
}

// waitSynchronised waits until the health endpoint of kube-proxy says that its rules are up to date.
func (n *Node) waitSynchronised(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, controlplane.StartTimeout, fmt.Errorf("its health endpoint does not answer 200 after %s", controlplane.StartTimeout))
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
		case <-n.proxy.Done:
			return fmt.Errorf("%s: %w", n.Name, n.proxy.DiedError())
		case <-ctx.Done():
			return fmt.Errorf("wait for kube-proxy on %s: %w; its log ends with: %s", n.Name, context.Cause(ctx), process.LogTail(n.proxy.Log, 3))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// lastSync is the metric of kube-proxy that tells when it has last written its rules, for each family: absent or zero until it has.
const lastSync = "kubeproxy_sync_proxy_rules_last_timestamp_seconds"

// WaitFirstSync waits until kube-proxy has written its rules: its health endpoint says that it is healthy while it starts, too.
func (n *Node) WaitFirstSync(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, controlplane.StartTimeout, fmt.Errorf("its metrics tell of no sync after %s", controlplane.StartTimeout))
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
		case <-n.proxy.Done:
			return fmt.Errorf("%s: %w", n.Name, n.proxy.DiedError())
		case <-ctx.Done():
			return fmt.Errorf("wait for kube-proxy on %s: %w; its log ends with: %s", n.Name, context.Cause(ctx), process.LogTail(n.proxy.Log, 3))
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
func (n *Node) remove(ctx context.Context) error {
	n.StopProxy()
	n.tearDown()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), candidate.InsistTimeout)
	defer cancel()
	err := candidate.Delete(ctx, n.world.Api.CoreV1().Nodes(), n.Name, metav1.DeleteOptions{})
	n.world.forgetOutside(n)
	n.network.Remove()
	leaveNothing(n.File(".yaml"))
	return errors.Join(err)
}
