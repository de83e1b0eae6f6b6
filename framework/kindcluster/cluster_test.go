package kindcluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// fake is a Provider that notes what it is asked for.
type fake struct {
	calls     []string
	creating  error // what creation ends with
	exporting error
	onCreate  func()
}

func (f *fake) CreateWithConfig(ctx context.Context, _ string) (string, error) {
	f.calls = append(f.calls, "create")
	if f.onCreate != nil {
		f.onCreate()
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return "kubeconfig", f.creating
}

func (f *fake) LoadImageArchive(context.Context, string, ...string) error { return nil }

func (f *fake) ExportLogs(_ context.Context, folder string) error {
	f.calls = append(f.calls, "export "+folder)
	return f.exporting
}

func (f *fake) Destroy(ctx context.Context) error {
	f.calls = append(f.calls, "destroy")
	return ctx.Err()
}

func isReady(context.Context, string) error { return nil }

func TestCreateLeavesNothingOfAClusterThatFails(t *testing.T) {
	broken := errors.New("it broke")
	for name, c := range map[string]struct {
		provider *fake
		ready    func(context.Context, string) error
		want     string
	}{
		"while it is made":        {&fake{creating: broken}, isReady, "it broke; its logs are in logs"},
		"while it gets ready":     {&fake{}, func(context.Context, string) error { return broken }, "it broke; its logs are in logs"},
		"and so do its last logs": {&fake{creating: broken, exporting: errors.New("no space")}, isReady, "could not be exported: no space"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := create(t.Context(), c.provider, "n", "config", "logs", c.ready)
			if !errors.Is(err, broken) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if !slices.Equal(c.provider.calls, []string{"create", "export logs", "destroy"}) {
				t.Errorf("calls %q", c.provider.calls)
			}
		})
	}
}

func TestCreateThatIsInterruptedDestroys(t *testing.T) {
	for _, where := range []string{"while it is made", "while it gets ready"} {
		t.Run(where, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := &fake{}
			ready := func(ctx context.Context, _ string) error {
				cancel()
				<-ctx.Done()
				return ctx.Err()
			}
			if where == "while it is made" {
				p.onCreate = cancel
			}
			_, err := create(ctx, p, "n", "config", "logs", ready)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if strings.Contains(err.Error(), "delete cluster") {
				t.Errorf("it was destroyed with a context that had ended: %v", err)
			}
			if !slices.Equal(p.calls, []string{"create", "destroy"}) {
				t.Errorf("calls %q", p.calls)
			}
		})
	}
}

func TestDeleteSaysHowToDoItByHand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := &Cluster{Name: "n", provider: &fake{}}
	if err := c.Delete(ctx); err == nil || !strings.Contains(err.Error(), "kind delete cluster --name n") {
		t.Errorf("got %v", err)
	}
}
