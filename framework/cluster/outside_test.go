package cluster

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/agent"
)

func TestReadOutsideSaysWhatIsMissing(t *testing.T) {
	for text, want := range map[string]string{
		"{":                               "converting YAML",
		"url: x\ntokens: a":               "unknown field",
		"token: a\ngateways: [n]":         `url "" is not that of an agent`,
		"url: ftp://h\ntoken: a":          `url "ftp://h" is not that of an agent`,
		"url: http://h:1\ngateways: [n]":  "the token of the agent and the nodes that are gateways are needed",
		"url: http://h:1\ntoken: a":       "the token of the agent and the nodes that are gateways are needed",
		`{"url":"http://h:1","token":"a"`: "converting YAML",
	} {
		file := filepath.Join(t.TempDir(), "outside.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadOutside(file); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestSendFromOutsideGoesToItsAgent demands that the probes of a client outside of the cluster reach the agent there,
// with its token and the lease. So does the end of the lease.
func TestSendFromOutsideGoesToItsAgent(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(agent.TokenHeader) != "secret" {
			http.Error(w, "token", http.StatusUnauthorized)
			return
		}
		asked = append(asked, r.URL.RequestURI())
		if r.URL.Path == agent.PathProbe {
			_ = json.NewEncoder(w).Encode([][]candidate.Outcome{{{Result: candidate.Refused}}})
			return
		}
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	c := &Cluster{runID: "run", cidrs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/24")}, nodes: make([]candidate.Node, nodesNeeded)}
	c.options = Options{AgentImage: "agent:1", Outside: &Outside{URL: server.URL, Token: "secret", Gateways: []string{"node-1"}}}
	d, err := c.DataPlane(t.Context(), candidate.DataPlaneRequest{})
	if err != nil {
		t.Fatal(err)
	}
	probe := candidate.Probe{From: candidate.Client{Gateway: "node-1"}, To: netip.MustParseAddrPort("198.51.100.1:80"), Protocol: corev1.ProtocolTCP}
	outcomes, err := d.Send(t.Context(), []candidate.Probe{probe})
	if err != nil || outcomes[0][0].Result != candidate.Refused {
		t.Errorf("outcomes %v, error %v", outcomes, err)
	}
	if n := len(d.ExternalAddresses()); n < 8 {
		t.Errorf("%d external addresses, and the contract promises four of each family", n)
	}
	probe.From.Gateway = "node-2"
	if _, err := d.Send(t.Context(), []candidate.Probe{probe}); !candidate.IsUnavailable(err) {
		t.Errorf("a gateway that the client does not have: %v", err)
	}
	d.Release()
	if want := agent.PathProbe + "?lease=run-1 " + agent.PathEnd + "?lease=run-1"; strings.Join(asked, " ") != want {
		t.Errorf("asked %s, want %s", asked, want)
	}
}
