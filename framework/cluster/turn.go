package cluster

import (
	"context"
	"fmt"
	"sync"
)

// turn lets any number of checks share a cluster, or one have it alone. Who waits for it alone comes before those who
// ask later to share it.
type turn struct {
	mu      sync.Mutex
	sharing int
	alone   bool
	waiting int           // for it alone
	changed chan struct{} // closed when somebody may go on; nil while nobody waits
}

// take waits until allowed says yes, and then calls taken. Both are called with the lock.
func (t *turn) take(ctx context.Context, allowed func() bool, taken func()) error {
	for {
		t.mu.Lock()
		if allowed() {
			taken()
			t.mu.Unlock()
			return nil
		}
		if t.changed == nil {
			t.changed = make(chan struct{})
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for the cluster: %w", context.Cause(ctx))
		}
	}
}

// change changes what the turn knows, and wakes those who wait.
func (t *turn) change(how func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	how()
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// share takes a part of the cluster; what is returned gives it back, and may be called more than once.
func (t *turn) share(ctx context.Context) (back func(), err error) {
	err = t.take(ctx, func() bool { return !t.alone && t.waiting == 0 }, func() { t.sharing++ })
	return sync.OnceFunc(func() { t.change(func() { t.sharing-- }) }), err
}

// own takes the cluster alone.
func (t *turn) own(ctx context.Context) (back func(), err error) {
	t.change(func() { t.waiting++ })
	err = t.take(ctx, func() bool { return !t.alone && t.sharing == 0 }, func() { t.alone = true })
	t.change(func() { t.waiting-- })
	return sync.OnceFunc(func() { t.change(func() { t.alone = false }) }), err
}
