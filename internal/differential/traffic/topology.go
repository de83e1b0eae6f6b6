// Package traffic compares what two data planes do with the same Services and EndpointSlices: the reference, and a real one.
package traffic

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/internal/differential/random"
)

// Topology is Services with EndpointSlices made by hand, and how both change. It names pods, nodes and addresses by number, so that each side can have it.
type Topology struct {
	// States follow each other. Each is whole: what it does not name is deleted.
	States []State `json:"states"`
}

// State is what there is at a time, and from where it is tried.
type State struct {
	Services []Service `json:"services"`
	Slices   []Slice   `json:"slices,omitempty"`
	Probes   []Probe   `json:"probes"`
}

// Service is a Service without a selector. ID is the same in all states.
type Service struct {
	ID int `json:"id"`
	// Type is the type, ClusterIP if empty.
	Type corev1.ServiceType `json:"type,omitempty"`
	// Families are "4", "6", "46" or "64".
	Families string `json:"families"`
	Ports    []Port `json:"ports"`
	// InternalLocal and ExternalLocal set the traffic policies to Local.
	InternalLocal bool `json:"internalLocal,omitempty"`
	ExternalLocal bool `json:"externalLocal,omitempty"`
	// Affinity is that to client addresses.
	Affinity bool `json:"affinity,omitempty"`
	// Distribution is the traffic distribution.
	Distribution string `json:"distribution,omitempty"`
	// PublishNotReady is publishNotReadyAddresses, which does not concern slices made by hand.
	PublishNotReady bool `json:"publishNotReady,omitempty"`
	// External are external IPs, by number among the addresses that the side has to give.
	External []int `json:"external,omitempty"`
	// Ingress are ingress points of its load balancer.
	Ingress []Ingress `json:"ingress,omitempty"`
	// Sources are loadBalancerSourceRanges.
	Sources []Source `json:"sources,omitempty"`
	// NoBalancerPorts sets allocateLoadBalancerNodePorts to false.
	NoBalancerPorts bool `json:"noBalancerPorts,omitempty"`
}

// Port is a port of a Service. Its number follows from the topology, the Service and its place.
type Port struct {
	Name     string          `json:"name,omitempty"`
	Protocol corev1.Protocol `json:"protocol"`
}

// Ingress is an ingress point, with an address by number.
type Ingress struct {
	Address int `json:"address"`
	// Mode is the ipMode; empty leaves it out.
	Mode corev1.LoadBalancerIPMode `json:"mode,omitempty"`
}

// Source is a source range.
type Source string

// The source ranges: everybody, nobody, the pods that send from node 0, the first node.
const (
	Everybody  Source = "everybody"
	NobodyElse Source = "nobody"
	FirstPod   Source = "pod-0"
	FirstNode  Source = "node-0"
)

// Slice is an EndpointSlice of a Service, ID the same in all states.
type Slice struct {
	ID      int `json:"id"`
	Service int `json:"service"`
	// Family is 4 or 6.
	Family    int         `json:"family"`
	Ports     []SlicePort `json:"ports,omitempty"`
	Endpoints []Endpoint  `json:"endpoints,omitempty"`
}

// SlicePort is a port of a slice.
type SlicePort struct {
	// Name is that of a port of the Service; nil leaves it out.
	Name     *string         `json:"name,omitempty"`
	Protocol corev1.Protocol `json:"protocol,omitempty"`
	// Number is a port on which pods listen, or where they do not.
	Number int32 `json:"number,omitempty"`
}

// Endpoint is an endpoint of a slice.
type Endpoint struct {
	// Pod is its number.
	Pod         int   `json:"pod"`
	Ready       *bool `json:"ready,omitempty"`
	Serving     *bool `json:"serving,omitempty"`
	Terminating *bool `json:"terminating,omitempty"`
	// Node is what nodeName says.
	Node NodeName `json:"node,omitempty"`
	// Zones and Nodes are hints, by number of the node whose zone or name is meant.
	Zones []int `json:"zones,omitempty"`
	Nodes []int `json:"nodes,omitempty"`
}

// NodeName is what an endpoint says of its node.
type NodeName string

