package runner

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/service-conformance/conformance/framework/check"
)

// Progress shows a run while it goes on. A terminal shows one line that is drawn anew (done/total, failures, elapsed,
// what runs longest). A pipe gets a plain line from time to time. Safe for concurrent use.
type Progress struct {
	out      io.Writer
	terminal bool
	total    int
	start    time.Time

	mu       sync.Mutex
	done     int
	failed   int
	known    int
	unknown  int
	running  map[string]time.Time
	drawn    bool
	lastLine time.Time
	ticker   *time.Ticker
	stopped  chan struct{}
}

const (
	redraw    = 100 * time.Millisecond
	plainLine = 15 * time.Second
)

// NewProgress starts showing the progress of a run of total results on out.
func NewProgress(out io.Writer, terminal bool, total int) *Progress {
	p := &Progress{out: out, terminal: terminal, total: total, start: time.Now(), lastLine: time.Now(),
		running: map[string]time.Time{}, ticker: time.NewTicker(redraw), stopped: make(chan struct{})}
	go func() {
		for {
			select {
			case <-p.stopped:
				return
			case <-p.ticker.C:
				p.tick()
			}
		}
	}()
	return p
}

// Event takes note of an event.
func (p *Progress) Event(e check.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := e.DisplayName()
	if e.Postponed != "" {
		delete(p.running, key)
		return
	}
	if e.Result == nil {
		p.running[key] = e.Time
		return
	}
	delete(p.running, key)
	p.done++
	switch e.Result.Verdict {
	case check.NonConformant:
		p.failed++
	case check.Unknown:
		p.unknown++
	}
}

// Known says that the check whose event came last fails as a published list expects: it is no news.
func (p *Progress) Known() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed--
	p.known++
}

func (p *Progress) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", p.line(p.width()))
		p.drawn = true
	} else if time.Since(p.lastLine) >= plainLine {
		p.lastLine = time.Now()
		fmt.Fprintln(p.out, p.line(200))
	}
}

// width is that of the terminal, less the last column, where some terminals wrap.
func (p *Progress) width() int {
	if f, ok := p.out.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 20 {
			return width - 1
		}
	}
	return 79
}

func (p *Progress) line(width int) string {
	text := fmt.Sprintf("%d/%d checks", p.done, p.total)
	if p.failed > 0 {
		text += fmt.Sprintf(", %d non-conformant", p.failed)
	}
	if p.known > 0 {
		text += fmt.Sprintf(", %d known", p.known)
	}
	if p.unknown > 0 {
		text += fmt.Sprintf(", %d unknown", p.unknown)
	}
	text += fmt.Sprintf(", %.0f s", time.Since(p.start).Seconds())
	var names []string
	for name := range p.running {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return p.running[a].Compare(p.running[b]) })
	if len(names) > 0 {
		text += "; runs since " + fmt.Sprintf("%.0f s: ", time.Since(p.running[names[0]]).Seconds()) + names[0]
	}
	if runes := []rune(strings.ReplaceAll(text, "\n", " ")); len(runes) > width {
		text = string(runes[:width-1]) + "…"
	}
	return text
}

// Println prints lines above the progress line.
func (p *Progress) Println(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	fmt.Fprint(p.out, text)
}

func (p *Progress) erase() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = false
	}
}

// Stop ends the display and removes its line.
func (p *Progress) Stop() {
	p.ticker.Stop()
	close(p.stopped)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
}
