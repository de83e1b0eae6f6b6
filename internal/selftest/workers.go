package selftest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
)

// batchSpecs is how many checks one process runs at the most. It bounds the memory that Ginkgo's tree takes.
const batchSpecs = 12000

// batchesPerWorker is into how many processes the work of each place is divided, so that all places end at about the same time.
const batchesPerWorker = 6

// weighed is a job with what it is expected to cost.
type weighed struct {
	job
	weight float64 // seconds
	specs  int
	ended  func(*finding)
}

// workers starts processes that judge.
type workers struct {
	program  []string // with its arguments
	parallel int
}

// judge has all jobs judged, and calls the functions that they have as they end, one at a time. When the context ends, those that
// have not ended are left.
func (w *workers) judge(ctx context.Context, jobs []*weighed) {
	var total float64
	for _, j := range jobs {
		total += j.weight
	}
	var batches [][]*weighed
	weight, specs := 0.0, 0
	for _, j := range jobs {
		if n := len(batches); n == 0 || weight+j.weight > total/float64(w.parallel*batchesPerWorker) || specs+j.specs > batchSpecs {
			batches, weight, specs = append(batches, nil), 0, 0
		}
		n := len(batches) - 1
		batches[n], weight, specs = append(batches[n], j), weight+j.weight, specs+j.specs
	}
	var ending sync.Mutex
	atATime(w.parallel, len(batches), func(i int) {
		if ctx.Err() == nil {
			w.process(ctx, batches[i], &ending)
		}
	})
}

// process has a batch judged by a process of its own.
func (w *workers) process(ctx context.Context, batch []*weighed, ending *sync.Mutex) {
	found := make([]finding, len(batch))
	err := w.run(ctx, batch, func(a *answer) {
		f := &found[a.Job]
		switch {
		case a.Result != nil:
			f.results = append(f.results, *a.Result)
		case a.Candidate != nil:
			f.candidate, f.reach, f.ended = *a.Candidate, a.Reach, true
			ending.Lock()
			defer ending.Unlock()
			batch[a.Job].ended(f)
		}
	})
	if ctx.Err() != nil {
		return
	}
	ending.Lock()
	defer ending.Unlock()
	for i := range found {
		if f := &found[i]; !f.ended {
			f.problem = fmt.Sprintf("%s: the process that judges ended: %v", batch[i].Label, err)
			batch[i].ended(f)
		}
	}
}

func (w *workers) run(ctx context.Context, batch []*weighed, heed func(*answer)) error {
	told := make([]job, len(batch))
	for i, j := range batch {
		told[i] = j.job
	}
	input, err := json.Marshal(told)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, w.program[0], w.program[1:]...)
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := json.NewDecoder(out)
	for {
		var a answer
		if err = lines.Decode(&a); err != nil {
			break
		}
		heed(&a)
	}
	_, _ = io.Copy(io.Discard, out) // what follows a line that cannot be read
	if waited := cmd.Wait(); waited != nil {
		text := strings.TrimSpace(said.String())
		return fmt.Errorf("%w: %s", waited, text[strings.LastIndex(text, "\n")+1:])
	}
	return err
}

// atATime does n things, some of them at a time, and returns when all are done.
func atATime(most, n int, do func(i int)) {
	var wait sync.WaitGroup
	slots := make(chan struct{}, most)
	for i := range n {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	wait.Wait()
}
