package candidate

import (
	"strings"
	"testing"
)

// TestChangesOfKubeProxyAreThoseThatAUserMayMake demands one clear line for a file that changes nothing, or what the tier decides.
func TestChangesOfKubeProxyAreThoseThatAUserMayMake(t *testing.T) {
	const head = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"
	for text, want := range map[string]string{
		"":                                      "it changes nothing",
		head:                                    "it changes nothing",
		"- mode":                                "it is not YAML",
		"kind: Service\nspec: {}":               "kind is Service, not KubeProxyConfiguration",
		head + "mode: ipvs":                     "mode is what --proxy-mode says",
		"clusterCIDR: 10.0.0.0/8\nipvs: {a: b}": "clusterCIDR is what the nodes of the run decide",
	} {
		if _, err := KubeProxyChanges(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	changes, err := KubeProxyChanges(head + "nodePortAddresses: [primary]")
	if err != nil || len(changes) != 1 {
		t.Errorf("a file with a head: %v, %v", changes, err)
	}
}
