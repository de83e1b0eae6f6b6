package embedded

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"testing"
)

func TestNoAgentForAnUnknownArchitecture(t *testing.T) {
	if _, err := Write(t.TempDir(), "pdp11"); !errors.Is(err, ErrNone) {
		t.Errorf("error %v", err)
	}
}

func TestWhatIsHeldCanBeWritten(t *testing.T) {
	for _, architecture := range Architectures() {
		path, err := Write(t.TempDir(), architecture)
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(content, []byte("\x7fELF")) {
			t.Errorf("the agent for %s is no ELF program: %v", architecture, err)
		}
	}
}

func TestAnAgentIsWrittenWhole(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte("program"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path, err := write(t.TempDir(), "amd64", bytes.NewReader(packed.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil || string(content) != "program" {
		t.Errorf("content %q, error %v", content, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	if _, err := write(t.TempDir(), "amd64", bytes.NewReader(packed.Bytes()[:packed.Len()-6])); err == nil {
		t.Error("a truncated agent was written without an error")
	}
}
