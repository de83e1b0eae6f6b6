package standing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/service-conformance/conformance/framework/candidate/remote"
	"github.com/service-conformance/conformance/internal/lab/isolation"
	"github.com/service-conformance/conformance/internal/lab/process"
)

// Enter runs this program anew, with the same arguments, in the network of the lab that is up under a name. It returns
// the exit code. That process dies with this one, and with the lab. Signals that come are passed on to it. dir and name
// are those of UpOptions.
func Enter(dir, name string, signals <-chan os.Signal) (code int, err error) {
	r, err := attachable(dir, name)
	if err != nil {
		return 0, err
	}
	namespaces, err := r.Network.Namespaces(r.Servers[0].PID)
	if err != nil {
		return 0, err
	}
	defer func() {
		for _, f := range namespaces {
			f.Close()
		}
	}()
	env := append(os.Environ(), isolation.AttachedVariable+"="+r.Dir, process.LabVariable+"="+r.Dir)
	var child *os.Process
	if err := process.OnSpawner(func() (err error) { // of which the child is told that it has ended, see dieWithParent
		child, err = startInside(namespaces, "/proc/self/exe", os.Args, env)
		return err
	}); err != nil {
		return 0, fmt.Errorf("enter the lab %q: %w", r.Name, err)
	}
	isolation.Started.Store(child)
	defer isolation.Started.Store(nil)
	ended := make(chan struct{})
	defer close(ended)
	go isolation.PassSignals(signals, child, ended)
	state, err := child.Wait()
	if err != nil {
		return 0, err
	}
	if status := state.Sys().(syscall.WaitStatus); status.Signaled() {
		if !r.alive() {
			return 0, fmt.Errorf("the lab %q has ended while it was judged", r.Name)
		}
		return 0, fmt.Errorf("the process in the lab %q ended: signal: %s", r.Name, status.Signal())
	}
	return state.ExitCode(), nil
}

// Attach makes a candidate of the lab that this process has entered, see Enter.
func Attach(ctx context.Context) (*Attached, error) {
	dir := os.Getenv(isolation.AttachedVariable)
	body, err := callControl(context.WithoutCancel(ctx), dir, sessionsPath, nil) // the session lasts until Close
	if err != nil {
		return nil, err
	}
	events := json.NewDecoder(body)
	var first sessionEvent
	err = events.Decode(&first)
	if err == nil && first.Error != "" {
		err = errors.New(first.Error)
	}
	a := &Attached{dir: dir, session: body}
	if err == nil {
		a.Client, err = remote.Dial(first.URL)
	}
	if err != nil {
		body.Close()
		return nil, fmt.Errorf("attach to the lab: %w", err)
	}
	go a.listen(events)
	return a, nil
}

// Close implements candidate.Candidate: the lab goes on.
func (a *Attached) Close(context.Context) error { return a.session.Close() }

// RestartProxy ends the proxy of a node of the lab that is up under a name. It starts the proxy anew as it was
// configured, and waits until it serves. Its rules stay meanwhile. dir and name are those of UpOptions.
func RestartProxy(ctx context.Context, dir, name, node string) error {
	r, err := Status(dir, name)
	switch {
	case err != nil:
		return err
	case r == nil:
		return NotUp(dir, name)
	case len(r.Nodes) == 0:
		return fmt.Errorf("the lab %q has no nodes: %s", r.Name, r.WithoutNodes)
	}
	var names []string
	for _, n := range r.Nodes {
		if n.Name == node {
			return tellControl(ctx, r.Dir, restartProxyPath, url.Values{"node": {node}})
		}
		names = append(names, n.Name)
	}
	return fmt.Errorf("the lab %q has no node %q; there are %s", r.Name, node, strings.Join(names, ", "))
}

// tellControl tells a lab what to do and waits until it is done.
func tellControl(ctx context.Context, dir, path string, parameters url.Values) error {
	body, err := callControl(ctx, dir, path, parameters)
	if err != nil {
		return err
	}
	defer body.Close()
	said, err := io.ReadAll(body)
	if err == nil && len(said) > 0 {
		err = errors.New(string(said))
	}
	return err
}

// callControl sends a request to the control socket of a lab.
func callControl(ctx context.Context, dir, path string, parameters url.Values) (io.ReadCloser, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(dir, controlSocket))
	}}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://lab"+path+"?"+parameters.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, fmt.Errorf("the lab does not answer: %w", errors.Unwrap(err))
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("the lab answers %s: it was started by another version of this program, take it down and start it again", response.Status)
	}
	return response.Body, nil
}
