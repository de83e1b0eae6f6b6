package apiservers

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Client speaks to one API server with full rights. It knows just enough of the API for what a tier needs itself.
type Client struct {
	Access candidate.Access
	http   *http.Client
}

// NewClient makes a client of an API server, by a token or a kubeconfig. It is to be closed.
func NewClient(a candidate.Access) (*Client, error) {
	if a.Kubeconfig != "" {
		return clientOf(a)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(a.CA) {
		return nil, errors.New("no certificate in the authority of the server")
	}
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 8,
	}
	// A request to a server that hangs must end some time; the slowest here lists a full range.
	return &Client{Access: a, http: &http.Client{Transport: transport, Timeout: time.Minute}}, nil
}

// clientOf is NewClient by a kubeconfig.
func clientOf(a candidate.Access) (*Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", a.Kubeconfig)
	if err != nil {
		return nil, err
	}
	a.URL, config.Timeout = config.Host, time.Minute
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	return &Client{Access: a, http: &http.Client{Transport: transport, Timeout: time.Minute}}, nil
}

// Close ends the connections of the client.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// statusError is an answer other than success.
type statusError struct {
	code   int
	method string
	path   string
	body   string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s %s: %d: %s", e.method, e.path, e.code, e.body)
}

// notFound reports whether an object, or a whole kind of objects, does not exist.
func notFound(err error) bool {
	var s *statusError
	return errors.As(err, &s) && s.code == http.StatusNotFound
}

// Call sends a request and decodes the answer into result unless that is nil.
func (c *Client) Call(ctx context.Context, method, path, contentType string, body []byte, result any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.Access.URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if c.Access.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Access.Token)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "conformance")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return &statusError{res.StatusCode, method, path, string(b[:min(len(b), 300)])}
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(b, result); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// Get reads the object at a path into result unless that is nil.
func (c *Client) Get(ctx context.Context, path string, result any) error {
	return c.Call(ctx, http.MethodGet, path, "", nil, result)
}

// object is what a tier reads of Services, ServiceCIDRs and IPAddresses.
type object struct {
	Metadata struct {
		Name       string   `json:"name"`
		Namespace  string   `json:"namespace"`
		Finalizers []string `json:"finalizers"`
	} `json:"metadata"`
	Spec struct {
		ClusterIPs []string `json:"clusterIPs"`
	} `json:"spec"`
	Status struct {
		Conditions []struct{ Type, Status string } `json:"conditions"`
	} `json:"status"`
}
