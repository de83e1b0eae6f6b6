package traffic

import (
	"slices"
	"strings"
)

// Tolerance is a difference that no document decides, and that stays.
type Tolerance struct {
	// Name is for the count of a run.
	Name string
	// Why says what both sides do, and Source where the real one does it.
	Why, Source string
	// covers reports whether what a probe saw in a state is covered.
	covers func(s *State, p *Probe, want, seen Seen) bool
}

// Tolerances are all of them.
var Tolerances = []Tolerance{
	{
		Name:   "node-to-outside-address",
		Why:    "A node's own packets to an external address of a Service without endpoints are refused by the reference. kube-proxy in iptables mode lets them out.",
		Source: "pkg/proxy/iptables/proxier.go (v1.37.1) lines 365-366",
		covers: func(s *State, p *Probe, want, seen Seen) bool {
			return p.From == FromHost && (p.To == ToExternal || p.To == ToIngress) && (want.only("refused") || want.only("dropped") && len(s.service(p.Service).Sources) > 0) && (seen.only("unreachable") || seen.only("dropped"))
		},
	},
	{
		Name:   "source-range-of-nothing",
		Why:    "A client beyond the source ranges of a Service without endpoints is met by silence on the reference, as where there are endpoints. kube-proxy refuses all clients.",
		Source: "pkg/proxy/iptables/proxier.go (v1.37.1) lines 893-896 and 1035-1048",
		covers: func(s *State, p *Probe, want, seen Seen) bool {
			return p.To == ToIngress && len(s.service(p.Service).Sources) > 0 && want.only("dropped") && seen.only("refused")
		},
	},
	{
		Name:   "hairpin-without-node",
		Why:    "A pod that reaches itself is answered on the reference. kube-proxy in nftables mode answers only if the endpoint names the node (a known deviation of proxy-hairpin).",
		Source: "pkg/proxy/nftables/proxier.go (v1.37.1) lines 1347-1358",
		covers: func(s *State, p *Probe, want, seen Seen) bool {
			if p.From != FromBackend || !seen["dropped"] {
				return false
			}
			return slices.ContainsFunc(s.Slices, func(l Slice) bool {
				return l.Service == p.Service && slices.ContainsFunc(l.Endpoints, func(e Endpoint) bool { return e.Pod == p.Node && e.Node != OwnNode })
			})
		},
	},
	{
		Name:   "health-of-other-ports",
		Why:    "kube-proxy counts endpoints for the health check whose ports have names that no port of the Service has. The reference does not, as no traffic can reach them.",
		Source: "pkg/proxy/endpoint.go (v1.37.1), getLocalReadyEndpointIPs",
		covers: func(s *State, p *Probe, _, seen Seen) bool {
			if p.To != ToHealth || !strings.HasPrefix(seen.String(), "HTTP 200") { // it counts more, never less
				return false
			}
			v := s.service(p.Service)
			return slices.ContainsFunc(s.Slices, func(l Slice) bool {
				return l.Service == v.ID && slices.ContainsFunc(l.Ports, func(port SlicePort) bool {
					return !slices.ContainsFunc(v.Ports, func(of Port) bool {
						return port.Name != nil && of.Name == *port.Name || port.Name == nil && of.Name == ""
					})
				})
			})
		},
	},
}

// only reports whether nothing else was seen.
func (s Seen) only(what string) bool { return len(s) == 1 && s[what] }

// toleranceOf is what covers a difference; nil if nothing does.
func toleranceOf(s *State, p *Probe, want, seen Seen) *Tolerance {
	for i := range Tolerances {
		if Tolerances[i].covers(s, p, want, seen) {
			return &Tolerances[i]
		}
	}
	return nil
}
