package programs

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// reportedVersion asks a Kubernetes program for its version, for example "v1.37.1".
func reportedVersion(ctx context.Context, path string, args ...string) (string, error) {
	out, err := firstLine(ctx, path, append(args, "--version")...)
	if err != nil {
		return "", err
	}
	v, ok := strings.CutPrefix(out, "Kubernetes ")
	if !ok {
		return "", fmt.Errorf("%s --version printed %q instead of a Kubernetes version", path, out)
	}
	return v, nil
}

// etcdSays asks an etcd for its version, for example "v3.7.0".
func etcdSays(ctx context.Context, path string) (string, error) {
	out, err := firstLine(ctx, path, "--version")
	if err != nil {
		return "", err
	}
	number, ok := strings.CutPrefix(out, "etcd Version: ")
	if !ok {
		return "", fmt.Errorf("%s --version printed %q instead of an etcd version", path, out)
	}
	return "v" + number, nil
}

// versionTimeout bounds a program that is asked for its version: a machine under load may take long to read it from disk.
const versionTimeout = time.Minute

// firstLine runs a program for at most versionTimeout and returns the first line that it prints.
func firstLine(ctx context.Context, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, versionTimeout, fmt.Errorf("no answer in %s", versionTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		return "", fmt.Errorf("run %s %s: %w", path, strings.Join(args, " "), err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line), nil
}
