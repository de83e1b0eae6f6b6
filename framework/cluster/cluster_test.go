package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOpenExplainsWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	unreachable := write("unreachable", `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`)
	for name, c := range map[string]struct{ path, want string }{
		"missing":     {filepath.Join(dir, "none"), "read kubeconfig"},
		"empty":       {write("empty", ""), "is empty"},
		"not YAML":    {write("junk", "{"), "kubeconfig"},
		"no server":   {write("noserver", "apiVersion: v1\nkind: Config\n"), "kubeconfig"},
		"unreachable": {unreachable, "no Kubernetes API server answers at http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), Options{Kubeconfig: c.path})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
