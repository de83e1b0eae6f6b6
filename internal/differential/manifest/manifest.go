// Package manifest writes objects as a person makes them, and makes clients of API servers that this program has started.
package manifest

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient"
)

// Apply is the command that makes Services and EndpointSlices, without their status.
func Apply(objects ...any) (string, error) {
	var texts []string
	for _, object := range objects {
		data, err := json.Marshal(object)
		if err != nil {
			return "", err
		}
		var fields map[string]any
		if err := json.Unmarshal(data, &fields); err != nil {
			return "", err
		}
		delete(fields, "status")
		switch object.(type) {
		case *corev1.Service:
			fields["apiVersion"], fields["kind"] = "v1", "Service"
		case *discoveryv1.EndpointSlice:
			fields["apiVersion"], fields["kind"] = "discovery.k8s.io/v1", "EndpointSlice"
		default:
			return "", fmt.Errorf("a manifest of %T", object)
		}
		text, err := yaml.Marshal(fields)
		if err != nil {
			return "", err
		}
		texts = append(texts, string(text))
	}
	return fmt.Sprintf("kubectl apply -f - <<EOF\n%sEOF\n", strings.Join(texts, "---\n")), nil
}

// ClientOf makes a client of an API server that this program has started.
func ClientOf(a candidate.Access) (apiclient.Interface, error) {
	config := &rest.Config{Host: a.URL, BearerToken: a.Token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: a.CA}, WarningHandler: rest.NoWarnings{}}
	if a.Direct != nil {
		config.Transport, config.TLSClientConfig = a.Direct, rest.TLSClientConfig{}
	}
	return apiclient.New(config)
}
