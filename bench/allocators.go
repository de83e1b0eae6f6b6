package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"text/tabwriter"

	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"

	"github.com/service-conformance/conformance/framework/reference/allocator"
)

// promised is how many times as many operations per second the reference does at least.
const promised = 5

// errSlow is a reference that does not do so.
var errSlow = fmt.Errorf("the reference is less than %d times as fast at some level", promised)

// measureAllocators prints, and writes, the medians of several runs of each allocator, taken in turns, of about a second each.
func measureAllocators(count int, out io.Writer) error {
	kept := true
	var measured []Allocator
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "full\treference ns/op\tkubernetes ns/op\tratio\t\n")
	for _, percent := range levels {
		ns := map[string][]float64{}
		for range count {
			for _, c := range contenders {
				r := testing.Benchmark(func(b *testing.B) { c.run(b, percent) })
				if r.N == 0 {
					return fmt.Errorf("the benchmark of the %s allocator at %d%% failed", c.name, percent)
				}
				ns[c.name] = append(ns[c.name], float64(r.T.Nanoseconds())/float64(r.N))
			}
		}
		ours, theirs := median(ns[reference.name]), median(ns[kubernetes.name])
		kept = kept && theirs >= promised*ours
		measured = append(measured, Allocator{percent, ours, theirs})
		fmt.Fprintf(table, "%d%%\t%.0f\t%.0f\t%.1f\t\n", percent, ours, theirs, theirs/ours)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	version, _, err := versionOf(filepath.Join("..", "bin", "conformance"))
	if err != nil {
		return err
	}
	file, err := open(version)
	if err == nil {
		file.Allocators = measured
		err = file.save()
	}
	if !kept {
		err = errors.Join(err, errSlow)
	}
	return err
}

// serviceCIDR is the range that both allocators fill: the largest that Kubernetes' bitmap serves in both IP families.
const serviceCIDR = "10.96.0.0/16"

// levels are how full the range is, in percent.
var levels = []int{0, 50, 90, 99}

// contender is an allocator under measurement. Its constructor returns functions that allocate any address and release
// the last one. It also returns how many addresses a new range has.
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
