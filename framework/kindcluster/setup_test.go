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
	logs, c := t.TempDir(), &Cluster{Name: "one", Kubeconfig: "/folder/one.kubeconfig"}
	if err := c.SetUp(t.Context(), `echo installs in {name} by {kubeconfig}; test "$KUBECONFIG" = {kubeconfig}`, logs); err != nil {
		t.Fatal(err)
	}
	if said, _ := os.ReadFile(filepath.Join(logs, setUpLog)); string(said) != "installs in one by /folder/one.kubeconfig\n" {
		t.Errorf("the log has %q", said)
	}
	err := c.SetUp(t.Context(), `echo "error: there is no image" >&2; exit 3`, logs)
	if err == nil || !strings.Contains(err.Error(), "set up cluster one: exit status 3: error: there is no image") {
		t.Errorf("a command that fails: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := c.SetUp(ended, "sleep 60", logs); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted command: %v", err)
	}
}
