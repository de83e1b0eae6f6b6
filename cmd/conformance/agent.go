package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/internal/agent"
)

func newAgent() *cobra.Command {
	return &cobra.Command{
		Use:    "agent",
		Short:  "answer and send traffic in a pod that a run has started",
		Args:   noArguments,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := agent.ParseConfig(os.Getenv(agent.ConfigVariable))
			if err != nil {
				return usage("environment variable %s: %w", agent.ConfigVariable, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "agent of pod %s: %d ports, commanded on port %d\n", config.Pod, len(config.Ports), config.Control)
			ending.leave() // a pod that is told to terminate goes on answering until it is killed
			if err := agent.Run(context.WithoutCancel(cmd.Context()), config); err != nil {
				return harness("agent of pod %s: %w", config.Pod, err)
			}
			return nil
		},
	}
}
