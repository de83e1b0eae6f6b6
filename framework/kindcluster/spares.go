package kindcluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/kind/pkg/cluster/constants"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/ownproxy"
)

// Spares are the workers of a cluster that its kube-proxy leaves to checks (candidate.SpareLabel). The program there is the cluster's own, taken from the pod that ran on
// the node at first, and so are its configuration and its rights. Their methods are safe for concurrent use.
type Spares struct {
	nodes      map[string]nodes.Node
	secondary  map[string][]netip.Addr
	config     []byte // of the cluster's proxies
	mode       string
	kubeconfig []byte
	ipvs       bool
}

const (
	// spareFolder is where the program and its files are on a spare node.
	spareFolder = "/var/lib/conformance"
	// sparePort is a further port of the API server, which only the proxies of spare nodes use: they can be cut off alone.
	sparePort = "16443"
	// sparesWithin bounds how long it may take to prepare the nodes, from which the DaemonSet removes its pods.
	sparesWithin = 90 * time.Second
	// spareSynced bounds how long a proxy may take to write its rules for the first time.
	spareSynced = time.Minute
)

// OpenSpares prepares the spare nodes of a cluster of kind; nil if it has none.
func OpenSpares(ctx context.Context, cluster string) (*Spares, error) {
	all, err := NewKind(cluster, "").nodes()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, sparesWithin)
	defer cancel()
	i := slices.IndexFunc(all, func(n nodes.Node) bool {
		role, err := n.Role()
		return err == nil && role == constants.ControlPlaneNodeRoleValue
	})
	if i < 0 {
		return nil, fmt.Errorf("cluster %s has no control-plane node", cluster)
	}
	plane := all[i : i+1]
	onPlane := func(script string) (string, error) {
		said, err := onNodes(ctx, plane, func(int) string { return "export KUBECONFIG=/etc/kubernetes/admin.conf\n" + script })
		return said[0], err
	}
	listed, err := onPlane("kubectl get nodes -l " + candidate.SpareLabel + ` -o jsonpath='{range .items[*]}{.metadata.name}{" "}{.spec.podCIDRs[*]}{"\n"}{end}'` + "\n")
	if err != nil {
		return nil, err
	}
	var spare []nodes.Node
	var pods [][]netip.Prefix // of each
	for line := range strings.Lines(listed) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if i := slices.IndexFunc(all, func(n nodes.Node) bool { return n.String() == words[0] }); i >= 0 {
			spare, pods = append(spare, all[i]), append(pods, prefixes(words[1:]))
		}
	}
	if len(spare) == 0 {
		return nil, nil
	}
	if err := lastingRoutes(ctx, all, spare, pods); err != nil {
		return nil, err
	}
	s := &Spares{nodes: map[string]nodes.Node{}, secondary: map[string][]netip.Addr{}}
	if err := s.readProxy(plane[0], onPlane); err != nil {
		return nil, err
	}
	if _, err := onNodes(ctx, spare, func(int) string { return takeProgram }); err != nil {
		return nil, fmt.Errorf("take the program of kube-proxy: %w", err)
	}
	if _, err := onPlane(leaveSpares); err != nil {
		return nil, fmt.Errorf("have the DaemonSet of kube-proxy leave the spare nodes: %w", err)
	}
	said, err := onNodes(ctx, spare, func(int) string { return stopScript + withoutProxy + resetScript })
	if err != nil {
		return nil, fmt.Errorf("prepare the spare nodes: %w", err)
	}
	var adding []string
	for i, n := range spare {
		s.nodes[n.String()] = n
		s.ipvs = strings.Contains(said[i], "ipvs\n")
		further := furtherAddresses(said[i])
		s.secondary[n.String()] = further
		var add strings.Builder
		fmt.Fprintf(&add, "echo %s | base64 -d >%s/kubeconfig\n", base64.StdEncoding.EncodeToString(s.kubeconfig), spareFolder)
		for _, a := range further {
			fmt.Fprintf(&add, "ip addr add %s dev eth0 2>/dev/null || true\n", netip.PrefixFrom(a, a.BitLen()))
		}
		adding = append(adding, add.String())
	}
	if _, err := onNodes(ctx, spare, func(i int) string { return adding[i] }); err != nil {
		return nil, fmt.Errorf("prepare the spare nodes: %w", err)
	}
	return s, nil
}

