// Package embedded holds the agent alone, as a static program for Linux, where the build has put it (`make build`, `make release`). Its image is a tenth as
// large as that of the whole program, which can do the same. A program that was built by `go install` or `go build` holds none.
package embedded

import (
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed programs
var programs embed.FS

// ErrNone says that this program holds no agent for the architecture.
var ErrNone = errors.New("this program was built without the agent alone: build it with `make build`")

const (
	prefix = "agent-linux-"
	suffix = ".gz"
)

// Architectures are those that this program holds an agent for, as Go calls them, sorted.
func Architectures() []string {
	var found []string
	entries, err := fs.ReadDir(programs, "programs")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), prefix); ok && strings.HasSuffix(rest, suffix) {
			found = append(found, strings.TrimSuffix(rest, suffix))
		}
	}
	return found
}

// Write puts the agent for an architecture into a folder and returns its path. The error is ErrNone if this program holds none.
func Write(folder, architecture string) (path string, err error) {
	packed, err := programs.Open("programs/" + prefix + architecture + suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrNone
	}
	if err != nil {
		return "", err
	}
	defer packed.Close()
	return write(folder, architecture, packed)
}

func write(folder, architecture string, packed io.Reader) (path string, err error) {
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return "", fmt.Errorf("read the agent for %s: %w", architecture, err)
	}
	path = filepath.Join(folder, "conformance-agent-"+architecture)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(file, unpacked) //nolint:gosec // the build made it; the sum at its end is checked
	if err = errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("write the agent for %s: %w", architecture, err)
	}
	return path, nil
}
