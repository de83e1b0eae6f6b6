package standing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/remote"
	"github.com/service-conformance/conformance/internal/lab"
	"github.com/service-conformance/conformance/internal/lab/controlplane"
	"github.com/service-conformance/conformance/internal/lab/dataplane"
	"github.com/service-conformance/conformance/internal/wholefile"
)

// control is what other processes of the same user can ask of a lab that stays: to be judged, and to start a proxy anew. They ask by a socket in the folder of the lab, which
// nobody else may enter.
type control struct {
	lab   *lab.Lab
	world *dataplane.World

	mu       sync.Mutex
	died     map[string]string // by the base name of the log: what is said of it
	sessions map[chan sessionEvent]struct{}
}

// startControl serves until the process ends.
func startControl(l *lab.Lab) error {
	c := &control{lab: l, world: l.World, died: map[string]string{}, sessions: map[chan sessionEvent]struct{}{}}
	listener, err := net.Listen("unix", l.Dir.File(controlSocket))
	if err != nil {
		return fmt.Errorf("make the control socket of the lab: %w", err)
	}
	l.OnEnd(c.programEnded)
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+sessionsPath, c.session)
	mux.HandleFunc("POST "+restartProxyPath, c.restartProxy)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	return nil
}

// programEnded tells of a program that has ended by itself. It tells the log of the lab, the clients that ask for its
// state, and the runs that judge it.
func (c *control) programEnded(l lab.Log) {
	text := fmt.Sprintf("%s: %v", l.File, l.Died)
	fmt.Fprintln(os.Stderr, text)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.died[l.File] = text
	c.writeDied()
	for s := range c.sessions {
		select {
		case s <- sessionEvent{Ended: l.File, How: l.Died.Error()}:
		default: // it does not read: it is about to end
		}
	}
}

// writeDied writes down what has ended. The caller holds the lock.
func (c *control) writeDied() {
	path := c.lab.Dir.File(diedFile)
	if len(c.died) == 0 {
		_ = os.Remove(path) // that there is none is no error
		return
	}
	lines := slices.Sorted(maps.Values(c.died))
	if err := wholefile.Write(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, "write down what has ended:", err)
	}
}

// sessionEvents is how many events a run may be late to read.
const sessionEvents = 100

// session serves the lab as a candidate until the client goes away.
func (c *control) session(w http.ResponseWriter, r *http.Request) {
	say := json.NewEncoder(w)
	if err := c.world.Alive(); err != nil {
		hint := "take the lab down and start it again"
		if c.world.Server.Alive() == nil && c.world.Controllers.Alive() == nil {
			hint = "start it again: conformance lab restart-proxy NODE"
		}
		_ = say.Encode(sessionEvent{Error: fmt.Sprintf("%v; %s", err, hint)})
		return
	}
	server, err := remote.Serve(c.lab, nil, func(json.RawMessage) {})
	if err != nil {
		_ = say.Encode(sessionEvent{Error: err.Error()})
		return
	}
	events := make(chan sessionEvent, sessionEvents)
	c.mu.Lock()
	c.sessions[events] = struct{}{}
	c.mu.Unlock()
	events <- sessionEvent{URL: server.URL()}
	for over := false; !over; {
		select {
		case e := <-events:
			over = errors.Join(say.Encode(e), http.NewResponseController(w).Flush()) != nil
		case <-r.Context().Done():
			over = true
		}
	}
	c.end(server, events)
}

// end removes what a run has left, which may have been killed.
func (c *control) end(server *remote.Server, events chan sessionEvent) {
	for _, lease := range server.End() {
		if plain, ok := lease.(*controlplane.ControlPlane); ok {
			plain.Changed = true // nobody has cleaned up there
		}
		lease.Release()
	}
	c.mu.Lock()
	delete(c.sessions, events)
	last := len(c.sessions) == 0
	c.mu.Unlock()
	if !last {
		return // some of the namespaces are theirs
	}
	if err := c.removeNamespaces(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "remove what a run has left:", err)
	}
}

// removeNamespaces deletes all namespaces that runs have made. Their controller empties them, but for Services that finalizers hold.
func (c *control) removeNamespaces(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, candidate.InsistTimeout)
	defer cancel()
	core := c.world.Api.CoreV1()
	left, err := core.Namespaces().List(ctx, metav1.ListOptions{LabelSelector: candidate.RunLabel})
	if err != nil {
		return err
	}
	var errs []error
	for _, ns := range left.Items {
		if ns.DeletionTimestamp == nil {
			errs = append(errs, candidate.Delete(ctx, core.Namespaces(), ns.Name, metav1.DeleteOptions{}))
		}
		services, err := core.Services(ns.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, s := range services.Items {
			if len(s.Finalizers) > 0 {
				errs = append(errs, candidate.Patch(ctx, core.Services(ns.Name), s.Name, types.MergePatchType, `{"metadata":{"finalizers":null}}`))
			}
		}
	}
	return errors.Join(errs...)
}

// restartProxy starts the proxy of a node anew. It answers nothing, or what went wrong.
func (c *control) restartProxy(w http.ResponseWriter, r *http.Request) {
	if err := c.restart(r.Context(), r.URL.Query().Get("node")); err != nil {
		_, _ = fmt.Fprint(w, err)
	}
}

func (c *control) restart(ctx context.Context, name string) error {
	i := slices.IndexFunc(c.world.Shared, func(n *dataplane.Node) bool { return n.Name == name })
	if i < 0 {
		return fmt.Errorf("there is no node %q", name)
	}
	n := c.world.Shared[i]
	n.StopProxy()
	c.mu.Lock()
	delete(c.died, filepath.Base(n.File(".log")))
	c.writeDied()
	c.mu.Unlock()
	if err := n.StartProxy(dataplane.SharedProxy()); err != nil {
		return err
	}
	if err := n.WaitUntilItServes(ctx); err != nil || c.lab.Proxy.Command != "" {
		return err
	}
	return n.WaitFirstSync(ctx)
}
