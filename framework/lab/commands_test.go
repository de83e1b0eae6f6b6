package lab

import (
	"strings"
	"testing"
)

func TestALabWithACommandThatCannotBeStarted(t *testing.T) {
	o := Options{Servers: ServerOptions{EtcdCommand: "/does/not/exist"}}
	if err := Obtain(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), "etcd command: ") {
		t.Errorf("a lab with it: %v", err)
	}
}
