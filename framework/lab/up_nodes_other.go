//go:build !linux

package lab

import (
	"context"
	"errors"
	"os"
)

// startStaying is not called where NodesWork fails.
func startStaying(context.Context, state, UpOptions) (*Running, error) {
	return nil, errors.ErrUnsupported
}

// endMarked does nothing: without nodes there are no shells, and what others leave is not looked for here.
func endMarked(string) error { return nil }

// Shell fails: there are no namespaces to open a shell in.
func Shell(ShellOptions) (code int, err error) { return 0, NodesWork(ProxyOptions{}) }

// Entered returns false: nobody can enter a lab here.
func Entered() bool { return false }

// Enter fails: there are no namespaces to enter.
func Enter(string, string, <-chan os.Signal) (code int, err error) {
	return 0, NodesWork(ProxyOptions{})
}

// Attach fails as Enter does.
func Attach(context.Context) (*Attached, error) { return nil, NodesWork(ProxyOptions{}) }

// Close implements candidate.Candidate.
func (a *Attached) Close(context.Context) error { return a.session.Close() }

// RestartProxy fails: there are no nodes.
func RestartProxy(context.Context, string, string, string) error { return NodesWork(ProxyOptions{}) }
