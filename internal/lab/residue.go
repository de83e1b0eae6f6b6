package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/lab/network"
	"github.com/service-conformance/conformance/internal/lab/process"
)

var _ candidate.Accountable = (*Lab)(nil)

// CloseAndAccount implements candidate.Accountable: it looks for programs that still run, files and cgroups. Network namespaces end with the last process in them.
func (l *Lab) CloseAndAccount(ctx context.Context, _ string) (candidate.Residue, error) {
	l.mu.Lock()
	dir := l.Dir
	l.mu.Unlock()
	err := l.Close(ctx)
	r := candidate.Residue{Looked: []string{"cgroups", "files", "processes"}}
	for _, path := range network.Cgroups() {
		r.Left = append(r.Left, "cgroup "+path)
	}
	if dir == nil { // nothing was started
		return r, err
	}
	awaitEnd(ctx, dir)
	for _, p := range dir.Processes() {
		if i := p.Identity(); i.Alive() {
			r.Left = append(r.Left, fmt.Sprintf("process %d (%s)", i.PID, p.Name))
		}
	}
	marked, looked := process.Marked(dir.Path)
	for _, i := range marked {
		r.Left = append(r.Left, fmt.Sprintf("process %d of a command", i.PID))
	}
	if _, err := os.Lstat(dir.Path); !errors.Is(err, fs.ErrNotExist) {
		r.Left = append(r.Left, "folder "+dir.Path)
	}
	return r, errors.Join(err, looked)
}

// endsWithin bounds how long programs are waited for whose worker was killed: they end by themselves, a moment after it.
const endsWithin = 5 * time.Second

// awaitEnd waits until no program of the folder runs, or the bound or the context ends.
func awaitEnd(ctx context.Context, dir *process.RunDir) {
	ctx, cancel := context.WithTimeout(ctx, endsWithin)
	defer cancel()
	for slices.ContainsFunc(dir.Processes(), func(p *process.Process) bool { return p.Identity().Alive() }) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}
