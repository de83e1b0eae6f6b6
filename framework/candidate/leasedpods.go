package candidate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// LeasedPods are the pods of one lease of a data plane: its own, which it has started, and those that were lent to it. P is what a tier knows of a pod. The
// zero value is ready for use, and safe for concurrent use.
type LeasedPods[P any] struct {
	mu        sync.Mutex
	released  bool
	own, lent map[PodName]P
}

// ErrReleased is the error of who starts or borrows something of a data plane after Release.
var ErrReleased = errors.New("the data plane was released")

// AddOwn adds a pod that the lease has started, or starts. The error is ErrReleased.
func (l *LeasedPods[P]) AddOwn(name PodName, pod P) error { return l.add(&l.own, name, pod) }

// AddLent adds a pod that was lent to the lease. The error is ErrReleased.
func (l *LeasedPods[P]) AddLent(name PodName, pod P) error { return l.add(&l.lent, name, pod) }

func (l *LeasedPods[P]) add(to *map[PodName]P, name PodName, pod P) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return ErrReleased
	}
	if *to == nil {
		*to = map[PodName]P{}
	}
	(*to)[name] = pod
	return nil
}

// Own finds a pod that the lease has started: it alone may be changed.
func (l *LeasedPods[P]) Own(name PodName) (P, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pod, found := l.own[name]
	if !found {
		return pod, fmt.Errorf("there is no pod %s of this lease", name)
	}
	return pod, nil
}

// Sender finds a pod that the lease may send from: its own, or one that was lent to it.
func (l *LeasedPods[P]) Sender(name PodName) (P, error) {
	l.mu.Lock()
	pod, found := l.lent[name]
	l.mu.Unlock()
	if found {
		return pod, nil
	}
	return l.Own(name)
}

// Forget takes a pod out that the lease has removed.
func (l *LeasedPods[P]) Forget(name PodName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.own, name)
}

// Release takes all pods out and lets none in any more.
func (l *LeasedPods[P]) Release() (own, lent []P) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own, lent = slices.Collect(maps.Values(l.own)), slices.Collect(maps.Values(l.lent))
	l.released, l.own, l.lent = true, nil, nil
	return own, lent
}
