package standing

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"github.com/service-conformance/conformance/framework/candidate/remote"
	"github.com/service-conformance/conformance/internal/lab"
)

// controlSocket is, in the folder of a lab that is up, where it is told what to do.
const controlSocket = "control"

// The paths of the control socket.
const (
	sessionsPath     = "/sessions"
	restartProxyPath = "/restart-proxy"
)

// minAttachNodes is how many nodes checks of traffic need, see candidate.DataPlane.
const minAttachNodes = 3

// sessionEvent is a line of the answer of sessionsPath, which goes on until the client goes away. The first one has the URL or the Error.
type sessionEvent struct {
	// URL is where the candidate is served, see package remote.
	URL   string `json:"url,omitempty"`
	Error string `json:"error,omitempty"`
	// Ended is the base name of the log of a program that has ended by itself, How says how.
	Ended string `json:"ended,omitempty"`
	How   string `json:"how,omitempty"`
}

// Attached is a lab that is up, as the candidate of a run. When the run goes away, however it ends, the lab removes what it has left.
type Attached struct {
	*remote.Client
	dir     string // of the lab
	session io.Closer

	mu    sync.Mutex
	onEnd func(lab.Log)
	ended []lab.Log
}

// listen receives what the lab tells of its programs.
func (a *Attached) listen(events *json.Decoder) {
	for {
		var e sessionEvent
		if events.Decode(&e) != nil {
			return // the session is over
		}
		if e.Ended == "" {
			continue
		}
		l := lab.Log{File: e.Ended, Died: errors.New(e.How)}
		a.mu.Lock()
		a.ended = append(a.ended, l)
		tell := a.onEnd
		a.mu.Unlock()
		if tell != nil {
			tell(l)
		}
	}
}

// OnEnd is that of Lab.
func (a *Attached) OnEnd(f func(lab.Log)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onEnd = f
}

// KeepLogs copies the logs of the programs that have ended by themselves since the run attached; all others are kept by the lab itself.
func (a *Attached) KeepLogs(folder string) ([]lab.Log, error) {
	a.mu.Lock()
	ended := a.ended
	a.mu.Unlock()
	var errs []error
	for _, l := range ended {
		errs = append(errs, lab.CopyFile(filepath.Join(a.dir, l.File), filepath.Join(folder, l.File)))
	}
	return ended, errors.Join(errs...)
}

// attachable returns the lab of a name that a run can attach to.
func attachable(dir, name string) (*Running, error) {
	r, err := Status(dir, name)
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return nil, NotUp(dir, name)
	case len(r.Nodes) == 0:
		return nil, fmt.Errorf("the lab %q has no nodes (%s): judge its API server by its kubeconfig (--tier cluster --kubeconfig %s)", r.Name, r.WithoutNodes, r.Kubeconfig)
	case len(r.Nodes) < minAttachNodes:
		return nil, fmt.Errorf("the lab %q has %d nodes, and checks of traffic need %d: start it with more (conformance lab up --nodes %d)", r.Name, len(r.Nodes), minAttachNodes, minAttachNodes)
	}
	return r, nil
}
