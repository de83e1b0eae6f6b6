package candidate

import "fmt"

// Shard is one of the parts of a run that several processes judge, maybe at the same time and on the same candidate. The zero value is a run that is not divided.
type Shard struct {
	// Index counts from 1.
	Index int `json:"index"`
	// Of is how many shards the run has.
	Of int `json:"of"`
}

func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Of) }

// Share is what the shard has of n numbers that shards must not share: size of them, from first on. A run that is not divided has all of them.
func (s Shard) Share(n int) (first, size int) {
	if s.Of == 0 {
		return 0, n
	}
	first = (s.Index - 1) * n / s.Of
	return first, s.Index*n/s.Of - first
}
