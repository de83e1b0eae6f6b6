package check

import (
	"context"
	"maps"
	"testing"

	"github.com/service-conformance/conformance/framework/candidate"
)

// teller is a data plane whose pods all have the same environment.
type teller struct {
	candidate.DataPlane
	told []string
}

func (t *teller) Environment(context.Context, candidate.PodName) ([]string, error) {
	return t.told, nil
}

func TestEnvironmentByName(t *testing.T) {
	n := &Network{plane: &teller{told: []string{"EMPTY=", "HOST=10.96.0.1", "URL=tcp://x?a=b"}}}
	want := map[string]string{"EMPTY": "", "HOST": "10.96.0.1", "URL": "tcp://x?a=b"}
	if got := n.Environment(t.Context(), candidate.Pod{}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
