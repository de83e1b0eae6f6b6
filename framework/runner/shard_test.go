package runner

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// TestDividingIsAFairPartition demands that each check is in one shard, whatever order the checks come in. No shard has
// two more of a kind than another.
func TestDividingIsAFairPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []check.Declaration
		for i := range rapid.IntRange(0, 200).Draw(t, "checks") {
			all = append(all, check.Declaration{
				Suite: rapid.SampledFrom([]string{"allocation", "proxy"}).Draw(t, "suite"), Name: fmt.Sprint("check ", i), Traffic: rapid.Bool().Draw(t, "traffic"),
				ServiceCIDRs: make([]string, rapid.IntRange(0, 9).Draw(t, "ranges")),
			})
		}
		n := rapid.IntRange(1, 50).Draw(t, "n")
		shards := Divide(all, n)
		if len(shards) != len(all) {
			t.Fatalf("%d of %d checks are in a shard", len(shards), len(all))
		}
		kinds := map[string][]int{}
		for _, d := range all {
			if i := shards[d.Name]; i < 1 || i > n {
				t.Fatalf("%s is in shard %d of %d", d.Name, i, n)
			}
			if kinds[d.Alike()] == nil {
				kinds[d.Alike()] = make([]int, n)
			}
			kinds[d.Alike()][shards[d.Name]-1]++
		}
		for kind, counts := range kinds {
			least, most := counts[0], counts[0]
			for _, c := range counts {
				least, most = min(least, c), max(most, c)
			}
			if most > least+1 {
				t.Fatalf("of the checks %s the shards have %v", kind, counts)
			}
		}
		rand.New(rand.NewPCG(uint64(rapid.IntRange(0, 100).Draw(t, "order")), 1)).Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
		if !maps.Equal(shards, Divide(all, n)) {
			t.Fatal("it hangs on the order in which the checks are declared")
		}
	})
}

func TestThereAreNoMoreShardsThanChecks(t *testing.T) {
	id := spec.Default().Requirements[0].ID
	declarations := []check.Declaration{{Suite: "allocation", Name: "a", Requirements: []spec.ID{id}}, {Suite: "allocation", Name: "b", Requirements: []spec.ID{id}}, {Suite: "proxy", Name: "c"}}
	for of, want := range map[int]string{2: "", 3: "the selection has 2", 1 << 40: "the selection has 2"} {
		s := Selection{Suites: []string{"allocation"}, Shard: candidate.Shard{Index: 1, Of: of}}
		if err := s.Validate(declarations); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d shards of 2 checks: %v", of, err)
		}
		if got := len(Divide(declarations, of)); got != 3 { // without room for shards that have nothing
			t.Errorf("%d checks are in %d shards", got, of)
		}
	}
}
