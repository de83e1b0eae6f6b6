package check

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/service-conformance/conformance/framework/candidate"
)

// transports keeps connections open between checks that use the same control plane, keyed by its URL.
var transports sync.Map

// connectionsPerServer is how many idle connections are kept to a server: as many as a check has requests under way.
const connectionsPerServer = 64

// restConfig returns a configuration whose transport is shared by all checks on the same control plane.
func restConfig(a candidate.Access) (*rest.Config, error) {
	if a.Kubeconfig != "" {
		return clientcmd.BuildConfigFromFlags("", a.Kubeconfig)
	}
	config := &rest.Config{Host: a.URL, BearerToken: a.Token, BearerTokenFile: a.TokenFile}
	if a.Direct != nil {
		config.Transport = a.Direct
		return config, nil
	}
	if t, ok := transports.Load(a.URL); ok {
		config.Transport = t.(*http.Transport)
		return config, nil
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil // control planes are on this machine; others come with a kubeconfig
	t.MaxIdleConnsPerHost = connectionsPerServer
	t.IdleConnTimeout = 0 // a handshake with a server that is busy costs more than a connection that is kept
	t.TLSHandshakeTimeout = patiently(t.TLSHandshakeTimeout)
	t.TLSClientConfig = &tls.Config{InsecureSkipVerify: a.Insecure, MinVersion: tls.VersionTLS12} //nolint:gosec // the kubeconfig of the user says so
	if len(a.CA) > 0 {
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(a.CA) {
			return nil, errors.New("the control plane's CA bundle holds no certificate")
		}
	}
	shared, _ := transports.LoadOrStore(a.URL, t)
	config.Transport = shared.(*http.Transport)
	return config, nil
}

// disconnect closes the idle connections to a control plane that is restarted or given back for good.
func disconnect(a candidate.Access) {
	if t, ok := transports.LoadAndDelete(a.URL); ok {
		t.(*http.Transport).CloseIdleConnections()
	}
}
