package allocator

import "testing"

// TestAddressBandOffset holds the offset of every size from /30 to /8 and of the IPv6 ranges.
func TestAddressBandOffset(t *testing.T) {
	for _, c := range []struct {
		bits int // of the host part
		want uint64
	}{
		{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0},
		{5, 16}, {6, 16}, {7, 16}, {8, 16},
		{9, 32}, {10, 64}, {11, 128},
		{12, 256}, {13, 256}, {16, 256}, {20, 256}, {24, 256}, {63, 256},
	} {
		if got := addressOffset.Do(1<<c.bits, 0); got != c.want {
			t.Errorf("offset of a range with 2^%d addresses = %d, want %d", c.bits, got, c.want)
		}
	}
}

func TestPortBandOffset(t *testing.T) {
	for _, c := range []struct{ size, want uint64 }{
		{1, 0}, {16, 0}, {17, 16}, {512, 16}, {544, 17}, {1000, 31}, {2768, 86}, {4096, 128}, {65535, 128},
	} {
		if got := portOffset.Do(c.size, 0); got != c.want {
			t.Errorf("offset of a range of %d ports = %d, want %d", c.size, got, c.want)
		}
	}
}
