package kindcluster

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kind/pkg/cluster/constants"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/apiservers"
)

// Servers start further API servers on the control-plane node of a cluster, for checks that need a range, a node-port
// range or a server for themselves. They are of the cluster's own image and have its flags, but for the ranges and the
// port. They keep their objects in the cluster's etcd, under keys of their own, so that nothing of the cluster is seen
// or changed. Their methods are safe for concurrent use.
type Servers struct {
	node    nodes.Node
	address netip.Addr // of the node
	version spec.Version
	api     bool // the API has ServiceCIDR and IPAddress objects

	image, controllers string // images of kube-apiserver and kube-controller-manager; the latter may be unknown
	flags              []string
	mounts             []string // folders of the node
	credentials        []byte   // kubeconfig with full rights on every server
	folder             string   // for kubeconfigs, on this machine
	prefix             string   // of the names of containers and of keys in etcd

	pool  *apiservers.Pool
	ports atomic.Int64
}

const (
	// serverPrefix begins the names of containers that the servers run in.
	serverPrefix = "conformance-server-"
	// firstServerPort is the port of the first server; nothing on a node of kind listens there.
	firstServerPort = 16500
	// mostServers bounds how many servers run at a time. Each takes some 300 MB.
	mostServers = 6
	// serverWithin bounds how long a server may take to become usable.
	serverWithin = 2 * time.Minute
	// reachableWithin bounds the first contact with the node.
	reachableWithin = 5 * time.Second
)

// OpenServers prepares to start servers for checks on a cluster of kind, whose kubeconfigs are written to a folder. It
// removes those of a killed run. The error says why that cannot be: then the run goes without them.
func OpenServers(ctx context.Context, cluster, run, folder string) (*Servers, error) {
	all, err := NewKind(cluster, "").nodes()
	if err != nil {
		return nil, err
	}
	s := &Servers{folder: folder, prefix: serverPrefix + run + "-"}
	for _, n := range all {
		if role, err := n.Role(); err == nil && role == constants.ControlPlaneNodeRoleValue {
			s.node = n
			break
		}
	}
	if s.node == nil {
		return nil, fmt.Errorf("cluster %s has no control-plane node", cluster)
	}
	four, six, err := s.node.IP()
	if err != nil {
		return nil, fmt.Errorf("address of node %s: %w", s.node, explained(err, nil))
	}
	for _, text := range []string{four, six} {
		if a, err := netip.ParseAddr(text); err == nil && !s.address.IsValid() {
			s.address = a
		}
	}
	manifest, err := s.on(ctx, "cat /etc/kubernetes/manifests/kube-apiserver.yaml")
	if err == nil {
		err = s.read(manifest)
	}
	if err != nil {
		return nil, fmt.Errorf("read how the API server of cluster %s is started: %w", cluster, err)
	}
	// Since Kubernetes 1.29 the administrator of a cluster has rights by a binding, which a new server does not have.
	credentials, err := s.on(ctx, "cat /etc/kubernetes/super-admin.conf 2>/dev/null || cat /etc/kubernetes/admin.conf")
	if err != nil {
		return nil, fmt.Errorf("read the credentials of cluster %s: %w", cluster, err)
	}
	s.credentials = []byte(credentials)
	if manager, err := s.on(ctx, "cat /etc/kubernetes/manifests/kube-controller-manager.yaml"); err == nil {
		var pod corev1.Pod
		if yaml.Unmarshal([]byte(manager), &pod) == nil && len(pod.Spec.Containers) == 1 {
			s.controllers = pod.Spec.Containers[0].Image
		}
	}
	if err := s.reachable(ctx); err != nil {
		return nil, err
	}
	if err := s.removeAll(ctx, serverPrefix); err != nil {
		return nil, err
	}
	s.ports.Store(firstServerPort - 1)
	s.pool = apiservers.NewPool(mostServers, func(ctx context.Context, r apiservers.Ranges) (apiservers.Server, error) {
		server, err := s.start(ctx, r)
		if err != nil {
			return nil, err // not a nil *server in an interface
		}
		return server, nil
	})
	return s, nil
}

