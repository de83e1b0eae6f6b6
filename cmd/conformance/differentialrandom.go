package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/internal/differential"
	"github.com/service-conformance/conformance/internal/differential/dns"
	"github.com/service-conformance/conformance/internal/differential/random"
	"github.com/service-conformance/conformance/internal/differential/traffic"
	"github.com/service-conformance/conformance/internal/lab"
	"github.com/service-conformance/conformance/internal/wholefile"
)

// randomFlags are those of the commands that compare random inputs.
type randomFlags struct {
	lasts    time.Duration
	most     int
	seed     uint64
	from     int
	parallel int
	dir      string
	shrinks  time.Duration
}

func (f *randomFlags) register(flags *pflag.FlagSet, parallel int) {
	flags.DurationVar(&f.lasts, "for", time.Minute, "how long inputs are begun")
	flags.IntVar(&f.most, "most", 0, "end after so many inputs (default: --for alone says)")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of the inputs (default: a new one, printed)")
	flags.IntVar(&f.from, "from", 0, "number of the first input of the seed")
	flags.IntVar(&f.parallel, "parallel", parallel, "number of inputs that are compared at a time")
	flags.StringVar(&f.dir, "report-dir", filepath.Join("conformance-report", "differential"), "folder for the inputs that differ")
	flags.DurationVar(&f.shrinks, "shrink", time.Minute, "how long a smaller input is looked for, for each class of differences")
}

// validate returns wrong usage. files name inputs that are compared instead of random ones.
func (f *randomFlags) validate(files []string) error {
	switch {
	case f.lasts <= 0 || f.most < 0 || f.from < 0 || f.parallel < 1 || f.shrinks < 0:
		return usage("--for and --parallel are positive, and --most, --from and --shrink are not negative")
	case len(files) > 0 && (f.seed != 0 || f.from != 0 || f.most != 0):
		return usage("files name the inputs: --seed, --from and --most are for random ones")
	}
	if f.seed == 0 {
		f.seed = rand.Uint64() >> 32
	}
	return nil
}

// besideLab starts the reference and a lab, and has do compare them. Both end with it.
func (f *randomFlags) besideLab(ctx context.Context, out io.Writer, o lab.Options, do func(sound, other candidate.Candidate) error) error {
	if done, err := isolate(ctx, out, o); done || err != nil {
		return err
	}
	sound, err := reference.New(reference.Options{Seed: f.seed, Version: o.Version})
	if err != nil {
		return harness("start the reference: %w", err)
	}
	defer func() { _ = sound.Close(context.WithoutCancel(ctx)) }() // it is in this process
	other, err := openLab(ctx, out, o)
	if err != nil {
		return err
	}
	p := &place{Candidate: other}
	defer p.close()
	return do(sound, other)
}

// suite is what is compared, of whatever kind.
type suite[Input any, D random.Difference] struct {
	random.Test[Input, D]
	// name begins the names of files.
	name string
	// shrink looks for a smaller input that differs in the same way.
	shrink func(context.Context, Input, D) (Input, D, error)
	// commands show an input with a difference to a person.
	commands func(Input, D) (string, error)
	// sent says how much was sent, in words.
	sent func() string
	// tolerated are the names of tolerances, and what each means.
	tolerated [][2]string
}

// readInputs reads files, before anything is started.
func readInputs[Input any](files []string, parse func([]byte) (Input, error)) (inputs []Input, err error) {
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		input, err := parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		inputs = append(inputs, input)
	}
	return inputs, nil
}

// compare compares inputs of files, or random ones if there are none.
func (s *suite[Input, D]) compare(ctx context.Context, out io.Writer, f *randomFlags, other candidate.Candidate, files []string, inputs []Input) error {
	if len(files) > 0 {
		return s.compareFiles(ctx, out, files, inputs)
	}
	beside(out, other, f)
	return s.compareRandom(ctx, out, f)
}

// compareFiles compares inputs of files.
func (s *suite[Input, D]) compareFiles(ctx context.Context, out io.Writer, files []string, inputs []Input) error {
	differing := 0
	for i, input := range inputs {
		differences, err := s.Compare(ctx, i%s.Slots, input)
		if err != nil {
			return incomplete(ctx, fmt.Errorf("%s: %w", files[i], err))
		}
		if slices.ContainsFunc(differences, func(d D) bool { return d.Tolerance() == "" }) {
			differing++
		}
		for _, d := range differences {
			what := "differs"
			if d.Tolerance() != "" {
				what = "is tolerated as " + d.Tolerance()
			}
			fmt.Fprintf(out, "%s %s:\n%v\n", files[i], what, d)
		}
	}
	fmt.Fprintf(out, "%d of %d inputs differ\n", differing, len(files))
	if differing > 0 {
		return &exitError{report.ExitNonConformant, nil}
	}
	return nil
}