// prefixes are the networks that words name.
func prefixes(words []string) (ps []netip.Prefix) {
	for _, w := range words {
		if p, err := netip.ParsePrefix(w); err == nil {
			ps = append(ps, p)
		}
	}
	return ps
}

// lastingRoutes tells every node the way to the pods of the others that are spare. The network of the cluster may take its own routes away while a Node has no address, and
// what is sent to a pod then would leave the cluster.
func lastingRoutes(ctx context.Context, all, spare []nodes.Node, pods [][]netip.Prefix) error {
	ways := make([]string, len(spare))
	for i, n := range spare {
		four, six, err := n.IP()
		if err != nil {
			return fmt.Errorf("address of node %s: %w", n, explained(err, nil))
		}
		ways[i] = routesVia(pods[i], four, six)
	}
	_, err := onNodes(ctx, all, func(k int) string {
		var script strings.Builder
		for i, n := range spare {
			if n.String() != all[k].String() {
				script.WriteString(ways[i])
			}
		}
		return script.String()
	})
	if err != nil {
		return fmt.Errorf("routes to the pods of spare nodes: %w", err)
	}
	return nil
}

// routesVia are commands for routes to networks by a node with addresses of both families, or of one. Any other route to them comes first.
func routesVia(networks []netip.Prefix, four, six string) string {
	var script strings.Builder
	for _, p := range networks {
		via := four
		if p.Addr().Is6() {
			via = six
		}
		if via != "" {
			fmt.Fprintf(&script, "ip %s route replace %s via %s metric 40000\n", flag(p.Addr()), p, via)
		}
	}
	return script.String()
}

// readProxy reads what the cluster's kube-proxy is started with, and makes credentials with the same rights.
func (s *Spares) readProxy(plane nodes.Node, onPlane func(string) (string, error)) error {
	config, err := onPlane(`kubectl -n kube-system get configmap kube-proxy -o jsonpath='{.data.config\.conf}'` + "\n")
	if err != nil {
		return fmt.Errorf("read the configuration of kube-proxy: %w", err)
	}
	s.config = []byte(config)
	var parsed map[string]any
	if err := yaml.Unmarshal(s.config, &parsed); err != nil {
		return fmt.Errorf("read the configuration of kube-proxy: %w", err)
	}
	if s.mode, _ = parsed["mode"].(string); s.mode == "" {
		s.mode = candidate.DefaultProxyMode
	}
	token, err := onPlane("kubectl -n kube-system create token kube-proxy --duration 48h\n")
	if err != nil {
		return fmt.Errorf("make a token of kube-proxy: %w", err)
	}
	authority, err := onPlane("base64 -w0 /etc/kubernetes/pki/ca.crt\n")
	if err != nil {
		return fmt.Errorf("read the authority of the cluster: %w", err)
	}
	four, six, err := plane.IP()
	if err != nil {
		return fmt.Errorf("address of node %s: %w", plane, explained(err, nil))
	}
	address := four
	if address == "" {
		address = "[" + six + "]"
	}
	s.kubeconfig, err = yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "proxy",
		"clusters": []any{map[string]any{"name": "cluster", "cluster": map[string]any{
			"server": fmt.Sprintf("https://%s:%s", address, sparePort), "tls-server-name": "kubernetes", "certificate-authority-data": authority,
		}}},
		"users":    []any{map[string]any{"name": "kube-proxy", "user": map[string]any{"token": strings.TrimSpace(token)}}},
		"contexts": []any{map[string]any{"name": "proxy", "context": map[string]any{"cluster": "cluster", "user": "kube-proxy"}}},
	})
	return err
}

