package apiserver

import (
	"net/netip"
	"testing"
)

// startServer starts a server that ends with the test. Without ranges it gets 10.96.0.0/24.
func startServer(t testing.TB, options Options) *Server {
	t.Helper()
	if len(options.ServiceCIDRs) == 0 {
		options.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/24")}
	}
	s, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
