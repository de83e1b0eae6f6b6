package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Seen is what shots met, as both sides can say it: "backend-2, which sees the client", "refused", "dropped".
type Seen map[string]bool

func (s Seen) String() string {
	if len(s) == 0 {
		return "nothing"
	}
	var all []string
	for what := range s {
		all = append(all, what)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// answered counts what are answers of backends.
func (s Seen) answered() (n int) {
	for what := range s {
		if strings.HasPrefix(what, backendPrefix) {
			n++
		}
	}
	return n
}

const backendPrefix = "backend-"

// destination is where a probe goes on a side; invalid if the Service has no such address there.
func (p *placed) destination(probe *Probe) (netip.AddrPort, corev1.Protocol) {
	svc := p.services[probe.Service]
	if svc == nil || probe.Port >= len(svc.Spec.Ports) {
		return netip.AddrPort{}, ""
	}
	port := svc.Spec.Ports[probe.Port]
	number := uint16(port.Port)
	var to netip.Addr
	switch probe.To {
	case ToClusterIP:
		for _, ip := range svc.Spec.ClusterIPs {
			if a, err := netip.ParseAddr(ip); err == nil && familyOf(a) == probe.Family {
				to = a
			}
		}
	case ToNodePort:
		to, number = ofFamily(p.side.nodes[probe.At].Addresses, probe.Family), uint16(port.NodePort)
	case ToHealth:
		to, number, port.Protocol = ofFamily(p.side.nodes[probe.At].Addresses, probe.Family), uint16(svc.Spec.HealthCheckNodePort), corev1.ProtocolTCP
	case ToExternal, ToIngress:
		all := svc.Spec.ExternalIPs
		if probe.To == ToIngress {
			all = nil
			for _, in := range svc.Status.LoadBalancer.Ingress {
				all = append(all, in.IP)
			}
		}
		at := 0
		for _, ip := range all {
			if a, err := netip.ParseAddr(ip); err == nil && familyOf(a) == probe.Family {
				if at == probe.At {
					to = a
				}
				at++
			}
		}
	}
	if !to.IsValid() || number == 0 {
		return netip.AddrPort{}, ""
	}
	return netip.AddrPortFrom(to, number), port.Protocol
}

// from is the client of a probe, with its addresses.
func (p *placed) from(probe *Probe) (candidate.Client, []netip.Addr) {
	s := p.side
	switch probe.From {
	case FromPod:
		return candidate.Client{Pod: s.senders[probe.Node].PodName}, s.senders[probe.Node].Addresses
	case FromBackend:
		return candidate.Client{Pod: s.backends[probe.Node].PodName}, s.backends[probe.Node].Addresses
	case FromHost:
		return candidate.Client{Node: s.nodes[probe.Node].Name}, nil
	}
	return candidate.Client{Gateway: s.nodes[probe.Node].Name}, nil
}

// noAddress is what a probe sees whose address does not exist.
const noAddress = "no such address"

// observe sends the probes, so many shots of each, and returns what they met.
func (p *placed) observe(ctx context.Context, probes []Probe, shots int) ([]Seen, error) {
	seen := make([]Seen, len(probes))
	var sent []candidate.Probe
	var of []int
	for i := range probes {
		seen[i] = Seen{}
		to, protocol := p.destination(&probes[i])
		if !to.IsValid() {
			seen[i][noAddress] = true
			continue
		}
		client, _ := p.from(&probes[i])
		one := candidate.Probe{From: client, To: to, Protocol: protocol, Count: shots}
		if probes[i].To == ToHealth {
			one.Path, one.Count = candidate.HealthCheckPath, 1
		}
		sent = append(sent, one)
		of = append(of, i)
	}
	outcomes, err := p.side.plane.Send(ctx, sent)
	if err != nil {
		return nil, err
	}
	for k, all := range outcomes {
		probe := &probes[of[k]]
		_, own := p.from(probe)
		for _, o := range all {
			if o.Result == candidate.Broken {
				return nil, fmt.Errorf("%s: %s: the prober failed: %s", p.side.Name, probe, o.Error)
			}
			seen[of[k]][p.said(&o, own)] = true
		}
	}
	return seen, nil
}

// said is an outcome in the words of both sides.
func (p *placed) said(o *candidate.Outcome, own []netip.Addr) string {
	switch {
	case o.HTTP != nil:
		var health struct {
			LocalEndpoints *int `json:"localEndpoints"`
		}
		if json.Unmarshal([]byte(o.HTTP.Body), &health) != nil || health.LocalEndpoints == nil {
			return fmt.Sprintf("HTTP %d", o.HTTP.Code)
		}
		return fmt.Sprintf("HTTP %d, %d local endpoints", o.HTTP.Code, *health.LocalEndpoints)
	case o.Stranger:
		return "a stranger"
	case o.Result != candidate.Answered:
		return string(o.Result)
	}
	number, known := p.side.numbers[o.Pod]
	if !known {
		return "another pod"
	}
	said := fmt.Sprintf("%s%d", backendPrefix, number)
	if o.PodPort != firstBackendPort {
		said += fmt.Sprintf(":%d", o.PodPort)
	}
	if len(own) > 0 && !slices.Contains(own, o.Source.Addr().Unmap()) {
		said += " (another client address)"
	}
	return said
}

var backendNumber = regexp.MustCompile(backendPrefix + `\d+`)

// kindOf is what was seen, without saying which backends.
func kindOf(seen string) string {
	var kinds []string
	for what := range strings.SplitSeq(seen, ", ") {
		if what = backendNumber.ReplaceAllString(what, "a backend"); !slices.Contains(kinds, what) {
			kinds = append(kinds, what)
		}
	}
	slices.Sort(kinds)
	return strings.Join(kinds, ", ")
}
