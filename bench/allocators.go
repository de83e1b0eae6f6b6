package main

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"

	"github.com/service-conformance/conformance/framework/reference/allocator"
)

// serviceCIDR is the range that both allocators fill: the largest that Kubernetes' bitmap serves in both IP families.
const serviceCIDR = "10.96.0.0/16"

// levels are how full the range is, in percent.
var levels = []int{0, 50, 90, 99}

// contender is an allocator under measurement: a constructor, whose functions allocate any address and release the one
// allocated last, and say how many addresses a new range has.
type contender struct {
	name string
	make func() (size int, allocate, release func() error, err error)
}

var (
	reference = contender{name: "reference", make: func() (int, func() error, func() error, error) {
		a, err := allocator.New(netip.MustParsePrefix(serviceCIDR), allocator.Options{Seed: 1})
		if err != nil {
			return 0, nil, nil, err
		}
		var last netip.Addr
		allocate := func() (err error) { last, err = a.AllocateNext(); return err }
		release := func() error { a.Release(last); return nil }
		return int(a.Free()), allocate, release, nil
	}}
	kubernetes = contender{name: "kubernetes", make: func() (int, func() error, func() error, error) {
		_, cidr, err := net.ParseCIDR(serviceCIDR)
		if err != nil {
			return 0, nil, nil, err
		}
		a, err := ipallocator.NewInMemory(cidr)
		if err != nil {
			return 0, nil, nil, err
		}
		var last net.IP
		allocate := func() (err error) { last, err = a.AllocateNext(); return err }
		release := func() error { return a.Release(last) }
		return a.Free(), allocate, release, nil
	}}
	contenders = []contender{reference, kubernetes}
)

// run measures one allocation and one release in a range that is filled to a level beforehand.
func (c contender) run(b *testing.B, percent int) {
	size, allocate, release, err := c.make()
	if err != nil {
		b.Fatal(err)
	}
	for range size * percent / 100 {
		if err := allocate(); err != nil {
			b.Fatal(fmt.Errorf("fill to %d%%: %w", percent, err))
		}
	}
	for b.Loop() {
		if err := allocate(); err != nil {
			b.Fatal(err)
		}
		if err := release(); err != nil {
			b.Fatal(err)
		}
	}
}
