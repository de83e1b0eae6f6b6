package runner

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/service-conformance/conformance/framework/check"
)

// Divide divides checks among n shards, and returns in which one each check is, by its name: with all its ranges, and from 1 on. That hangs on the checks and on n alone, so
// that every process divides alike. Of checks that cost about as much (check.Declaration.Alike) no shard has two more than another.
func Divide(declarations []check.Declaration, n int) map[string]int {
	ordered := slices.Clone(declarations)
	slices.SortStableFunc(ordered, func(a, b check.Declaration) int {
		return cmp.Or(cmp.Compare(a.Alike(), b.Alike()), cmp.Compare(runs(&b), runs(&a)), cmp.Compare(a.Name, b.Name))
	})
	shards := map[string]int{}
	load := make([]int, min(n, len(ordered))) // how many results each shard has; those beyond get none
	for len(ordered) > 0 {
		// One more check of a kind for each shard, and the longer one for whom has less.
		kind := ordered[0].Alike()
		of := 0
		for of < min(len(load), len(ordered)) && ordered[of].Alike() == kind {
			of++
		}
		for i, shard := range byLoad(load)[:of] {
			shards[ordered[i].Name] = shard + 1
			load[shard] += runs(&ordered[i])
		}
		ordered = ordered[of:]
	}
	return shards
}

// byLoad are the shards, those that have least first.
func byLoad(load []int) []int {
	shards := make([]int, len(load))
	for i := range shards {
		shards[i] = i
	}
	slices.SortStableFunc(shards, func(a, b int) int { return cmp.Compare(load[a], load[b]) })
	return shards
}

// runs is how many results a check has where no ranges are named.
func runs(d *check.Declaration) int { return max(1, len(d.ServiceCIDRs)) }

// seedOfShards is the seed of shards where none is named: they start by themselves, and could not agree on another one.
const seedOfShards = 1

// NewSeed is the seed of a run where none is named: any, or that which all shards of a run have.
func (s *Selection) NewSeed() int64 {
	if s.Shard.Of > 0 {
		return seedOfShards
	}
	return rand.Int64N(1<<31-1) + 1
}

// Divided is how many of the checks are divided among shards: those that are selected. Service ranges do not count, so that the clusters of a run, each of which has
// its own, divide alike.
func (s *Selection) Divided(declarations []check.Declaration) int {
	return len(s.selected(declarations))
}

func (s *Selection) selected(declarations []check.Declaration) []check.Declaration {
	return slices.DeleteFunc(slices.Clone(declarations), func(d check.Declaration) bool { return !s.selects(d) })
}

// elsewhere are the names of the checks that other shards run. Those that are left out of the whole run, for they are about other ranges, are not among them: every shard
// says so.
func (s *Selection) elsewhere(whole check.Setup) map[string]bool {
	check.Configure(whole)
	all := s.selected(check.Preview())
	shards, names := Divide(all, s.Shard.Of), map[string]bool{}
	for _, d := range all {
		if shards[d.Name] != s.Shard.Index && !d.OtherRanges {
			names[d.Name] = true
		}
	}
	return names
}
