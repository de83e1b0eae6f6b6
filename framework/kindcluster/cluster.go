// Package kindcluster makes clusters with chosen Service ranges. The library of kind makes clusters of containers. A
// Provider, such as a command of the user's (Command), makes any others. It knows how such clusters come and go; what
// is judged is a cluster that a kubeconfig reaches, as any other.
package kindcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	"sigs.k8s.io/yaml"
)

// Provider brings one cluster up and down. It has the methods of E2EClusterProviderWithImageLoader of
// sigs.k8s.io/e2e-framework/support that are used here, so that each of its providers fits. Kind is the one that is
// built in.
type Provider interface {
	// CreateWithConfig makes the cluster from a file in the provider's own form and returns the path of its kubeconfig. When the context
	// ends it returns soon, and no longer makes anything; what it had made may be left for Destroy.
	CreateWithConfig(ctx context.Context, file string) (string, error)
	// LoadImageArchive puts the images of an archive on all nodes.
	LoadImageArchive(ctx context.Context, archive string, args ...string) error
	// ExportLogs writes the logs of the nodes and of what runs on them into a folder.
	ExportLogs(ctx context.Context, folder string) error
	// Destroy removes the cluster, also half of one. That there is none is no error.
	Destroy(ctx context.Context) error
}

// Cluster is a cluster that is ready: every node is, and so are the proxy and the DNS.
type Cluster struct {
	// Name is that of kind: the nodes are its containers <name>-control-plane, <name>-worker, <name>-worker2 ...
	Name string
	// Kubeconfig is the path of a file with full rights, which is this cluster's own.
	Kubeconfig string

	provider Provider
}

// Bounds of what has no other end.
const (
	readyWithin   = 5 * time.Minute
	exportWithin  = 2 * time.Minute
	destroyWithin = 2 * time.Minute
)

// Create makes a cluster with kind and returns when it is ready. dir is a folder for its kubeconfig. If it fails, or
// the context ends, nothing of the cluster is left; kind's logs are then in the folder logs. An error that is not
// context.Canceled tells what is left. A cluster of that name that was there before is an error, and stays.
func Create(ctx context.Context, o Options, dir, logs string) (*Cluster, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	return createKind(ctx, o.Name, config, 1+o.Workers+o.Spares, dir, logs, o.SetUp)
}

// CreateFromFile is Create from a file in kind's own form, whose nodes it counts. The name in the file gives way to that of the caller.
func CreateFromFile(ctx context.Context, name, file, dir, logs string) (*Cluster, error) {
	config, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the configuration of cluster %s: %w", name, err)
	}
	var told v1alpha4.Cluster
	if err := yaml.Unmarshal(config, &told); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return createKind(ctx, name, config, max(1, len(told.Nodes)), dir, logs, "")
}

func createKind(ctx context.Context, name string, config []byte, nodes int, dir, logs, setUpBy string) (*Cluster, error) {
	// Before anything is written: the next process would take a file as proof that the cluster is one to delete.
	there, err := NewKind("", "").clusters()
	if err != nil {
		return nil, err
	}
	if slices.Contains(there, name) {
		return nil, fmt.Errorf("there is a cluster of kind called %q already: take another name, or remove it with `kind delete cluster --name %s`", name, name)
	}
	file := filepath.Join(dir, name+configSuffix)
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration of cluster %s: %w", name, err)
	}
	return create(ctx, NewKind(name, kubeconfigPath(dir, name)), name, file, logs, func(ctx context.Context, kubeconfig string) error {
		if setUpBy == "" {
			return nil
		}
		return setUp(ctx, setUpBy, name, kubeconfig, logs)
	}, asNodes(nodes))
}

// CreateWith is Create with another provider, from a file in its own form that makes a cluster of so many nodes. Those of sigs.k8s.io/e2e-framework that can load
// images have all methods of Provider, so that three lines use one; cluster.Open judges what it makes:
//
//	p := k3d.NewCluster(name)
//	p.SetDefaults()
//	c, err := kindcluster.CreateWith(ctx, p, name, "k3d.yaml", 3, "logs")
func CreateWith(ctx context.Context, p Provider, name, config string, nodes int, logs string) (*Cluster, error) {
	return create(ctx, p, name, config, logs, nil, asNodes(nodes))
}

