// Command conformance-agent is the agent alone: what runs in the pods that checks of traffic start. The program conformance carries it, and does the same as
// `conformance agent`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/service-conformance/conformance/internal/agent"
)

// The codes of conformance for wrong configuration and for a harness that broke.
const (
	exitUsage   = 64
	exitHarness = 70
)

func main() { os.Exit(run()) }

func run() int {
	config, err := agent.ParseConfig(os.Getenv(agent.ConfigVariable))
	if err != nil {
		fmt.Fprintf(os.Stderr, "conformance-agent: environment variable %s: %v\n", agent.ConfigVariable, err)
		return exitUsage
	}
	fmt.Printf("agent of pod %s: %d ports, commanded on port %d\n", config.Pod, len(config.Ports), config.Control)
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) // a pod that is told to terminate goes on answering until it is killed
	if err := agent.Run(context.Background(), config); err != nil {
		fmt.Fprintf(os.Stderr, "conformance-agent: agent of pod %s: %v\n", config.Pod, err)
		return exitHarness
	}
	return 0
}
