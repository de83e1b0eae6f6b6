package runner

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/candidate/remote"
	"github.com/service-conformance/conformance/framework/check"
)

// workerVariable tells a process that it is a worker, and where its candidate is.
const workerVariable = "CONFORMANCE_WORKER"

// IsWorker reports whether this process was started as a parallel worker.
func IsWorker() bool { return os.Getenv(workerVariable) != "" }

// Work runs this worker's share of the checks and returns its exit code. The flags are Ginkgo's.
func Work() int {
	if flag.Lookup("test.timeout") == nil { // a test binary has it
		flag.Duration("test.timeout", 0, "given by Ginkgo, without effect")
	}
	flag.Parse()
	silence()
	if err := leaveGroup(); err != nil {
		fmt.Fprintln(os.Stderr, "worker: leave the process group:", err)
	}
	client, err := remote.Dial(os.Getenv(workerVariable))
	var s settings
	if err == nil {
		err = client.Settings(&s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 70
	}
	ctx, end := context.WithCancel(context.Background())
	defer end()
	go func() {
		gone := client.Interrupted()
		if gone != nil && !s.Outlives {
			os.Exit(1) // the candidate goes with the parent: there is nothing to clean up
		}
		end()
		time.Sleep(workerEndsWithin)
		os.Exit(1)
	}()
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.Timeout = 0
	sink := func(e check.Event) {
		if err := client.Post(e); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
		}
	}
	setup := s.Selection.setup(client, sink, s.RunID, s.Version)
	setup.Context = ctx
	if setup.Again = s.Again; s.Again != nil {
		selects := setup.Select
		setup.Select = func(d check.Declaration) bool { return slices.Contains(s.Again, d.Name) && selects(d) }
	}
	if !check.RunConfigured(&harness{}, setup, suite, reporter) {
		return 1
	}
	return 0
}