// compareRandom compares random inputs, and shows the smallest that differ.
func (s *suite[Input, D]) compareRandom(ctx context.Context, out io.Writer, f *randomFlags) error {
	began, terminal := time.Now(), isTerminal(out)
	clear := func() {
		if terminal {
			fmt.Fprint(out, "\r\x1b[K")
		}
	}
	var found []random.Found[Input, D]
	rate := func(t random.Tally) float64 { return float64(t.Inputs) / time.Since(began).Seconds() }
	tally, err := s.Run(ctx, random.Options[Input, D]{
		Seed: f.seed, From: f.from, Most: f.most, Workers: f.parallel, Until: began.Add(f.lasts),
		First: func(one random.Found[Input, D]) {
			clear()
			fmt.Fprintf(out, "input %d: %s\n", one.Number, one.Difference.Class())
			found = append(found, one)
		},
		Progress: func(t random.Tally) {
			if terminal {
				fmt.Fprintf(out, "\r\x1b[K%d compared, %d classes of differences, %.1f a second", t.Inputs, len(t.Classes), rate(t))
			}
		},
	})
	clear()
	took, each := time.Since(began), rate(tally)
	var broken error
	for i := range found {
		if err == nil && ctx.Err() == nil {
			broken = errors.Join(broken, s.show(ctx, out, f, &found[i]))
		}
	}
	var classes []string
	for class := range tally.Classes {
		classes = append(classes, class)
	}
	slices.SortFunc(classes, func(a, b string) int { return tally.Classes[b] - tally.Classes[a] })
	for _, class := range classes {
		fmt.Fprintf(out, "%6d  %s\n", tally.Classes[class], class)
	}
	for _, t := range s.tolerated {
		if n := tally.Tolerated[t[0]]; n > 0 {
			fmt.Fprintf(out, "%6d  tolerated, %s: %s\n", n, t[0], t[1])
		}
	}
	fmt.Fprintf(out, "%d compared (%s) in %.0f s, %.1f a second; %d classes of differences; %d differed once only\n", tally.Inputs, s.sent(), took.Seconds(), each, len(classes), tally.Unsteady)
	fmt.Fprintf(out, "to go on: --seed %d --from %d\n", f.seed, tally.Next)
	switch {
	case broken != nil:
		return harness("%w", broken)
	case err != nil:
		return incomplete(ctx, err)
	case ctx.Err() != nil:
		return interrupted(ctx, context.Cause(ctx))
	case len(classes) > 0:
		return &exitError{report.ExitNonConformant, nil}
	}
	return nil
}

// show shrinks an input that differs, prints it, and writes it to a file.
func (s *suite[Input, D]) show(ctx context.Context, out io.Writer, f *randomFlags, found *random.Found[Input, D]) error {
	shrinking, enough := context.WithTimeout(ctx, f.shrinks)
	defer enough()
	input, d, err := s.shrink(shrinking, found.Input, found.Difference)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(input, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	path := ""
	for n := 1; ; n++ { // an input may differ in several ways
		path = filepath.Join(f.dir, fmt.Sprintf("%s-%d-%d-%d.json", s.name, f.seed, found.Number, n))
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	if err := wholefile.Write(path, append(data, '\n'), 0o644); err != nil {
		return err
	}
	commands, err := s.commands(input, d)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n%s%v\n\n", path, commands, d)
	return nil
}

// incomplete is the error of a run that a component or a person ended: what was compared stands.
func incomplete(ctx context.Context, err error) error {
	if e := interrupted(ctx, err); e != nil {
		return e
	}
	return &exitError{report.ExitUnknown, err}
}

// passedOver is what the random tests pass over.
func passedOver() (all []differential.PassedOver) {
	for _, t := range differential.Tolerances {
		source := ""
		if t.Case != "" {
			source = "case " + t.Case
		}
		all = append(all, differential.PassedOver{Suite: "api", Name: t.Name, Why: t.Why, Source: source})
	}
	for _, t := range traffic.Tolerances {
		all = append(all, differential.PassedOver{Suite: "traffic", Name: t.Name, Why: t.Why, Source: t.Source})
	}
	for _, t := range dns.Tolerances {
		all = append(all, differential.PassedOver{Suite: "dns", Name: t.Name, Why: t.Why, Source: t.Source})
	}
	return all
}
