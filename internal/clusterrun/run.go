// Package clusterrun is a run on clusters that are made for it. It makes each, has a process of this program judge it, removes it, and merges the reports: checks run once
// per process.
package clusterrun

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/kindcluster"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/internal/scratch"
)

// Options say what is judged on which clusters.
type Options struct {
	// Keep leaves the clusters, and says where they are.
	Keep bool
	// Checks are the declarations of the checks that are planned.
	Checks []check.Declaration
	// Traffic says that some of them send traffic.
	Traffic bool
	// AgentImage is the image of the pods of such checks. Where it is empty, clusters of kind get one that is made of this program.
	AgentImage string
	// Arguments are those of a process of this program that judges a cluster.
	Arguments func(Judged) []string
	// ReportDir is the folder of the reports, which has the logs of clusters too.
	ReportDir string
	// Published says that the known deviations are those of the published list for what is judged.
	Published bool
	// Out is told what happens. Err is told what could not be removed, and what processes that judge say of errors. Both are written to from several goroutines.
	Out, Err io.Writer
	// Terminal says that Out is a terminal, on which a process that judges draws its progress.
	Terminal bool
}

// Judged is a cluster as the process that judges it is told of it.
type Judged struct {
	Kubeconfig string
	// ServiceCIDR is the Service range, or two joined by a comma.
	ServiceCIDR string
	// ReportDir is the folder for the report of this cluster.
	ReportDir string
	// Sharing are the checks that run on this cluster, of those that share the work; empty are all.
	Sharing []check.Sharing
	// Elsewhere are the ranges of the other clusters that share the work.
	Elsewhere []string
	// OfKind is the name of the cluster if it is one of kind.
	OfKind string
	// AgentImage and Outside, a file (cluster.ReadOutside), are empty if no traffic is sent, or none from there.
	AgentImage, Outside string
}

// BrokenError says that the harness could not do its part. It is neither wrong configuration nor a finding.
type BrokenError struct{ err error }

func (e *BrokenError) Error() string { return e.err.Error() }

// Unwrap returns what is broken.
func (e *BrokenError) Unwrap() error { return e.err }

// Run is a run on clusters, as Kind, Existing or Command opens it. Its methods are called by one goroutine.
type Run struct {
	Options
	// Leaves is what the run leaves if it ends at once; empty if that is nothing.
	Leaves string

	id     string   // in names of clusters
	cidrs  []string // Service ranges, one for each cluster
	ask    bool     // the only cluster has a range of its own, which is asked for
	folder *scratch.Folder
	most   int // clusters at a time
	create func(ctx context.Context, i int) (*made, error)
	shares func(i int) []check.Sharing // nil if every cluster is judged by all checks
	kept   bool                        // nothing is removed: the clusters are not the run's
	onKind bool                        // nodes are containers of kind
	agent  agent                       // of clusters of kind
	end    func()                      // the turn on an existing cluster
	later  []func()                    // what an interrupted run does once it has reported
	broken error                       // of processes that judged
}

// made is a cluster that there is.
type made struct {
	*kindcluster.Cluster
	took time.Duration // to make it; 0 if it was there
}

// open begins a run with a folder for the files of its clusters.
func open(o Options, serviceCIDRs ...string) (*Run, error) {
	folder, err := kindcluster.NewFolder()
	if err != nil {
		return nil, &BrokenError{err}
	}
	return &Run{Options: o, cidrs: slices.Clone(serviceCIDRs), id: strings.ToLower(rand.Text()[:6]), folder: folder, most: 1, end: func() {}}, nil
}

// Clusters is how many clusters are judged.
func (r *Run) Clusters() int { return len(r.cidrs) }

