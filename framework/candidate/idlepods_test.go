package candidate

import (
	"slices"
	"testing"
)

func TestIdlePodsHaveOneUserEach(t *testing.T) {
	var idle IdlePods[string]
	take := func(node string) string {
		t.Helper()
		pod, number, found := idle.Take(node)
		if !found {
			pod = node + "-" + string(rune('0'+number))
		}
		return pod
	}
	if first, second, elsewhere := take("a"), take("a"), take("b"); first != "a-1" || second != "a-2" || elsewhere != "b-1" {
		t.Fatalf("new pods: %s, %s, %s", first, second, elsewhere)
	}
	idle.Return("a", "a-2")
	idle.Return("a", "a-1")
	if again := take("a"); again != "a-2" {
		t.Errorf("%s is lent while a-2 rests longer", again)
	}
	if again := take("a"); again != "a-1" {
		t.Errorf("%s is lent while a-1 is idle", again)
	}
	if next := take("a"); next != "a-3" {
		t.Errorf("%s is lent while nobody has given a pod back", next)
	}
	idle.Return("b", "b-1")
	idle.Return("a", "a-3")
	if all := idle.TakeAll(); len(all) != 2 || !slices.Contains(all, "a-3") || !slices.Contains(all, "b-1") || len(idle.TakeAll()) > 0 {
		t.Errorf("a-3 and b-1 are idle, and %v are taken", all)
	}
	if other := take("b"); other != "b-2" {
		t.Errorf("%s is lent on another node", other)
	}
}
