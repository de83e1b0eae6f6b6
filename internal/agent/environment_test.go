//go:build linux

package agent

import (
	"slices"
	"strings"
	"testing"
)

func TestEnvironmentIsToldWithoutTheConfiguration(t *testing.T) {
	r := run(t, Config{})
	t.Setenv(ConfigVariable, `{"tokenDigest":"`+TokenDigest(secret)+`"}`)
	t.Setenv("WEB_SERVICE_HOST", "10.96.0.7")
	t.Setenv("A_SERVICE_TEXT", "two\nlines, a=b")
	told, err := r.client.Environment(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(told) || !slices.Contains(told, "WEB_SERVICE_HOST=10.96.0.7") || !slices.Contains(told, "A_SERVICE_TEXT=two\nlines, a=b") {
		t.Errorf("told %q", told)
	}
	if strings.Contains(strings.Join(told, "\n"), ConfigVariable) {
		t.Error("the configuration of the agent is told")
	}
}
