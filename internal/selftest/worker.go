package selftest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/reference"
	"github.com/service-conformance/conformance/framework/reference/absent"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/runner"
)

// seed is the same in every job, so that two score cards agree.
const seed = 1

// Work judges the references that in names, one after another in this process, and writes what it finds to out. It is what Run
// starts processes for. It may be called once per process. The checks are those of the suites that the process imports.
func Work(ctx context.Context, in io.Reader, out io.Writer) error {
	var jobs []job
	if err := json.NewDecoder(in).Decode(&jobs); err != nil {
		return fmt.Errorf("read the jobs of a self-test: %w", err)
	}
	if len(jobs) == 0 {
		return nil
	}
	w := &worker{ctx: ctx, encoder: json.NewEncoder(out)}
	turns := make([]runner.Turn, len(jobs))
	for i := range jobs {
		turn, err := w.prepare(i, &jobs[i])
		if err != nil {
			return err
		}
		turns[i] = *turn
	}
	runner.InTurn(ctx, turns)
	w.through(len(jobs))
	return w.err
}

// worker is the jobs of one process.
type worker struct {
	ctx     context.Context //nolint:containedctx // that of Work: a job that it cuts off has not ended
	mu      sync.Mutex
	encoder *json.Encoder
	jobs    []*working
	next    int // the first job that has not ended
	err     error
}

type working struct {
	candidate *reference.Reference
	reach     *fault.Reach
}

// prepare makes the reference of a job. It starts when the first check asks it for something.
func (w *worker) prepare(i int, j *job) (*runner.Turn, error) {
	faults, err := fault.Parse(j.Faults...)
	if err != nil {
		return nil, err
	}
	without, err := absent.Parse(j.Without...)
	if err != nil {
		return nil, err
	}
	work := &working{}
	if j.Record {
		work.reach = fault.NewReach()
		faults = faults.RecordedBy(work.reach)
	}
	if work.candidate, err = reference.New(reference.Options{Faults: faults, Absent: without, Apart: true, Seed: seed}); err != nil {
		return nil, err
	}
	w.jobs = append(w.jobs, work)
	turn := &runner.Turn{Options: runner.Options{
		Selection: runner.Selection{Features: j.Features, Slow: j.Slow}, Candidate: work.candidate, RunID: runner.NewRunID(), Seed: seed, Version: check.BuildVersion(),
		Sink: func(e check.Event) { w.heed(i, e) },
	}}
	if j.Only != nil {
		turn.Only = map[string]bool{}
		for _, name := range j.Only {
			turn.Only[name] = true
		}
	}
	return turn, nil
}

// heed is told an event of job i. All earlier jobs have ended then.
func (w *worker) heed(i int, e check.Event) {
	w.through(i)
	if r := w.jobs[i].reach; r != nil {
		if e.Result == nil {
			r.Begin(e.DisplayName())
		} else {
			r.Begin(fault.Outside)
		}
	}
	if e.Result != nil {
		w.write(answer{Job: i, Result: e.Result})
	}
}

// through ends the jobs before job i.
func (w *worker) through(i int) {
	for ; w.next < i && w.ctx.Err() == nil; w.next++ {
		work := w.jobs[w.next]
		what := work.candidate.Describe()
		a := answer{Job: w.next, Candidate: &what}
		if work.reach != nil {
			for _, f := range fault.All() {
				a.Reach = append(a.Reach, reach{f.Name, work.reach.Checks(f), work.reach.Rules(f)})
			}
		}
		w.write(a)
		_ = work.candidate.Close(context.Background()) // listeners on loopback: nothing is left to do about an error
	}
}

func (w *worker) write(a answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.encoder.Encode(a); err != nil && w.err == nil {
		w.err = fmt.Errorf("tell what was found: %w", err)
	}
}
