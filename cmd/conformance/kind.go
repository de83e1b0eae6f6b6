package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/utils/ptr"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/cluster"
	"github.com/service-conformance/conformance/framework/kindcluster"
	"github.com/service-conformance/conformance/framework/memory"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
)

// kindFlags say which clusters tier kind makes, and what becomes of them.
type kindFlags struct {
	nodeImage string
	workers   int
	alive     int
	keep      bool
	reuse     string
	files     []string
}

const (
	defaultWorkers = 2
	defaultAlive   = 2
)

func (k *kindFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&k.nodeImage, "node-image", "", "image of the nodes of tier kind, of the Kubernetes version that is wanted (default kind's own)")
	flags.StringArrayVar(&k.files, "kind-cluster", nil, "file that describes a kind cluster (fixtures/kind), instead of --service-cidr and --proxy-mode; repeat it for more")
	flags.IntVar(&k.workers, "workers", defaultWorkers, "number of nodes of a kind cluster beside its control plane")
	flags.IntVar(&k.alive, "kind-parallel", defaultAlive, "largest number of kind clusters at a time. Fewer are made if the memory would not hold them")
	flags.BoolVar(&k.keep, "keep", false, "leave the clusters of tier kind or of --cluster-command, and print where their kubeconfigs are")
	flags.StringVar(&k.reuse, "reuse", "", "judge the kind cluster of this name, and leave it")
}

// validate finds what contradicts; anything is wrong if the tier is another one, but that clusters of commands can be kept.
func (k *kindFlags) validate(tier, proxyMode string, byCommand bool) error {
	set := k.nodeImage != "" || k.workers != defaultWorkers || k.alive != defaultAlive || k.keep && !byCommand || k.reuse != "" || len(k.files) > 0
	switch {
	case set && tier != "kind":
		return usage("--node-image, --workers, --kind-cluster, --kind-parallel, --keep and --reuse are for --tier kind; --keep also for --cluster-command")
	case k.alive < 1:
		return usage("--kind-parallel %d: at least one cluster is needed", k.alive)
	case k.reuse != "" && (k.nodeImage != "" || k.workers != defaultWorkers || k.alive != defaultAlive || k.keep || len(k.files) > 0 || proxyMode != ""):
		return usage("--reuse takes a cluster as it is: leave out --node-image, --workers, --kind-cluster, --proxy-mode, --kind-parallel and --keep")
	case len(k.files) > 0 && proxyMode != "":
		return usage("--proxy-mode: with --kind-cluster the files say it (proxyMode)")
	}
	return nil
}

// kindRun is a run on clusters that are made for it, by kind or by --cluster-command: each is judged by this program, started anew as `run --tier cluster`, because the
// checks run once per process; the reports are merged.
type kindRun struct {
	*runFlags
	out      io.Writer
	cidrs    []string      // one a cluster
	files    []clusterFile // one a cluster, or none
	dir      string        // of kubeconfigs
	id       string
	checks   []check.Declaration
	broken   error                  // of processes that judged
	archived func() (string, error) // writes the archive of the agent's image, once, and returns its path; nil if none is loaded
	program  string                 // static, for the client outside of a cluster; empty if no traffic is sent
	later    []func()               // what an interrupted run does once it has reported
	reused   *kindcluster.Cluster   // that of --reuse
}

// stays reports whether the clusters are there after the run.
func (r *kindRun) stays() bool { return r.kind.reuse != "" || r.kind.keep }

// atEnd does what ends with the judging of a cluster. An interrupted run reports first, for its time may be over before all is removed.
func (r *kindRun) atEnd(ctx context.Context, f func()) {
	if ctx.Err() == nil {
		f()
		return
	}
	r.later = append(r.later, f)
}

// finish does side by side what an interrupted run has put off.
func (r *kindRun) finish() {
	var all sync.WaitGroup
	for _, f := range r.later {
		all.Go(f)
	}
	all.Wait()
}

// made is a cluster that there is.
type made struct {
	*kindcluster.Cluster
	took time.Duration
}

