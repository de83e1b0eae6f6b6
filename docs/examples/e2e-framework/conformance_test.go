// Package e2eframework runs checks of conformance inside a test environment of sigs.k8s.io/e2e-framework.
package e2eframework

import (
	"context"
	"log"
	"os"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/e2e-framework/pkg/features"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/service-conformance/conformance/framework/cluster"
	"github.com/service-conformance/conformance/framework/gotest"
	"github.com/service-conformance/conformance/framework/kindcluster"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/runner"

	_ "github.com/service-conformance/conformance/suites/apischema" // the suite to judge with
)

// Every provider of the framework that loads images can make clusters for kindcluster.CreateWith.
var _ kindcluster.Provider = support.E2EClusterProviderWithImageLoader(nil)

var testenv env.Environment

// TestMain takes the cluster of --kubeconfig. Without one it has a provider make a cluster: here the reference, in your tests kind.NewProvider() or another.
func TestMain(m *testing.M) {
	config, err := envconf.NewFromFlags()
	if err != nil {
		log.Fatal(err)
	}
	testenv = env.NewWithConfig(config)
	if config.KubeconfigFile() == "" {
		const name = "conformance"
		testenv.Setup(envfuncs.CreateCluster(&referenceProvider{}, name)).Finish(envfuncs.DestroyCluster(name))
	}
	os.Exit(testenv.Run(m))
}

func TestServices(t *testing.T) {
	ports := features.New("ports of Services").WithLabel("area", "services").
		Assess("are as documented", func(ctx context.Context, t *testing.T, config *envconf.Config) context.Context {
			c, err := cluster.Open(ctx, cluster.Options{Kubeconfig: config.KubeconfigFile()})
			if err != nil {
				t.Fatal(err)
			}
			r := gotest.Run(t, c, gotest.Options{
				Selection: runner.Selection{Focus: []string{"api-ports-*", "api-port-*"}},
				ReportDir: t.TempDir(), // junit_01.xml and report.json
			})
			if r.Verdict != report.InPart || r.Summary.Requirements.Conformant == 0 {
				t.Errorf("the verdict is %q on %d requirements, not that a part is conformant", r.Verdict, r.Summary.Requirements.Conformant)
			}
			return ctx
		}).Feature()
	testenv.Test(t, ports)
}
