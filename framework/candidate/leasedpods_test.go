package candidate

import (
	"errors"
	"slices"
	"testing"
)

func TestLeasedPodsAreSentFromAndChangedByTheirLease(t *testing.T) {
	var pods LeasedPods[string]
	own, lent, strange := PodName{Name: "own"}, PodName{Name: "lent"}, PodName{Name: "strange"}
	if err := errors.Join(pods.AddOwn(own, "a"), pods.AddLent(lent, "b")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		find func(PodName) (string, error)
		name PodName
		want string // empty for none
	}{
		{pods.Own, own, "a"}, {pods.Own, lent, ""}, {pods.Own, strange, ""},
		{pods.Sender, own, "a"}, {pods.Sender, lent, "b"}, {pods.Sender, strange, ""},
	} {
		if got, err := c.find(c.name); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
	pods.Forget(lent) // is not the lease's to remove
	if _, err := pods.Sender(lent); err != nil {
		t.Error(err)
	}
	pods.Forget(own)
	if _, err := pods.Own(own); err == nil {
		t.Error("a pod that was removed is still there")
	}
}

func TestReleasedLeasesTakeNoPods(t *testing.T) {
	var pods LeasedPods[string]
	name := PodName{Name: "pod"}
	if err := errors.Join(pods.AddOwn(name, "a"), pods.AddLent(name, "b")); err != nil {
		t.Fatal(err)
	}
	own, lent := pods.Release()
	if !slices.Equal(own, []string{"a"}) || !slices.Equal(lent, []string{"b"}) {
		t.Errorf("released %q and %q", own, lent)
	}
	if err := pods.AddOwn(name, "c"); !errors.Is(err, ErrReleased) {
		t.Errorf("own: %v", err)
	}
	if err := pods.AddLent(name, "c"); !errors.Is(err, ErrReleased) {
		t.Errorf("lent: %v", err)
	}
	if _, err := pods.Sender(name); err == nil {
		t.Error("a pod is found after the release")
	}
}
