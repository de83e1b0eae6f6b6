package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/reference"
	"github.com/service-conformance/conformance/framework/runner"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/framework/words"
)

// shownRequests is how many requests of a check are shown. A check that fills a range sends thousands that are alike.
const shownRequests = 40

// namespaceOfRun is the name of a namespace that a run makes.
var namespaceOfRun = regexp.MustCompile(`conformance-[a-z0-9]+-[0-9]+-[0-9]+`)

// byHand runs the checks of a requirement on the reference, and shows what they sent and what to look for.
func byHand(ctx context.Context, out io.Writer, id spec.ID, language string) error {
	c, err := reference.New(reference.Options{Seed: 1})
	if err != nil {
		return harness("%w", err)
	}
	fmt.Fprintln(out, "\n"+words.In(language, "explain-taken"))
	seen := map[string]bool{}
	err = runner.Run(ctx, runner.Options{
		Selection: runner.Selection{Focus: []string{string(id)}}, Candidate: c, Parallel: 1, Seed: 1, Version: check.BuildVersion(), Requests: shownRequests,
		Sink: func(e check.Event) {
			r := e.Result
			if r == nil || seen[r.Check] || !slices.Contains(r.Requirements, id) { // once, and not for each range
				return
			}
			seen[r.Check] = true
			writeByHand(out, r, language)
		},
	})
	return errors.Join(err, c.Close(context.WithoutCancel(ctx)))
}

func writeByHand(out io.Writer, r *check.Result, language string) {
	say := func(key string, args ...any) string { return words.Say(key, args...).In(language) }
	_, title, _ := strings.Cut(r.Check, ": ")
	does := say("explain-by-hand", strconv.Quote(title))
	if r.ServiceCIDR != "" {
		does = say("explain-by-hand-on", strconv.Quote(title), r.ServiceCIDR)
	}
	fmt.Fprintf(out, "\n%s\n", does)
	if r.Verdict == check.NotApplicable || r.Verdict == check.NotJudged {
		fmt.Fprintf(out, "  %s\n", say("explain-cannot-show", r.Reason))
		return
	}
	if len(r.Requests) == shownRequests {
		fmt.Fprintf(out, "  %s\n", say("explain-last", shownRequests))
	}
	names := map[string]string{}
	for _, request := range r.Requests {
		fmt.Fprintf(out, "  %s\n", namespaceOfRun.ReplaceAllStringFunc(request, func(name string) string {
			if names[name] == "" {
				names[name] = fmt.Sprintf("try-%d", len(names)+1)
				fmt.Fprintf(out, "  kubectl create namespace %s\n", names[name])
			}
			return names[name]
		}))
	}
	fmt.Fprintf(out, "  %s\n", say("explain-look-for", title))
	for _, e := range r.Evidence {
		fmt.Fprintf(out, "    %s: %s\n", e.Name, e.Value)
	}
	for _, c := range r.Convergence {
		fmt.Fprintf(out, "    %s\n", say("explain-after", c.What))
	}
}
