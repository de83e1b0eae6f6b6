// Package allocator shows how an implementer judges an address allocator. It judges the host-local IPAM of the CNI
// plugins, which hands out addresses in ascending order and knows no bands.
package allocator

import (
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/containernetworking/cni/pkg/types"
	hostlocal "github.com/containernetworking/plugins/plugins/ipam/host-local/backend/allocator"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/reference/allocator"
)

// hostLocal adapts host-local to what the reference API server asks of an allocator.
type hostLocal struct {
	mu     sync.Mutex
	prefix netip.Prefix
	bands  check.Bands
	ipam   *hostlocal.IPAllocator
	store  *memory
}

// NewHostLocal makes an allocator for a Service range.
func NewHostLocal(prefix netip.Prefix) (allocator.Allocator, error) {
	bands := check.BandsOf(prefix)
	if !bands.First.IsValid() {
		return nil, fmt.Errorf("%s has no usable address", prefix)
	}
	_, subnet, err := net.ParseCIDR(prefix.String())
	if err != nil {
		return nil, err
	}
	// host-local keeps one address for a gateway; a Service range has none, so it is given one that is never asked for.
	r := hostlocal.Range{
		Subnet: types.IPNet(*subnet), RangeStart: bands.First.AsSlice(), RangeEnd: bands.Last.AsSlice(), Gateway: bands.Network.AsSlice(),
	}
	set := hostlocal.RangeSet{r}
	if err := set.Canonicalize(); err != nil {
		return nil, err
	}
	store := &memory{owners: map[netip.Addr]string{}}
	return &hostLocal{prefix: prefix, bands: bands, store: store, ipam: hostlocal.NewIPAllocator(&set, store, 0)}, nil
}

// Allocate takes one address.
func (h *hostLocal) Allocate(addr netip.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.bands.InStatic(addr) && !h.bands.InDynamic(addr) {
		return &allocator.NotInRangeError{Prefix: h.prefix}
	}
	if h.store.has(addr) {
		return allocator.ErrAllocated
	}
	_, err := h.ipam.Get(addr.String(), "", addr.AsSlice())
	return err
}

// AllocateNext takes the address that host-local chooses.
func (h *hostLocal) AllocateNext() (netip.Addr, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.store.serial++
	config, err := h.ipam.Get(fmt.Sprint(h.store.serial), "", nil)
	if err != nil {
		return netip.Addr{}, allocator.ErrFull
	}
	addr, _ := netip.AddrFromSlice(config.Address.IP)
	return addr.Unmap(), nil
}

// Release gives an address back.
func (h *hostLocal) Release(addr netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.store.owners, addr)
}

// Has reports whether an address is taken.
func (h *hostLocal) Has(addr netip.Addr) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.store.has(addr)
}

// Free is the number of addresses left.
func (h *hostLocal) Free() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.bands.Usable.IsUint64() {
		return ^uint64(0)
	}
	return h.bands.Usable.Uint64() - uint64(len(h.store.owners))
}

// Prefix is the range.
func (h *hostLocal) Prefix() netip.Prefix { return h.prefix }

// memory is the store that host-local keeps its reservations in. Its caller holds the lock.
type memory struct {
	owners map[netip.Addr]string
	last   net.IP
	serial int
}

func (m *memory) has(addr netip.Addr) bool { _, taken := m.owners[addr]; return taken }

func (m *memory) Lock() error   { return nil }
func (m *memory) Unlock() error { return nil }
func (m *memory) Close() error  { return nil }

func (m *memory) Reserve(id, _ string, ip net.IP, _ string) (bool, error) {
	addr, _ := netip.AddrFromSlice(ip)
	addr = addr.Unmap()
	if m.has(addr) {
		return false, nil
	}
	m.owners[addr], m.last = id, ip
	return true, nil
}

func (m *memory) LastReservedIP(string) (net.IP, error) { return m.last, nil }

func (m *memory) ReleaseByID(id, _ string) error {
	for addr, owner := range m.owners {
		if owner == id {
			delete(m.owners, addr)
		}
	}
	return nil
}

func (m *memory) GetByID(string, string) []net.IP { return nil }
