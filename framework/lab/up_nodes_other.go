//go:build !linux

package lab

import (
	"context"
	"errors"
	"runtime"
)

// startStaying is not called where NodesWork fails.
func startStaying(context.Context, state, UpOptions) (*Running, error) {
	return nil, errors.ErrUnsupported
}

// endMarked does nothing: without nodes there are no shells, and what others leave is not looked for here.
func endMarked(string) error { return nil }

// Shell fails: there are no namespaces to open a shell in.
func Shell(ShellOptions) (code int, err error) { return 0, NodesWork(ProxyOptions{}) }
