package check

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"
)

func TestFailuresSayWhatWasExpectedAndObserved(t *testing.T) {
	var got string
	g := gomega.NewGomega(func(message string, _ ...int) { got = plainMessage(message) })
	five := int32(5)
	for _, c := range []struct {
		demand func()
		want   string
	}{
		{func() { g.Expect(false).To(gomega.BeTrue(), "the watch goes on until %s", "DELETED") },
			"expected that the watch goes on until DELETED\nobserved that it is not so"},
		{func() { g.Expect(true).To(gomega.BeFalse(), "10.96.0.7 was handed out twice") },
			"expected that this does not happen\nobserved that 10.96.0.7 was handed out twice"},
		{func() { g.Expect("10.96.0.1").To(gomega.Equal("10.96.0.2"), "the address") },
			"the address\nexpected 10.96.0.2\nobserved 10.96.0.1"},
		{func() { g.Expect(&five).To(gomega.HaveValue(gomega.Equal(int32(4)))) }, "expected 4\nobserved 5"},
		{func() { g.Expect("").NotTo(gomega.BeEmpty()) }, "expected it not to be empty\nobserved nothing"},
		{func() { g.Expect([]string{"a"}).To(gomega.ContainElement("b")) }, "expected it to contain element matching b\nobserved [\"a\"]"},
		{func() {
			g.Expect(fmt.Errorf("create: %w", errors.New("no route"))).NotTo(gomega.HaveOccurred(), "the Service")
		},
			"the Service\nexpected no error\nobserved create: no route"},
		{func() {
			g.Eventually(context.Background(), func(g gomega.Gomega) { g.Expect(3).To(gomega.Equal(4), "the count") }).
				WithTimeout(time.Millisecond).Should(gomega.Succeed(), "the Service is served within 30s")
		}, "the Service is served within 30s (at check/message_test.go:35):\nthe count\nexpected 4\nobserved 3"},
		{func() { g.Expect(Response{Code: 200}).To(BeRefused()) }, BeRefused().FailureMessage(nil) + Response{Code: 200}.String()},
	} {
		if c.demand(); got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
	for _, other := range []string{"", "Expected", "Expected\n    a", "Unexpected error:\n    x", "after this: a change\nnot met within 30s"} {
		if plain := plainMessage(other); plain != other {
			t.Errorf("%q became %q", other, plain)
		}
	}
}

func FuzzPlainMessage(f *testing.F) {
	f.Add("a\nExpected\n    <bool>: false\nto be true")
	f.Add("Timed out after 1.2s.\nx\nThe function passed to Eventually failed at /a/b/c.go:1 with:\nExpected\n    <int>: 1\nto equal\n    <int>: 2")
	f.Fuzz(func(t *testing.T, message string) {
		if plain := plainMessage(message); plain == "" && message != "" && message != "\n" {
			t.Errorf("%q became empty", message)
		}
	})
}
