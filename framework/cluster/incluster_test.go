package cluster

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// inPod lets a test run as if in a pod whose service account leads to a server.
func inPod(t *testing.T, config *rest.Config, err error) {
	t.Helper()
	real := inClusterConfig
	inClusterConfig = func() (*rest.Config, error) { return config, err }
	t.Cleanup(func() { inClusterConfig = real })
}

func TestWithoutAKubeconfigTheServiceAccountIsUsed(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer of today":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/version":
			_, _ = w.Write([]byte(`{"gitVersion":"v1.31.0"}`))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	ca, token := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for path, data := range map[string][]byte{ca: certificate, token: []byte("of today")} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	inPod(t, &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAFile: ca}, BearerToken: "of yesterday", BearerTokenFile: token}, nil)
	c, err := Open(t.Context(), Options{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}})
	if err != nil {
		t.Fatal(err)
	}
	a := c.access
	if a.Kubeconfig != "" || a.URL != server.URL || !strings.Contains(string(a.CA), "CERTIFICATE") || a.Token == "" || a.TokenFile != token {
		t.Errorf("checks are told to reach the API by %+v", a)
	}
}

func TestAPodWithoutATokenIsToldWhatToDo(t *testing.T) {
	inPod(t, nil, errors.New("no token"))
	if _, err := Open(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "automountServiceAccountToken") {
		t.Errorf("got %v", err)
	}
}

func TestErrorsNameTheServiceAccount(t *testing.T) {
	inPod(t, &rest.Config{Host: "http://127.0.0.1:1"}, nil)
	if _, err := Open(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "at http://127.0.0.1:1 (service account of this pod)") {
		t.Errorf("got %v", err)
	}
}
