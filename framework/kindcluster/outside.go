package kindcluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/cluster/nodes"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/agent"
)

// Outside is a container beside the nodes of a cluster, with an agent in it: the clients outside of the cluster. For
// each node there is a range of client addresses. What is sent from them goes to that node. All nodes know that the way
// back is by that node, as behind a router.
type Outside struct {
	// URL is that of the agent, Token what commands it, Gateways the names of the nodes.
	URL, Token string
	Gateways   []string

	engine, name string
	nodes        []outsideNode
}

// outsideNode is a node as the gateway of clients.
type outsideNode struct {
	nodes.Node
	addresses []netip.Addr   // at most one of each family
	clients   []netip.Prefix // of each family
}

// outsideWithin bounds what is asked of the engine, to start it and to remove it.
const outsideWithin = 2 * time.Minute

// outsideControl is the port of the agent in its container.
const outsideControl = 9599

// outsideRole keeps kind from taking the container for a node of Kubernetes; its label lets it go with the cluster.
const outsideRole = "conformance-outside"

// StartOutside starts it. program is a static program for Linux that has the agent (`conformance`).
func (k *Kind) StartOutside(ctx context.Context, program string) (_ *Outside, err error) {
	all, err := k.nodes()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, outsideWithin)
	defer cancel()
	o := &Outside{Token: rand.Text(), name: k.name + "-outside-" + strings.ToLower(rand.Text()[:6])}
	if o.engine, err = engine(ctx, all[0].String()); err != nil {
		return nil, err
	}
	if err := o.asGateways(all); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("client outside of cluster %s: %w", k.name, err)
			err = errors.Join(err, o.Remove(context.WithoutCancel(ctx)))
		}
	}()
	if err := o.start(ctx, k.name, program); err != nil {
		return nil, err
	}
	own, address, err := o.whereabouts(ctx)
	if err != nil {
		return nil, err
	}
	o.URL = "http://" + address
	if err := o.route(ctx, own); err != nil {
		return nil, err
	}
	return o, o.answers(ctx)
}

// asGateways asks the engine for the addresses of all nodes at a time.
func (o *Outside) asGateways(all []nodes.Node) error {
	o.nodes, o.Gateways = make([]outsideNode, len(all)), make([]string, len(all))
	var asking errgroup.Group
	for i, n := range all {
		asking.Go(func() error {
			v4, v6, err := n.IP()
			if err != nil {
				return fmt.Errorf("addresses of node %s: %w", n, explained(err, nil))
			}
			o.nodes[i], o.Gateways[i] = outsideNode{Node: n, clients: clientRanges(i)}, n.String()
			for _, text := range []string{v4, v6} {
				if a, err := netip.ParseAddr(text); err == nil {
					o.nodes[i].addresses = append(o.nodes[i].addresses, a)
				}
			}
			return nil
		})
	}
	return asking.Wait()
}

// clientRanges are the addresses of the clients whose gateway is the i-th node. They are for benchmarks (RFC 2544) and
// documentation (RFC 3849), so nobody else has them.
func clientRanges(i int) []netip.Prefix {
	v6 := netip.MustParseAddr("2001:db8:52::").As16()
	v6[7] = byte(i)
	return []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, byte(i), 0}), 24), netip.PrefixFrom(netip.AddrFrom16(v6), 64)}
}

// clientAddresses are those of the ranges that clients have.
func clientAddresses(ranges []netip.Prefix) []netip.Addr {
	var out []netip.Addr
	for _, r := range ranges {
		a := r.Addr()
		for range candidate.ClientAddresses {
			a = a.Next()
			out = append(out, a)
		}
	}
	return out
}

// narrowOf is the address of a range of clients that is behind a narrow link (candidate.NarrowAddress).
func narrowOf(clients netip.Prefix) netip.Prefix {
	a := clientAddresses([]netip.Prefix{clients})[candidate.NarrowAddress]
	return netip.PrefixFrom(a, a.BitLen())
}

