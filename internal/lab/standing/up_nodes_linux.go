package standing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/apiservers"
	"github.com/service-conformance/conformance/internal/lab"
	"github.com/service-conformance/conformance/internal/lab/dataplane"
	"github.com/service-conformance/conformance/internal/lab/isolation"
	"github.com/service-conformance/conformance/internal/lab/network"
	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

// A lab with nodes that stays is a process of this program in namespaces of its own. It runs everything, and ends with
// nothing but a signal. Up starts it, with a listener of the machine's own network namespace, by which the API server
// is reached from outside.

// stayJob is what the process that stays reads first.
type stayJob struct {
	Version, BinDir, CacheDir string
	Proxy                     dataplane.ProxyOptions
	Servers                   programs.ServerOptions
	ServiceCIDRs              []netip.Prefix
	DualStack                 bool
	NodePorts                 string
	Nodes                     int
	// URL of the API server as the machine sees it.
	URL string
}

// stayAnswer is what it says once everything runs, or that it ends.
type stayAnswer struct {
	Running *Running
	Access  candidate.Access
	Error   string
}

// stayWord is what Up says when the lab is to go on without it. If Up ends without that word, so does the lab.
const stayWord = "stay"

// stayListener is the file descriptor of the listener.
const stayListener = 3

// startStaying starts the process that stays and writes down where it is.
func startStaying(ctx context.Context, at state, o UpOptions) (*Running, error) {
	for _, p := range o.Request.ServiceCIDRs {
		if r := network.Overlapping(p); r.IsValid() {
			return nil, fmt.Errorf("the Service range %s overlaps with %s, which the nodes or pods of the lab have: choose another", p, r)
		}
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	defer listener.Close() // the other process has a duplicate
	file, err := listener.File()
	if err != nil {
		return nil, err
	}
	defer file.Close()

	cmd := isolation.Command(os.Args[1:], isolation.StayMark)
	cmd.SysProcAttr.Pdeathsig, cmd.SysProcAttr.Setsid = 0, true
	cmd.ExtraFiles, cmd.Stderr = []*os.File{file}, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the lab in namespaces: %w", err)
	}
	stays := false
	defer func() {
		if !stays {
			in.Close() // it ends and cleans up
			endInTime(cmd.Process, cmd.Wait)
		}
	}()
	say := json.NewEncoder(in)
	job := stayJob{
		Version: o.Version, BinDir: o.BinDir, CacheDir: o.CacheDir, Proxy: o.Proxy, Servers: o.Servers,
		ServiceCIDRs: o.Request.ServiceCIDRs, DualStack: o.Request.DualStack, NodePorts: o.Request.NodePorts, Nodes: o.Nodes,
		URL: "https://" + listener.Addr().String(),
	}
	if err := say.Encode(job); err != nil {
		return nil, fmt.Errorf("start the lab in namespaces: %w", err)
	}
	answer, err := hear(ctx, out)
	if err != nil {
		return nil, err
	}
	run := answer.Running
	run.Name = at.name
	if o.Kubeconfig != "" {
		run.Kubeconfig = o.Kubeconfig
	}
	err = errors.Join(at.write(run), writeKubeconfig(run, answer.Access))
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = say.Encode(stayWord)
	}
	if err != nil {
		return nil, errors.Join(err, at.takeDown(run))
	}
	stays = true
	go func() { _ = cmd.Wait() }() // if it ends before this process does
	return run, nil
}

// hear waits for the answer of the process that stays.
func hear(ctx context.Context, from io.Reader) (*stayAnswer, error) {
	type heard struct {
		answer stayAnswer
		err    error
	}
	result := make(chan heard, 1)
	go func() {
		var h heard
		h.err = json.NewDecoder(from).Decode(&h.answer)
		result <- h
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case h := <-result:
		switch {
		case h.err != nil:
			return nil, fmt.Errorf("the lab ended before it was up: %w", h.err)
		case h.answer.Error != "":
			return nil, errors.New(h.answer.Error)
		}
		return &h.answer, nil
	}
}

// endInTime waits for a process that cleans up and ends, and ends it itself if that takes too long; then the next sweep cleans up.
func endInTime(p *os.Process, wait func() error) {
	late := time.AfterFunc(30*time.Second, func() { _ = p.Kill() })
	defer late.Stop()
	_ = wait() // it was told to end
}