// Scripts for the shell of a node. That of a proxy which is started again differs from that of one that was stopped in nothing but what is running.
const (
	takeProgram = "mkdir -p " + spareFolder + "\n" +
		"test -x " + spareFolder + "/kube-proxy || { pid=$(pidof kube-proxy | cut -d' ' -f1); cp /proc/$pid/exe " + spareFolder + "/new; mv " + spareFolder + "/new " + spareFolder + "/kube-proxy; }\n"

	// OnDelete keeps the DaemonSet from starting all other proxies again when its template changes.
	leaveSpares = `kubectl -n kube-system patch daemonset kube-proxy -p '{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null},"template":{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"` + candidate.SpareLabel + `","operator":"DoesNotExist"}]}]}}}}}}}' >/dev/null
nft delete table inet conformance-api 2>/dev/null || true
nft -f - <<END
table inet conformance-api {
	chain prerouting {
		type nat hook prerouting priority -110;
		tcp dport ` + sparePort + ` redirect to :6443
	}
}
END
`

	alive = `alive() { pid=$(cat ` + spareFolder + `/pid 2>/dev/null) && test "$(readlink /proc/$pid/exe)" = ` + spareFolder + `/kube-proxy; }
`
	stopScript = alive + `if alive; then kill -KILL $pid; while alive; do sleep 0.02; done; fi
rm -f ` + spareFolder + `/pid
`
	// withoutProxy waits until the pod of the DaemonSet has gone, and notes what other programs have in the packet filter.
	withoutProxy = `tries=0
while pidof kube-proxy >/dev/null; do tries=$((tries+1)); test $tries -lt 600 || { echo 'the pod of kube-proxy stays' >&2; exit 1; }; sleep 0.1; done
if ! test -e ` + spareFolder + `/ip6tables; then
	` + spareFolder + `/kube-proxy --cleanup >/dev/null 2>&1 || true
	iptables-save >` + spareFolder + `/iptables
	ip6tables-save >` + spareFolder + `/ip6tables
fi
modprobe ip_vs 2>/dev/null || true
if test -e /proc/net/ip_vs && command -v ipvsadm >/dev/null; then echo ipvs; fi
ip -o addr show dev eth0 scope global
`
	reconnect = "nft delete table inet conformance-cut 2>/dev/null || true\n"
	cutOff    = reconnect + `nft -f - <<END
table inet conformance-cut {
	chain input {
		type filter hook input priority -300;
		tcp sport ` + sparePort + ` drop
	}
}
END
`
	disconnect = cutOff + "ss -K 'dport = :" + sparePort + "' >/dev/null\n"
)

// resetScript leaves the node without a proxy, and without what one has left: rules, addresses, settings, and what the kernel remembers of connections.
var resetScript = reconnect + "nft delete table inet neighbour 2>/dev/null || true\n" + ownproxy.Script(candidate.FlushRules) + `
iptables-restore -w <` + spareFolder + `/iptables
ip6tables-restore -w <` + spareFolder + `/ip6tables
ipset destroy neighbour 2>/dev/null || true
ip link del kube-ipvs0 2>/dev/null || true
sysctl -q -w net.ipv4.conf.all.route_localnet=0
conntrack -F >/dev/null 2>&1 || true
`

// furtherAddresses finds in what `ip -o addr` prints a second address for the node in each of its networks, which are large: containers have the first ones.
func furtherAddresses(printed string) (further []netip.Addr) {
	for line := range strings.Lines(printed) {
		words := strings.Fields(line)
		if len(words) < 4 || words[2] != "inet" && words[2] != "inet6" {
			continue
		}
		p, err := netip.ParsePrefix(words[3])
		if err != nil || p.IsSingleIP() {
			continue
		}
		bytes := p.Addr().AsSlice()
		if place := len(bytes) - 2; p.Bits() <= 8*place {
			bytes[place] = 254
			a, _ := netip.AddrFromSlice(bytes)
			further = append(further, a)
		}
	}
	return further
}

// Secondary are the second addresses of each node.
func (s *Spares) Secondary() map[string][]netip.Addr { return s.secondary }

