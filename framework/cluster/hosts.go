package cluster

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/agent"
)

// hosts are the agents that leases share. One runs in the host network of each node that a client was asked for on, and
// one asks the DNS. The others are lent to one lease after the other. They start when they are first needed.
type hosts struct {
	mu      sync.Mutex
	agents  map[string]*started // by node; "" is the one that asks the DNS
	tried   bool                // the namespace may exist
	created bool                // it exists
	idle    candidate.IdlePods[*pod]
}

// started is an agent, or why there is none.
type started struct {
	once  sync.Once
	agent *agent.Client
	err   error
}

// hostNamespace is where they are.
func (c *Cluster) hostNamespace() string { return "conformance-" + c.runID + "-hosts" }

// host returns the agent in the host network of a node.
func (c *Cluster) host(ctx context.Context, node string) (*agent.Client, error) {
	return c.sharedAgent(ctx, node, candidate.Pod{PodName: candidate.PodName{Name: "host-" + node}, Node: node, HostNetwork: true})
}

// resolver returns the agent that asks the DNS.
func (c *Cluster) resolver(ctx context.Context) (*agent.Client, error) {
	return c.sharedAgent(ctx, "", candidate.Pod{PodName: candidate.PodName{Name: "resolver"}, Node: c.nodes[0].Name})
}

func (c *Cluster) sharedAgent(ctx context.Context, key string, as candidate.Pod) (*agent.Client, error) {
	c.hosts.mu.Lock()
	if c.hosts.agents == nil {
		c.hosts.agents = map[string]*started{}
	}
	s := c.hosts.agents[key]
	if s == nil {
		s = &started{}
		c.hosts.agents[key] = s
	}
	c.hosts.mu.Unlock()
	s.once.Do(func() {
		as.Namespace = c.hostNamespace()
		p := &pod{Pod: as, cluster: c, readyBy: readyAtStart}
		err := c.ensureHostNamespace(ctx)
		if err == nil {
			err = p.start(ctx)
		}
		c.hosts.mu.Lock()
		defer c.hosts.mu.Unlock()
		if s.agent, s.err = p.agent, err; err != nil {
			_ = p.remove(ctx) // the next one tries again
			delete(c.hosts.agents, key)
		}
	})
	if s.err != nil {
		return nil, fmt.Errorf("agent %s: %w", as.Name, s.err)
	}
	return s.agent, nil
}

// ensureHostNamespace creates the namespace of shared agents. Its label lets pods use the host network where a cluster enforces pod security standards.
func (c *Cluster) ensureHostNamespace(ctx context.Context) error {
	c.hosts.mu.Lock()
	defer c.hosts.mu.Unlock()
	if c.hosts.created {
		return nil
	}
	c.hosts.tried = true
	// An interruption must not cut the request off: the server could carry it out after removeHosts has been here.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), candidate.InsistTimeout)
	defer cancel()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: c.hostNamespace(), Labels: map[string]string{candidate.RunLabel: c.runID, "pod-security.kubernetes.io/enforce": "privileged"},
	}}
	if _, err := candidate.Create(ctx, c.client.CoreV1().Namespaces(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the namespace of agents: %w", err)
	}
	c.hosts.created = true
	return nil
}

// endLease tells the agents that leases share to close what a lease has left open.
func (c *Cluster) endLease(ctx context.Context, lease string) {
	c.hosts.mu.Lock()
	var agents []*agent.Client
	for _, s := range c.hosts.agents {
		if s.agent != nil {
			agents = append(agents, s.agent)
		}
	}
	c.hosts.mu.Unlock()
	if o := c.options.Outside; o != nil && o.Failed == "" {
		agents = append(agents, c.options.Outside.agent())
	}
	var ended sync.WaitGroup
	for _, a := range agents {
		ended.Go(func() { _ = a.End(ctx, lease) }) // connections that stay open harm nobody
	}
	ended.Wait()
}

// removeHosts deletes the shared agents and their namespace.
func (c *Cluster) removeHosts(ctx context.Context) error {
	c.hosts.mu.Lock()
	defer c.hosts.mu.Unlock()
	if !c.hosts.tried {
		return nil
	}
	return c.removeShared(ctx, c.hostNamespace())
}
