package kindcluster

import (
	"context"
	"errors"
	"testing"
)

func TestRunsOnOneClusterTakeTurns(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	none := func() { t.Error("it waits though there is no other run") }
	end, err := TakeTurn(t.Context(), "a", none)
	if err != nil {
		t.Fatal(err)
	}
	other, err := TakeTurn(t.Context(), "b", none)
	if err != nil {
		t.Fatal(err)
	}
	defer other()
	ctx, cancel := context.WithCancel(t.Context())
	waited := 0
	if _, err := TakeTurn(ctx, "a", func() { waited++; cancel() }); !errors.Is(err, context.Canceled) || waited != 1 {
		t.Errorf("waited %d times, error %v", waited, err)
	}
	end()
	again, err := TakeTurn(t.Context(), "a", none)
	if err != nil {
		t.Fatal(err)
	}
	again()
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if end, err = TakeTurn(t.Context(), "a", none); err != nil {
		t.Fatal(err)
	}
	end()
}
