package clusterrun

import (
	"errors"
	"testing"
)

func TestWhyAProcessCouldNotJudge(t *testing.T) {
	for said, want := range map[string]string{"": "signal: killed", " \n": "signal: killed", "conformance: no such file\n": "signal: killed: no such file"} {
		if got := explained(errors.New("signal: killed"), said).Error(); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}
