// Package standing has labs that outlive the process that started them: up and down, shells in them, and runs that judge them.
package standing

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/apiservers"
	"github.com/service-conformance/conformance/internal/certificates"
	"github.com/service-conformance/conformance/internal/lab"
	"github.com/service-conformance/conformance/internal/lab/controlplane"
	"github.com/service-conformance/conformance/internal/lab/dataplane"
	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/lab/programs"
	"github.com/service-conformance/conformance/internal/scratch"
	"github.com/service-conformance/conformance/internal/wholefile"
)

// UpOptions say what Up leaves running.
type UpOptions struct {
	// Options choose the programs. DataPlane has no meaning here: Nodes says whether there is one.
	lab.Options
	// Nodes is how many nodes there are, each with its proxy; zero means the control plane alone.
	Nodes int
	// Request chooses the ranges; Exclusive has no meaning here.
	Request candidate.Request
	// Kubeconfig is the file to write, which must not exist; empty means one among the files of the lab.
	Kubeconfig string
	// Name tells labs apart that run at the same time, see CheckName; empty means DefaultName.
	Name string
	// StateDir is where Down looks for what Up has started; empty means <user cache>/conformance/labs.
	StateDir string
}

// DefaultName is the name of a lab that was given none.
const DefaultName = "default"

// namePattern is that of a DNS label, as far as a name is shown in tables.
var namePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)

// CheckName returns nil for a name that a lab can have; empty means DefaultName.
func CheckName(name string) error {
	if name != "" && !namePattern.MatchString(name) {
		return fmt.Errorf("a lab has a name of at most 40 lower-case letters, digits and hyphens, not %q", name)
	}
	return nil
}

// MaxNodes is how many nodes Up starts at most.
const MaxNodes = 20

// Running describes what Up has started.
type Running struct {
	// Name is that of UpOptions.
	Name string `json:"name"`
	// Version of Kubernetes, for example "v1.37.1".
	Version      string   `json:"version"`
	URL          string   `json:"url"`
	Kubeconfig   string   `json:"kubeconfig"`
	ServiceCIDRs []string `json:"serviceCIDRs"`
	NodePorts    string   `json:"nodePorts"`
	// Dir holds the data and the logs of the servers.
	Dir string `json:"dir"`
	// Servers are the processes. Those of a lab with nodes die with the first one, which holds the namespaces.
	Servers []process.Identity `json:"servers"`
	// Nodes of the lab; none if the control plane runs alone, then WithoutNodes says why.
	Nodes        []candidate.Node `json:"nodes,omitempty"`
	WithoutNodes string           `json:"withoutNodes,omitempty"`
	// Proxy is what runs on the nodes.
	Proxy string `json:"proxy,omitempty"`
	// Path and NodesKubeconfig are for shells inside: where programs are, and a kubeconfig that reaches the API server from the nodes.
	Path            string `json:"path,omitempty"`
	NodesKubeconfig string `json:"nodesKubeconfig,omitempty"`
	// Network is the network namespace that the servers are in, for runs that attach.
	Network *dataplane.Place `json:"network,omitempty"`
}

// alive reports whether all servers run.
func (r *Running) alive() bool {
	for _, p := range r.Servers {
		if !p.Alive() {
			return false
		}
	}
	return len(r.Servers) > 0
}

// diedFile names the file that says which programs of a lab that is up have ended by themselves.
const diedFile = "died"

// Died says which programs have ended by themselves since Up and do not run again, and what they said last: a line for each. It is empty if there are none.
func (r *Running) Died() string {
	text, _ := os.ReadFile(filepath.Join(r.Dir, diedFile)) // there is one only then
	return strings.TrimSpace(string(text))
}

// AlreadyUpError says that a lab of this name runs already.
type AlreadyUpError struct{ Running *Running }

func (e *AlreadyUpError) Error() string {
	if died := e.Running.Died(); died != "" {
		return fmt.Sprintf("the lab %q is up already, but not whole: take it down first (%s)", e.Running.Name, died)
	}
	return fmt.Sprintf("the lab %q is up already (Kubernetes %s, %s, kubeconfig %s): use it, take it down first, or give this one another name (--name)",
		e.Running.Name, e.Running.Version, strings.Join(e.Running.ServiceCIDRs, ","), e.Running.Kubeconfig)
}

// state is where it is written down what runs under a name: a file beside those of other names, and a lock.
type state struct{ dir, name string }

const stateSuffix = ".json"

