package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/report"
)

func TestImageWithWrongUsage(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "script"), []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"image build extra", "takes flags only"},
		{"image build --tag Agent:v1", "--tag"},
		{"image build --tag a:b:c", "--tag"},
		{"image build --binary script", "CGO_ENABLED=0 go build"},
		{"image build --binary nowhere", "nowhere"},
		{"image push", "name one image"},
		{"image push a b", "name one image"},
		{"image push localhost:1/agent:v1 --binary script", "CGO_ENABLED=0 go build"},
		{"image push Agent:v1", "Agent"},
	} {
		_, stderr, code := conformance(t, dir, strings.Fields(c.args)...)
		if code != report.ExitUsage || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") > 3 {
			t.Errorf("%s: exit code %d and %q, want 64 and %q", c.args, code, stderr, c.want)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("files were left behind: %v", files)
	}
}
