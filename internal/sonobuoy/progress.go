package sonobuoy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// ProgressVariable names the port on which the worker takes news; without it the port is DefaultProgressPort.
const (
	ProgressVariable    = "SONOBUOY_PROGRESS_PORT"
	DefaultProgressPort = "8099"
)

// Update is what Sonobuoy is told. `sonobuoy status` shows Completed as passed, the number of Failures as failed, and what is left of Total as
// remaining.
type Update struct {
	Message string `json:"msg"`
	Total   int    `json:"total"`
	// Completed counts what has ended and is not among Failures.
	Completed int      `json:"completed"`
	Failures  []string `json:"failures,omitempty"`
}

// Progress tells Sonobuoy's worker, which passes it on, how far the run is. Nobody waits for it: while one update is under way the later ones become
// one, and what does not arrive is lost. All methods are safe for concurrent use, and do nothing on nil.
type Progress struct {
	url    string
	client *http.Client
	last   time.Duration // how long Stop waits

	mu      sync.Mutex
	update  Update
	changed chan struct{} // holds one if there is something to tell
	stop    chan struct{}
	done    chan struct{}
	sending context.Context
	give    context.CancelFunc // ends sending
	lost    error              // of the latest update; belongs to run until done
}

const (
	updateTimeout = 10 * time.Second // of one update
	lastTimeout   = 5 * time.Second  // of all that is still to be sent when the run has ended
)

// StartProgress begins to send updates.
func StartProgress() *Progress {
	port := os.Getenv(ProgressVariable)
	if port == "" {
		port = DefaultProgressPort
	}
	p := &Progress{
		url: "http://localhost:" + port + "/progress", client: &http.Client{Transport: &http.Transport{}}, last: lastTimeout,
		changed: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	p.sending, p.give = context.WithCancel(context.Background())
	go p.run()
	return p
}

// Expect says how many results are to come.
func (p *Progress) Expect(total int) {
	p.change(func(u *Update) { u.Total, u.Message = total, fmt.Sprintf("%d checks", total) })
}

// Done takes note of a result.
func (p *Progress) Done(name string, failed bool, verdict string) {
	p.change(func(u *Update) {
		u.Message = verdict + " " + name
		if failed {
			u.Failures = append(u.Failures, name)
		} else {
			u.Completed++
		}
	})
}

// Stop sends the last update with the message, waits for it at most some seconds, and ends. The error says why it did not arrive; that an earlier
// one did not is no matter, because each tells everything.
func (p *Progress) Stop(message string) error {
	if p == nil {
		return nil
	}
	p.change(func(u *Update) { u.Message = message })
	close(p.stop)
	defer time.AfterFunc(p.last, p.give).Stop()
	<-p.done
	p.give()
	return p.lost
}

func (p *Progress) change(by func(*Update)) {
	if p == nil {
		return
	}
	p.mu.Lock()
	by(&p.update)
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default: // it is known already that there is something to tell
	}
}

// run sends one update after the other until it is stopped and nothing is left to tell.
func (p *Progress) run() {
	defer close(p.done)
	for {
		select {
		case <-p.changed:
			p.send()
			continue
		case <-p.stop:
		}
		select {
		case <-p.changed:
			p.send()
		default:
			return
		}
	}
}

func (p *Progress) send() {
	p.mu.Lock()
	update := p.update
	update.Failures = slices.Clone(update.Failures)
	p.mu.Unlock()
	if p.lost = p.post(update); p.lost != nil {
		p.lost = fmt.Errorf("tell Sonobuoy of the progress: %w", p.lost)
	}
}

func (p *Progress) post(update Update) error {
	body, err := json.Marshal(update)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(p.sending, updateTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body) // so that the connection can be used again
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s answers %s", p.url, response.Status)
	}
	return nil
}
