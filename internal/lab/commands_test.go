package lab

import (
	"strings"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/programs"
)

func TestALabWithACommandThatCannotBeStarted(t *testing.T) {
	o := Options{Servers: programs.ServerOptions{EtcdCommand: "/does/not/exist"}}
	if _, _, err := ProgramsOf(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), "etcd command: ") {
		t.Errorf("a lab with it: %v", err)
	}
}
