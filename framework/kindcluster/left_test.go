package kindcluster

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestClustersOfAKilledRunAreKnownByTheirFiles(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"conformance-a-1.yaml", "conformance-a-1.kubeconfig", "conformance-a-2.yaml", "existing.kubeconfig", ".owner"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	names, err := madeIn(folder)
	if want := []string{"conformance-a-1", "conformance-a-2"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v, %v, want %v", names, err, want)
	}
	if err := deleteLeft(t.TempDir()); err != nil { // no engine is asked for nothing
		t.Error(err)
	}
}
