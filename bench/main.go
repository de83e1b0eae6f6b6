// Command bench measures the reference allocator beside Kubernetes' in-memory bitmap allocator, at several fill levels of a
// /16, and prints how many times faster it is: the medians of several runs each, taken in turns. It exits 1 if the reference
// is less than five times as fast at any level.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"text/tabwriter"
)

// promised is how many times as many operations per second the reference does at least.
const promised = 5

func main() {
	testing.Init()
	count := flag.Int("count", 5, "runs of each measurement, of about a second each")
	flag.Parse()
	if flag.NArg() > 0 || *count < 1 {
		fmt.Fprintln(os.Stderr, "usage: bench [-count N], N at least 1")
		os.Exit(64)
	}
	kept := true
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "full\treference ns/op\tkubernetes ns/op\tratio\t\n")
	for _, percent := range levels {
		ns := map[string][]float64{}
		for range *count {
			for _, c := range contenders {
				r := testing.Benchmark(func(b *testing.B) { c.run(b, percent) })
				if r.N == 0 {
					fmt.Fprintf(os.Stderr, "the benchmark of the %s allocator at %d%% failed\n", c.name, percent)
					os.Exit(70)
				}
				ns[c.name] = append(ns[c.name], float64(r.T.Nanoseconds())/float64(r.N))
			}
		}
		ours, theirs := median(ns[reference.name]), median(ns[kubernetes.name])
		kept = kept && theirs >= promised*ours
		fmt.Fprintf(table, "%d%%\t%.0f\t%.0f\t%.1f\t\n", percent, ours, theirs, theirs/ours)
	}
	if err := table.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "print the table:", err)
		os.Exit(70)
	}
	if !kept {
		fmt.Fprintf(os.Stderr, "the reference is less than %d times as fast at some level\n", promised)
		os.Exit(1)
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	if n := len(values); n%2 == 0 {
		return (values[n/2-1] + values[n/2]) / 2
	}
	return values[len(values)/2]
}