// read takes from the manifest of the cluster's API server what further ones are started with.
func (s *Servers) read(manifest string) error {
	var pod corev1.Pod
	if err := yaml.Unmarshal([]byte(manifest), &pod); err != nil {
		return err
	}
	if len(pod.Spec.Containers) != 1 || len(pod.Spec.Containers[0].Command) < 2 {
		return errors.New("the manifest has no container with a command")
	}
	c := pod.Spec.Containers[0]
	s.image = c.Image
	for _, flag := range slices.Concat(c.Command[1:], c.Args) {
		name, _, _ := strings.Cut(flag, "=")
		switch name {
		case "--advertise-address", "--secure-port", "--service-cluster-ip-range", "--service-node-port-range", "--etcd-prefix":
			continue
		}
		s.flags = append(s.flags, flag)
	}
	for _, v := range pod.Spec.Volumes {
		if v.HostPath != nil {
			s.mounts = append(s.mounts, v.HostPath.Path)
		}
	}
	_, tag, _ := strings.Cut(s.image[strings.LastIndex(s.image, "/")+1:], ":")
	version, err := spec.ParseVersion(tag)
	if err != nil {
		said, askErr := s.on(context.Background(), "cat /kind/version") // the image may have another tag than its version
		if askErr != nil {
			return err
		}
		if version, err = spec.ParseVersion(strings.TrimSpace(said)); err != nil {
			return err
		}
	}
	s.version, s.api = version, version.Minor >= 33
	return nil
}

// reachable sees that this machine reaches the node by its own address, as it does where containers share its network.
func (s *Servers) reachable(ctx context.Context) error {
	client, _, err := s.clientOf("reachable", 6443)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, reachableWithin)
	defer cancel()
	if err := client.Get(ctx, "/livez", nil); err != nil {
		return fmt.Errorf("the node %s is not reached from here at its own address: %w", s.node, err)
	}
	return nil
}

// on runs a script in the shell of the node, and returns what it printed.
func (s *Servers) on(ctx context.Context, script string) (string, error) {
	var out, stderr bytes.Buffer
	if err := s.node.CommandContext(ctx, "sh", "-ec", script).SetStdout(&out).SetStderr(&stderr).Run(); err != nil {
		return out.String(), fmt.Errorf("node %s: %w: %s", s.node, explained(err, nil), strings.TrimSpace(stderr.String()))
	}
	return out.String(), nil
}

// server line of a kubeconfig.
var serverLine = regexp.MustCompile(`(?m)^(\s*server:).*$`)

// clientOf makes a client of a server on a port, and its kubeconfig.
func (s *Servers) clientOf(name string, port int64) (*apiservers.Client, candidate.Access, error) {
	url := "https://" + netip.AddrPortFrom(s.address, uint16(port)).String()
	file := filepath.Join(s.folder, name+".kubeconfig")
	if err := os.WriteFile(file, serverLine.ReplaceAll(s.credentials, []byte("$1 "+url)), 0o600); err != nil {
		return nil, candidate.Access{}, err
	}
	access := candidate.Access{URL: url, Kubeconfig: file}
	c, err := apiservers.NewClient(access)
	return c, access, err
}

// Capabilities are what a cluster can be asked for with the servers.
func (s *Servers) Capabilities() []spec.Capability {
	all := []spec.Capability{spec.ChosenServiceCIDR, spec.ExhaustibleRange, spec.DualStack, spec.SingleStack, spec.RestartControlPlane, spec.SeveralAPIServers}
	if s.api {
		all = append(all, spec.ManageServiceCIDRs)
		if s.controllers != "" {
			all = append(all, spec.ServiceCIDRController)
		}
	}
	return all
}

// versionOf is the version for apiservers.ParseRanges.
type versionOf struct{ spec.Version }

func (v versionOf) LargeRanges() bool { return v.Minor >= 34 }

// ControlPlane leases a server with the ranges of a request. The errors are those of candidate.Candidate.
func (s *Servers) ControlPlane(ctx context.Context, q candidate.Request) (candidate.ControlPlane, error) {
	r, err := apiservers.ParseRanges(q, versionOf{s.version})
	if err != nil {
		return nil, err
	}
	lease, err := s.pool.Acquire(ctx, r, q.Exclusive)
	if err != nil {
		return nil, err
	}
	c := &serverLease{lease: lease, ranges: r, exclusive: q.Exclusive, server: lease.Server().(*server)}
	if q.ServiceCIDRController {
		if c.controller, err = c.server.startController(ctx); err != nil {
			lease.Release()
			return nil, err
		}
	}
	return c, nil
}