// asNodes waits until a cluster of so many nodes is ready.
func asNodes(nodes int) func(ctx context.Context, kubeconfig string) error {
	return func(ctx context.Context, kubeconfig string) error {
		if err := waitReady(ctx, kubeconfig, nodes); err != nil {
			return err
		}
		return nameZonesAgain(ctx, kubeconfig)
	}
}

func kubeconfigPath(dir, name string) string { return filepath.Join(dir, name+".kubeconfig") }

// create is CreateWith with any idea of being ready. What installs more, if anything does, comes first, and has its own time.
func create(ctx context.Context, p Provider, name, config, logs string, install, ready func(ctx context.Context, kubeconfig string) error) (*Cluster, error) {
	kubeconfig, err := p.CreateWithConfig(ctx, config)
	if err == nil && install != nil {
		err = install(ctx, kubeconfig)
	}
	if err == nil {
		waiting, cancel := context.WithTimeout(ctx, readyWithin)
		err = ready(waiting, kubeconfig)
		cancel()
	}
	if err == nil {
		return &Cluster{Name: name, Kubeconfig: kubeconfig, provider: p}, nil
	}
	err = fmt.Errorf("create cluster %s: %w", name, err)
	cluster := &Cluster{Name: name, provider: p}
	if ctx.Err() == nil {
		if exportErr := cluster.ExportLogs(ctx, logs); exportErr != nil {
			err = fmt.Errorf("%w; its logs could not be exported: %w", err, exportErr)
		} else {
			err = fmt.Errorf("%w; its logs are in %s", err, logs)
		}
	}
	deleteErr := cluster.Delete(context.WithoutCancel(ctx))
	if ctx.Err() != nil && deleteErr != nil { // which is news, and that it was interrupted is not
		return nil, deleteErr
	}
	return nil, errors.Join(err, deleteErr)
}

// Existing returns a cluster of kind that somebody else made. dir is a folder for its kubeconfig.
func Existing(name, dir string) (*Cluster, error) {
	k := NewKind(name, kubeconfigPath(dir, name))
	if err := k.find(); err != nil {
		return nil, err
	}
	return &Cluster{Name: name, Kubeconfig: k.kubeconfig, provider: k}, nil
}

// LoadImageArchive puts the images of an archive, as `docker save` or an OCI layout in a tar file, on all nodes.
func (c *Cluster) LoadImageArchive(ctx context.Context, archive string) error {
	if err := c.provider.LoadImageArchive(ctx, archive); err != nil {
		return fmt.Errorf("load %s into cluster %s: %w", archive, c.Name, err)
	}
	return nil
}

// HasImage reports whether every node has an image of the name; false where that cannot be known.
func (c *Cluster) HasImage(name string) bool {
	k, is := c.provider.(*Kind)
	if !is {
		return false
	}
	all, err := k.nodes()
	if err != nil {
		return false
	}
	var asking errgroup.Group
	for _, n := range all {
		asking.Go(func() error {
			_, err := nodeutils.ImageID(n, name)
			return err
		})
	}
	return asking.Wait() == nil
}

// StartOutside starts clients outside of the cluster; its provider must be kind.
func (c *Cluster) StartOutside(ctx context.Context, program string) (*Outside, error) {
	k, is := c.provider.(*Kind)
	if !is {
		return nil, fmt.Errorf("cluster %s is not one of kind", c.Name)
	}
	return k.StartOutside(ctx, program)
}

// ByHand is how the cluster is removed by hand; empty where that is not known.
func (c *Cluster) ByHand() string {
	switch p := c.provider.(type) {
	case *Kind:
		return "kind delete cluster --name " + c.Name
	case *Command:
		return p.ByHand()
	}
	return ""
}

// ExportLogs writes what kind collects of the nodes (kubelet, containers, journal) into a folder.
func (c *Cluster) ExportLogs(ctx context.Context, folder string) error {
	ctx, cancel := context.WithTimeout(ctx, exportWithin)
	defer cancel()
	return c.provider.ExportLogs(ctx, folder)
}

// Delete removes the cluster.
func (c *Cluster) Delete(ctx context.Context) error {
	within := destroyWithin
	if _, is := c.provider.(*Command); is {
		within = teardownWithin
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := c.provider.Destroy(ctx); err != nil {
		return fmt.Errorf("delete cluster %s: %w", c.Name, err)
	}
	return nil
}
