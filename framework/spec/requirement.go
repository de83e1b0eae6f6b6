// Package spec is the compiled specification of Kubernetes Services: every testable sentence of the
// documents as a requirement with a stable ID. The requirements are data (fixtures/spec/*.yaml); their
// IDs are generated Go constants (ids.go), so that a check of an unknown requirement does not compile.
package spec

// ID names a requirement, for example "alloc-upper-band-first". IDs never change their meaning: a
// requirement that is withdrawn takes its ID with it.
type ID string

// Level is how binding a requirement is, read from the wording of the document (RFC 2119).
type Level string

// The levels. Only Must decides the exit code of a run; Info is background that no check decides.
const (
	Must   Level = "MUST"
	Should Level = "SHOULD"
	May    Level = "MAY"
	Info   Level = "INFO"
)

// Area is the part of the specification, and so the suite, that a requirement belongs to.
type Area string

// The areas, one per suite.
const (
	Allocation Area = "allocation"
	APISchema  Area = "apischema"
	Proxy      Area = "proxy"
)

// Basis is what a demand rests on.
type Basis string

// The bases, the strongest first.
const (
	OnDocument   Basis = "document"   // the documents that the specification is compiled from
	OnConvention Basis = "convention" // conventions of the Kubernetes API, enhancement proposals, RFCs, other pages of kubernetes.io
	OnUpstream   Basis = "upstream"   // the source and the runs of Kubernetes alone
)

// Bases lists every basis, the strongest first.
var Bases = []Basis{OnDocument, OnConvention, OnUpstream}

// Capability is something that a candidate must offer for a check to be possible. A check asks for
// capabilities, never for a tier.
type Capability string

// The capabilities.
const (
	ChosenServiceCIDR     Capability = "chosen-service-cidr"     // control planes with a Service CIDR that the check names
	ExhaustibleRange      Capability = "exhaustible-range"       // a range of its own that a check may fill
	DualStack             Capability = "dual-stack"              // control planes with Service ranges of both IP families
	SingleStack           Capability = "single-stack"            // control planes with a Service range of one IP family
	ServiceCIDRAPI        Capability = "service-cidr-api"        // networking.k8s.io/v1 ServiceCIDR and IPAddress objects
	ManageServiceCIDRs    Capability = "manage-service-cidrs"    // ServiceCIDR and IPAddress objects may be written
	ServiceCIDRController Capability = "service-cidr-controller" // something holds a ServiceCIDR that is being deleted while addresses depend on it
	RestartControlPlane   Capability = "restart-control-plane"
	SeveralAPIServers     Capability = "several-api-servers"  // further API servers on the storage of a control plane, with other rules if asked for
	EndpointControllers   Capability = "endpoint-controllers" // something turns selectors into EndpointSlices
	RestartControllers    Capability = "restart-controllers"  // the endpoint controllers can be ended and started again
	DataPlane             Capability = "data-plane"           // nodes, backends and clients between which traffic can be sent
	OwnNodes              Capability = "own-nodes"            // a check can have a node for itself, and stop and start the service proxy there
	ProxyConfiguration    Capability = "proxy-configuration"  // the service proxy of such a node can be configured
	ProxyStops            Capability = "proxy-stops"          // the service proxy of a node that checks share can be stopped for a while
	ProxyMetrics          Capability = "proxy-metrics"
	KubeProxy             Capability = "kube-proxy"    // the service proxy is kube-proxy
	IPTablesMode          Capability = "iptables-mode" // kube-proxy runs in iptables mode
	NFTablesMode          Capability = "nftables-mode" // kube-proxy runs in nftables mode
	IPVS                  Capability = "ipvs"          // nodes can run kube-proxy in ipvs mode
	VirtualClock          Capability = "virtual-clock" // time passes on demand
	SCTP                  Capability = "sctp"
	LoadBalancer          Capability = "load-balancer"    // load-balancer addresses can be given to a Service and routed to a node
	NarrowLinks           Capability = "narrow-links"     // pods and clients outside can be behind a link that takes smaller packets than others
	PodObjects            Capability = "pod-objects"      // a check says in what state its Pod objects are: no kubelet does
	OutsideBackends       Capability = "outside-backends" // hosts outside of the cluster can be endpoints
	ClusterDNS            Capability = "cluster-dns"
	Kubelet               Capability = "kubelet" // pods run in real containers with environment and probes
)

