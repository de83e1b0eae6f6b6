package controlplane

import (
	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Kubeconfig makes a kubeconfig that reaches an API server. It needs no other file.
func Kubeconfig(a candidate.Access) ([]byte, error) {
	const name = "conformance-lab"
	type named map[string]any
	return yaml.Marshal(map[string]any{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": name,
		"clusters":        []named{{"name": name, "cluster": named{"server": a.URL, "certificate-authority-data": a.CA}}},
		"users":           []named{{"name": name, "user": named{"token": a.Token}}},
		"contexts":        []named{{"name": name, "context": named{"cluster": name, "user": name}}},
	})
}
