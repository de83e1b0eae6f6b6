package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/onsi/ginkgo/v2/ginkgo/command"
	ginkgorun "github.com/onsi/ginkgo/v2/ginkgo/run"

	"github.com/service-conformance/conformance/framework/candidate/remote"
	"github.com/service-conformance/conformance/internal/scratch"
)

// runParallel lets Ginkgo's own runner start this binary as its workers. The candidate stays here. The workers reach it
// over loopback and send their results the same way. again are names of checks that run a second time; nil runs all
// that are selected.
func runParallel(ctx context.Context, o Options, again []string) error {
	server, err := remote.Serve(o.Candidate, settings{Selection: o.Selection, RunID: o.RunID, Version: o.Version, Outlives: o.Outlives, Again: again},
		func(raw json.RawMessage) { decodeEvent(raw, o.Sink) })
	if err != nil {
		return fmt.Errorf("serve the candidate to the workers: %w", err)
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, server.Interrupt)
	defer stop()

	dir, err := scratch.New("workers")
	if err != nil {
		return err
	}
	defer dir.Remove()
	worker, err := linkSelf(dir.Path)
	if err != nil {
		return err
	}
	if err := os.Setenv(workerVariable, server.URL()); err != nil {
		return err
	}
	defer os.Unsetenv(workerVariable)
	return ginkgoRun([]string{"--procs=" + strconv.Itoa(o.Parallel), "--seed=" + strconv.FormatInt(o.Seed, 10), "--timeout=24h", worker})
}

// linkSelf gives this binary a name that Ginkgo takes for a compiled suite.
func linkSelf(dir string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	name := "conformance.test"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	link := filepath.Join(dir, name)
	if err := os.Symlink(self, link); err != nil {
		return "", fmt.Errorf("link the worker: %w; --parallel 1 needs none", err)
	}
	return link, nil
}

// ginkgoRun runs `ginkgo run` with the arguments, silently. That a check failed is not an error here.
func ginkgoRun(args []string) (err error) {
	null, err := devNull()
	if err != nil {
		return err
	}
	defer null.Close()
	stdout := os.Stdout
	os.Stdout = null
	defer func() { os.Stdout = stdout }()
	defer func() { // the command ends by panicking with its exit details
		switch details := recover().(type) {
		case nil:
		case command.AbortDetails:
			if details.Error != nil && !strings.Contains(details.Error.Error(), "Test Suite Failed") {
				err = fmt.Errorf("parallel run: %w", details.Error)
			}
		default:
			panic(details)
		}
	}()
	run := ginkgorun.BuildRunCommand()
	run.Run(args, nil)
	return nil
}
