package e2eframework

import (
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/klient/conf"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/service-conformance/conformance/framework/reference/apiserver"
)

// referenceProvider is a provider of clusters for the framework whose only cluster is the API server of the reference, in this process.
type referenceProvider struct {
	name, folder string
	server       *apiserver.Server
}

var _ support.E2EClusterProvider = (*referenceProvider)(nil)

func (p *referenceProvider) WithName(name string) support.E2EClusterProvider {
	p.name = name
	return p
}
func (p *referenceProvider) WithVersion(string) support.E2EClusterProvider              { return p }
func (p *referenceProvider) WithPath(string) support.E2EClusterProvider                 { return p }
func (p *referenceProvider) WithOpts(...support.ClusterOpts) support.E2EClusterProvider { return p }
func (p *referenceProvider) SetDefaults() support.E2EClusterProvider                    { return p }
func (p *referenceProvider) WaitForControlPlane(context.Context, klient.Client) error   { return nil }
func (p *referenceProvider) ExportLogs(context.Context, string) error                   { return nil }
func (p *referenceProvider) GetKubectlContext() string                                  { return "" }
func (p *referenceProvider) GetKubeconfig() string                                      { return filepath.Join(p.folder, p.name) }
func (p *referenceProvider) GenerateKubeconfig(...string) (string, error) {
	return p.GetKubeconfig(), nil
}
func (p *referenceProvider) CreateWithConfig(ctx context.Context, _ string) (string, error) {
	return p.Create(ctx)
}

func (p *referenceProvider) Create(context.Context, ...string) (_ string, err error) {
	if p.folder, err = os.MkdirTemp("", "conformance-reference-"); err != nil {
		return "", err
	}
	p.server, err = apiserver.New(apiserver.Options{
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}, Address: "127.0.0.1:0", TLS: true, Token: rand.Text(),
	})
	if err != nil {
		return "", err
	}
	if err := p.server.Start(); err != nil {
		return "", err
	}
	return p.GetKubeconfig(), p.server.WriteKubeconfig(p.GetKubeconfig())
}

func (p *referenceProvider) KubernetesRestConfig() *rest.Config {
	config, err := conf.New(p.GetKubeconfig())
	if err != nil {
		panic(err) // the framework has no way for an error
	}
	return config
}

func (p *referenceProvider) Destroy(context.Context) error {
	if p.server == nil {
		return errors.New("there is no cluster")
	}
	p.server.Close()
	return os.RemoveAll(p.folder)
}