// Judge makes, judges and removes all clusters, and merges their reports. Of run it takes what the clusters cannot know. There is a report unless its known deviations could
// not be read; the error tells of that, and of processes that broke. What an interrupted run has not removed is removed by Close: a report is wanted first.
func (r *Run) Judge(ctx context.Context, run report.Run) (*report.Report, error) {
	parts := make([]report.Part, len(r.cidrs))
	inTurn(ctx, len(parts), r.most, r.create, func(ctx context.Context, i int, c *made, err error) {
		result := r.judge(ctx, i, c, err)
		parts[i] = report.Part{ServiceCIDR: r.cidrs[i], Report: result}
	}, func(removing context.Context, c *made) {
		r.atEnd(ctx, func() { r.remove(removing, c) })
	})
	run.Duration = time.Since(run.Started)
	if err := r.expect(&run, parts); err != nil {
		return nil, err
	}
	if ctx.Err() == nil && !r.Keep && !r.kept {
		run.Residue = r.residue()
	}
	return report.Merge(run, parts), r.broken
}

// residue is which clusters are left, and nil where nobody can tell.
func (r *Run) residue() *candidate.Residue {
	names, err := kindcluster.Remaining(r.folder.Path)
	if err != nil {
		return nil
	}
	left := &candidate.Residue{Looked: []string{"clusters"}}
	for _, name := range names {
		left.Left = append(left.Left, "cluster "+name)
	}
	return left
}

// expect decides on the known deviations of what the parts judged.
func (r *Run) expect(run *report.Run, parts []report.Part) (err error) {
	what := report.Described(parts)
	switch {
	case what.Implementation == "": // nobody has seen it
		return nil
	case r.Published:
		run.Expectations, err = report.PublishedExpectations(&what)
		return err
	}
	return run.Expectations.MarkOwn(&what)
}

// RemoveParts removes the reports of the clusters, which are merged.
func (r *Run) RemoveParts() (err error) {
	for i := range r.cidrs {
		err = errors.Join(err, os.RemoveAll(r.partDir(i)))
	}
	return err
}

// Close removes what is left to remove: clusters of an interrupted run, and files. A folder that tells of clusters which are still there stays.
func (r *Run) Close() {
	var all sync.WaitGroup
	for _, f := range r.later {
		all.Go(f)
	}
	all.Wait()
	r.end()
	if r.Keep {
		_ = r.folder.Keep()
		return
	}
	names, err := kindcluster.Commands(r.folder.Path)
	if len(names) > 0 {
		fmt.Fprintf(r.Err, "conformance: clusters may be left: %s; `conformance cleanup` calls the teardown command again\n", strings.Join(names, ", "))
	}
	if err == nil && len(names) == 0 {
		r.folder.Remove()
	}
}

// atEnd does what ends with the judging of a cluster. An interrupted run reports first, for its time may be over before all is removed.
func (r *Run) atEnd(ctx context.Context, f func()) {
	if ctx.Err() == nil {
		f()
		return
	}
	r.later = append(r.later, f)
}

// remove deletes a cluster, or says where a kept one is reached.
func (r *Run) remove(ctx context.Context, c *made) {
	switch {
	case r.kept:
	case r.Keep:
		how := ""
		if line := c.ByHand(); line != "" {
			how = fmt.Sprintf("; `%s` removes it", line)
		}
		fmt.Fprintf(r.Out, "cluster %s is kept: kubeconfig %s%s\n", c.Name, c.Kubeconfig, how)
	default:
		if err := c.Delete(ctx); err != nil {
			r.notRemoved(err)
		}
	}
}

func (r *Run) notRemoved(err error) { fmt.Fprintln(r.Err, "conformance: cleaning up:", err) }

// clusterName is that of the i-th cluster. `kind get clusters` shows by it what a killed run left.
func (r *Run) clusterName(i int) string { return fmt.Sprintf("conformance-%s-%d", r.id, i+1) }

// partDir is where the i-th cluster's results are until they are merged: beside the report, so that a crash loses none.
func (r *Run) partDir(i int) string { return filepath.Join(r.ReportDir, r.clusterName(i)) }

func (r *Run) logsDir(i int) string { return filepath.Join(r.ReportDir, "logs", r.clusterName(i)) }
