package apiclient_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/service-conformance/conformance/framework/candidate/apiclient"
	"github.com/service-conformance/conformance/framework/candidate/apiclient/fromclientset"
)

// recorder is a server that refuses everything, and notes what it was asked.
type recorder struct{ asked []string }

func (r *recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	r.asked = append(r.asked, strings.Join([]string{q.Method, q.URL.String(), q.Header.Get("Accept"), q.Header.Get("User-Agent")}, " "))
	return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: q}, nil
}

// TestRequestsAreThoseOfTheClientset demands that every client asks as that of all groups does.
func TestRequestsAreThoseOfTheClientset(t *testing.T) {
	var own, other recorder
	client, err := apiclient.New(&rest.Config{Host: "http://server", Transport: &own, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	clientset, err := kubernetes.NewForConfig(&rest.Config{Host: "http://server", Transport: &other, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	askForAll(t.Context(), client)
	askForAll(t.Context(), fromclientset.Of(clientset))
	if len(own.asked) != 22 || !slices.Equal(own.asked, other.asked) {
		t.Errorf("asked\n%s\nnot\n%s", strings.Join(own.asked, "\n"), strings.Join(other.asked, "\n"))
	}
}

// askForAll asks for an object and for all objects of each kind. The server refuses.
func askForAll(ctx context.Context, c apiclient.Interface) {
	const ns = "shop"
	ask(ctx, c.AppsV1().DaemonSets(ns))
	ask(ctx, c.AppsV1().Deployments(ns))
	ask(ctx, c.CoreV1().ConfigMaps(ns))
	ask(ctx, c.CoreV1().Endpoints(ns))
	ask(ctx, c.CoreV1().Namespaces())
	ask(ctx, c.CoreV1().Nodes())
	ask(ctx, c.CoreV1().Pods(ns))
	ask(ctx, c.CoreV1().Services(ns))
	ask(ctx, c.DiscoveryV1().EndpointSlices(ns))
	ask(ctx, c.NetworkingV1().IPAddresses())
	ask(ctx, c.NetworkingV1().ServiceCIDRs())
}

func ask[T, L any](ctx context.Context, client apiclient.Objects[T, L]) {
	_, _ = client.Get(ctx, "web", metav1.GetOptions{})
	_, _ = client.List(ctx, metav1.ListOptions{LabelSelector: "a=b", Limit: 5})
}
