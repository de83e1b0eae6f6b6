package controlplane

import (
	"testing"
)

func TestServersThatFit(t *testing.T) {
	if n := ServersThatFit(); n < 1 || n > maxServers {
		t.Errorf("%d servers", n)
	}
}
