package clusterrun

import "context"

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
