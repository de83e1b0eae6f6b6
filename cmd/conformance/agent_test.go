//go:build unix

package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/internal/agent"
)

func TestAgentWithoutItsConfiguration(t *testing.T) {
	for value, want := range map[string]string{"": "is not set", "{": "malformed JSON", "{}": "tokenDigest: the SHA-256 of a token is needed"} {
		t.Setenv(agent.ConfigVariable, value)
		_, stderr, code := conformance(t, t.TempDir(), "agent")
		if code != report.ExitUsage || !strings.Contains(stderr, agent.ConfigVariable) || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d and %q, want 64 and %q", value, code, stderr, want)
		}
	}
}

func TestAgentOutlivesTerminationUntilItIsToldToExit(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().(*net.TCPAddr)
	free.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "agent")
	config := fmt.Sprintf(`{"tokenDigest":%q,"pod":{"namespace":"ns","name":"web"},"control":%d}`, agent.TokenDigest("secret"), address.Port)
	cmd.Env = append(os.Environ(), asProgram+"=1", agent.ConfigVariable+"="+config)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ask := func(method, path string) (code int, err error) {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+address.String()+path, nil)
		if err != nil {
			return 0, err
		}
		request.Header.Set(agent.TokenHeader, "secret")
		request.Close = true // every request has a connection of its own
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	for {
		if code, err := ask(http.MethodGet, agent.PathReadyz); err == nil && code == http.StatusOK {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("%v: %s", err, output.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	for range 20 {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code, err := ask(http.MethodGet, agent.PathReadyz); err != nil || code != http.StatusOK {
			t.Fatalf("after SIGTERM: %d, %v", code, err)
		}
	}
	if code, err := ask(http.MethodPost, agent.PathExit); err != nil || code != http.StatusOK {
		t.Errorf("exit: %d, %v", code, err)
	}
	if err := <-ended; err != nil {
		t.Errorf("%v: %s", err, output.String())
	}
	if !strings.Contains(output.String(), "agent of pod ns/web") || strings.Contains(output.String(), "interrupted") { // it would end after a while
		t.Errorf("the log of the pod is %q", output.String())
	}
}