func (f *runFlags) runKind(ctx context.Context, out io.Writer, palette report.Palette, expectations report.Expectations, selection *report.Selection) error {
	r := &kindRun{runFlags: f, out: out, cidrs: f.ServiceCIDRs, id: strings.ToLower(rand.Text()[:6]), checks: check.Declarations()}
	if err := r.plan(); err != nil {
		return err
	}
	if !f.byCommand() && f.kind.reuse == "" { // what is wrong with a cluster to reuse is found when it is looked up
		if err := kindcluster.Available(); err != nil {
			return usage("%w", err)
		}
	}
	dir, err := kindcluster.NewFolder()
	if err != nil {
		return harness("%w", err)
	}
	defer func() {
		switch {
		case f.kind.keep:
			_ = dir.Keep()
		case !tellLeft(dir.Path):
			dir.Remove()
		}
	}()
	r.dir = dir.Path
	create, remove := r.create, r.remove
	leaves := fmt.Sprintf("clusters conformance-%s-N: `kind get clusters` shows them, `kind delete cluster --name` removes one", r.id)
	if f.byCommand() {
		create, leaves = r.createByCommand, "a cluster: `conformance cleanup` calls its teardown command"
	} else if err := r.prepareAgent(); err != nil {
		return err
	}
	if f.kind.reuse != "" {
		create, remove = r.existing, func(context.Context, made) {}
		if r.reused, err = kindcluster.Existing(f.kind.reuse, r.dir); err != nil {
			return usage("%w", err)
		}
		end, err := kindcluster.TakeTurn(ctx, f.kind.reuse, func() {
			fmt.Fprintf(out, "waiting for the run that judges cluster %s: one run at a time prepares its nodes\n", f.kind.reuse)
		})
		if err != nil {
			return interrupted(ctx, err)
		}
		defer end()
	}
	if !r.stays() {
		ending.mayLeave(leaves)
	}
	folder, err := report.OpenFolder(f.reportDir)
	if err != nil {
		return usage("%w", err)
	}
	run := report.Run{SuiteVersion: check.BuildVersion(), Started: time.Now(), Seed: f.seed, Expectations: expectations, Selection: selection, Submitter: f.submitter}
	run.Candidate.Tier = r.tierOfClusters()
	parts := make([]report.Part, len(r.cidrs))
	inTurn(ctx, len(parts), r.alive(), create, func(ctx context.Context, i int, c made, err error) {
		result := r.judge(ctx, i, c, err)
		parts[i] = report.Part{ServiceCIDR: r.cidrs[i], Report: result}
	}, func(removing context.Context, c made) {
		r.atEnd(ctx, func() { remove(removing, c) })
	})
	defer r.finish()
	run.Duration = time.Since(run.Started)
	if f.expectations == "" {
		run.Expectations, err = publishedFor(parts)
	} else {
		err = markOwn(&run.Expectations, parts)
	}
	if err != nil {
		return harness("%w", err)
	}
	merged := report.Merge(run, parts)
	paths, err := folder.Finish(merged)
	err = errors.Join(err, r.writeMetrics(merged))
	if err == nil {
		for i := range parts {
			err = errors.Join(err, os.RemoveAll(r.partDir(i)))
		}
	}
	switch {
	case len(parts) > 1:
		fmt.Fprintf(out, "\nall %d clusters: %s\n", len(parts), title(&merged.Candidate))
		merged.WriteSummary(out, palette)
	case merged.Candidate.Implementation == "": // nobody has shown that nothing was judged
		merged.WriteSummary(out, palette)
	}
	merged.WriteAgain(out, f.again)
	if len(paths) > 0 {
		fmt.Fprintf(out, "reports: %s\n", reportsLine(paths))
	}
	if err = errors.Join(err, r.broken); err != nil {
		return harness("%w", err)
	}
	if code := merged.ExitCode(); code != 0 {
		return &exitError{code: code}
	}
	return nil
}

