package cluster

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/service-conformance/conformance/framework/candidate"
)

// inClusterConfig is where a pod finds its service account; tests put another one in its place.
var inClusterConfig = rest.InClusterConfig

// loadServiceAccount takes the service account of the pod that this program runs in.
func loadServiceAccount() (*rest.Config, error) {
	config, err := inClusterConfig()
	if err == nil {
		err = rest.LoadTLSFiles(config)
	}
	if err != nil {
		return nil, fmt.Errorf("service account of this pod: %w; mount its token (automountServiceAccountToken), or name a kubeconfig with --kubeconfig", err)
	}
	return config, nil
}

// accessOf tells checks how to reach the API. The path of a kubeconfig is absolute, because workers run in another folder. The token of a service account is
// read anew from its file, because it is replaced while they run.
func accessOf(kubeconfig string, config *rest.Config) (candidate.Access, error) {
	a := candidate.Access{URL: config.Host}
	if kubeconfig == "" {
		a.CA, a.Token, a.TokenFile = config.CAData, config.BearerToken, config.BearerTokenFile
		return a, nil
	}
	var err error
	if a.Kubeconfig, err = filepath.Abs(kubeconfig); err != nil {
		return a, fmt.Errorf("kubeconfig %s: %w; name it by its absolute path", kubeconfig, err)
	}
	return a, nil
}

// source names where a configuration is from, for errors.
func source(kubeconfig string) string {
	if kubeconfig == "" {
		return "service account of this pod"
	}
	return "kubeconfig " + kubeconfig
}
