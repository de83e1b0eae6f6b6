package e2e_test

import (
	"log"
	"os"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"

	"github.com/service-conformance/conformance/framework/e2e"
	"github.com/service-conformance/conformance/framework/kindcluster"
)

// The test file of a user, which also imports the suites that are to judge: _ "github.com/service-conformance/conformance/suites/apischema". Without --kubeconfig it makes
// a cluster of kind.
func Example() {
	var testenv env.Environment

	_ = func(m *testing.M) { // TestMain
		config, err := envconf.NewFromFlags()
		if err != nil {
			log.Fatal(err)
		}
		testenv = env.NewWithConfig(config)
		if config.KubeconfigFile() == "" {
			testenv.Setup(envfuncs.CreateCluster(e2e.NewKind(kindcluster.Options{Workers: 2}), "services"))
			testenv.Finish(envfuncs.DestroyCluster("services"))
		}
		os.Exit(testenv.Run(m))
	}

	_ = func(t *testing.T) { // TestServices
		testenv.Test(t, e2e.Features(t, e2e.Options{})...)
	}
}
