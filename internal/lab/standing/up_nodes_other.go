//go:build !linux

package standing

import (
	"context"
	"errors"
	"os"

	"github.com/service-conformance/conformance/internal/lab/dataplane"
)

// Stay is not called: nothing starts such a process here.
func Stay(error) (code int) { return 1 }

// startStaying is not called where NodesWork fails.
func startStaying(context.Context, state, UpOptions) (*Running, error) {
	return nil, errors.ErrUnsupported
}

// Shell fails: there are no namespaces to open a shell in.
func Shell(ShellOptions) (code int, err error) {
	return 0, dataplane.NodesWork(dataplane.ProxyOptions{})
}

// Enter fails: there are no namespaces to enter.
func Enter(string, string, <-chan os.Signal) (code int, err error) {
	return 0, dataplane.NodesWork(dataplane.ProxyOptions{})
}

// Attach fails as Enter does.
func Attach(context.Context) (*Attached, error) {
	return nil, dataplane.NodesWork(dataplane.ProxyOptions{})
}

// Close implements candidate.Candidate.
func (a *Attached) Close(context.Context) error { return a.session.Close() }

// RestartProxy fails: there are no nodes.
func RestartProxy(context.Context, string, string, string) error {
	return dataplane.NodesWork(dataplane.ProxyOptions{})
}