// Close ends all servers, and removes what they have stored.
func (s *Servers) Close(ctx context.Context) error {
	s.pool.Close()
	return errors.Join(s.removeAll(ctx, s.prefix), s.removeKeys(ctx))
}

// removeAll ends and removes the containers whose names begin with a prefix.
func (s *Servers) removeAll(ctx context.Context, prefix string) error {
	_, err := s.on(ctx, "for c in $(ctr -n k8s.io containers ls -q | grep '^"+prefix+"' || true); do "+removal("$c")+"done\n")
	return err
}

// removal is a line of shell that kills a container and removes it.
func removal(name string) string {
	return "ctr -n k8s.io task kill -s SIGKILL " + name + " >/dev/null 2>&1 || true; " +
		"for i in $(seq 200); do ctr -n k8s.io task delete -f " + name + " >/dev/null 2>&1 || true; " +
		"if ctr -n k8s.io containers delete " + name + " >/dev/null 2>&1; then break; fi; " +
		"ctr -n k8s.io containers info " + name + " >/dev/null 2>&1 || break; sleep 0.05; done; "
}

// removeKeys removes what the servers have stored in the etcd of the cluster, by its gateway for JSON.
func (s *Servers) removeKeys(ctx context.Context) error {
	first := "/" + s.prefix
	last := first[:len(first)-1] + string(first[len(first)-1]+1) // the first key that does not begin so
	of := base64.StdEncoding.EncodeToString
	_, err := s.on(ctx, fmt.Sprintf(`cd /etc/kubernetes/pki/etcd
curl -fsS --max-time 30 --cacert ca.crt --cert server.crt --key server.key -d '{"key": %q, "range_end": %q}' https://127.0.0.1:2379/v3/kv/deleterange >/dev/null`, of([]byte(first)), of([]byte(last))))
	if err != nil {
		return fmt.Errorf("remove the keys %s from etcd: %w", first, err)
	}
	return nil
}

// run starts a container of an image with the folders of the cluster's API server, and others of the node.
func (s *Servers) run(ctx context.Context, name, image string, command []string, mounts ...string) error {
	var script strings.Builder
	fmt.Fprintf(&script, "mkdir -p /var/log/%[1]s\nctr -n k8s.io run -d --net-host --log-uri file:///var/log/%[1]s/%[2]s.log", strings.TrimSuffix(serverPrefix, "-"), name)
	for _, m := range slices.Concat(s.mounts, mounts) {
		fmt.Fprintf(&script, " --mount type=bind,src=%[1]s,dst=%[1]s,options=rbind:ro", m)
	}
	fmt.Fprintf(&script, " %s %s", image, name)
	for _, word := range command {
		script.WriteString(" '" + strings.ReplaceAll(word, "'", `'\''`) + "'")
	}
	_, err := s.on(ctx, script.String())
	return err
}

// log is the end of what a container has said.
func (s *Servers) log(ctx context.Context, name string) string {
	said, _ := s.on(ctx, fmt.Sprintf("tail -n 3 /var/log/%s/%s.log", strings.TrimSuffix(serverPrefix, "-"), name))
	return strings.TrimSpace(said)
}

// server is an API server of a check. It implements apiservers.Server.
type server struct {
	of     *Servers
	ranges apiservers.Ranges
	port   int64
	name   string // of its first container
	prefix string // of its keys
	gates  map[string]bool
	client *apiservers.Client
	access candidate.Access

	mu        sync.Mutex
	container string // the present one
	starts    int
	dead      error // set when it was stopped
}

// start starts a server of ranges, and waits until it can be used.
func (s *Servers) start(ctx context.Context, r apiservers.Ranges) (*server, error) {
	return s.startOn(ctx, r, "", nil)
}

// startOn starts a server on the keys of another one, or on its own if prefix is empty.
func (s *Servers) startOn(ctx context.Context, r apiservers.Ranges, prefix string, gates map[string]bool) (*server, error) {
	port := s.ports.Add(1)
	v := &server{of: s, ranges: r, port: port, name: fmt.Sprintf("%s%d", s.prefix, port), prefix: prefix, gates: gates}
	if v.prefix == "" {
		v.prefix = "/" + v.name
	}
	var err error
	if v.client, v.access, err = s.clientOf(v.name, port); err == nil {
		err = v.begin(ctx)
	}
	if err != nil {
		v.Stop()
		return nil, fmt.Errorf("start kube-apiserver %s for %s on node %s: %w", s.version, r, s.node, err)
	}
	return v, nil
}

