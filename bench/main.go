// Command bench measures this project and writes docs/performance.md from what it measured:
//
//	bench allocators   the reference allocator beside Kubernetes' own; exit code 1 if it is less than five times as fast
//	bench runs         runs of the program: wall time, processor time, memory
//	bench servers      a run on real API servers beside a bare client that sends as many requests
//	bench page         docs/performance.md from bench/results
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const usage = `usage: bench allocators [-count N]
       bench runs [-count N] [-bin FILE] [NAME...]
       bench servers [-bin FILE]
       bench page
`

// errUsage is a wrong command line.
var errUsage = errors.New("wrong usage")

func main() {
	err := run(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprint(os.Stderr, usage)
		os.Exit(64)
	case errors.Is(err, errSlow):
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(70)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	testing.Init()
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	count := flags.Int("count", 5, "")
	bin := flags.String("bin", filepath.Join("..", "bin", "conformance"), "")
	if err := flags.Parse(args[1:]); err != nil || *count < 1 {
		return errUsage
	}
	named := flags.Args()
	switch {
	case args[0] == "allocators" && len(named) == 0:
		return measureAllocators(*count, out)
	case args[0] == "runs" && !slices.ContainsFunc(named, func(n string) bool { return find(n) == nil }):
		return measureRuns(*bin, *count, named, out)
	case args[0] == "runs":
		var names []string
		for _, c := range cases {
			names = append(names, c.Name)
		}
		return fmt.Errorf("%w: unknown run; there are %s", errUsage, strings.Join(names, ", "))
	case args[0] == "servers" && len(named) == 0:
		return measureServers(*bin, out)
	case args[0] == "page" && len(named) == 0:
		return writePage()
	}
	return errUsage
}
