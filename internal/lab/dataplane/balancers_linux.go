package dataplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// health is the health check node port of the Service that a load balancer was made for; 0 if it has none.
func (d *dataPlane) health(ctx context.Context, address netip.Addr) (int, error) {
	services, err := d.world.Api.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("look for the Service of load balancer %s: %w", address, err)
	}
	for _, s := range services.Items {
		for _, in := range s.Status.LoadBalancer.Ingress {
			if in.IP == address.String() {
				return int(s.Spec.HealthCheckNodePort), nil
			}
		}
	}
	return 0, nil
}

// addressLike is the node's own address of the family of another one.
func (n *Node) addressLike(a netip.Addr) netip.Addr {
	own := n.network.Addresses
	return own[slices.IndexFunc(own, func(o netip.Addr) bool { return o.Is4() == a.Is4() })]
}

// healthy are the ways by nodes that say on their health check node port that they have endpoints.
func (d *dataPlane) healthy(ctx context.Context, ways []way, port int) (left []way, err error) {
	for _, w := range ways {
		namespace, source, err := d.source(candidate.Client{Gateway: w.by.Name}, w.to.Addr())
		if err != nil {
			return nil, err
		}
		check := candidate.Probe{To: netip.AddrPortFrom(w.by.addressLike(w.to.Addr()), uint16(port)), Protocol: corev1.ProtocolTCP, Path: candidate.HealthCheckPath}
		said := d.prober.Send(ctx, namespace.Do, check, source)[0]
		if said.HTTP != nil && said.HTTP.Code == http.StatusOK {
			left = append(left, w)
		}
	}
	return left, nil
}

// balancedBy are the ways of the load balancer that takes what the probe sends. They lead by each of its nodes to the
// node port, if there is one. A Service of policy Local has it ask the nodes first. There is none if no load balancer
// takes it. What is not sent to the addresses of load balancers takes the way by the first node. Nodes of other leases
// are as if they were not there.
func (d *dataPlane) balancedBy(ctx context.Context, p *candidate.Probe) (ways []way, err error) {
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
				to = netip.AddrPortFrom(n.addressLike(p.To.Addr()), uint16(number))
			}
			ways = append(ways, way{n, to})
		}
	}
	if err != nil || len(ways) == 0 {
		return ways, err
	}
	port, err := d.health(ctx, p.To.Addr())
	if err != nil || port == 0 {
		return ways, err
	}
	return d.healthy(ctx, ways, port)
}

// sendBalanced sends a probe of a client outside of the cluster where load balancers are: each shot by the next way.
func (d *dataPlane) sendBalanced(ctx context.Context, p candidate.Probe) (outcomes []candidate.Outcome, err error) {
	ways, err := d.balancedBy(ctx, &p)
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
