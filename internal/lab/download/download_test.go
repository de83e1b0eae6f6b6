package download

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// content is what the server of the tests gives.
var content = func() []byte {
	b := make([]byte, 300_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return b
}()

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// server gives content, unless misbehave, which sees the number of the request from 1 on, has answered.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	ranges []string // that were asked for, one for each request
}

func serve(t *testing.T, misbehave func(n int, w http.ResponseWriter, r *http.Request) bool) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.ranges = append(s.ranges, r.Header.Get("Range"))
		n := len(s.ranges)
		s.mu.Unlock()
		if misbehave == nil || !misbehave(n, w, r) {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// first sends the first bytes of a file that it announces to be whole, and breaks the connection.
func first(bytes int, w http.ResponseWriter) {
	w.Header().Set("Content-Length", fmt.Sprint(len(content)))
	_, _ = w.Write(content[:bytes])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// client is one that does not make tests wait.
func client(said *[]string) *Client {
	c := New(func(line string) {
		if said != nil {
			*said = append(*said, line)
		}
	})
	c.pause = time.Microsecond
	return c
}

func address(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// get downloads content into a file, which holds before at first, and returns its path.
func get(t *testing.T, c *Client, s *server, before []byte) (string, *Transfer, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if before != nil {
		if err := os.WriteFile(path, before, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	transfer := &Transfer{}
	return path, transfer, c.Get(t.Context(), address(t, s.URL+"/file"), sumOf(content), path, transfer)
}

func demandContent(t *testing.T, path string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, error %v, want the file of %d bytes", len(got), err, len(content))
	}
}

func TestGet(t *testing.T) {
	s := serve(t, nil)
	path, transfer, err := get(t, client(nil), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	demandContent(t, path)
	if done, total := transfer.Bytes(); done != int64(len(content)) || total != done {
		t.Errorf("%d of %d bytes", done, total)
	}
}

func TestGetContinuesWhatBreaksOff(t *testing.T) {
	for name, before := range map[string][]byte{"in this process": nil, "in another one": content[:1000]} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n == 1 && before == nil {
					first(1000, w)
				}
				return false
			})
			path, _, err := get(t, client(nil), s, before)
			if err != nil {
				t.Fatal(err)
			}
			demandContent(t, path)
			if last := s.ranges[len(s.ranges)-1]; last != "bytes=1000-" {
				t.Errorf("%q was asked for, want what comes after 1000 bytes", s.ranges)
			}
		})
	}
}

func TestGetAsksForNothingThatIsThere(t *testing.T) {
	s := serve(t, nil)
	path, _, err := get(t, client(nil), s, content)
	if err != nil || len(s.ranges) > 0 {
		t.Errorf("error %v, requests %q", err, s.ranges)
	}
	demandContent(t, path)
}

func TestGetStartsAnewWhereTheServerCannotContinue(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"no ranges": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) },
		"another range": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 7-9/10")
			w.WriteHeader(http.StatusPartialContent)
		},
		"no such range": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestedRangeNotSatisfiable) },
		"no range named": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(content[1000:])
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n == 1 {
					answer(w, r)
				}
				return n == 1
			})
			path, _, err := get(t, client(nil), s, content[:1000])
			if err != nil {
				t.Fatal(err)
			}
			demandContent(t, path)
		})
	}
}

// TestGetForgetsAPartThatIsDamaged demands that a beginning that does not belong to the file costs another download, and no more.
func TestGetForgetsAPartThatIsDamaged(t *testing.T) {
	s := serve(t, nil)
	path, _, err := get(t, client(nil), s, make([]byte, 1000))
	if err != nil {
		t.Fatal(err)
	}
	demandContent(t, path)
	if !slices.Equal(s.ranges, []string{"bytes=1000-", ""}) {
		t.Errorf("requests %q", s.ranges)
	}
}

