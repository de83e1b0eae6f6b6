// Package download gets files over HTTP. A file counts once its SHA-256 is the expected one. A broken transfer
// continues where it stopped, also in another process. What fails for a moment is tried again.
package download

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"time"
)

// A Client gets files. All methods are safe for concurrent use.
type Client struct {
	// Say is told of what takes longer than usual, a line each, also concurrently; it may be nil.
	Say func(line string)

	http  *http.Client
	pause time.Duration // before the second attempt; it doubles with each
	stall time.Duration // without a byte, after which an attempt ends
}

// Bounds of one transfer.
const (
	// attempts is how often in a row a transfer may fail without having got progressBytes further.
	attempts      = 5
	progressBytes = 1 << 20
	// maxBytes is more than any file has that is meant here.
	maxBytes = 1 << 30
	// maxText is more than any list of checksums has.
	maxText = 1 << 20

	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
	stallAfter   = 30 * time.Second
)

// New makes a client, which heeds the variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY.
func New(say func(line string)) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() // its Proxy reads the variables
	return &Client{Say: say, http: &http.Client{Transport: transport, CheckRedirect: followed}, pause: firstPause, stall: stallAfter}
}

// followed decides whether a redirection is followed: never one that gives up TLS.
func followed(next *http.Request, before []*http.Request) error {
	switch {
	case len(before) >= 10:
		return &localError{errors.New("more than 10 redirections")}
	case before[0].URL.Scheme == "https" && next.URL.Scheme != "https":
		return &localError{fmt.Errorf("it leads from https to %s://%s", next.URL.Scheme, next.URL.Host)}
	}
	return nil
}

// StatusError is the answer of a server that has no such file, or does not give it.
type StatusError struct {
	URL    string // without a password
	Code   int
	Status string // "404 Not Found"

	after time.Duration // which the server asks to wait
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: the server answers %s", e.URL, e.Status)
}

// IsMissing reports whether a server has said that there is no such file.
func IsMissing(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && (status.Code == http.StatusNotFound || status.Code == http.StatusGone)
}

// MismatchError says that a file is not the one that its checksum is of.
type MismatchError struct{ URL, Want, Got string }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s is not what its checksum is of: its SHA-256 is %s, not %s", e.URL, e.Got, e.Want)
}

// localError is what this program or this machine refuses, however often it is tried.
type localError struct{ error }

func (e *localError) Unwrap() error { return e.error }

// Transfer is how far a file is. It may be read while Get runs.
type Transfer struct{ done, total atomic.Int64 }

// Bytes returns how many bytes are there, and how many there will be; 0 while that is not known.
func (t *Transfer) Bytes() (done, total int64) { return t.done.Load(), t.total.Load() }

// Get gets the file at an address into a path and returns once its SHA-256, in hexadecimal, is the wanted one. What is at the path already is taken for the
// beginning of the file. When Get fails, the path holds what has come until then, for a later call; after a *MismatchError it holds nothing. t may be nil.
func (c *Client) Get(ctx context.Context, from *url.URL, want, path string, t *Transfer) (err error) {
	if t == nil {
		t = new(Transfer)
	}
	p := &part{hash: sha256.New(), transfer: t}
	if p.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.file.Close()) }()
	if err := p.read(); err != nil {
		return err
	}
	if p.sum() == want {
		t.total.Store(p.size)
		return nil
	}
	continued, again := p.size > 0, false
	if continued {
		c.say("%s: continuing after %s", name(from), Size(p.size))
	}
	for failed, reached := 0, p.size; ; {
		resumed, err := c.attempt(ctx, from, p)
		continued = continued || resumed
		if p.size >= reached+progressBytes {
			failed, reached = 0, p.size
		}
		got := p.sum()
		switch {
		case err == nil && got == want:
			return nil
		case err == nil && continued && !again: // what was there before may have been the beginning of something else
			c.say("%s: the parts do not fit together, from the beginning", name(from))
			if err := p.restart(); err != nil {
				return err
			}
			continued, again, reached = false, true, 0
			continue
		case err == nil:
			return errors.Join(&MismatchError{redacted(from), want, got}, os.Remove(path))
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if failed++; failed >= attempts || !transient(err) {
			return err
		}
		pause := c.pauseAfter(failed, err)
		c.say("%s: trying again in %s: %v", name(from), pause, err)
		if err := wait(ctx, pause); err != nil {
			return err
		}
	}
}

// Text gets a short text.
func (c *Client) Text(ctx context.Context, from *url.URL) (string, error) {
	for failed := 1; ; failed++ {
		text, err := c.attemptText(ctx, from)
		switch {
		case err == nil:
			return text, nil
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case failed >= attempts || !transient(err):
			return "", err
		}
		if err := wait(ctx, c.pauseAfter(failed, err)); err != nil {
			return "", err
		}
	}
}

// pauseAfter is the time before another attempt, after so many that failed.
func (c *Client) pauseAfter(failed int, why error) time.Duration {
	pause := c.pause << (failed - 1)
	if status := (*StatusError)(nil); errors.As(why, &status) {
		pause = max(pause, min(status.after, longestPause))
	}
	return pause
}

func wait(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(pause):
		return nil
	}
}

func (c *Client) say(format string, args ...any) {
	if c.Say != nil {
		c.Say(fmt.Sprintf(format, args...))
	}
}

