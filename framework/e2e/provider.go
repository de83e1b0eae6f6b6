package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/e2e-framework/klient"

	"github.com/service-conformance/conformance/framework/kindcluster"
	"github.com/service-conformance/conformance/internal/scratch"
)

// made is a cluster that is there, see kindcluster.Cluster.
type made interface {
	LoadImageArchive(ctx context.Context, archive string) error
	ExportLogs(ctx context.Context, folder string) error
	Delete(ctx context.Context) error
}

// provided is what the providers have in common: a cluster, from its creation until it is destroyed.
type provided struct {
	name       string
	cluster    made            // nil while there is none
	folder     *scratch.Folder // of its files; nil while there is none
	kubeconfig string          // empty while there is none
}

// create makes the cluster by calling bring, which is given a folder for its files and one for the logs of a cluster that does not come up.
func (p *provided) create(bring func(dir, logs string) (made, string, error)) (string, error) {
	switch {
	case p.name == "":
		return "", errors.New("a cluster needs a name: call WithName")
	case p.cluster != nil:
		return "", fmt.Errorf("cluster %s is there already: destroy it first", p.name)
	}
	folder, err := kindcluster.NewFolder()
	if err != nil {
		return "", fmt.Errorf("make a folder for the files of cluster %s: %w", p.name, err)
	}
	logs, err := os.MkdirTemp("", "conformance-"+p.name+"-logs-")
	if err != nil {
		folder.Remove()
		return "", fmt.Errorf("make a folder for the logs of cluster %s: %w", p.name, err)
	}
	c, kubeconfig, err := bring(folder.Path, logs)
	_ = os.Remove(logs) // if nothing was written to it
	if err != nil {
		// A folder that tells of a cluster which is still there stays: the next start tries to remove the cluster.
		if names, listing := kindcluster.Commands(folder.Path); listing == nil && len(names) == 0 {
			folder.Remove()
		}
		return "", err
	}
	p.cluster, p.folder, p.kubeconfig = c, folder, kubeconfig
	return kubeconfig, nil
}

// there returns an error if there is no cluster.
func (p *provided) there() error {
	if p.cluster == nil {
		return fmt.Errorf("there is no cluster %q: create it first", p.name)
	}
	return nil
}

// GetKubeconfig returns the path of the kubeconfig, which is the cluster's own. It is empty while there is no cluster.
func (p *provided) GetKubeconfig() string { return p.kubeconfig }

// GenerateKubeconfig returns the path of the kubeconfig. It is an error if there is no cluster, or if there are arguments: there is one kubeconfig.
func (p *provided) GenerateKubeconfig(args ...string) (string, error) {
	if err := noArguments("a kubeconfig", args); err != nil {
		return "", err
	}
	return p.kubeconfig, p.there()
}

// GetKubectlContext returns the name of the context of the kubeconfig. It is empty while there is no cluster.
func (p *provided) GetKubectlContext() string {
	if p.kubeconfig == "" {
		return ""
	}
	config, err := clientcmd.LoadFromFile(p.kubeconfig)
	if err != nil {
		return ""
	}
	return config.CurrentContext
}

// KubernetesRestConfig returns a configuration for clients of the cluster. It is nil while there is no cluster.
func (p *provided) KubernetesRestConfig() *rest.Config {
	if p.kubeconfig == "" {
		return nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	if err != nil {
		return nil
	}
	return config
}

// WaitForControlPlane does not wait: a cluster is ready when its creation returns. It is an error if there is no cluster.
func (p *provided) WaitForControlPlane(context.Context, klient.Client) error { return p.there() }

// ExportLogs writes the logs of the cluster into a folder. It is an error if there is no cluster.
func (p *provided) ExportLogs(ctx context.Context, folder string) error {
	if err := p.there(); err != nil {
		return err
	}
	if err := p.cluster.ExportLogs(ctx, folder); err != nil {
		return fmt.Errorf("export the logs of cluster %s: %w", p.name, err)
	}
	return nil
}

// Destroy removes the cluster and its files. That there is none is no error. If it fails, it can be called again. If it never succeeds, `conformance cleanup` removes
// what is left.
func (p *provided) Destroy(ctx context.Context) error {
	if p.cluster == nil {
		return nil
	}
	if err := p.cluster.Delete(ctx); err != nil {
		return err
	}
	p.folder.Remove()
	*p = provided{name: p.name}
	return nil
}

// noArguments returns an error if there are arguments, which the framework passes on to a provider's own program.
func noArguments(to string, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, and %q are given", to, args)
	}
	return nil
}
