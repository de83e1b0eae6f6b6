// Package allocator hands out the cluster IPs of a Service range and node ports.
//
// It follows the document "Service ClusterIP allocation" (and KEP-3070), and KEP-3668 for node ports. A range is split
// into a lower band, meant for addresses that users choose, and an upper band, which dynamic allocation uses first. A
// user may choose any address of the range.
//
// Every operation takes constant time at every fill level. The memory used depends on how many addresses are in use,
// not on the size of the range.
package allocator

import (
	"errors"
	"fmt"
	"net/netip"
)

// Allocator hands out the addresses of one range. All methods are safe for concurrent use.
type Allocator interface {
	// Allocate takes the address that the caller chose: "static" allocation. It returns ErrAllocated if the address is
	// taken and *NotInRangeError if it is not a usable address of the range.
	Allocate(netip.Addr) error
	// AllocateNext takes a free address that the allocator chooses: "dynamic" allocation. It returns ErrFull when none is free.
	AllocateNext() (netip.Addr, error)
	// Release makes an address free again. An address that is free or out of range is ignored.
	Release(netip.Addr)
	// Has reports whether the address is taken.
	Has(netip.Addr) bool
	// Free is the number of addresses that are not taken.
	Free() uint64
	// Prefix is the range.
	Prefix() netip.Prefix
}

// ErrAllocated says that a chosen address or port is in use.
var ErrAllocated = errors.New("it is already allocated")

// ErrFull says that no address or port is free.
var ErrFull = errors.New("range is full")

// NotInRangeError says that an address is not one of the usable addresses of a range.
type NotInRangeError struct{ Prefix netip.Prefix }

func (e *NotInRangeError) Error() string {
	return fmt.Sprintf("it is not a usable address of the range %s", e.Prefix)
}

// Options are common to the allocators of addresses and ports.
type Options struct {
	// Seed makes the sequence of dynamic allocations repeatable.
	Seed uint64
	// Faults are the deliberate bugs that are switched on.
	Faults Faults
}