// Stay is the process that stays: it starts the lab, and runs it until a signal ends it. It returns the exit code.
func Stay(prepared error) (code int) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // else what cannot be said any more ends this process, before it has cleaned up
	_ = os.Setenv(isolation.Variable, "1")                  // the mark is for this process, not for those that it starts
	hear, say := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	var job stayJob
	if err := errors.Join(prepared, hear.Decode(&job)); err != nil {
		_ = say.Encode(stayAnswer{Error: err.Error()})
		return 1
	}
	go func() {
		var word string
		if hear.Decode(&word) != nil || word != stayWord {
			cancel()
		}
	}()
	answer, l, err := runStaying(ctx, &job)
	if err != nil {
		answer = &stayAnswer{Error: err.Error()}
	}
	if l != nil {
		defer l.Close(context.Background())
	}
	if say.Encode(answer) != nil || err != nil {
		return 1
	}
	<-ctx.Done()
	return 0
}

// appControllers are those of workloads, so that a Deployment has pods, and what was deleted takes with it what it owned.
const appControllers = "deployment-controller,replicaset-controller,statefulset-controller,garbage-collector-controller,namespace-controller"

// runStaying starts the lab, the way into it and what keeps its pods. The lab is to be closed if there is one, also after an error.
func runStaying(ctx context.Context, job *stayJob) (*stayAnswer, *lab.Lab, error) {
	own, err := ownNetwork()
	if err != nil {
		return nil, nil, err
	}
	l, err := lab.New(ctx, lab.Options{Version: job.Version, BinDir: job.BinDir, CacheDir: job.CacheDir, Proxy: job.Proxy, Servers: job.Servers, DataPlane: true})
	if err != nil {
		return nil, nil, err
	}
	r, err := apiservers.ParseRanges(candidate.Request{ServiceCIDRs: job.ServiceCIDRs, DualStack: job.DualStack, NodePorts: job.NodePorts}, l.Version)
	if err != nil {
		return nil, l, err
	}
	c := dataplane.Cluster{Ranges: r, Controllers: dataplane.EndpointControllers + "," + appControllers}
	for i := range job.Nodes {
		c.Zones = append(c.Zones, dataplane.SharedZones[i%len(dataplane.SharedZones)])
	}
	if l.World, err = l.StartWorld(ctx, c); err != nil {
		return nil, l, err
	}
	w := l.World
	if err := errors.Join(w.MakeClientsNamespace(ctx), w.GiveDNS(ctx), dataplane.StartKubelets(w), dataplane.StartPodAgent(ctx, w), startControl(l), w.Alive()); err != nil {
		return nil, l, err
	}
	listener, err := net.FileListener(os.NewFile(stayListener, "listener"))
	if err != nil {
		return nil, l, err
	}
	access := w.Server.Client.Access
	go forward(listener.(*net.TCPListener), strings.TrimPrefix(access.URL, "https://"))

	run := &Running{
		Version: l.Binaries.Version, URL: job.URL, NodePorts: r.NodePorts.String(), Dir: l.Dir.Path, Kubeconfig: l.Dir.File("kubeconfig"),
		Network: own, Servers: []process.Identity{process.Self()}, ServiceCIDRs: r.List(), Path: w.Path, NodesKubeconfig: w.Kubeconfig, Proxy: l.Describe().Components["proxy"],
	}
	for _, p := range []*process.Process{l.Etcd.Process, w.Server.Process, w.Controllers.Process(), w.Balancers} {
		if p != nil {
			run.Servers = append(run.Servers, p.Identity())
		}
	}
	for _, n := range w.Shared {
		run.Nodes = append(run.Nodes, n.Described())
	}
	access.URL = job.URL
	return &stayAnswer{Running: run, Access: access}, l, logTo(l.Dir.File("lab.log"))
}

// ownNetwork is the network namespace of this process, while its threads are all in it. It is a place that others can
// enter for as long as it runs.
func ownNetwork() (*dataplane.Place, error) {
	fd, err := unix.Open("/proc/self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0) // it stays open
	if err != nil {
		return nil, fmt.Errorf("open the network namespace: %w", err)
	}
	inode, err := dataplane.NamespaceInode(fd)
	return &dataplane.Place{Name: "the lab", Descriptor: fd, Inode: inode}, err
}

// logTo makes a file of what this process says, because the process that started it does not stay.
func logTo(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Dup3(int(f.Fd()), int(os.Stderr.Fd()), 0)
}
