package dataplane

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/lab/network"
	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

// balancerRanges are those that load balancers have their addresses of (RFC 5737, RFC 3849): nobody else has one.
var balancerRanges = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8:1b::/112")}

// balancer is a load balancer, as the service controller writes it.
type balancer struct {
	Addresses []netip.Addr         `json:"addresses"`
	Nodes     []string             `json:"nodes"`
	Ports     []corev1.ServicePort `json:"ports"`
}

// startBalancers starts the service controller. A folder of the user's need not have it.
func (w *World) startBalancers() (err error) {
	if !programs.HasServiceController(w.parts.Binaries) {
		return nil
	}
	w.Balancers, err = process.Start(process.Command{
		Name: string(programs.ServiceController), Path: w.parts.Binaries.Path(programs.ServiceController), Log: w.parts.Dir.File("service-controller.log"),
		Args: []string{
			"--kubeconfig=" + w.Kubeconfig, "--load-balancers=" + w.balancersFile(),
			"--first-ipv4=" + balancerRanges[0].Addr().Next().String(), "--first-ipv6=" + balancerRanges[1].Addr().Next().String(),
		},
	})
	if err != nil {
		return err
	}
	return w.parts.Dir.Add(w.Balancers)
}

func (w *World) balancersFile() string { return w.parts.Dir.File("load-balancers.json") }

// readBalancers returns the load balancers that there are.
func (w *World) readBalancers() (all []balancer, err error) {
	data, err := os.ReadFile(w.balancersFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	return all, err
}

// way is how a load balancer brings a connection into the cluster.
type way struct {
	by *Node
	to netip.AddrPort
}

// balancedBy are the ways of the load balancer that takes what the probe sends. They lead by each of its nodes to the
// node port, if there is one. There is none if no load balancer takes it. What is not sent to the addresses of load
// balancers takes the way by the first node. Nodes of other leases are as if they were not there.
func (d *dataPlane) balancedBy(p *candidate.Probe) (ways []way, err error) {
	if !slices.ContainsFunc(balancerRanges, func(r netip.Prefix) bool { return r.Contains(p.To.Addr()) }) {
		return []way{{d.world.Shared[0], p.To}}, nil
	}
	all, err := d.world.readBalancers()
	for _, b := range all {
		port := slices.IndexFunc(b.Ports, func(s corev1.ServicePort) bool { return uint16(s.Port) == p.To.Port() && s.Protocol == p.Protocol })
		if !slices.Contains(b.Addresses, p.To.Addr()) || port < 0 {
			continue
		}
		for _, name := range b.Nodes {
			n, err := d.node(name)
			if err != nil {
				continue
			}
			to := p.To
			if number := b.Ports[port].NodePort; number != 0 {
				a := n.network.Addresses[slices.IndexFunc(n.network.Addresses, func(a netip.Addr) bool { return a.Is4() == p.To.Addr().Is4() })]
				to = netip.AddrPortFrom(a, uint16(number))
			}
			ways = append(ways, way{n, to})
		}
	}
	return ways, err
}

// sendBalanced sends a probe of a client outside of the cluster where load balancers are: each shot by the next way.
func (d *dataPlane) sendBalanced(ctx context.Context, p candidate.Probe) (outcomes []candidate.Outcome, err error) {
	ways, err := d.balancedBy(&p)
	if err != nil {
		return nil, err
	}
	shots := max(1, p.Count)
	p.Count = 1
	for k := range shots {
		if len(ways) == 0 {
			outcomes = append(outcomes, candidate.Outcome{Result: candidate.Unreachable, Error: "no load balancer has this address and port"})
			continue
		}
		w := ways[k%len(ways)]
		var namespace *network.Namespace
		var source netip.Addr
		if namespace, source, err = d.source(candidate.Client{Gateway: w.by.Name}, w.to.Addr()); err != nil {
			return nil, err
		}
		shot := p
		shot.To = w.to
		outcomes = append(outcomes, d.prober.Send(ctx, namespace.Do, shot, source)...)
	}
	return outcomes, nil
}
