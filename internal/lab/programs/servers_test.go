package programs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAServerCommandIsGivenTheFlagsAndAsked(t *testing.T) {
	script := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n[ \"$1 $2\" = \"own --version\" ] && echo Kubernetes v1.36.9+vendor\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	b := &Binaries{Servers: ServerOptions{APIServerCommand: script + " own"}}
	if v, err := b.ServedVersion(t.Context(), ""); err != nil || v != (Version{36, 9}) || b.Version != "v1.36.9+vendor" {
		t.Errorf("%v, %v, %q", v, err, b.Version)
	}
	if _, err := b.ServedVersion(t.Context(), "v1.37.1"); err == nil || !strings.Contains(err.Error(), "not v1.37.1 as asked for") {
		t.Errorf("another version than the one asked for: %v", err)
	}
}