// stateOf finds the state of a lab. dir and name are those of UpOptions.
func stateOf(dir, name string) (state, error) {
	if err := CheckName(name); err != nil {
		return state{}, err
	}
	if name == "" {
		name = DefaultName
	}
	if dir != "" {
		return state{dir, name}, nil
	}
	d, err := os.UserCacheDir()
	if err != nil {
		return state{}, fmt.Errorf("find the user's cache folder (set HOME or XDG_CACHE_HOME): %w", err)
	}
	return state{filepath.Join(d, "conformance", "labs"), name}, nil
}

func (s state) file() string { return filepath.Join(s.dir, s.name+stateSuffix) }
func (s state) lock() string { return filepath.Join(s.dir, s.name+".lock") }

// Up starts a lab that goes on when this process ends, and returns once it is ready and its kubeconfig is written. Where this machine has no
// namespaces for nodes, the control plane is started alone, see Running.WithoutNodes. The error is an *AlreadyUpError if a lab of this name runs. If Up fails or
// ctx ends, nothing is left.
func Up(ctx context.Context, o UpOptions) (_ *Running, err error) {
	at, err := stateOf(o.StateDir, o.Name)
	if err != nil {
		return nil, err
	}
	l, err := scratch.LockFile(ctx, at.lock(), nil)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err == nil {
			l.Unlock()
		} else {
			l.Remove()
		}
	}()
	if old, err := at.read(); err != nil {
		return nil, err
	} else if old != nil && old.alive() {
		return nil, &AlreadyUpError{old}
	} else if old != nil { // killed, or the machine was restarted
		if err := at.takeDown(old); err != nil {
			return nil, err
		}
	}
	if o.Kubeconfig != "" {
		if o.Kubeconfig, err = filepath.Abs(o.Kubeconfig); err != nil {
			return nil, err
		}
		if _, err := os.Lstat(o.Kubeconfig); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("kubeconfig %s: there is such a file already and it is left alone: name another", o.Kubeconfig)
		}
	}

	var withoutNodes error
	o.Proxy.Mode = cmp.Or(o.Proxy.Mode, candidate.DefaultProxyMode)
	switch {
	case o.Nodes < 0 || o.Nodes > MaxNodes:
		return nil, fmt.Errorf("a lab has 0 to %d nodes, not %d", MaxNodes, o.Nodes)
	case o.Nodes == 0:
		withoutNodes = errors.New("none were asked for")
	case o.Proxy.NeedsGuest():
		return nil, errors.New("this machine's kernel has no IPVS, and a lab in user-mode-linux cannot be left running: choose another mode, or another proxy")
	default:
		withoutNodes = dataplane.NodesWork(o.Proxy)
	}
	o.DataPlane = withoutNodes == nil
	v, b, err := lab.ProgramsOf(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	r, err := apiservers.ParseRanges(o.Request, v)
	if err != nil {
		return nil, err
	}
	if err := process.SweepIn(os.TempDir()); err != nil {
		return nil, fmt.Errorf("remove what an earlier run left: %w", err)
	}
	if withoutNodes == nil {
		return startStaying(ctx, at, o)
	}
	return startDetached(ctx, at, o.Kubeconfig, v, b, r, withoutNodes)
}

// startDetached starts the servers and writes down where they are.
func startDetached(ctx context.Context, at state, kubeconfig string, v programs.Version, b *programs.Binaries, r apiservers.Ranges, withoutNodes error) (_ *Running, err error) {
	ca, err := certificates.NewAuthority("conformance-lab")
	if err != nil {
		return nil, err
	}
	d, err := process.NewRunDir(os.TempDir())
	if err != nil {
		return nil, err
	}
	// Until the state is written this process owns the servers: if it is killed, the next one sweeps them.
	var started []*process.Process
	defer func() {
		if err != nil {
			for _, p := range started {
				p.Kill()
			}
			_ = d.Remove()
			os.Remove(at.file())
		}
	}()
	e, err := controlplane.StartEtcd(ctx, b, d, true)
	if err != nil {
		return nil, err
	}
	started = append(started, e.Process)
	s, err := controlplane.StartAPIServer(ctx, v, b, d, ca, e, r, netip.Addr{}, true, nil)
	if err != nil {
		return nil, err
	}
	s.Client.Close()
	started = append(started, s.Process)

	run := &Running{
		Name: at.name, Version: b.Version, URL: s.Client.Access.URL, NodePorts: r.NodePorts.String(), Dir: d.Path,
		Kubeconfig: kubeconfig, Servers: d.Record.Processes, WithoutNodes: withoutNodes.Error(), ServiceCIDRs: r.List(),
	}
	if run.Kubeconfig == "" {
		run.Kubeconfig = d.File("kubeconfig")
	}
	// The kubeconfig goes last: a program that waits for it finds everything else done.
	if err := at.write(run); err != nil {
		return nil, err
	}
	if err := d.Detach(); err != nil {
		return nil, err
	}
	return run, writeKubeconfig(run, s.Client.Access)
}

