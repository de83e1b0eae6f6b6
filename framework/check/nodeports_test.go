package check

import (
	"testing"

	"github.com/service-conformance/conformance/framework/candidate"
)

// TestProcessesOfShardsShareNoNodePort demands that each number belongs to exactly one process of one shard, though shards have different numbers of processes.
func TestProcessesOfShardsShareNoNodePort(t *testing.T) {
	const band = 86
	for _, processes := range [][]int{{8}, {8, 3}, {1, 8, 4}, {2, 2, 2, 2, 2}} {
		owners := make([]int, band)
		for i, n := range processes {
			first, size := candidate.Shard{Index: i + 1, Of: len(processes)}.Share(band)
			for p := range n {
				mine, has := shareOfProcess(first, size, n, p+1), 0
				for number := range band {
					if mine(number) {
						owners[number]++
						has++
					}
				}
				if has < 2 { // what a check needs at most
					t.Errorf("process %d of %d of shard %d of %d has %d numbers", p+1, n, i+1, len(processes), has)
				}
			}
		}
		for number, n := range owners {
			if n != 1 {
				t.Errorf("shards of %v processes: number %d has %d owners", processes, number, n)
			}
		}
	}
}
