// Package manifest writes objects as a person makes them, and makes them on API servers that this program has started.
package manifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Family is the name of IP family 4 or 6.
func Family(family int) corev1.IPFamily {
	if family == 4 {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

// Refusal is the code with which a server refuses a request; 0 if it does not, and the error is one of the environment.
func Refusal(err error) int32 {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Code < http.StatusBadRequest || status.Status().Code >= http.StatusInternalServerError {
		return 0
	}
	return status.Status().Code
}

// PutSlice creates an EndpointSlice, or has it take the place of the one that is stored, unless that is nil.
func PutSlice(ctx context.Context, api apiclient.Interface, stored, slice *discoveryv1.EndpointSlice) (*discoveryv1.EndpointSlice, error) {
	all := api.DiscoveryV1().EndpointSlices(slice.Namespace)
	if stored == nil {
		return all.Create(ctx, slice, metav1.CreateOptions{})
	}
	slice.ResourceVersion = stored.ResourceVersion
	return all.Update(ctx, slice, metav1.UpdateOptions{})
}
