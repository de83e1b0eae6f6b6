// Package leaktest fails the tests of a package that leave goroutines behind.
package leaktest

import (
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
)

// patience is how long goroutines may take to end once all tests are over.
const patience = 10 * time.Second

// Run runs the tests of a package, from its TestMain, and returns the exit code. Tests that pass fail all the same if
// goroutines that they started are still there ten seconds later; standard error names them. Connections that the
// default client keeps open are closed, and do not count. lasting names functions, with the path of their package.
// Their goroutines last as long as the process.
func Run(m interface{ Run() int }, lasting ...string) int { return run(m, patience, lasting) }

func run(m interface{ Run() int }, patience time.Duration, lasting []string) int {
	before := gleak.Goroutines()
	code := m.Run()
	if code != 0 {
		return code
	}
	http.DefaultClient.CloseIdleConnections()
	known := []any{before}
	for _, function := range lasting {
		known = append(known, gleak.IgnoringTopFunction(function))
	}
	g := gomega.NewGomega(func(message string, _ ...int) {
		fmt.Fprintln(os.Stderr, "goroutines are left:", message)
		code = 1
	})
	g.Eventually(gleak.Goroutines).WithTimeout(patience).WithPolling(20 * time.Millisecond).ShouldNot(gleak.HaveLeaked(known...))
	return code
}
