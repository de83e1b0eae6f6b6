package apiserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// errStopped is what a client of a stopped server meets instead of a refused or broken connection.
var errStopped = errors.New("the reference API server was stopped")

// RoundTrip implements http.RoundTripper: it answers a client of this process without a connection between them, in a fraction of the time that
// one takes. As over a connection, a server that is not running answers nothing, and one that is stopped breaks off what it is
// at. It is safe for concurrent use.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	body := r.Body
	if body == nil {
		body = http.NoBody
	}
	running := s.running.Load()
	if running == nil || (*running).Err() != nil {
		body.Close()
		return nil, errStopped
	}
	ctx, cancel := context.WithCancel(r.Context())
	unhook := context.AfterFunc(*running, cancel)
	request := r.WithContext(ctx)
	request.Body = body
	request.RequestURI = r.URL.RequestURI()
	if request.Host == "" {
		request.Host = r.URL.Host
	}
	a := &directAnswer{header: http.Header{}, begun: make(chan struct{}), cancel: cancel}
	a.changed.L = &a.mu
	unwatch := context.AfterFunc(ctx, a.broken)
	answer := func() {
		s.serve(a, request)
		body.Close()
		if ctx.Err() == nil {
			a.end()
		}
		a.broken() // without effect once it has ended
		unhook()
		unwatch()
	}
	if mayWatch(r.URL) {
		go answer()
		<-a.begun
	} else {
		answer() // a goroutine for each request would be a sixth of the work of a run
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.code == 0 {
		cancel()
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		return nil, errStopped
	}
	length := int64(-1)
	if a.ended {
		length = int64(a.pending.Len())
	}
	return &http.Response{
		Status: http.StatusText(a.code), StatusCode: a.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.sent, Body: a, ContentLength: length, Request: r,
	}, nil
}

// mayWatch reports whether the answer may be that of a watch, the only one that is read while it is written.
func mayWatch(u *url.URL) bool {
	return strings.Contains(u.RawQuery, "watch") || strings.Contains(u.Path, "/watch/")
}

// directAnswer is the answer to one request: the server writes it and the client reads it. What is written reaches the client when it is flushed or
// complete.
type directAnswer struct {
	header http.Header   // the server's until code is set
	begun  chan struct{} // closed when the client may look
	cancel context.CancelFunc

	mu      sync.Mutex
	changed sync.Cond
	code    int // 0 until the head is written
	sent    http.Header
	pending bytes.Buffer
	shown   bool // begun is closed
	ended   bool // nothing more will be written
	lost    bool // the server or the client gave up before the end
}

var (
	_ http.ResponseWriter = (*directAnswer)(nil)
	_ http.Flusher        = (*directAnswer)(nil)
	_ io.ReadCloser       = (*directAnswer)(nil)
)

// Header implements http.ResponseWriter.
func (a *directAnswer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *directAnswer) WriteHeader(code int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.head(code)
}

func (a *directAnswer) head(code int) {
	if a.code == 0 {
		a.code, a.sent = code, a.header.Clone()
	}
}

// Write implements http.ResponseWriter.
func (a *directAnswer) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lost {
		return 0, errStopped
	}
	a.head(http.StatusOK)
	return a.pending.Write(p)
}

// Flush implements http.Flusher.
func (a *directAnswer) Flush() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.head(http.StatusOK)
	a.show()
}

func (a *directAnswer) show() {
	if !a.shown {
		a.shown = true
		close(a.begun)
	}
	a.changed.Broadcast()
}

func (a *directAnswer) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.head(http.StatusOK)
	a.ended = true
	a.show()
}

// broken tells both sides that nothing more will come.
func (a *directAnswer) broken() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended {
		a.lost = true
		a.show()
	}
}

// Read implements io.Reader.
func (a *directAnswer) Read(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.pending.Len() == 0 && !a.ended && !a.lost {
		a.changed.Wait()
	}
	switch {
	case a.lost && !a.ended:
		return 0, io.ErrUnexpectedEOF
	case a.pending.Len() == 0:
		return 0, io.EOF
	}
	return a.pending.Read(p)
}

// Close implements io.Closer: the client needs no more.
func (a *directAnswer) Close() error {
	a.cancel()
	return nil
}