// plan says which clusters there will be, and finds what none can be made with.
func (r *kindRun) plan() error {
	if len(r.cidrs) > 0 && len(r.kind.files) > 0 {
		return usage("--service-cidr: with --kind-cluster the files say it (serviceCIDR)")
	}
	for _, path := range r.kind.files {
		file, err := readClusterFile(path)
		if err != nil {
			return usage("--kind-cluster: %w", err)
		}
		r.files, r.cidrs = append(r.files, file), append(r.cidrs, file.ServiceCIDR)
	}
	if err := compatible(r.files); err != nil {
		return usage("--kind-cluster: %w", err)
	}
	if len(r.cidrs) == 0 {
		r.cidrs = []string{spec.DefaultServiceCIDRs[:1].String()}
	}
	if r.kind.reuse != "" { // the cluster says itself what is wrong
		if len(r.cidrs) > 1 {
			return usage("--reuse judges one cluster, which has one Service range (or two joined by a comma), not %d", len(r.cidrs))
		}
		return nil
	}
	if r.byCommand() {
		if len(r.cidrs) > 1 && !r.commands.namesRange() {
			return usage("--cluster-command has no {service-cidr}: it would make the same cluster for each --service-cidr")
		}
		return nil
	}
	for i := range r.cidrs {
		o, err := r.options(i)
		if err == nil {
			err = o.Validate()
		}
		if err != nil {
			return usage("%w", err)
		}
	}
	return nil
}

// alive is how many clusters there are at a time.
func (r *kindRun) alive() int {
	if r.byCommand() {
		return 1 // what a command takes is not known
	}
	workers := r.kind.workers
	for _, f := range r.files {
		workers = max(workers, ptr.Deref(f.Workers, 0))
	}
	available, _ := memory.Available() // 0 if it is not known
	alive, why := fitting(min(r.kind.alive, len(r.cidrs)), workers, available)
	if why != "" {
		fmt.Fprintln(r.out, why)
	}
	return alive
}

// markOwn marks what stands in no published list for what the parts judged.
func markOwn(e *report.Expectations, parts []report.Part) error {
	for _, p := range parts {
		if p.Report.Candidate.Implementation != "" {
			return e.MarkOwn(&p.Report.Candidate)
		}
	}
	return nil
}

// publishedFor are the known deviations of what the parts judged.
func publishedFor(parts []report.Part) (report.Expectations, error) {
	for _, p := range parts {
		if p.Report.Candidate.Implementation != "" {
			return report.PublishedExpectations(&p.Report.Candidate)
		}
	}
	return report.Expectations{}, nil
}

// inTurn creates n things in order, at most alive of them at a time, judges one after the other, and removes each. While one is judged the
// next is being created. Every one that was created is removed, also when the context ends; judge is called for every one.
func inTurn[T any](ctx context.Context, n, alive int, create func(context.Context, int) (T, error),
	judge func(context.Context, int, T, error), remove func(context.Context, T)) {
	type created struct {
		thing T
		err   error
	}
	slots, ready := make(chan struct{}, alive), make(chan created)
	go func() {
		for i := range n {
			slots <- struct{}{}
			thing, err := create(ctx, i)
			ready <- created{thing, err}
		}
	}()
	for i := range n {
		c := <-ready
		judge(ctx, i, c.thing, c.err)
		if c.err == nil {
			remove(context.WithoutCancel(ctx), c.thing)
		}
		<-slots
	}
}

// clusterName is that of the i-th cluster. `kind get clusters` shows by it what a killed run left.
func (r *kindRun) clusterName(i int) string { return fmt.Sprintf("conformance-%s-%d", r.id, i+1) }

// partDir is where the i-th cluster's results are until they are merged: beside the report, so that a crash loses none.
func (r *kindRun) partDir(i int) string { return filepath.Join(r.reportDir, r.clusterName(i)) }

func (r *kindRun) logsDir(i int) string { return filepath.Join(r.reportDir, "logs", r.clusterName(i)) }

