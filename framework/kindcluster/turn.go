package kindcluster

import (
	"context"
	"os"
	"path/filepath"

	"github.com/service-conformance/conformance/internal/scratch"
)

// TakeTurn waits until no other run of this user judges the existing cluster of the name. Each run prepares the nodes
// (Fence, StartOutside), and undoes that at its end. waiting is called once if there is another run. What is returned
// ends the turn. Where the user has no cache folder to keep a lock in, nobody waits. The error is that of ctx if it
// ends before.
func TakeTurn(ctx context.Context, name string, waiting func()) (end func(), err error) {
	var lock *scratch.Lock
	dir, err := os.UserCacheDir()
	if err == nil {
		lock, err = scratch.LockFile(ctx, filepath.Join(dir, "conformance", "kind", name+".lock"), waiting)
	}
	switch {
	case lock != nil:
		return lock.Remove, nil
	case ctx.Err() != nil:
		return nil, err
	}
	return func() {}, nil
}
