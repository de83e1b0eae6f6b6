package e2e

import (
	"context"
	"errors"

	"sigs.k8s.io/e2e-framework/support"

	"github.com/service-conformance/conformance/framework/cluster"
	"github.com/service-conformance/conformance/framework/kindcluster"
	"github.com/service-conformance/conformance/framework/spec"
)

// Command is a provider of clusters that a command of the user's makes and another one removes, as --cluster-command and --cluster-teardown-command do. For use by one
// goroutine.
type Command struct {
	provided
	command kindcluster.Command
	refused error // what was asked for that no command can be told
}

var _ support.E2EClusterProvider = (*Command)(nil)

// NewCommand returns a provider of a cluster that c.Create makes and c.Teardown removes. An empty Teardown leaves the cluster, without its kubeconfig. WithName names it, if c does not. If c names
// a Service range, the cluster must have it. c.Folder is not used.
func NewCommand(c kindcluster.Command) *Command {
	return &Command{provided: provided{name: c.Name}, command: c}
}

// WithName is what {name} becomes in the commands.
func (c *Command) WithName(name string) support.E2EClusterProvider {
	c.name = name
	return c
}

// WithVersion has Create fail: the command says itself which version it makes.
func (c *Command) WithVersion(version string) support.E2EClusterProvider {
	c.refused = errors.New("a cluster command says itself which version of Kubernetes it makes, and " + version + " is asked for")
	return c
}

// WithPath changes nothing: the command says itself which programs it calls.
func (c *Command) WithPath(string) support.E2EClusterProvider { return c }

// WithOpts calls each of the functions with the provider.
func (c *Command) WithOpts(opts ...support.ClusterOpts) support.E2EClusterProvider {
	for _, o := range opts {
		o(c)
	}
	return c
}

// SetDefaults changes nothing: there are none.
func (c *Command) SetDefaults() support.E2EClusterProvider { return c }

// Create calls the command that makes the cluster, and returns the path of its kubeconfig when every node is ready. If it fails, or ctx ends, the teardown is called, and
// the error says where the logs are. Arguments are an error, as is another Service range than that which was asked for.
func (c *Command) Create(ctx context.Context, args ...string) (string, error) {
	if err := errors.Join(c.refused, noArguments("a cluster command", args)); err != nil {
		return "", err
	}
	return c.create(func(dir, logs string) (made, string, error) {
		command := c.command
		command.Name, command.Folder = c.name, dir
		made, err := kindcluster.CreateByCommand(ctx, command, logs, c.fits)
		if err != nil {
			return nil, "", err
		}
		return made, made.Kubeconfig, nil
	})
}

// CreateWithConfig is Create. A file is an error: the command says it all.
func (c *Command) CreateWithConfig(ctx context.Context, file string) (string, error) {
	if file != "" {
		return "", errors.New("a cluster command takes no file, and " + file + " is given")
	}
	return c.Create(ctx)
}

// fits returns an error if the cluster has another Service range than was asked for.
func (c *Command) fits(ctx context.Context, kubeconfig string) error {
	if c.command.ServiceCIDR == "" {
		return nil
	}
	ranges, err := spec.ParseServiceCIDRs(c.command.ServiceCIDR)
	if err == nil {
		_, err = cluster.Open(ctx, cluster.Options{Kubeconfig: kubeconfig, ServiceCIDRs: ranges})
	}
	return err
}
