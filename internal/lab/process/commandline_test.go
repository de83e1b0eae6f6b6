package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommandsThatCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"/does/not/exist --flag":       "no program /does/not/exist",
		"no-such-program-of-anybody x": "no program no-such-program-of-anybody",
		dir:                            "is a folder",
		plain + " {node}":              "may not be executed",
		"":                             "",
		"/bin/sh -c 'echo {node}'":     "",
		"sleep 1":                      "",
		"if true; then echo; fi":       "",
		"VARIABLE=1 no-such-program":   "", // only a shell can tell
		"$HOME/no-such-program":        "",
	} {
		err := Startable(command)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", command, err, want)
		}
	}
}
