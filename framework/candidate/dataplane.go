package candidate

import (
	"context"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// DataPlaneRequest says which data plane a check needs.
type DataPlaneRequest struct {
	// DualStack asks for Service ranges, nodes and pods of both families. Without it the families that the candidate has are given.
	DualStack bool `json:"dualStack,omitempty"`
	// LendNamespace asks for a namespace in which pods have been started already, see NamespaceLender and Pod.AnyName. A candidate need not have one.
	LendNamespace bool `json:"lendNamespace,omitempty"`
	// OwnNodes is how many nodes the check adds at most (NodeOwner.AddNode). A candidate that has few to add keeps them for the lease.
	OwnNodes int `json:"ownNodes,omitempty"`
}

// NamespaceLender is a DataPlane that has been lent a namespace together with the lease.
type NamespaceLender interface {
	// LentNamespace is that namespace, which has no Services, no endpoints and no pods with labels of checks; empty if
	// none was lent. A user of the data plane deletes the Services that it has made there; the rest is removed by
	// Release.
	LentNamespace() string
}

// DataPlane is nodes, pods and clients between which traffic can be sent, and the control plane that they belong to. It is
// leased to one check until Release, which removes every pod and node that the check started, and takes back those that were lent. Other checks use the same
// nodes at the same time; each has pods, extra nodes and a clock of its own. All methods are safe for concurrent use. An error means
// that the environment failed and says nothing about the candidate; an *UnavailableError, that it cannot offer this.
type DataPlane interface {
	ControlPlane
	// Nodes are the nodes that checks share, at least three; those of the reference and the lab are in two zones. They do not change during the lease.
	Nodes() []Node
	// ExternalAddresses belong to nobody else. A client outside of the cluster that sends to one of them sends it to the node that
	// is its gateway. There are at least four of each family that the data plane has.
	ExternalAddresses() []netip.Addr

	// StartPod creates the Pod object and starts a backend. The backend answers on its ports with its identity and with
	// the client address that it saw. Without ports it is a client only. It returns the pod with its addresses once it
	// answers; the Pod object is then Running, and Ready unless the pod says otherwise.
	StartPod(ctx context.Context, pod Pod) (Pod, error)
	// LendPod lends a pod on a shared node to send from. The pod answers on the ports, which are the same for all pods
	// that are lent. Nothing selects it: it has no labels of a check. No other lease has it at the same time; earlier
	// ones may have had it, and after Release others may. What changes a pod (from SetReady to Remove) is refused for
	// it.
	LendPod(ctx context.Context, node string, ports []PodPort) (Pod, error)
	// SetReady sets the Ready condition of the Pod object, as a readiness probe would.
	SetReady(ctx context.Context, pod PodName, ready bool) error
	// AnswerReadiness sets how the pod answers its readiness probe from now on, and returns at once. The kubelet then
	// changes the Ready condition (capability kubelet).
	AnswerReadiness(ctx context.Context, pod PodName, ready bool) error
	// Environment returns the environment of the pod's process as it started (capability kubelet): "NAME=value", sorted.
	Environment(ctx context.Context, pod PodName) ([]string, error)
	// Terminate deletes the Pod object with a grace period that outlasts the check: the pod is terminating, and goes on answering
	// until Remove. Its Ready condition stays as it is.
	Terminate(ctx context.Context, pod PodName) error
	// Kill ends the backend: its ports refuse connections and the established ones are reset. The API does not notice.
	Kill(ctx context.Context, pod PodName) error
	// Remove ends the backend and removes the Pod object and its network.
	Remove(ctx context.Context, pod PodName) error

	// Send sends probes and returns the outcomes of each in order. Probes are sent concurrently with each other; the shots
	// of one probe one after the other.
	Send(ctx context.Context, probes []Probe) ([][]Outcome, error)
	// Resolve asks the DNS of the cluster (capability cluster-dns) and returns what it says to each question, in order.
	Resolve(ctx context.Context, questions []Question) ([]Resolution, error)
	// Pass lets time pass on the clock of the candidate: at once where the clock is virtual (capability virtual-clock).
	Pass(ctx context.Context, d time.Duration) error
	// Diagnose describes what the nodes know about an address and port, for the evidence of a failure; at most a screenful.
	Diagnose(ctx context.Context, to netip.AddrPort) (string, error)
}

// Node is a node of a data plane.
type Node struct {
	Name string `json:"name"`
	// Zone is the value of its label topology.kubernetes.io/zone.
	Zone string `json:"zone,omitempty"`
	// Addresses are its InternalIPs, the primary family first.
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// SecondaryAddresses are further addresses of the node that the Node object does not list.
	SecondaryAddresses []netip.Addr `json:"secondaryAddresses,omitempty"`
}

// PodName names a pod.
type PodName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (n PodName) String() string { return n.Namespace + "/" + n.Name }

// Pod is a pod of a data plane.
type Pod struct {
	PodName
	// Node is the name of the node that it runs on.
	Node   string            `json:"node"`
	Labels map[string]string `json:"labels,omitempty"`
	// Ports are what it answers on.
	Ports []PodPort `json:"ports,omitempty"`
	// Unready pods start with a Ready condition that is false.
	Unready bool `json:"unready,omitempty"`
	// AnyName says that any pod with such labels and ports will do, under whatever name. StartPod may return a running
	// pod of the lent namespace. The readiness of such a pod cannot be set once it terminates.
	AnyName bool `json:"anyName,omitempty"`
	// HostNetwork pods have the addresses of their node.
	HostNetwork bool `json:"hostNetwork,omitempty"`
	// Narrow pods are behind a link that takes packets of NarrowMTU bytes at most (capability narrow-links).
	Narrow bool `json:"narrow,omitempty"`
	// Outside makes it a backend outside of the cluster, at the address OutsideBackend of the client whose gateway is Node. It has no Pod object
	// and no labels (capability outside-backends).
	Outside bool `json:"outside,omitempty"`
	// Hostname and Subdomain are those of the Pod object.
	Hostname  string `json:"hostname,omitempty"`
	Subdomain string `json:"subdomain,omitempty"`
	// Variables are further environment variables of its process, by name; $(NAME) in a value refers to another variable (capability kubelet).
	Variables map[string]string `json:"variables,omitempty"`
	// WithoutServiceLinks sets enableServiceLinks to false (capability kubelet).
	WithoutServiceLinks bool `json:"withoutServiceLinks,omitempty"`
	// Addresses are given by StartPod, the primary family first.
	Addresses []netip.Addr `json:"addresses,omitempty"`
}

// PodPort is a port that a pod answers on.
type PodPort struct {
	Name     string          `json:"name,omitempty"`
	Protocol corev1.Protocol `json:"protocol"`
	Number   int             `json:"number"`
}

// Client is where a probe is sent from; exactly one of Pod, Node, Gateway and Balanced is set.
type Client struct {
	// Pod sends from a pod that the check has started, or that was lent to it.
	Pod PodName `json:"pod,omitzero"`
	// Node sends from the host network of a node.
	Node string `json:"node,omitempty"`
	// Gateway sends from outside of the cluster; whatever is not on the client's own network goes to this node.
	Gateway string `json:"gateway,omitempty"`
	// Balanced sends from outside of the cluster, where its load balancers are (spec.LoadBalancers). The load balancer
	// that has the address chooses the node for each connection. An address that no load balancer has is unreachable
	// there.
	Balanced bool `json:"balanced,omitempty"`
	// Address chooses among the addresses of a client outside of the cluster, which has ClientAddresses of each family.
	Address int `json:"address,omitempty"`
}

// ClientAddresses is how many addresses of each family a client outside of the cluster has. Two of them have a use of their own.
const (
	ClientAddresses = 32
	// NarrowAddress is behind a link that takes packets of NarrowMTU bytes at most (capability narrow-links).
	NarrowAddress = ClientAddresses - 1
	// OutsideBackend is the address of backends outside (Pod.Outside).
	OutsideBackend = ClientAddresses - 2
)

// NarrowMTU is how many bytes a packet may have on a narrow link. Others take 1500.
const NarrowMTU = 1300

func (c Client) String() string {
	switch {
	case c.Node != "":
		return "host of " + c.Node
	case c.Gateway != "":
		return "outside by " + c.Gateway
	case c.Balanced:
		return "outside by load balancers"
	}
	return "pod " + c.Pod.Name
}

// Probe is a series of shots: connections, or datagrams that wait for their answer.
type Probe struct {
	From     Client          `json:"from"`
	To       netip.AddrPort  `json:"to"`
	Protocol corev1.Protocol `json:"protocol"`
	// Count is the number of shots; 0 is 1.
	Count int `json:"count,omitempty"`
	// SourcePort is that of every shot; 0 takes a fresh one for each.
	SourcePort int `json:"sourcePort,omitempty"`
	// Connection names a connection, or with UDP a socket. The first shot that names it opens it, and it stays open
	// until the lease ends, also between calls. Every shot is a request on it. A stream counts as open once a backend
	// has answered on it. If it met a stranger, it is closed, and the next shot opens another one. Empty opens one for
	// each shot and closes it.
	Connection string `json:"connection,omitempty"`
	// Path makes each shot an HTTP GET (with TCP).
	Path string `json:"path,omitempty"`
	// Payload is how many bytes of content each shot carries there, and as many back: in a stream, or as one datagram of this size. At most MaxPayload.
	Payload int `json:"payload,omitempty"`
	// Reversed sends the packets of each datagram of several (with UDP and Payload) last first, as a network may that reorders them. The answer comes as the network
	// brings it.
	Reversed bool `json:"reversed,omitempty"`
	// Interval is the time from one shot to the next; 0 is as fast as answers come.
	Interval time.Duration `json:"interval,omitempty"`
	// Timeout is how long silence may last before the outcome is Dropped; 0 is DefaultProbeTimeout.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Repeats is how often a datagram that is not answered is sent again within the timeout. What is lost of a connection is repeated by the kernel.
	Repeats int `json:"repeats,omitempty"`
	// Rate makes the socket of a named connection busy (with UDP). From the first shot with a rate on, so many empty datagrams a second go the same way as the
	// shots, beside them and between calls, until the connection is closed. Nobody answers them. At most MaxRate.
	Rate int `json:"rate,omitempty"`
}

// MaxRate bounds the datagrams a second of a busy socket.
const MaxRate = 2000

// MaxPayload bounds the content of a shot. A datagram has less room (MaxDatagram).
const (
	MaxPayload  = 4 << 20
	MaxDatagram = 65000
)

// DefaultProbeTimeout is many times what a loaded machine needs to answer between two network namespaces.
const DefaultProbeTimeout = time.Second

// Result is what one shot met.
type Result string

// The results.
const (
	Answered    Result = "answered"
	Refused     Result = "refused"     // TCP reset in answer to the first packet, or ICMP port unreachable
	Unreachable Result = "unreachable" // another ICMP error: no route, host or network unreachable, prohibited
	Dropped     Result = "dropped"     // silence
	Reset       Result = "reset"       // an established connection was broken
	TooBig      Result = "too big"     // ICMP says again and again that packets are too big (EMSGSIZE)
	Altered     Result = "altered"     // the content that came is not what was sent
	Broken      Result = "broken"      // the prober itself failed: it says nothing about the candidate
)

// Outcome is what one shot saw.
type Outcome struct {
	Result Result `json:"result"`
	// Pod answered, on PodPort, and saw the client as Source. For answers by others than pods of the check they are empty.
	Pod     PodName        `json:"pod,omitzero"`
	PodPort int            `json:"podPort,omitempty"`
	Source  netip.AddrPort `json:"source,omitzero"`
	// Stranger is set when something accepted the connection and then proved to be no backend. It gave an answer of
	// another kind or none, or reset the connection before any.
	Stranger bool `json:"stranger,omitempty"`
	// HTTP is the answer to a GET.
	HTTP *HTTPAnswer `json:"http,omitempty"`
	// Payload is how many bytes of content came there and back as they were sent.
	Payload int `json:"payload,omitempty"`
	// Start is when the shot was sent, Duration how long it took to its result, on the candidate's clock.
	Start    time.Time     `json:"start"`
	Duration time.Duration `json:"duration"`
	// Repeated is how often the kernel repeated the first packet of the TCP connection that the shot opened. So a shot
	// that was answered may have been dropped before.
	Repeated int `json:"repeated,omitempty"`
	// Error is what a Broken prober says, and which ICMP error made an Unreachable.
	Error string `json:"error,omitempty"`
}

// HTTPAnswer is an answer to a GET.
type HTTPAnswer struct {
	Code   int                 `json:"code"`
	Header map[string][]string `json:"header,omitempty"`
	Body   string              `json:"body,omitempty"`
}

// ProxyConfiguration configures the service proxy of a node. The zero value is that of the shared nodes. It names what checks vary; a
// tier writes it in the form that its proxy reads.
type ProxyConfiguration struct {
	// Mode is iptables, nftables or ipvs; empty is that of the shared nodes.
	Mode string `json:"mode,omitempty"`
	// MinSyncPeriod and SyncPeriod are those of the mode, as text ("1s", "0s"); empty leaves them to the tier, "default" to the proxy.
	MinSyncPeriod string `json:"minSyncPeriod,omitempty"`
	SyncPeriod    string `json:"syncPeriod,omitempty"`
	// Scheduler is the IPVS scheduler.
	Scheduler string `json:"scheduler,omitempty"`
	// NodePortAddresses are CIDRs, or "primary".
	NodePortAddresses []string `json:"nodePortAddresses,omitempty"`
	// FeatureGates are switched as said.
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// Flags are further command-line flags, beside the configuration file.
	Flags []string `json:"flags,omitempty"`
	// WithoutIPVS asks for a node whose kernel has no IPVS, whatever the mode; a candidate that has none to offer answers Unavailable. It
	// is a property of the node: AddNode and every StartProxy of the node name it.
	WithoutIPVS bool `json:"withoutIPVS,omitempty"`
	// Absent starts the node without a proxy.
	Absent bool `json:"absent,omitempty"`
	// Rewrite changes the configuration file of a running proxy without starting it again; for StartProxy only.
	Rewrite bool `json:"rewrite,omitempty"`
}

// ProxyState is what can be seen of the program of a service proxy.
type ProxyState struct {
	Running bool `json:"running"`
	// Log is the end of what it has logged.
	Log string `json:"log,omitempty"`
}

// ProxyMetrics and ProxyHealth are the ports on which the proxy of every node serves its metrics (on loopback) and its health (on all addresses).
const (
	ProxyMetricsPort = 10249
	ProxyHealthPort  = 10256
)

// HealthCheckPath is what load balancers of cloud providers ask health check node ports for (k8s.io/cloud-provider/service/helpers,
// GetServiceHealthCheckPathPort). Answers to other paths are the proxy's own: kube-proxy answers to all alike.
const HealthCheckPath = "/healthz"

// Interference is what somebody else does to a node.
type Interference string

// The interferences.
const (
	// FlushRules empties and deletes every table or virtual server that the proxy has made.
	FlushRules Interference = "flush rules"
	// DropRules removes, one by one, the rules that lead cluster IPs to the endpoints of their Services, and leaves everything else; for iptables mode only.
	DropRules Interference = "drop rules"
	// BlockRules puts something in the place of every table that the proxy has made, so that it can write none; for nftables mode only. FlushRules ends that.
	BlockRules Interference = "block rules"
	// DropRealServers removes every real server from the virtual servers of IPVS.
	DropRealServers Interference = "drop real servers"
	// AddRealServer adds an address where nobody listens as a real server of every virtual server of IPVS.
	AddRealServer Interference = "add real server"
	// AddVirtualServer gives every virtual server of IPVS at an address of IPv4 a twin at its TwinAddress.
	AddVirtualServer Interference = "add virtual server"
	// CutOff keeps what the API server sends from the node, until Reconnect. What its proxy does then, it does of itself.
	CutOff Interference = "cut off from the API server"
	// Disconnect is CutOff, and breaks the connections that the node has to the API server.
	Disconnect Interference = "disconnect from the API server"
	// Reconnect ends CutOff and Disconnect.
	Reconnect Interference = "reconnect to the API server"
	// AddNeighbours gives the node rules of another program in every packet filter that it has: tables, chains, sets, maps, a flowtable and comments.
	// They refuse TCP connections to NeighbourPorts of the node.
	AddNeighbours Interference = "add neighbours"
)

// NeighbourPorts are those that the rules of AddNeighbours refuse: the first is in a set, the second in a rule with a comment.
var NeighbourPorts = [2]int{7101, 7102}

// TwinAddress is the address of IPv4 in 198.19.0.0/16, where nobody else is, that has the last two bytes of another one.
func TwinAddress(a netip.Addr) netip.Addr {
	b := a.As4()
	return netip.AddrFrom4([4]byte{198, 19, b[2], b[3]})
}