func writeKubeconfig(run *Running, a candidate.Access) error {
	content, err := controlplane.Kubeconfig(a)
	if err != nil {
		return err
	}
	if err := wholefile.Write(run.Kubeconfig, content, 0o600); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return nil
}

func (s state) write(run *Running) error {
	content, err := json.MarshalIndent(run, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(s.file(), append(content, '\n'), 0o600)
}

// Down stops what Up has started under a name and removes every trace of it. It returns what was running, nil if nothing was.
// dir and name are those of UpOptions.
func Down(ctx context.Context, dir, name string) (*Running, error) {
	at, err := stateOf(dir, name)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(at.dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	l, err := scratch.LockFile(ctx, at.lock(), nil)
	if err != nil {
		return nil, err
	}
	defer l.Remove()
	r, err := at.read()
	if r == nil || err != nil {
		return nil, err
	}
	return r, at.takeDown(r)
}

// Status returns what Up has started under a name and still runs, nil if there is nothing. dir and name are those of UpOptions.
func Status(dir, name string) (*Running, error) {
	at, err := stateOf(dir, name)
	if err != nil {
		return nil, err
	}
	r, err := at.read()
	if r == nil || err != nil || !r.alive() {
		return nil, err
	}
	return r, nil
}

// List returns what Up has started and still runs, by name. dir is that of UpOptions.
func List(dir string) (up []*Running, err error) {
	at, err := stateOf(dir, "")
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(at.dir) // sorted
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), stateSuffix)
		if !is || !namePattern.MatchString(name) {
			continue
		}
		r, statusErr := Status(at.dir, name)
		err = errors.Join(err, statusErr)
		if r != nil {
			up = append(up, r)
		}
	}
	return up, err
}

// NotUp says that a lab is not up, and which ones are. Its arguments are those of Status.
func NotUp(dir, name string) error {
	if name == "" {
		name = DefaultName
	}
	var others []string
	up, _ := List(dir) // what cannot be read is said by the command that is about it
	for _, r := range up {
		others = append(others, r.Name)
	}
	if len(others) == 0 {
		return errors.New("no lab is up (conformance lab up starts one)")
	}
	return fmt.Errorf("the lab %q is not up; these are: %s (--name)", name, strings.Join(others, ", "))
}

// takeDown ends the servers and removes their files, the state last so that a failure can be repeated.
func (s state) takeDown(r *Running) error {
	inRunDir := strings.HasPrefix(filepath.Base(r.Dir), process.RunDirPrefix)
	if inRunDir { // runs that judge it first, or they would report how its programs end
		if err := process.EndMarked(r.Dir); err != nil {
			return err
		}
	}
	for _, server := range slices.Backward(r.Servers) { // the API server before its storage
		if err := server.Kill(); err != nil {
			return err
		}
	}
	if inRunDir {
		if err := errors.Join(process.EndMarked(r.Dir), endRecorded(r.Dir)); err != nil {
			return err
		}
	}
	if ours(r) {
		if err := os.Remove(r.Kubeconfig); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if inRunDir {
		if err := os.RemoveAll(r.Dir); err != nil {
			return err
		}
	}
	return os.Remove(s.file())
}

// endRecorded waits for the end of what died with the servers, as their folder records it.
func endRecorded(runDir string) error {
	b, err := os.ReadFile(filepath.Join(runDir, process.RecordFile))
	if err != nil {
		return nil //nolint:nilerr // a sweep was faster
	}
	var r process.Record
	if err := json.Unmarshal(b, &r); err != nil {
		return nil //nolint:nilerr // it goes with the folder, and nothing that it could name outlives the servers
	}
	var errs []error
	for _, p := range r.Processes {
		errs = append(errs, p.Kill())
	}
	return errors.Join(errs...)
}

// ours reports whether the kubeconfig is still the one that Up has written.
func ours(r *Running) bool {
	b, err := os.ReadFile(r.Kubeconfig)
	return err == nil && strings.Contains(string(b), r.URL)
}

// read returns nil if Up has left no state.
func (s state) read() (*Running, error) {
	b, err := os.ReadFile(s.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r Running
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("the state of the lab %q, %s, is damaged: end its kube-apiserver and etcd by hand and remove that file: %w", s.name, s.file(), err)
	}
	return &r, nil
}