// advertised is what stands in the endpoints of the Service "kubernetes", whose family must be that of the range.
func (v *server) advertised() string {
	if primary := v.ranges.Primary.Addr(); primary.Is4() == v.of.address.Is4() {
		return v.of.address.String()
	} else if primary.Is6() {
		return "2001:db8::1" // for documentation (RFC 3849)
	}
	return "192.0.2.1" // for documentation (RFC 5737)
}

// begin starts a container, and waits until the server can be used.
func (v *server) begin(ctx context.Context) error {
	v.mu.Lock()
	v.starts++
	v.container = fmt.Sprintf("%s-%d", v.name, v.starts)
	container, ranges := v.container, v.ranges
	v.mu.Unlock()
	command := slices.Concat([]string{"kube-apiserver"}, v.of.flags, []string{
		"--advertise-address=" + v.advertised(), fmt.Sprintf("--secure-port=%d", v.port), "--etcd-prefix=" + v.prefix,
		"--service-cluster-ip-range=" + ranges.String(), "--service-node-port-range=" + ranges.NodePorts.String(),
	})
	for _, gate := range slices.Sorted(maps.Keys(v.gates)) {
		command = append(command, fmt.Sprintf("--feature-gates=%s=%t", gate, v.gates[gate]))
	}
	if err := v.of.run(ctx, container, v.of.image, command); err != nil {
		return err
	}
	return v.of.await(ctx, container, func(ctx context.Context) error { return v.client.Usable(ctx, v.of.api) })
}

// errGate says that a server refused a feature gate.
var errGate = errors.New("it does not start with the feature gates")

