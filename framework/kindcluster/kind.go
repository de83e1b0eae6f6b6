package kindcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	kind "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
)

// Kind is the Provider of clusters of containers, on Docker, Podman or nerdctl, whichever kind finds first. It never touches the user's
// own kubeconfig.
type Kind struct {
	name       string
	kubeconfig string
	said       *journal
	library    *kind.Provider

	interrupted atomic.Bool // creation was

	asking sync.Mutex
	known  []nodes.Node // empty until they are asked for
}

var _ Provider = (*Kind)(nil)

// NewKind returns the provider of the cluster of this name, whose kubeconfig is written to a path.
func NewKind(name, kubeconfig string) *Kind {
	said := &journal{}
	return &Kind{name: name, kubeconfig: kubeconfig, said: said, library: kind.NewProvider(kind.ProviderWithLogger(said))}
}

// Available reports whether clusters can be made on this machine; the error says what is missing.
func Available() error {
	if _, err := kind.DetectNodeProvider(); err != nil {
		return errors.New("tier kind needs a Docker engine (or Podman, or nerdctl), and this machine has none: install one, " +
			"or judge a cluster that you have with --tier cluster")
	}
	if _, err := NewKind("", "").clusters(); err != nil {
		return err
	}
	return nil
}

func (k *Kind) clusters() ([]string, error) {
	names, err := k.library.List()
	if err != nil {
		return nil, fmt.Errorf("tier kind needs a Docker engine that answers: start it, and see that you may use it: %w", explained(err, nil))
	}
	return names, nil
}

// nodes are those that Kubernetes runs on. The library asks the engine several times to know them, and they stay the same.
func (k *Kind) nodes() ([]nodes.Node, error) {
	k.asking.Lock()
	defer k.asking.Unlock()
	if len(k.known) > 0 {
		return k.known, nil
	}
	all, err := k.library.ListInternalNodes(k.name)
	if err != nil {
		return nil, explained(err, nil)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("cluster %s has no nodes", k.name)
	}
	k.known = all
	return all, nil
}

// polling is how often creation that was interrupted is looked at and hindered.
const polling = 300 * time.Millisecond

// CreateWithConfig implements Provider. kind's library takes no context. When the context ends, the nodes are removed
// while kind still works, and again until it has noticed.
func (k *Kind) CreateWithConfig(ctx context.Context, file string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	done := make(chan error, 1)
	go func() {
		// Nodes are retained when it fails, because their logs say why.
		done <- k.library.Create(k.name, kind.CreateWithConfigFile(file), kind.CreateWithKubeconfigPath(k.kubeconfig), kind.CreateWithRetain(true))
	}()
	select {
	case err := <-done:
		if ctx.Err() != nil { // a Ctrl-C at a terminal reaches the commands of the library too
			k.interrupted.Store(true)
			return "", ctx.Err()
		}
		return k.kubeconfig, explained(err, k.said)
	case <-ctx.Done():
	}
	k.interrupted.Store(true)
	ticker := time.NewTicker(polling)
	defer ticker.Stop()
	for {
		_ = k.library.Delete(k.name, k.kubeconfig) // Destroy tells of errors
		select {
		case err := <-done:
			return "", cmp.Or(ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

// LoadImageArchive implements Provider.
func (k *Kind) LoadImageArchive(ctx context.Context, archive string, _ ...string) error {
	return await(ctx, func() error {
		nodes, err := k.nodes()
		if err != nil {
			return err
		}
		failures := make(chan error, len(nodes))
		for _, n := range nodes {
			go func() {
				f, err := os.Open(archive)
				if err == nil {
					defer f.Close()
					err = explained(nodeutils.LoadImageArchive(n, f), nil)
				}
				failures <- err
			}()
		}
		for range nodes {
			err = errors.Join(err, <-failures)
		}
		return err
	})
}

// ExportLogs implements Provider.
func (k *Kind) ExportLogs(ctx context.Context, folder string) error {
	return await(ctx, func() error { return explained(k.library.CollectLogs(k.name, folder), nil) })
}

// settled is how many looks in a row must find no node after creation was interrupted. The engine goes on with what the
// library's commands had asked it for, and such a node appears late.
const settled = 5

// Destroy implements Provider. It removes until nothing is left: the engine refuses to remove a node that it is just making.
func (k *Kind) Destroy(ctx context.Context) error {
	looks := 1
	if k.interrupted.Load() {
		looks = settled
	}
	ticker := time.NewTicker(polling)
	defer ticker.Stop()
	for none := 0; ; {
		left := 0
		err := await(ctx, func() error {
			deleteErr := k.library.Delete(k.name, k.kubeconfig)
			nodes, listErr := k.library.ListNodes(k.name)
			left = len(nodes)
			return explained(cmp.Or(deleteErr, listErr), nil)
		})
		none++
		if err != nil || left > 0 {
			none = 0
		}
		if none >= looks {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if err == nil {
				err = ctx.Err()
			}
			return fmt.Errorf("%w (try `kind delete cluster --name %s`)", err, k.name)
		}
	}
}

// find sees that the cluster exists and writes its kubeconfig.
func (k *Kind) find() error {
	names, err := k.clusters()
	if err != nil {
		return err
	}
	if !slices.Contains(names, k.name) {
		there := "there is none"
		if len(names) > 0 {
			there = "there are " + strings.Join(names, ", ")
		}
		return fmt.Errorf("no cluster of kind is called %q; %s", k.name, there)
	}
	text, err := k.library.KubeConfig(k.name, false)
	if err != nil {
		return fmt.Errorf("read the kubeconfig of cluster %s: %w", k.name, explained(err, nil))
	}
	return os.WriteFile(k.kubeconfig, []byte(text), 0o600)
}

// await runs f, which takes no context, and no longer waits for it when the context ends.
func await(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
