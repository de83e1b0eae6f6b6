package lab

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/controlplane"
	"github.com/service-conformance/conformance/internal/lab/fakes"

	"github.com/service-conformance/conformance/framework/candidate"
)

// TestAProgramThatEndsIsTold demands that a program that ends by itself is told at once and has its log kept. One that
// the lab has ended is not told.
func TestAProgramThatEndsIsTold(t *testing.T) {
	l := newFakeLab(t)
	told := make(chan Log, 10)
	l.OnEnd(func(ended Log) { told <- ended })
	cp, err := l.ControlPlane(t.Context(), candidate.Request{ServiceCIDRs: fakes.Prefixes("10.96.0.0/24"), Exclusive: true})
	fakes.Must(t, err)
	fakes.Must(t, cp.(candidate.ServerOwner).Restart(t.Context()))
	if kept, err := l.KeepLogs(t.TempDir()); err != nil || len(kept) > 0 {
		t.Errorf("after a restart: %v, %v", kept, err)
	}
	server := cp.(*controlplane.ControlPlane).Server.Process
	fakes.Must(t, server.OS.Kill())
	ended := <-told
	if ended.File != filepath.Base(server.Log) || ended.Died == nil {
		t.Errorf("told: %+v", ended)
	}
	folder := t.TempDir()
	kept, err := l.KeepLogs(folder)
	fakes.Must(t, err)
	if len(kept) != 1 || kept[0].File != ended.File || kept[0].Died == nil {
		t.Errorf("kept: %+v", kept)
	}
	if _, err := os.Stat(filepath.Join(folder, ended.File)); err != nil {
		t.Error(err)
	}
	cp.Release()
	fakes.Must(t, l.Close(t.Context()))
	if len(told) > 0 {
		t.Errorf("told of what the lab has ended: %+v", <-told)
	}
}