func (r *kindRun) options(i int) (kindcluster.Options, error) {
	ranges, err := parseServiceCIDR(r.cidrs[i])
	o := kindcluster.Options{
		Name: r.clusterName(i), NodeImage: r.kind.nodeImage, ServiceCIDRs: ranges, ProxyMode: r.proxy.Mode, Workers: r.kind.workers,
	}
	if i < len(r.files) {
		file := r.files[i]
		o.ProxyMode, o.NodeImage, o.Workers = file.ProxyMode, cmp.Or(file.NodeImage, o.NodeImage), ptr.Deref(file.Workers, o.Workers)
	}
	return o, err
}

func (r *kindRun) create(ctx context.Context, i int) (made, error) {
	start := time.Now()
	o, err := r.options(i)
	if err != nil {
		return made{}, err
	}
	over := ""
	if isTerminal(r.out) {
		over = "\r\x1b[K" // the progress of the cluster that is judged
	}
	fmt.Fprintf(r.out, "%screating cluster %s with Service range %s\n", over, o.Name, r.cidrs[i])
	c, err := kindcluster.Create(ctx, o, r.dir, r.logsDir(i))
	if err != nil {
		return made{}, err
	}
	if err := r.loadAgent(ctx, c); err != nil {
		return made{}, errors.Join(r.withLogs(ctx, i, c, err), c.Delete(context.WithoutCancel(ctx)))
	}
	return made{c, time.Since(start)}, nil
}

// existing takes the cluster that --reuse names, and its Service range where none is named.
func (r *kindRun) existing(ctx context.Context, i int) (made, error) {
	c, err := r.reused, error(nil)
	if len(r.ServiceCIDRs) == 0 {
		r.cidrs[i], err = serviceCIDROf(ctx, c.Kubeconfig)
	}
	if err == nil {
		if err = r.loadAgent(ctx, c); err != nil {
			err = r.withLogs(ctx, i, c, err)
		}
	}
	return made{Cluster: c}, err
}

func serviceCIDROf(ctx context.Context, kubeconfig string) (string, error) {
	c, err := cluster.Open(ctx, cluster.Options{Kubeconfig: kubeconfig})
	if err != nil {
		return "", err
	}
	cp, err := c.ControlPlane(ctx, candidate.Request{})
	if err != nil {
		return "", err
	}
	defer cp.Release()
	return spec.ServiceCIDRs(cp.ServiceCIDRs()).String(), nil
}

// remove deletes a cluster, or says where a kept one is reached.
func (r *kindRun) remove(ctx context.Context, c made) {
	if r.kind.keep {
		how := ""
		if line := c.ByHand(); line != "" {
			how = fmt.Sprintf("; `%s` removes it", line)
		}
		fmt.Fprintf(r.out, "cluster %s is kept: kubeconfig %s%s\n", c.Name, c.Kubeconfig, how)
		return
	}
	if err := c.Delete(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "conformance: cleaning up:", err)
	}
}

// judge returns the report of the i-th cluster. If it could not be created or judged, all its results are unknown.
func (r *kindRun) judge(ctx context.Context, i int, c made, err error) *report.Report {
	if ctx.Err() != nil {
		if err != nil && !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "conformance: cleaning up:", err)
		}
		return report.Undecided(r.checks, check.Interrupted)
	}
	if err != nil {
		on := r.cidrs[i]
		if !r.rangeKnown() {
			on = r.clusterName(i)
		}
		fmt.Fprintf(r.out, "\nno checks on %s: %v\n", on, err)
		return report.Undecided(r.checks, "no cluster: "+err.Error())
	}
	fmt.Fprintf(r.out, "\ncluster %s with Service range %s", c.Name, r.cidrs[i])
	if c.took > 0 {
		fmt.Fprintf(r.out, ", ready after %.0f s", c.took.Seconds())
	}
	fmt.Fprintln(r.out)
	var preparing sync.WaitGroup
	unfence := func() {}
	if !r.byCommand() {
		preparing.Go(func() { unfence = r.fence(ctx, i, c) })
	}
	outside, remove := r.startOutside(ctx, c)
	preparing.Wait()
	result, err := r.runOn(ctx, i, c.Kubeconfig, outside)
	r.atEnd(ctx, func() {
		var undoing sync.WaitGroup
		undoing.Go(remove)
		if ctx.Err() == nil || r.stays() { // else the fence goes with the nodes
			undoing.Go(unfence)
		}
		undoing.Wait()
	})
	switch {
	case ctx.Err() != nil && err == nil:
		return result
	case ctx.Err() != nil:
		return report.Undecided(r.checks, check.Interrupted)
	case err != nil:
		return report.Undecided(r.checks, r.withLogs(ctx, i, c.Cluster, fmt.Errorf("cluster %s could not be judged: %w", c.Name, err)).Error())
	case result.ExitCode() != report.ExitConformant:
		fmt.Fprintln(r.out, r.withLogs(ctx, i, c.Cluster, fmt.Errorf("cluster %s: %s", c.Name, result.VerdictLine())))
	}
	return result
}

