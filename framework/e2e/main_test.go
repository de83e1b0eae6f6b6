package e2e_test

import (
	"fmt"
	"os"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"

	"github.com/service-conformance/conformance/framework/e2e"
	"github.com/service-conformance/conformance/framework/kindcluster"
	"github.com/service-conformance/conformance/internal/leaktest"
)

// asUser names a kubeconfig in the environment of a process that is a user's test binary.
const asUser = "CONFORMANCE_TEST_AS_USER"

// testenv is the Environment of such a process, and nil in another one.
var testenv env.Environment

func TestMain(m *testing.M) {
	kubeconfig := os.Getenv(asUser)
	if kubeconfig == "" {
		os.Exit(leaktest.Run(m))
	}
	var err error
	if testenv, err = env.NewFromFlags(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	provider := e2e.NewCommand(kindcluster.Command{Create: "cat " + kubeconfig, Teardown: "echo {name} >>" + kubeconfig + ".gone"})
	testenv.Setup(envfuncs.CreateCluster(provider, "users")).Finish(envfuncs.DestroyCluster("users"))
	os.Exit(testenv.Run(m))
}
