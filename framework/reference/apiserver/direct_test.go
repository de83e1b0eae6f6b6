package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestDirectAnswersAreThoseOfTheWire sends the same requests both ways.
func TestDirectAnswersAreThoseOfTheWire(t *testing.T) {
	s := startServer(t, Options{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}})
	wire, direct := http.Client{}, http.Client{Transport: s}
	for _, path := range []string{"/api/v1/namespaces/default/services/kubernetes", "/api/v1/namespaces/default/services/none", "/version", "/apis", "/nothing"} {
		var codes []int
		var bodies, types []string
		for _, client := range []*http.Client{&wire, &direct} {
			resp, err := client.Get(s.URL() + path)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			codes, bodies, types = append(codes, resp.StatusCode), append(bodies, string(body)), append(types, resp.Header.Get("Content-Type"))
		}
		if codes[0] != codes[1] || bodies[0] != bodies[1] || types[0] != types[1] {
			t.Errorf("%s: over the wire %d %s %s, directly %d %s %s", path, codes[0], types[0], bodies[0], codes[1], types[1], bodies[1])
		}
	}
}

func TestDirectCarriesTheBodyOfARequest(t *testing.T) {
	s := startServer(t, Options{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}})
	client := http.Client{Transport: s}
	resp, err := client.Post(s.URL()+"/api/v1/namespaces", "application/json", strings.NewReader(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"carried"}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Errorf("create: %s", resp.Status)
	}
}

// TestDirectWatchStreams demands that events arrive while the request goes on, and that a stopped server breaks it off.
func TestDirectWatchStreams(t *testing.T) {
	for _, path := range []string{"/api/v1/namespaces?watch=true", "/api/v1/watch/namespaces"} {
		t.Run(path, func(t *testing.T) { directWatch(t, path) })
	}
}

func directWatch(t *testing.T, path string) {
	s := startServer(t, Options{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}})
	client := http.Client{Transport: s}
	resp, err := client.Get(s.URL() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events := make(chan string)
	failed := make(chan error, 1)
	go func() {
		decoder := json.NewDecoder(resp.Body)
		for {
			var event struct {
				Type   string
				Object struct{ Metadata struct{ Name string } }
			}
			if err := decoder.Decode(&event); err != nil {
				failed <- err
				close(events)
				return
			}
			events <- event.Object.Metadata.Name
		}
	}()
	for name := range events {
		if name == "default" {
			break
		}
	}
	go func() { _ = s.Close() }()
	for range events { // until it breaks off
	}
	if err := <-failed; err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the watch ended with %v, not broken off", err)
	}
	again, err := client.Get(s.URL() + "/version")
	if err == nil {
		again.Body.Close()
	}
	if !errors.Is(err, errStopped) {
		t.Errorf("a stopped server answered: %v", err)
	}
}

func TestDirectEndsWithTheClientsContext(t *testing.T) {
	s := startServer(t, Options{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/api/v1/namespaces?watch=true", nil)
	resp, err := s.RoundTrip(request)
	if err == nil {
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
	}
	if err == nil {
		t.Error("the watch outlived its client")
	}
}
