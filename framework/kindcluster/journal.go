package kindcluster

import (
	"fmt"
	"strings"
	"sync"

	"sigs.k8s.io/kind/pkg/log"
)

// journal is a logger of kind that shows nothing and keeps the last stage, for an error to name. Safe for concurrent use.
type journal struct {
	mu    sync.Mutex
	stage string
}

var _ log.Logger = (*journal)(nil)

func (*journal) Warn(string)           {}
func (*journal) Warnf(string, ...any)  {}
func (*journal) Error(string)          {}
func (*journal) Errorf(string, ...any) {}

// V implements log.Logger: stages are of level 0.
func (j *journal) V(level log.Level) log.InfoLogger {
	if level > 0 {
		return log.NoopInfoLogger{}
	}
	return stages{j}
}

type stages struct{ journal *journal }

func (stages) Enabled() bool                      { return true }
func (s stages) Infof(format string, args ...any) { s.Info(fmt.Sprintf(format, args...)) }

// Info keeps what kind is about to do: " • Preparing nodes 📦  ...". What it has done (" ✓ ") or failed to do (" ✗ ") says nothing new.
func (s stages) Info(message string) {
	text, begun := strings.CutPrefix(strings.TrimSpace(message), "•")
	if !begun {
		return
	}
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r > 0x7e { // the pictures
			return -1
		}
		return r
	}, strings.TrimRight(text, " .")))
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	s.journal.stage = text
}

// last is the stage that was begun last; empty if none was.
func (j *journal) last() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stage
}
