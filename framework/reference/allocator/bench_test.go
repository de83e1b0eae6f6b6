package allocator

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// BenchmarkAllocateRelease takes an address and gives it back, in ranges filled to different levels. The module in bench/
// compares with Kubernetes' own allocator.
func BenchmarkAllocateRelease(b *testing.B) {
	for _, prefix := range []string{"10.96.0.0/16", "10.0.0.0/8", "fd00::/64"} {
		for _, percent := range []uint64{0, 50, 90, 99} {
			a, err := New(netip.MustParsePrefix(prefix), Options{Seed: 1})
			if err != nil {
				b.Fatal(err)
			}
			if a.Free() > 1<<16 && percent > 0 {
				continue
			}
			b.Run(fmt.Sprintf("%s/%d%%", strings.ReplaceAll(prefix, "/", "_"), percent), func(b *testing.B) {
				for range a.Free() * percent / 100 {
					if _, err := a.AllocateNext(); err != nil {
						b.Fatal(err)
					}
				}
				b.ResetTimer()
				for b.Loop() {
					ip, err := a.AllocateNext()
					if err != nil {
						b.Fatal(err)
					}
					a.Release(ip)
				}
			})
		}
	}
}