func TestGetRefusesAnotherFileAndKeepsNothing(t *testing.T) {
	tampered := bytes.Clone(content)
	tampered[len(tampered)/2] ^= 1
	for name, file := range map[string][]byte{"tampered": tampered, "truncated": content[:5000], "longer": append(bytes.Clone(content), 0), "empty": {}} {
		for _, before := range [][]byte{nil, content[:1000]} {
			t.Run(fmt.Sprintf("%s, %d bytes before", name, len(before)), func(t *testing.T) {
				s := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) bool {
					http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file))
					return true
				})
				path, _, err := get(t, client(nil), s, before)
				var mismatch *MismatchError
				if !errors.As(err, &mismatch) || mismatch.Got != sumOf(file) || mismatch.Want != sumOf(content) || strings.Contains(err.Error(), "\n") {
					t.Errorf("error %v", err)
				}
				if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the file is still there: %v", err)
				}
			})
		}
	}
}

func TestGetTriesAgainWhatMayGoRight(t *testing.T) {
	for name, fail := range map[string]func(w http.ResponseWriter, r *http.Request){
		"503": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"429": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"reset":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"too late": func(w http.ResponseWriter, _ *http.Request) { first(10, w) },
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n < attempts {
					fail(w, r)
				}
				return n < attempts
			})
			path, _, err := get(t, client(nil), s, nil)
			if err != nil {
				t.Fatal(err)
			}
			demandContent(t, path)
		})
	}
}

func TestGetGivesUp(t *testing.T) {
	for _, c := range []struct {
		code, requests int
	}{{503, attempts}, {500, attempts}, {404, 1}, {403, 1}, {410, 1}} {
		t.Run(fmt.Sprint(c.code), func(t *testing.T) {
			s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(c.code); return true })
			_, _, err := get(t, client(nil), s, nil)
			var status *StatusError
			if !errors.As(err, &status) || status.Code != c.code || !strings.Contains(err.Error(), s.URL+"/file") || len(s.ranges) != c.requests {
				t.Errorf("error %v after %d requests", err, len(s.ranges))
			}
			if IsMissing(err) != (c.code == 404 || c.code == 410) {
				t.Errorf("%v: missing is %t", err, IsMissing(err))
			}
		})
	}
}

// TestGetGoesOnAsLongAsItGetsFurther demands that the bound on failures is one on failures without progress.
func TestGetGoesOnAsLongAsItGetsFurther(t *testing.T) {
	big := bytes.Repeat([]byte("0123456789abcdef"), (attempts+3)<<16) // 8 MiB in portions of 1 MiB
	s := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) bool {
		var from int
		_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
		to := min(len(big), from+progressBytes)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(big)-1, len(big)))
		w.Header().Set("Content-Length", fmt.Sprint(len(big)-from))
		if from > 0 {
			w.WriteHeader(http.StatusPartialContent)
		}
		_, _ = w.Write(big[from:to])
		w.(http.Flusher).Flush()
		if to < len(big) {
			panic(http.ErrAbortHandler)
		}
		return true
	})
	if err := client(nil).Get(t.Context(), address(t, s.URL+"/big"), sumOf(big), filepath.Join(t.TempDir(), "big"), nil); err != nil || len(s.ranges) <= attempts {
		t.Errorf("error %v after %d requests", err, len(s.ranges))
	}
}

func TestGetEndsAnAttemptInWhichNothingComes(t *testing.T) {
	ended := make(chan bool)
	s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
		if n > 1 {
			return false
		}
		_, _ = w.Write(content[:1000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(ended)
		return true
	})
	var said []string
	c := client(&said)
	c.stall = 50 * time.Millisecond
	path, _, err := get(t, c, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	<-ended
	demandContent(t, path)
	if len(said) == 0 || !strings.Contains(said[0], errStalled.Error()) {
		t.Errorf("it said %q", said)
	}
}

func TestGetThatIsCancelledKeepsThePart(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	arrived := make(chan bool)
	s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
		if n > 1 {
			return false
		}
		_, _ = w.Write(content[:1000])
		w.(http.Flusher).Flush()
		close(arrived)
		<-r.Context().Done()
		return true
	})
	path, transfer := filepath.Join(t.TempDir(), "file"), &Transfer{}
	enough := errors.New("enough")
	go func() {
		<-arrived
		for done := int64(0); done < 1000; done, _ = transfer.Bytes() {
			time.Sleep(time.Millisecond)
		}
		cancel(enough)
	}()
	if err := client(nil).Get(ctx, address(t, s.URL+"/file"), sumOf(content), path, transfer); !errors.Is(err, enough) {
		t.Fatalf("error %v", err)
	}
	if err := client(nil).Get(t.Context(), address(t, s.URL+"/file"), sumOf(content), path, nil); err != nil {
		t.Fatal(err)
	}
	demandContent(t, path)
	if s.ranges[1] != "bytes=1000-" {
		t.Errorf("requests %q", s.ranges)
	}
}

