//go:build unix

package kindcluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatIsJudgedIsInstalledByACommand(t *testing.T) {
	logs := t.TempDir()
	run := func(ctx context.Context, line string) error {
		return setUp(ctx, line, "one", "/folder/one.kubeconfig", logs)
	}
	if err := run(t.Context(), `echo installs in {name} by {kubeconfig}; test "$KUBECONFIG" = {kubeconfig}`); err != nil {
		t.Fatal(err)
	}
	if said, _ := os.ReadFile(filepath.Join(logs, setUpLog)); string(said) != "installs in one by /folder/one.kubeconfig\n" {
		t.Errorf("the log has %q", said)
	}
	err := run(t.Context(), `echo "error: there is no image" >&2; exit 3`)
	if err == nil || !strings.Contains(err.Error(), "exit status 3: error: there is no image") {
		t.Errorf("a command that fails: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := run(ended, "sleep 60"); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted command: %v", err)
	}
}
