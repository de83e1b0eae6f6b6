package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/agent"
)

// Outside is where the clients outside of the cluster are: an agent (agent.Config with Outside) on another machine. The
// routes of that machine lead what its clients send to their gateway nodes, the addresses of
// candidate.ExternalAddresses included.
type Outside struct {
	// URL is that of the agent's control server, as this program reaches it.
	URL string `json:"url"`
	// Token is what commands the agent, whose configuration has its digest (agent.TokenDigest).
	Token string `json:"token"`
	// Gateways are the nodes that clients have as their gateway.
	Gateways []string `json:"gateways"`
	// Failed says why there is no such agent although one was to be started. What needs it is then unknown, whatever
	// the cluster offers.
	Failed string `json:"failed,omitempty"`
}

// ReadOutside reads a file in YAML or JSON.
func ReadOutside(file string) (*Outside, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the file of the agent outside of the cluster: %w", err)
	}
	var o Outside
	if err := yaml.UnmarshalStrict(data, &o); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if o.Failed != "" {
		return &o, nil
	}
	if u, err := url.Parse(o.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s: url %q is not that of an agent, such as http://192.0.2.1:9599", file, o.URL)
	}
	if o.Token == "" || len(o.Gateways) == 0 {
		return nil, fmt.Errorf("%s: the token of the agent and the nodes that are gateways are needed", file)
	}
	return &o, nil
}

// withoutOutside tells why there is no client with this node as its gateway; nil if there is. It is an UnavailableError where none was to be there.
func (c *Cluster) withoutOutside(gateway string) error {
	switch o := c.options.Outside; {
	case c.withoutAgentOutside() != nil:
		return c.withoutAgentOutside()
	case !slices.Contains(o.Gateways, gateway):
		return candidate.UnavailableHere("--outside", "the client outside of the cluster has the gateways %s, and not %s", strings.Join(o.Gateways, ", "), gateway)
	}
	return nil
}

// withoutAgentOutside tells why there is no agent outside of the cluster; nil if there is one.
func (c *Cluster) withoutAgentOutside() error {
	switch o := c.options.Outside; {
	case o == nil:
		return candidate.UnavailableHere("--outside", "there is no client outside of the cluster: start an agent there")
	case o.Failed != "":
		return fmt.Errorf("no client outside of the cluster could be started: %s", o.Failed)
	}
	return nil
}

// agent returns the client of the agent.
func (o *Outside) agent() *agent.Client {
	return &agent.Client{Do: func(ctx context.Context, method, path string, query url.Values, body []byte) ([]byte, error) {
		request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(o.URL, "/")+path+"?"+query.Encode(), bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		request.Header.Set(agent.TokenHeader, o.Token)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return nil, fmt.Errorf("agent outside of the cluster: %w", err)
		}
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		if err == nil && response.StatusCode != http.StatusOK {
			err = errors.New(response.Status)
		}
		return answer, err
	}}
}
