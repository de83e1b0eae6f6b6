package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

// Log is the log of a program of the lab that is worth keeping.
type Log struct {
	// File is the base name of its copy.
	File string
	// Died says how the program ended, if it ended by itself.
	Died error
}

// Program names the program by its place: proxy-node-1, etcd-123.
func (l *Log) Program() string { return strings.TrimSuffix(l.File, ".log") }

// BearsAll reports whether every check rests on the program: all API servers of a lab keep their objects in one etcd.
func (l *Log) BearsAll() bool { return strings.HasPrefix(l.File, string(programs.Etcd)) }

// OnEnd has f called for each program that ends by itself from now on; nil ends that.
func (l *Lab) OnEnd(f func(Log)) {
	l.endMu.Lock()
	defer l.endMu.Unlock()
	l.onEnd = f
}

func (l *Lab) tellEnd(p *process.Process) {
	l.endMu.Lock()
	defer l.endMu.Unlock()
	if l.onEnd != nil {
		l.onEnd(Log{File: filepath.Base(p.Log), Died: p.DiedError()})
	}
}

// KeepLogs copies logs into a folder, which is made if there is something to copy. They are those of programs that are
// none of the lab's own (see ProxyOptions and ServerOptions), and of programs that ended by themselves. To be called
// before Close, which removes them.
func (l *Lab) KeepLogs(folder string) ([]Log, error) {
	l.mu.Lock()
	dir := l.Dir
	l.mu.Unlock()
	if dir == nil {
		return nil, nil
	}
	var kept []Log
	var errs []error
	for _, p := range dir.Processes() {
		if !p.Foreign && !p.Died() {
			continue
		}
		k := Log{File: filepath.Base(p.Log)}
		if p.Died() {
			k.Died = p.DiedError()
		}
		i := slices.IndexFunc(kept, func(other Log) bool { return other.File == k.File })
		if i < 0 {
			errs = append(errs, CopyFile(p.Log, filepath.Join(folder, k.File)))
			kept = append(kept, k)
		} else if kept[i].Died == nil {
			kept[i].Died = k.Died
		}
	}
	return kept, errors.Join(errs...)
}

// CopyFile copies a file into a folder, which is made if it is missing.
func CopyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err != nil {
		err = fmt.Errorf("copy %s: %w", from, err)
	}
	return errors.Join(err, out.Close())
}
