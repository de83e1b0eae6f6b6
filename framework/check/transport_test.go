package check

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/service-conformance/conformance/framework/candidate"
)

// The token of a service account is replaced while a run lasts: what counts is the file.
func TestRequestsCarryTheTokenOfTheFile(t *testing.T) {
	var carried string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { carried = r.Header.Get("Authorization") }))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("of today"), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := restConfig(candidate.Access{URL: server.URL, Token: "of yesterday", TokenFile: file})
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if carried != "Bearer of today" {
		t.Errorf("the request carried %q", carried)
	}
}