// transient reports whether what went wrong may go right a moment later.
func transient(err error) bool {
	var (
		status      *StatusError
		local       *localError
		certificate *tls.CertificateVerificationError
		lookup      *net.DNSError
	)
	switch {
	case errors.As(err, &status):
		return status.Code >= 500 || status.Code == http.StatusTooManyRequests || status.Code == http.StatusRequestTimeout
	case errors.As(err, &local), errors.As(err, &certificate), errors.As(err, &lookup) && lookup.IsNotFound:
		return false
	}
	return true
}

// errStalled ends an attempt in which nothing comes any more.
var errStalled = errors.New("nothing comes any more")

// request asks for a file from the byte first on, and hands the answer to use. Each call of touch says that something has come.
func (c *Client) request(ctx context.Context, from *url.URL, first int64, use func(r *http.Response, touch func()) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(c.stall, func() { cancel(errStalled) })
	defer watch.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
	if err != nil {
		return &localError{err}
	}
	req.Header.Set("User-Agent", "conformance")
	req.Header.Set("Accept-Encoding", "identity") // the checksum is of the file as it is
	if first > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", first))
	}
	r, err := c.http.Do(req)
	if err == nil {
		defer r.Body.Close()
		err = use(r, func() { watch.Reset(c.stall) })
	} else if failed := (*url.Error)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("%s: %w", redacted(from), failed.Err) // the address of a redirection may hold what is secret
	}
	if errors.Is(context.Cause(ctx), errStalled) {
		return fmt.Errorf("%s: %w (for %s)", redacted(from), errStalled, c.stall)
	}
	return err
}

// refusal is what an answer says that holds no file.
func refusal(from *url.URL, r *http.Response) error {
	e := &StatusError{URL: redacted(from), Code: r.StatusCode, Status: r.Status}
	if seconds, err := time.ParseDuration(r.Header.Get("Retry-After") + "s"); err == nil && seconds > 0 {
		e.after = seconds
	}
	return e
}

// attempt gets what is missing of the part, or all of it, and reports whether it has continued. Without an error the part is as long as the server says that the file is.
func (c *Client) attempt(ctx context.Context, from *url.URL, p *part) (resumed bool, err error) {
	err = c.request(ctx, from, p.size, func(r *http.Response, touch func()) error {
		switch {
		case r.StatusCode == http.StatusPartialContent && strings.HasPrefix(r.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", p.size)):
			resumed = p.size > 0
		case r.StatusCode == http.StatusOK:
			if p.size > 0 {
				c.say("%s: the server cannot continue, from the beginning", name(from))
				if err := p.restart(); err != nil {
					return err
				}
			}
		case r.StatusCode == http.StatusPartialContent, r.StatusCode == http.StatusRequestedRangeNotSatisfiable:
			if err := p.restart(); err != nil {
				return err
			}
			return fmt.Errorf("%s: the server has no such part of the file", redacted(from))
		default:
			return refusal(from, r)
		}
		if r.ContentLength >= 0 {
			p.transfer.total.Store(p.size + r.ContentLength)
		}
		_, err := io.Copy(p, &touching{r.Body, touch})
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: broken off after %s: %w", redacted(from), Size(p.size), err)
		}
		return err
	})
	return resumed, err
}

func (c *Client) attemptText(ctx context.Context, from *url.URL) (text string, err error) {
	err = c.request(ctx, from, 0, func(r *http.Response, touch func()) error {
		if r.StatusCode != http.StatusOK {
			return refusal(from, r)
		}
		all, err := io.ReadAll(io.LimitReader(&touching{r.Body, touch}, maxText+1))
		if err != nil {
			return fmt.Errorf("%s: %w", redacted(from), err)
		}
		if len(all) > maxText {
			return &localError{fmt.Errorf("%s holds more than %s", redacted(from), Size(maxText))}
		}
		text = string(all)
		return nil
	})
	return text, err
}

// touching tells of each read.
type touching struct {
	io.Reader
	touch func()
}

func (t *touching) Read(b []byte) (int, error) {
	n, err := t.Reader.Read(b)
	if n > 0 {
		t.touch()
	}
	return n, err
}

// part is what is there of a file.
type part struct {
	file     *os.File
	hash     hash.Hash // of all that is there
	size     int64
	transfer *Transfer
}

// read reads what an earlier call has left.
func (p *part) read() (err error) {
	if p.size, err = io.Copy(p.hash, p.file); err != nil {
		return err
	}
	p.transfer.done.Store(p.size)
	return nil
}

func (p *part) Write(b []byte) (int, error) {
	if p.size+int64(len(b)) > maxBytes {
		return 0, &localError{fmt.Errorf("the file is larger than %s", Size(maxBytes))}
	}
	n, err := p.file.Write(b)
	p.hash.Write(b[:n])
	p.size += int64(n)
	p.transfer.done.Store(p.size)
	if err != nil {
		err = &localError{err}
	}
	return n, err
}

func (p *part) restart() error {
	p.hash.Reset()
	p.size = 0
	p.transfer.done.Store(0)
	_, err := p.file.Seek(0, io.SeekStart)
	if err = errors.Join(err, p.file.Truncate(0)); err != nil {
		return &localError{err}
	}
	return nil
}

func (p *part) sum() string { return hex.EncodeToString(p.hash.Sum(nil)) }

// name is what people call the file at an address.
func name(u *url.URL) string { return path.Base(u.Path) }

// redacted is an address without its password.
func redacted(u *url.URL) string { return u.Redacted() }

// Size writes a number of bytes for people.
func Size(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}
