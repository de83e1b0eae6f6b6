package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/e2e-framework/support"

	"github.com/service-conformance/conformance/framework/kindcluster"
)

// Kind is a provider of clusters of kind, which are made as those of tier kind are. kind is a library here, so nothing is installed. The user's own kubeconfig is not
// touched. For use by one goroutine.
type Kind struct {
	provided
	options kindcluster.Options

	// make makes the cluster from the options, or from a file in kind's own form if one is named.
	make func(ctx context.Context, o kindcluster.Options, file, dir, logs string) (made, string, error)
}

// A cluster of Kind is one for every function of envfuncs, and for kindcluster.CreateWith.
var (
	_ support.E2EClusterProvider                = (*Kind)(nil)
	_ support.E2EClusterProviderWithImageLoader = (*Kind)(nil)
	_ kindcluster.Provider                      = (*Kind)(nil)
)

// NewKind returns a provider of a cluster that looks as the options say. WithName names it, if the options do not.
func NewKind(o kindcluster.Options) *Kind {
	return &Kind{provided: provided{name: o.Name}, options: o, make: makeKind}
}

func makeKind(ctx context.Context, o kindcluster.Options, file, dir, logs string) (made, string, error) {
	var c *kindcluster.Cluster
	var err error
	if file != "" {
		c, err = kindcluster.CreateFromFile(ctx, o.Name, file, dir, logs)
	} else {
		c, err = kindcluster.Create(ctx, o, dir, logs)
	}
	if err != nil {
		return nil, "", err
	}
	return c, c.Kubeconfig, nil
}

// WithName names the cluster, which must not exist.
func (k *Kind) WithName(name string) support.E2EClusterProvider {
	k.name = name
	return k
}

// WithVersion names the version of Kubernetes, such as v1.37.1, by that of kind's own node image. A file of CreateWithConfig names its images itself.
func (k *Kind) WithVersion(version string) support.E2EClusterProvider {
	k.options.NodeImage = "kindest/node:v" + strings.TrimPrefix(version, "v")
	return k
}

// WithPath changes nothing: kind is a library here, and not a program.
func (k *Kind) WithPath(string) support.E2EClusterProvider { return k }

// WithOpts calls each of the functions with the provider.
func (k *Kind) WithOpts(opts ...support.ClusterOpts) support.E2EClusterProvider {
	for _, o := range opts {
		o(k)
	}
	return k
}

// defaultServiceCIDR is that of kind.
var defaultServiceCIDR = netip.MustParsePrefix("10.96.0.0/16")

// SetDefaults sets the Service range of kind, 10.96.0.0/16, if the options name none.
func (k *Kind) SetDefaults() support.E2EClusterProvider {
	if len(k.options.ServiceCIDRs) == 0 {
		k.options.ServiceCIDRs = []netip.Prefix{defaultServiceCIDR}
	}
	return k
}

// Create makes the cluster, and returns the path of its kubeconfig when every node, the proxy and the DNS are ready. If it fails, or ctx ends, nothing of the cluster is
// left, and the error says where its logs are. Arguments, which are for kind's own program, are an error, as is a cluster of that name that exists.
func (k *Kind) Create(ctx context.Context, args ...string) (string, error) {
	if err := noArguments("a cluster of kind", args); err != nil {
		return "", err
	}
	k.SetDefaults()
	return k.from(ctx, "")
}

// CreateWithConfig is Create from a file in kind's own form, in place of the options. Without a file it is Create.
func (k *Kind) CreateWithConfig(ctx context.Context, file string) (string, error) {
	if file == "" {
		return k.Create(ctx)
	}
	return k.from(ctx, file)
}

func (k *Kind) from(ctx context.Context, file string) (string, error) {
	o := k.options
	o.Name = k.name
	return k.create(func(dir, logs string) (made, string, error) { return k.make(ctx, o, file, dir, logs) })
}

// LoadImageArchive puts the images of an archive, as `docker save` writes it, on all nodes. Arguments are an error.
func (k *Kind) LoadImageArchive(ctx context.Context, archive string, args ...string) error {
	if err := noArguments("the loading of an archive", args); err != nil {
		return err
	}
	if err := k.there(); err != nil {
		return err
	}
	return k.cluster.LoadImageArchive(ctx, archive)
}

// engines are the programs that kind makes nodes with, in its order.
var engines = []string{"docker", "nerdctl", "podman"}

// LoadImage puts an image of this machine's engine on all nodes. The engine's program (docker, nerdctl or podman, whichever is found first) saves it. Arguments are an error.
func (k *Kind) LoadImage(ctx context.Context, image string, args ...string) error {
	if err := noArguments("the loading of an image", args); err != nil {
		return err
	}
	if err := k.there(); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "conformance-image-")
	if err != nil {
		return fmt.Errorf("save image %s: %w", image, err)
	}
	defer os.RemoveAll(folder)
	archive := filepath.Join(folder, "image.tar")
	if err := saveImage(ctx, image, archive); err != nil {
		return fmt.Errorf("save image %s: %w", image, err)
	}
	return k.LoadImageArchive(ctx, archive)
}

// saveImage writes an image of the engine to an archive.
func saveImage(ctx context.Context, image, archive string) error {
	for _, name := range engines {
		engine, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		said, err := exec.CommandContext(ctx, engine, "save", "--output", archive, image).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(said)))
		}
		return nil
	}
	return errors.New("none of " + strings.Join(engines, ", ") + " is installed")
}
