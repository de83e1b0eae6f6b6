package candidate

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestInsist(t *testing.T) {
	gaveUp, refused, gone := apierrors.NewTimeoutError("gave it up", 0), apierrors.NewAlreadyExists(corev1.Resource("pods"), "a"), errors.New("connection refused")
	for name, c := range map[string]struct {
		answers []error // the last one again and again
		asked   int
		err     error
	}{
		"answered":      {answers: []error{nil}, asked: 1},
		"given up once": {answers: []error{gaveUp, nil}, asked: 2},
		"always":        {answers: []error{gaveUp}, asked: insistence.Steps, err: gaveUp},
		"refused":       {answers: []error{refused}, asked: 1, err: refused},
		"then refused":  {answers: []error{gaveUp, refused}, asked: 2, err: refused},
		"nobody there":  {answers: []error{gone}, asked: 1, err: gone},
	} {
		synctest.Test(t, func(t *testing.T) { // the pauses take no time
			var again []bool
			err := Insist(t.Context(), func(a bool) error {
				again = append(again, a)
				return c.answers[min(len(again), len(c.answers))-1]
			})
			want := slices.Repeat([]bool{true}, c.asked)
			want[0] = false
			if !errors.Is(err, c.err) || !slices.Equal(again, want) {
				t.Errorf("%s: %v, asked %v", name, err, again)
			}
		})
	}
}

func TestInsistEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	err := Insist(ctx, func(bool) error {
		asked++
		cancel()
		return apierrors.NewTimeoutError("gave it up", 0)
	})
	if !apierrors.IsTimeout(err) || asked != 1 {
		t.Errorf("%v, asked %d times", err, asked)
	}
}
