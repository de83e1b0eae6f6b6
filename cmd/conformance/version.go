package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version of the suite, and the digest of its catalogue of requirements",
		Args:  noArguments,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "conformance %s %s %s/%s\n", check.BuildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			fmt.Fprintf(cmd.OutOrStdout(), "catalogue %s\n", spec.Digest())
		},
	}
}