func TestGetGivesUpTLSForNobody(t *testing.T) {
	plain := serve(t, nil)
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL+"/file?token=secret", http.StatusFound))
	t.Cleanup(secure.Close)
	c := client(nil)
	c.http.Transport = secure.Client().Transport
	err := c.Get(t.Context(), address(t, secure.URL+"/file"), sumOf(content), filepath.Join(t.TempDir(), "file"), nil)
	if err == nil || !strings.Contains(err.Error(), "it leads from https to http") || strings.Contains(err.Error(), "secret") || len(plain.ranges) > 0 {
		t.Errorf("error %v, %d requests to the other server", err, len(plain.ranges))
	}
}

func TestPasswordsOfAnAddressAreNotTold(t *testing.T) {
	s := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if _, password, _ := r.BasicAuth(); password != "secret" {
			t.Error("the server was not told the password")
		}
		w.WriteHeader(http.StatusNotFound)
		return true
	})
	u := address(t, s.URL+"/file")
	u.User = url.UserPassword("me", "secret")
	_, err := client(nil).Text(t.Context(), u)
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}

func TestTextIsShort(t *testing.T) {
	s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
		if n == 1 {
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
		if r.URL.Path == "/long" {
			_, _ = io.WriteString(w, strings.Repeat("x", maxText+1))
			return true
		}
		_, _ = io.WriteString(w, "text")
		return true
	})
	if text, err := client(nil).Text(t.Context(), address(t, s.URL+"/short")); err != nil || text != "text" {
		t.Errorf("%q, error %v", text, err)
	}
	if text, err := client(nil).Text(t.Context(), address(t, s.URL+"/long")); err == nil || text != "" {
		t.Errorf("%d bytes, error %v", len(text), err)
	}
}

// TestGetEndsWithTheFileWhereverItBreaks is a property: whatever a server that gives the right file does between, and whatever part of it there was, the file is right.
func TestGetEndsWithTheFileWhereverItBreaks(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		breaks := rapid.SliceOfN(rapid.IntRange(0, 5000), 0, attempts-1).Draw(r, "breaks")
		ranges := rapid.Bool().Draw(r, "ranges")
		before := rapid.IntRange(0, 2*len(content)).Draw(r, "before")
		part := append(bytes.Clone(content), content...)[:before]
		if before > 0 && rapid.Bool().Draw(r, "damaged") {
			part[before/2] ^= 1
		}
		n := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if !ranges {
				req.Header.Del("Range")
			}
			if n++; n <= len(breaks) {
				w = &broken{w, breaks[n-1]}
			}
			http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(content))
		}))
		defer s.Close()
		dir, err := os.MkdirTemp("", "t")
		if err != nil {
			r.Fatal(err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, part, 0o600); err != nil {
			r.Fatal(err)
		}
		u, err := url.Parse(s.URL + "/file")
		if err != nil {
			r.Fatal(err)
		}
		if err := client(nil).Get(context.Background(), u, sumOf(content), path, nil); err != nil {
			r.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
			r.Fatalf("%d bytes, error %v", len(got), err)
		}
	})
}

// broken breaks off after so many bytes.
type broken struct {
	http.ResponseWriter
	left int
}

func (b *broken) Write(data []byte) (int, error) {
	if len(data) < b.left {
		b.left -= len(data)
		return b.ResponseWriter.Write(data)
	}
	_, _ = b.ResponseWriter.Write(data[:b.left])
	b.ResponseWriter.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}
