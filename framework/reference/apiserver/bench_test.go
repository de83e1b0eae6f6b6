package apiserver

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
)

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		s, err := New(Options{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Start(); err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCreateService measures creates over loopback HTTP, client included.
func BenchmarkCreateService(b *testing.B) {
	s := startServer(b, Options{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("fd00::/108")}})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	var n atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(4)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"svc-%d"},"spec":{"ports":[{"port":80}],"selector":{"app":"a"}}}`, n.Add(1))
			resp, err := client.Post(s.URL()+"/api/v1/namespaces/default/services", mediaJSON, bytes.NewReader([]byte(body)))
			if err != nil {
				b.Error(err)
				return
			}
			answer, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != http.StatusCreated {
				b.Errorf("%s: %s", resp.Status, answer)
				return
			}
		}
	})
}
