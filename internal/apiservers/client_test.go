package apiservers

import (
	"testing"

	"github.com/service-conformance/conformance/framework/candidate"
)

func TestNewClientRefusesAnEmptyAuthority(t *testing.T) {
	if _, err := NewClient(candidate.Access{CA: []byte("no certificate")}); err == nil {
		t.Error("no error")
	}
}
