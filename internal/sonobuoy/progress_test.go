package sonobuoy

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// worker takes updates as Sonobuoy's worker does. Before it answers one it waits for hold, if there is one.
type worker struct {
	mu      sync.Mutex
	updates []Update
	hold    chan struct{}
	came    chan struct{} // gets one for each request, if anybody looks
}

func startWorker(t *testing.T, hold chan struct{}) *worker {
	t.Helper()
	w := &worker{hold: hold, came: make(chan struct{}, 1)}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var u Update
		if r.Method != http.MethodPost || r.URL.Path != "/progress" || json.NewDecoder(r.Body).Decode(&u) != nil {
			t.Errorf("%s %s is no update", r.Method, r.URL)
		}
		w.mu.Lock()
		w.updates = append(w.updates, u)
		w.mu.Unlock()
		select {
		case w.came <- struct{}{}:
		default:
		}
		if hold != nil {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
	}))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(ProgressVariable, at.Port())
	return w
}

func TestTheLastUpdateTellsEverything(t *testing.T) {
	w := startWorker(t, nil)
	p := StartProgress()
	p.Expect(3)
	p.Done("one", false, "conformant")
	p.Done("two", true, "non-conformant")
	p.Done("three", false, "not applicable")
	if err := p.Stop("non-conformant"); err != nil {
		t.Fatal(err)
	}
	last := w.updates[len(w.updates)-1]
	if last.Total != 3 || last.Completed != 2 || !slices.Equal(last.Failures, []string{"two"}) || last.Message != "non-conformant" {
		t.Errorf("the last update is %+v", last)
	}
}

// While the worker holds an update back, which would block this test for ever if anybody waited for it, later ones become one.
func TestNobodyWaitsForAnUpdate(t *testing.T) {
	hold := make(chan struct{})
	w := startWorker(t, hold)
	p := StartProgress()
	p.Expect(1000)
	<-w.came
	for i := range 1000 {
		p.Done(fmt.Sprint(i), false, "conformant")
	}
	close(hold)
	if err := p.Stop("conformant"); err != nil {
		t.Fatal(err)
	}
	if n := len(w.updates); n > 4 || w.updates[n-1].Completed != 1000 {
		t.Errorf("%d updates, the last one %+v", n, w.updates[n-1])
	}
}

func TestStopGivesUp(t *testing.T) {
	w := startWorker(t, make(chan struct{}))
	p := StartProgress()
	p.last = time.Millisecond
	p.Expect(1)
	<-w.came
	if err := p.Stop("conformant"); err == nil || !strings.Contains(err.Error(), "tell Sonobuoy of the progress") {
		t.Errorf("got %v", err)
	}
}

func TestAWorkerThatIsNotThereIsToldOf(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	listener.Close()
	t.Setenv(ProgressVariable, port)
	p := StartProgress()
	p.Done("one", false, "conformant")
	if err := p.Stop("conformant"); err == nil {
		t.Error("no error")
	}
}
