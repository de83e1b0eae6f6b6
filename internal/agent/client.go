package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Client commands an agent. Its methods are safe for concurrent use if Do is. An error means that the agent could not be reached or did not
// do what it was told, and says nothing about the candidate.
type Client struct {
	// Do sends a request to the control server of the agent, with the token in TokenHeader, and returns the body of its answer. An answer
	// with another code than 200 is an error; the body that comes with it, if any, says why.
	Do func(ctx context.Context, method, path string, query url.Values, body []byte) ([]byte, error)
}

// Ready switches what the readiness probe of the pod is told.
func (c *Client) Ready(ctx context.Context, ready bool) error {
	return c.command(ctx, PathReady, nil, readiness{&ready}, nil)
}

// Kill closes the backends for good: their ports refuse connections, established ones are reset.
func (c *Client) Kill(ctx context.Context) error { return c.command(ctx, PathKill, nil, nil, nil) }

// Probe sends probes from the pod, concurrently, and returns the outcomes of each, in order; their times are those of the agent's clock.
// Connections that they name stay open until the End of the lease. All of them together may have MaxShots.
func (c *Client) Probe(ctx context.Context, lease string, probes []candidate.Probe) ([][]candidate.Outcome, error) {
	var outcomes [][]candidate.Outcome
	if err := c.command(ctx, PathProbe, url.Values{leaseParameter: {lease}}, probes, &outcomes); err != nil {
		return nil, err
	}
	if len(outcomes) != len(probes) {
		return nil, fmt.Errorf("the agent answers %d probes with %d lists of outcomes", len(probes), len(outcomes))
	}
	for i, p := range probes {
		if shots := max(1, p.Count); len(outcomes[i]) != shots {
			return nil, fmt.Errorf("the agent answers %d shots with %d outcomes", shots, len(outcomes[i]))
		}
	}
	return outcomes, nil
}

// Resolve asks the DNS that the pod uses and returns what it says to each question, in order. domain is that of the
// cluster. If it is empty, it is the one that the pod was told, or "cluster.local".
func (c *Client) Resolve(ctx context.Context, domain string, questions []candidate.Question) ([]candidate.Resolution, error) {
	var said []candidate.Resolution
	if err := c.command(ctx, PathResolve, nil, inquiry{domain, questions}, &said); err != nil {
		return nil, err
	}
	if len(said) != len(questions) {
		return nil, fmt.Errorf("the agent answers %d questions with %d resolutions", len(questions), len(said))
	}
	return said, nil
}

// End closes the connections and backends of a lease.
func (c *Client) End(ctx context.Context, lease string) error {
	return c.command(ctx, PathEnd, url.Values{leaseParameter: {lease}}, nil, nil)
}

// Exit ends the agent, and so the container of the pod, with success.
func (c *Client) Exit(ctx context.Context) error { return c.command(ctx, PathExit, nil, nil, nil) }

func (c *Client) command(ctx context.Context, path string, query url.Values, in, out any) error {
	var body []byte
	var err error
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	answer, err := c.Do(ctx, http.MethodPost, path, query, body)
	name := strings.TrimPrefix(path, "/")
	if err != nil {
		var why failure
		if json.Unmarshal(answer, &why) == nil && why.Error != "" {
			return fmt.Errorf("the agent refuses to %s: %s (%w)", name, why.Error, err)
		}
		return fmt.Errorf("tell the agent to %s: %w", name, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("what the agent answers to %s is not its JSON: %w", name, err)
	}
	return nil
}
