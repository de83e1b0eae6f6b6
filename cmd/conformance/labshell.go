package main

import (
	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/internal/lab/standing"
)

func newLabShell() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "shell NODE|POD|NAMESPACE/POD|outside [-- COMMAND ARG…]",
		Short: "open a shell on a node or in a pod of the lab that is up",
		Long: `Open $SHELL, or run a command, in the network namespace of a node or a pod of the lab that is up.
"outside" is a client outside of the cluster whose gateway is the first node. Programs and files are those of this machine.
An ordinary user is root there, so that iptables, nft and ip work.
KUBECONFIG works on the nodes. The exit code is that of the command.`,
		Example: `  conformance lab shell node-1
  conformance lab shell node-2 -- nft list ruleset
  conformance lab shell web-5d9c7f7d8-x2x4l -- curl -s http://10.96.0.17`,
		Args: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			if dash < 0 {
				dash = len(args)
			}
			if dash != 1 {
				return usage("name one node or pod, and a command, if any, after --")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			ending.leave() // what runs in the shell gets them
			code, err := standing.Shell(standing.ShellOptions{Place: args[0], Command: args[1:], Name: name})
			if err != nil {
				return usage("%w", err)
			}
			if code != 0 {
				return &exitError{code: code}
			}
			return nil
		},
	}
	registerLabName(cmd, &name)
	return cmd
}
