package allocator

import (
	"errors"
	"testing"
)

// TestPortsFill: of the default range the 86 lowest ports are given out last (KEP-3668).
func TestPortsFill(t *testing.T) {
	p, err := NewPorts(30000, 32767, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Allocate(30086); err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{30086: true}
	for i := range 2767 {
		port, err := p.AllocateNext()
		if err != nil || seen[port] || port < 30000 || port > 32767 {
			t.Fatalf("AllocateNext() = %d, %v", port, err)
		}
		if lower := port < 30086; lower != (i >= 2681) {
			t.Fatalf("port %d is given out at place %d", port, i)
		}
		seen[port] = true
	}
	if port, err := p.AllocateNext(); !errors.Is(err, ErrFull) {
		t.Errorf("AllocateNext() of a full range = %d, %v", port, err)
	}
	p.Release(30001)
	p.Release(30001)
	if p.Free() != 1 || p.Has(30001) {
		t.Errorf("%d ports are free after one was released", p.Free())
	}
	if port, err := p.AllocateNext(); port != 30001 || err != nil {
		t.Errorf("AllocateNext() = %d, %v, want the released port", port, err)
	}
}

func TestPortsRange(t *testing.T) {
	p, err := NewPorts(100, 109, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range []int{99, 110, 0, -1} {
		if err := p.Allocate(port); !errors.As(err, new(*PortNotInRangeError)) {
			t.Errorf("Allocate(%d) = %v, want that it is not in range", port, err)
		}
		p.Release(port)
		if p.Has(port) {
			t.Errorf("Has(%d) is true", port)
		}
	}
	for _, port := range []int{100, 109} {
		if err := p.Allocate(port); err != nil {
			t.Errorf("Allocate(%d) = %v", port, err)
		}
		if err := p.Allocate(port); !errors.Is(err, ErrAllocated) {
			t.Errorf("second Allocate(%d) = %v, want ErrAllocated", port, err)
		}
	}
	if p.Free() != 8 {
		t.Errorf("%d ports are free, want 8", p.Free())
	}
	for _, bad := range [][2]int{{0, 10}, {10, 9}, {1, 65536}} {
		if _, err := NewPorts(bad[0], bad[1], Options{}); err == nil {
			t.Errorf("NewPorts(%d, %d): no error", bad[0], bad[1])
		}
	}
}