// engine is the program of the container engine that has the node.
func engine(ctx context.Context, node string) (string, error) {
	for _, name := range []string{"docker", "nerdctl", "podman"} {
		if path, err := exec.LookPath(name); err == nil && exec.CommandContext(ctx, path, "inspect", node).Run() == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("none of docker, nerdctl and podman knows the container %s", node)
}

// run runs the engine's program and returns what it printed.
func (o *Outside) run(ctx context.Context, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, o.engine, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", o.engine, args[0], err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// start creates the container, of the image of the nodes, which has what sets addresses and routes.
func (o *Outside) start(ctx context.Context, cluster, program string) error {
	like := o.nodes[0].String()
	told, err := o.run(ctx, "inspect", "--format", "{{.Image}} {{range $name, $_ := .NetworkSettings.Networks}}{{$name}} {{end}}", like)
	if err != nil {
		return err
	}
	image, network, _ := strings.Cut(told, " ")
	networks := strings.Fields(network)
	if len(networks) != 1 {
		return fmt.Errorf("node %s is on the networks %q, and not on one", like, networks)
	}
	config := agent.Config{TokenDigest: agent.TokenDigest(o.Token), Pod: candidate.PodName{Namespace: "outside", Name: o.name}, Control: outsideControl, Outside: map[string][]netip.Addr{}}
	for _, n := range o.nodes {
		config.Outside[n.String()] = clientAddresses(n.clients)
	}
	variable, err := json.Marshal(config)
	if err != nil {
		return err
	}
	args := []string{
		"create", "--name", o.name, "--hostname", o.name, "--network", networks[0],
		"--label", "io.x-k8s.kind.cluster=" + cluster, "--label", "io.x-k8s.kind.role=" + outsideRole, "--cap-add", "NET_ADMIN",
		"--env", agent.ConfigVariable + "=" + string(variable), "--publish", fmt.Sprintf("127.0.0.1::%d/tcp", outsideControl),
	}
	if slices.ContainsFunc(o.nodes[0].addresses, netip.Addr.Is6) {
		args = append(args, "--sysctl", "net.ipv6.conf.all.disable_ipv6=0")
	}
	if _, err := o.run(ctx, append(args, "--entrypoint", "/bin/sh", image, "-ec", o.script())...); err != nil {
		return err
	}
	if _, err := o.run(ctx, "cp", program, o.name+":/conformance"); err != nil {
		return err
	}
	if _, err := o.run(ctx, "start", o.name); err != nil {
		return err
	}
	return nil
}

// whereabouts are the addresses of the container in the network of the nodes and, as "host:port", where its agent is published.
func (o *Outside) whereabouts(ctx context.Context) (own []netip.Addr, agent string, err error) {
	text, err := o.run(ctx, "inspect", "--format",
		fmt.Sprintf(`{{(index (index .NetworkSettings.Ports "%d/tcp") 0).HostPort}} {{range .NetworkSettings.Networks}}{{.IPAddress}} {{.GlobalIPv6Address}}{{end}}`, outsideControl), o.name)
	if err != nil {
		return nil, "", err
	}
	port, addresses, _ := strings.Cut(text, " ")
	for field := range strings.FieldsSeq(addresses) {
		a, err := netip.ParseAddr(field)
		if err != nil {
			return nil, "", fmt.Errorf("address of the container: %w", err)
		}
		own = append(own, a)
	}
	return own, net.JoinHostPort("127.0.0.1", port), nil
}

// script gives the container its client addresses and, for what is sent from them, the node as the only way.
func (o *Outside) script() string {
	var s strings.Builder
	for i, n := range o.nodes {
		for _, a := range n.addresses {
			for _, client := range clientAddresses([]netip.Prefix{n.clientsLike(a)}) {
				fmt.Fprintf(&s, "ip address add %s dev lo\n", netip.PrefixFrom(client, client.BitLen()))
			}
			fmt.Fprintf(&s, "ip %s route add default via %s table %d\n", flag(a), a, 100+i)
			fmt.Fprintf(&s, "ip %s rule add from %s lookup %d\n", flag(a), n.clientsLike(a), 100+i)
		}
	}
	return s.String() + "exec /conformance agent\n"
}

func flag(a netip.Addr) string {
	if a.Is4() {
		return "-4"
	}
	return "-6"
}

// clientsLike are the clients of the family of an address.
func (n *outsideNode) clientsLike(a netip.Addr) netip.Prefix {
	return n.clients[slices.IndexFunc(n.clients, func(p netip.Prefix) bool { return p.Addr().Is4() == a.Is4() })]
}

// route tells every node the way back to the clients, which is by their gateway node. It tells the gateway that the way
// is by the container, whose own addresses are given.
func (o *Outside) route(ctx context.Context, own []netip.Addr) error {
	scripts := make([]strings.Builder, len(o.nodes))
	for g, gateway := range o.nodes {
		for _, address := range gateway.addresses {
			for i := range o.nodes {
				by := address
				if i == g {
					k := slices.IndexFunc(own, func(a netip.Addr) bool { return a.Is4() == address.Is4() })
					if k < 0 {
						return fmt.Errorf("the container has no address of the family of %s", address)
					}
					by = own[k]
				}
				clients := gateway.clientsLike(address)
				fmt.Fprintf(&scripts[i], "ip %s route replace %s via %s\n", flag(by), clients, by)
				if i == g {
					fmt.Fprintf(&scripts[i], "ip %s route replace %s via %s mtu %d\n", flag(by), narrowOf(clients), by, candidate.NarrowMTU)
				}
			}
		}
	}
	if _, err := onNodes(ctx, o.clusterNodes(), func(i int) string { return scripts[i].String() }); err != nil {
		return fmt.Errorf("routes to clients: %w", err)
	}
	return nil
}

func (o *Outside) clusterNodes() (all []nodes.Node) {
	for _, n := range o.nodes {
		all = append(all, n.Node)
	}
	return all
}

// answers waits until the agent does.
func (o *Outside) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.URL+agent.PathLivez, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(response.Status)
		}
		select {
		case <-ctx.Done():
			said, _ := o.run(context.WithoutCancel(ctx), "logs", "--tail", "5", o.name)
			return fmt.Errorf("the agent does not answer: %w: %s", err, said)
		case <-time.After(polling):
		}
	}
}

// Remove removes the container and the routes to it. That there is none is no error.
func (o *Outside) Remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, outsideWithin)
	defer cancel()
	var script strings.Builder
	for _, gateway := range o.nodes {
		for _, a := range gateway.addresses {
			clients := gateway.clientsLike(a)
			fmt.Fprintf(&script, "ip %s route delete %s || true\nip %s route delete %s || true\n", flag(a), clients, flag(a), narrowOf(clients))
		}
	}
	var routes sync.WaitGroup
	routes.Go(func() {
		_, _ = onNodes(ctx, o.clusterNodes(), func(int) string { return script.String() }) // there is none, or the nodes go as well
	})
	_, err := o.run(ctx, "rm", "--force", "--volumes", o.name)
	routes.Wait()
	return err
}