// The node names: the right one, none, that of another node, and one that no node has.
const (
	OwnNode     NodeName = ""
	NoNode      NodeName = "none"
	OtherNode   NodeName = "other"
	UnknownNode NodeName = "unknown"
)

// Probe is where traffic is sent from and to.
type Probe struct {
	From From `json:"from"`
	// Node is the number of the client's node, or of the node by which the client outside comes.
	Node int `json:"node"`
	// Service is the ID of the Service, and Port the place of its port.
	Service int `json:"service"`
	Port    int `json:"port"`
	To      To  `json:"to"`
	// At is the number of the node of a node port, or the place of an external IP or ingress point.
	At int `json:"at,omitempty"`
	// Family is 4 or 6.
	Family int `json:"family"`
}

// From is a kind of client.
type From string

// The clients: a pod that is no endpoint, the first endpoint pod of a node, the node itself, and one outside whose traffic enters at the node.
const (
	FromPod     From = "pod"
	FromBackend From = "backend"
	FromHost    From = "host"
	FromOutside From = "outside"
)

// To is a kind of address.
type To string

// The addresses.
const (
	ToClusterIP To = "clusterIP"
	ToNodePort  To = "nodePort"
	ToExternal  To = "externalIP"
	ToIngress   To = "load balancer"
	ToHealth    To = "health check"
)

func (p Probe) String() string {
	at := ""
	if p.To != ToClusterIP {
		at = fmt.Sprintf(" %d", p.At)
		if p.To == ToNodePort || p.To == ToHealth {
			at = fmt.Sprintf(" of node %d", p.At)
		}
	}
	family := ""
	if p.Family == 6 {
		family = " (IPv6)"
	}
	from := fmt.Sprintf("%s of node %d", p.From, p.Node)
	if p.From == FromOutside {
		from = fmt.Sprintf("outside by node %d", p.Node)
	}
	return fmt.Sprintf("from %s to %s%s of Service %d, port %d%s", from, p.To, at, p.Service, p.Port, family)
}

func (s *State) service(id int) *Service {
	for i := range s.Services {
		if s.Services[i].ID == id {
			return &s.Services[i]
		}
	}
	return nil
}

// Parse reads a topology, and finds what no side could have.
func Parse(data []byte) (Topology, error) {
	return random.Parse(data, func(t *Topology) []State { return t.States }, (*State).valid)
}

func (s *State) valid() error {
	inside := func(n, of int) bool { return n >= 0 && n < of }
	for i := range s.Services {
		v := &s.Services[i]
		if v.ID < 0 || v.ID >= maxServices || s.service(v.ID) != v || v.Families == "" || strings.Trim(v.Families, "46") != "" || len(v.Ports) == 0 || len(v.Ports) > maxPorts {
			return fmt.Errorf("service %d: its id, its families or its number of ports", v.ID)
		}
		for _, e := range v.External {
			if !inside(e, externals) {
				return fmt.Errorf("service %d: there is no external address %d", v.ID, e)
			}
		}
		for _, in := range v.Ingress {
			if !inside(in.Address, externals) {
				return fmt.Errorf("service %d: there is no external address %d", v.ID, in.Address)
			}
		}
	}
	for _, l := range s.Slices {
		if s.service(l.Service) == nil || l.Family != 4 && l.Family != 6 {
			return fmt.Errorf("slice %d: its service or its family", l.ID)
		}
		for _, e := range l.Endpoints {
			if !inside(e.Pod, backends) {
				return fmt.Errorf("slice %d: there is no pod %d", l.ID, e.Pod)
			}
			for _, n := range append(append([]int(nil), e.Zones...), e.Nodes...) {
				if !inside(n, nodes) {
					return fmt.Errorf("slice %d: there is no node %d", l.ID, n)
				}
			}
		}
	}
	for _, p := range s.Probes {
		v := s.service(p.Service)
		at := nodes
		if v != nil && p.To == ToExternal {
			at = len(v.External)
		} else if v != nil && p.To == ToIngress {
			at = len(v.Ingress)
		}
		if v == nil || !inside(p.Port, len(v.Ports)) || !inside(p.Node, nodes) || !inside(p.At, at) || p.Family != 4 && p.Family != 6 {
			return fmt.Errorf("probe %s: there is no such client or address", p)
		}
	}
	return nil
}