// IPVS reports whether the kernel has IPVS, and the nodes the program that shows it.
func (s *Spares) IPVS() bool { return s.ipvs }

// on runs a script on a node.
func (s *Spares) on(ctx context.Context, node, script string) (string, error) {
	n := s.nodes[node]
	if n == nil {
		return "", errors.New("there is no spare node " + node)
	}
	said, err := onNodes(ctx, []nodes.Node{n}, func(int) string { return script })
	return said[0], err
}

// Start starts kube-proxy as a check wants it, instead of a running one.
func (s *Spares) Start(ctx context.Context, node string, p candidate.ProxyConfiguration) error {
	if p.WithoutIPVS && s.ipvs {
		return candidate.Unavailable("the kernel of the nodes has IPVS")
	}
	config := map[string]any{}
	if err := yaml.Unmarshal(s.config, &config); err != nil {
		return fmt.Errorf("read the configuration of kube-proxy: %w", err)
	}
	config["hostnameOverride"] = node
	connection, _ := config["clientConnection"].(map[string]any)
	if connection == nil {
		connection = map[string]any{}
	}
	connection["kubeconfig"] = spareFolder + "/kubeconfig"
	config["clientConnection"] = connection
	ownproxy.Configure(config, s.mode, "", p)
	content, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	var script strings.Builder
	if !p.Rewrite {
		script.WriteString(stopScript)
	}
	// In place, as an administrator would: kube-proxy watches the file.
	fmt.Fprintf(&script, "echo %s | base64 -d >%s/config.yaml\n", base64.StdEncoding.EncodeToString(content), spareFolder)
	if !p.Rewrite {
		fmt.Fprintf(&script, "setsid %[1]s/kube-proxy --config=%[1]s/config.yaml --v=2", spareFolder)
		for _, f := range p.Flags {
			fmt.Fprintf(&script, " '%s'", strings.ReplaceAll(f, "'", `'\''`))
		}
		fmt.Fprintf(&script, " >%[1]s/proxy.log 2>&1 </dev/null &\necho $! >%[1]s/pid\n", spareFolder)
	}
	_, err = s.on(ctx, node, script.String())
	return err
}

// Synchronised returns when the health endpoint of kube-proxy says that its rules are up to date.
func (s *Spares) Synchronised(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, spareSynced, fmt.Errorf("its health endpoint does not answer 200 after %s", spareSynced))
	defer cancel()
	_, err := s.on(ctx, node, alive+fmt.Sprintf("until curl -sf -o /dev/null http://127.0.0.1:%d/healthz; do alive || { tail -n 3 %s/proxy.log >&2; exit 1; }; sleep 0.05; done\n", candidate.ProxyHealthPort, spareFolder))
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// Stop ends the proxy as a crash would.
func (s *Spares) Stop(ctx context.Context, node string) error {
	_, err := s.on(ctx, node, stopScript)
	return err
}

// State tells whether the proxy runs, and the end of its log.
func (s *Spares) State(ctx context.Context, node string) (candidate.ProxyState, error) {
	said, err := s.on(ctx, node, alive+"if alive; then echo yes; else echo no; fi\ntail -n 5 "+spareFolder+"/proxy.log 2>/dev/null || true\n")
	running, log, _ := strings.Cut(said, "\n")
	return candidate.ProxyState{Running: running == "yes", Log: log}, err
}

// Interfere does something to the node behind the proxy's back.
func (s *Spares) Interfere(ctx context.Context, node string, what candidate.Interference) error {
	script := map[candidate.Interference]string{candidate.CutOff: cutOff, candidate.Disconnect: disconnect, candidate.Reconnect: reconnect}[what]
	if script == "" {
		script = ownproxy.Script(what)
	}
	if script == "" {
		return fmt.Errorf("unknown interference %q", what)
	}
	if _, err := s.on(ctx, node, script); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Reset leaves the node without a proxy, and without what one has left.
func (s *Spares) Reset(ctx context.Context, node string) error {
	_, err := s.on(ctx, node, stopScript+resetScript)
	return err
}