// withLogs exports the logs of a cluster before it goes, and adds to what is said of it where they are.
func (r *kindRun) withLogs(ctx context.Context, i int, c *kindcluster.Cluster, said error) error {
	if err := c.ExportLogs(ctx, r.logsDir(i)); err != nil {
		return fmt.Errorf("%w; its logs could not be exported: %w", said, err)
	}
	return fmt.Errorf("%w; its logs are in %s", said, r.logsDir(i))
}

// interruptedWithin is how long a process that judges may report after an interruption: the clusters are still to be deleted.
const interruptedWithin = 3 * time.Second

// runOn judges a cluster in a process of its own and returns its report. A process that broke is also kept in r.broken.
func (r *kindRun) runOn(ctx context.Context, i int, kubeconfig, outside string) (*report.Report, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, r.arguments(i, kubeconfig, outside)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = r.out, io.MultiWriter(os.Stderr, &said)
	ownGroup(cmd) // or a Ctrl-C would reach it twice
	cmd.Env = append(os.Environ(), followsVariable+"=1")
	stdin, err := cmd.StdinPipe() // which closes if this process is killed
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	cmd.Cancel = func() error { return interrupt(cmd.Process) }
	cmd.WaitDelay = interruptedWithin
	ended := cmd.Run()
	code := -1
	if cmd.ProcessState != nil {
		code = cmd.ProcessState.ExitCode()
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

// explained is why a process ended that could not judge: its exit code, the signal that killed it or why it could not start, and what it said.
func explained(ended error, said string) error {
	if said = strings.TrimPrefix(strings.TrimSpace(said), "conformance: "); said == "" {
		return ended
	}
	return fmt.Errorf("%w: %s", ended, said)
}

// arguments are those of the process that judges the i-th cluster.
func (r *kindRun) arguments(i int, kubeconfig, outside string) []string {
	args := []string{
		"run", "--tier", "cluster", "--tier-name", r.tierOfClusters(), "--kubeconfig", kubeconfig, "--service-cidr", r.cidrs[i],
		"--report-dir", r.partDir(i), "--seed", strconv.FormatInt(r.seed, 10),
	}
	add := func(flag string, values ...string) {
		for _, v := range values {
			if v != "" {
				args = append(args, "--"+flag, v)
			}
		}
	}
	add("suite", r.Suites...)
	add("focus", r.Focus...)
	add("skip", r.Skip...)
	add("feature", r.Features...)
	add("profile", r.profiles...)
	add("expectations", r.expectations)
	add("implementation", r.declared)
	add("agent-image", r.agentImage)
	add("outside", outside)
	if r.Shard.Of > 0 {
		add("shard", r.Shard.String())
	}
	if r.Slow {
		args = append(args, "--slow")
	}
	if !r.byCommand() || r.disruptive {
		args = append(args, "--allow-disruptive")
	}
	if !r.byCommand() && !r.stays() { // a cloud keeps load balancers whose cluster has gone
		args = append(args, "--disposable")
	}
	if r.MaxWait > 0 {
		add("max-wait", r.MaxWait.String())
	}
	if r.parallel > 0 {
		add("parallel", strconv.Itoa(r.parallel))
	}
	return args
}
