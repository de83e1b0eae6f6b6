package candidate

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func TestSharesOfShardsArePartsOfTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, of := rapid.IntRange(0, 1000).Draw(t, "n"), rapid.IntRange(1, 60).Draw(t, "of")
		next := 0
		for i := 1; i <= of; i++ {
			first, size := Shard{i, of}.Share(n)
			if first != next || size < n/of || size > n/of+1 {
				t.Fatalf("shard %d of %d has %d of %d numbers from %d on, the one before ends at %d", i, of, size, n, first, next)
			}
			next = first + size
		}
		if next != n {
			t.Fatalf("%d shards have %d of %d numbers", of, next, n)
		}
	})
	if first, size := (Shard{}).Share(7); first != 0 || size != 7 {
		t.Errorf("a run that is not divided has %d numbers from %d on", size, first)
	}
}

func TestExternalAddressesOfShardsDiffer(t *testing.T) {
	const of, leases = 3, 500
	taken := map[netip.Addr]int{}
	for i := 1; i <= of; i++ {
		var e ExternalAddresses
		e.Among(Shard{i, of})
		for range leases {
			for _, a := range e.Take() {
				if by, before := taken[a]; before {
					t.Fatalf("%s is taken by shards %d and %d", a, by, i)
				}
				taken[a] = i
			}
		}
	}
}