// await waits until there is no error. It gives up when the container has ended.
func (s *Servers) await(ctx context.Context, container string, reached func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, serverWithin, fmt.Errorf("not usable after %s", serverWithin))
	defer cancel()
	looked := time.Now()
	for {
		last := reached(ctx)
		if last == nil {
			return nil
		}
		if time.Since(looked) > time.Second {
			looked = time.Now()
			if state, err := s.on(ctx, "ctr -n k8s.io tasks ls | grep '^"+container+" ' || true"); err == nil && !strings.Contains(state, "RUNNING") {
				said := s.log(ctx, container)
				if strings.Contains(said, "feature gate") {
					return fmt.Errorf("%w: %s", errGate, said)
				}
				return fmt.Errorf("it has ended: %s", said)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (last answer: %w; its log ends with: %s)", context.Cause(ctx), last, s.log(context.WithoutCancel(ctx), container))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Alive implements apiservers.Server: it knows of what this program has stopped. A lease asks the server itself.
func (v *server) Alive() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.dead
}

// Reset implements apiservers.Server.
func (v *server) Reset(ctx context.Context) error { return v.client.Reset(ctx, v.of.api) }

// halt kills the present container.
func (v *server) halt(ctx context.Context) error {
	v.mu.Lock()
	container := v.container
	v.mu.Unlock()
	if container == "" {
		return nil
	}
	_, err := v.of.on(ctx, removal(container))
	return err
}

// stopWithin bounds how long the end of a server may take.
const stopWithin = 30 * time.Second

// Stop implements apiservers.Server.
func (v *server) Stop() {
	v.mu.Lock()
	v.dead = errors.New("the server was stopped")
	v.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	_ = v.halt(ctx) // what stays goes when all servers are removed
	if v.client != nil {
		v.client.Close()
	}
}

// restart kills the server and starts it again on the same port and keys.
func (v *server) restart(ctx context.Context) error {
	if err := v.halt(ctx); err != nil {
		return fmt.Errorf("restart kube-apiserver: %w", err)
	}
	v.client.Close()
	if err := v.begin(ctx); err != nil {
		return fmt.Errorf("restart kube-apiserver: %w", err)
	}
	return nil
}

// startController runs the controller that holds ServiceCIDRs, and returns the name of its container.
func (v *server) startController(ctx context.Context) (string, error) {
	name := v.name + "-controller"
	file := "/var/log/" + strings.TrimSuffix(serverPrefix, "-") + "/" + name + ".kubeconfig"
	kubeconfig, err := os.ReadFile(v.access.Kubeconfig)
	if err != nil {
		return "", err
	}
	if _, err := v.of.on(ctx, removal(name)+"cat >"+file+" <<'END'\n"+string(kubeconfig)+"\nEND\n"); err != nil {
		return "", err
	}
	err = v.of.run(ctx, name, v.of.controllers, []string{
		"kube-controller-manager", "--kubeconfig=" + file, "--controllers=service-cidr-controller", "--leader-elect=false", "--secure-port=0",
	}, path.Dir(file))
	if err == nil {
		err = v.of.await(ctx, name, v.client.DefaultRangeHeld)
	}
	if err != nil {
		return "", fmt.Errorf("start the controller of ServiceCIDRs: %w", err)
	}
	return name, nil
}

// serverLease is a lease as the suites see it.
type serverLease struct {
	lease     *apiservers.Lease
	ranges    apiservers.Ranges
	exclusive bool
	server    *server
	// controller is the container of the controller of ServiceCIDRs; empty where none was asked for.
	controller string
	changed    bool // the server has other ranges than the pool knows it by

	mu      sync.Mutex
	further []*server // on the same keys
}

var (
	_ candidate.ControlPlane = (*serverLease)(nil)
	_ candidate.ServerOwner  = (*serverLease)(nil)
	_ candidate.Living       = (*serverLease)(nil)
)

// Access implements candidate.ControlPlane.
func (l *serverLease) Access() candidate.Access { return l.server.access }

// ServiceCIDRs implements candidate.ControlPlane.
func (l *serverLease) ServiceCIDRs() []netip.Prefix { return l.ranges.ServiceCIDRs() }

// NodePorts implements candidate.ControlPlane.
func (l *serverLease) NodePorts() (first, last int) {
	return l.ranges.NodePorts.First, l.ranges.NodePorts.Last
}

// Restart implements candidate.ServerOwner. It needs an exclusive lease: others would see their requests fail.
func (l *serverLease) Restart(ctx context.Context, serviceCIDRs ...netip.Prefix) error {
	if !l.exclusive {
		return errors.New("restart of a control plane that is not leased exclusively")
	}
	if len(serviceCIDRs) > 0 {
		r, err := apiservers.ParseRanges(candidate.Request{ServiceCIDRs: serviceCIDRs, NodePorts: l.ranges.NodePorts.String()}, versionOf{l.server.of.version})
		if err != nil {
			return err
		}
		l.server.mu.Lock()
		l.ranges, l.server.ranges, l.changed = r, r, true
		l.server.mu.Unlock()
	}
	return l.server.restart(ctx)
}

// AnotherServer implements candidate.ServerOwner.
func (l *serverLease) AnotherServer(ctx context.Context, gates map[string]bool) (candidate.Access, error) {
	if !l.exclusive {
		return candidate.Access{}, errors.New("another server for a control plane that is not leased exclusively")
	}
	v, err := l.server.of.startOn(ctx, l.ranges, l.server.prefix, gates)
	if errors.Is(err, errGate) {
		return candidate.Access{}, candidate.NotBound("kube-apiserver %s does not start with the feature gates %v", l.server.of.version, gates)
	}
	if err != nil {
		return candidate.Access{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.further = append(l.further, v)
	return v.access, nil
}

// Alive implements candidate.Living.
func (l *serverLease) Alive(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range append([]*server{l.server}, l.further...) {
		if err := v.Alive(); err != nil {
			return err
		}
		if err := v.client.Get(ctx, "/livez", nil); err != nil {
			v.mu.Lock()
			container := v.container
			v.mu.Unlock()
			return fmt.Errorf("the API server of the check does not answer: %w; its log ends with: %s", err, v.of.log(ctx, container))
		}
	}
	return nil
}

// Release implements candidate.ControlPlane. The pool starts another server if this one has changed its ranges.
func (l *serverLease) Release() {
	if l.controller != "" {
		ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
		_, _ = l.server.of.on(ctx, removal(l.controller)) // what stays goes when all servers are removed
		cancel()
	}
	l.mu.Lock()
	for _, v := range l.further {
		v.Stop()
	}
	l.further = nil
	l.mu.Unlock()
	if l.changed {
		l.server.Stop() // the pool starts another
	}
	l.lease.Release()
}
