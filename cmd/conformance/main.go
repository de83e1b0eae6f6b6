// Command conformance judges an implementation of Kubernetes Services against the compiled specification.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/runner"
	"github.com/service-conformance/conformance/internal/lab/isolation"
	"github.com/service-conformance/conformance/internal/lab/standing"

	_ "github.com/service-conformance/conformance/suites/allocation"
	_ "github.com/service-conformance/conformance/suites/apischema"
	_ "github.com/service-conformance/conformance/suites/proxy"
)

func main() {
	// Libraries log what they return as errors too; a connection that a check breaks is no news to the person who reads the verdicts.
	klog.SetLogger(logr.Discard())
	isolation.GuestMain()
	if runner.IsWorker() {
		os.Exit(runner.Work())
	}
	if err := isolation.Prepare(standing.Stay); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(report.ExitHarness)
	}
	endWithTerminal()
	ctx, i := listen()
	ending = i
	err := newRoot().ExecuteContext(ctx)
	code := report.ExitConformant
	if err != nil {
		code = report.ExitUsage // what cobra refuses is wrong usage
		if e := (*exitError)(nil); errors.As(err, &e) {
			code = e.code
		}
		if text := err.Error(); text != "" {
			fmt.Fprintln(os.Stderr, "conformance:", text)
		}
	}
	os.Exit(code)
}

// endWithTerminal turns SIGHUP, which a closing terminal sends, into SIGTERM. Everything that listens for SIGTERM then
// cleans up, Ginkgo included. nohup has it ignored.
func endWithTerminal() {
	if signal.Ignored(syscall.SIGHUP) {
		return
	}
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGHUP)
	go func() {
		for range gone {
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Signal(syscall.SIGTERM)
			}
		}
	}()
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "conformance",
		Short:         "prove that a Kubernetes Service is implemented as documented",
		Long:          "conformance holds the compiled specification of Kubernetes Services and judges any implementation against it.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArguments,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(newRun(), newCertify(), newReport(), newList(), newExplain(), newServe(), newLab(), newSelftest(), newDifferential(), newVerify(), newVersion(), newAgent(), newImage(), newCleanup())
	root.SetFlagErrorFunc(plainFlagError)
	root.SuggestionsMinimumDistance = 2
	return root
}

// exitError ends the program with a code. An empty error prints nothing.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &exitError{report.ExitUsage, fmt.Errorf(format, args...)}
}

func harness(format string, args ...any) error {
	return &exitError{report.ExitHarness, fmt.Errorf(format, args...)}
}
