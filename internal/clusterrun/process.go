package clusterrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/service-conformance/conformance/framework/kindcluster"
	"github.com/service-conformance/conformance/framework/report"
)

// FollowsVariable is the environment variable of a process that says that it ends when its standard input does: with the process that has started it.
const FollowsVariable = "CONFORMANCE_FOLLOWS"

// How long a process that judges may take after an interruption. A cluster that goes is still to be deleted. In one that stays, the process cleans up.
const (
	reportsWithin = 3 * time.Second
	cleansWithin  = 6 * time.Second
)

// judgeByProcess judges a cluster in a process of its own and returns its report. A process that broke is also kept in r.broken.
func (r *Run) judgeByProcess(ctx context.Context, i int, c *kindcluster.Cluster, outside string) (*report.Report, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	judged := Judged{Kubeconfig: c.Kubeconfig, ServiceCIDR: r.cidrs[i], ReportDir: r.partDir(i), AgentImage: r.AgentImage, Outside: outside}
	if r.onKind {
		judged.OfKind = c.Name
	}
	if r.shares != nil {
		judged.Sharing = r.shares(i)
		judged.Elsewhere = slices.Delete(slices.Clone(r.cidrs), i, i+1)
	}
	arguments := r.Arguments(judged)
	cmd := exec.CommandContext(ctx, self, arguments...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = r.Out, io.MultiWriter(r.Err, &said)
	ownGroup(cmd) // or a Ctrl-C would reach it twice
	cmd.Env = append(os.Environ(), FollowsVariable+"=1")
	stdin, err := cmd.StdinPipe() // which closes if this process is killed
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	cmd.Cancel = func() error { return interrupt(cmd.Process) }
	stays := r.kept || r.Keep
	cmd.WaitDelay = reportsWithin
	if stays {
		cmd.WaitDelay = cleansWithin
	}
	ended := cmd.Run()
	code := -1
	if cmd.ProcessState != nil {
		code = cmd.ProcessState.ExitCode()
	}
	if stays && ctx.Err() != nil && code < 0 {
		fmt.Fprintf(r.Err, "conformance: there was no time to clean up the cluster with Service range %s: `conformance cleanup` removes what checks have left in it\n", r.cidrs[i])
	}
	result, err := report.Open(r.partDir(i))
	switch code {
	case report.ExitConformant, report.ExitNonConformant, report.ExitUnknown:
		return result, err
	}
	why := explained(ended, said.String())
	if code != report.ExitUsage && ctx.Err() == nil {
		r.broken = errors.Join(r.broken, fmt.Errorf("judging %s: %w", r.cidrs[i], why))
	}
	if err == nil {
		return result, nil
	}
	return nil, why
}

// explained is why a process ended that could not judge. It is its exit code, the signal that killed it or why it could
// not start, and what it said.
func explained(ended error, said string) error {
	if said = strings.TrimPrefix(strings.TrimSpace(said), "conformance: "); said == "" {
		return ended
	}
	return fmt.Errorf("%w: %s", ended, said)
}