// Capabilities lists every known capability, for validation.
var Capabilities = []Capability{
	ChosenServiceCIDR, ExhaustibleRange, DualStack, SingleStack, ServiceCIDRAPI, ManageServiceCIDRs, ServiceCIDRController, RestartControlPlane,
	SeveralAPIServers,
	EndpointControllers, RestartControllers, DataPlane, OwnNodes, ProxyConfiguration, ProxyStops, ProxyMetrics,
	KubeProxy, IPTablesMode, NFTablesMode, IPVS, VirtualClock, SCTP, LoadBalancer, NarrowLinks, PodObjects, OutsideBackends, ClusterDNS, Kubelet,
}

// Deviation is a place where a known implementation is documented or was observed to differ from a requirement.
type Deviation struct {
	// Implementation that deviates, for example "kubernetes" or "kube-proxy ipvs".
	Implementation string `json:"implementation"`
	// Versions is a version constraint such as ">=1.33" or ">=1.31 <1.36"; empty means every supported version.
	Versions string `json:"versions,omitempty"`
	// Behavior says what is done instead.
	Behavior string `json:"behavior"`
	// Source is where the cause stands (file:line of a version, issue, KEP).
	Source string `json:"source,omitempty"`
	// WaitsFor says what is expected to end the deviation; empty where released versions keep it for ever, or where no check shows it.
	WaitsFor string `json:"waitsFor,omitempty"`
	// Expires is the day (YYYY-MM-DD) from which the deviation excuses no failure; empty means never.
	Expires string `json:"expires,omitempty"`
}

// Requirement is one testable statement of the specification.
type Requirement struct {
	ID        ID     `json:"id"`
	Area      Area   `json:"area"`
	Statement string `json:"statement"`
	Level     Level  `json:"level"`
	// Sources are document#section references; the documents stand in documents.yaml.
	Sources []string `json:"sources"`
	// Feature groups requirements that an implementation claims together, for example "ClusterIPAllocation".
	Feature string `json:"feature"`
	// Basis is what the demand rests on: the strongest basis among its sources. It is not written in the catalogue.
	Basis Basis `json:"basis,omitempty"`
	// Profile is what a candidate claims that is judged by the requirement. It is not written in the catalogue, see Catalogue.Profiles.
	Profile Profile `json:"profile,omitempty"`
	// Versions is the constraint on the Kubernetes version that the requirement applies to; empty means all.
	Versions string `json:"versions,omitempty"`
	// Needs are the capabilities that a check of the requirement needs.
	Needs []Capability `json:"needs,omitempty"`
	// Unchecked is the reason why no check decides the requirement; empty when at least one check does.
	Unchecked string `json:"unchecked,omitempty"`
	// BuildsOn are the requirements that its checks build on; builds-on.yaml says so for many at a time.
	BuildsOn []Foundation `json:"buildsOn,omitempty"`
	// Notes record decisions: how the sentence is read where documents and components disagree.
	Notes string `json:"notes,omitempty"`
	// Deviations are known differences of real implementations. They are those of the published lists
	// (fixtures/expectations), and those of its own entry, which make no check fail.
	Deviations []Deviation `json:"deviations,omitempty"`
}

// Document is one of the documents that the specification is compiled from.
type Document struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	URL   string `json:"url"`
	// Basis is what a demand rests on that has this source.
	Basis Basis `json:"basis"`
	// AsOf is the release of Kubernetes, or the date or version of the document, that it was read at.
	AsOf string `json:"asOf"`
}
