package main

import (
	"fmt"
	"testing"
)

// BenchmarkAllocateRelease is for benchstat: go test -bench . -count 10 | benchstat -col /allocator -
func BenchmarkAllocateRelease(b *testing.B) {
	for _, percent := range levels {
		for _, c := range contenders {
			b.Run(fmt.Sprintf("full=%d/allocator=%s", percent, c.name), func(b *testing.B) { c.run(b, percent) })
		}
	}
}
