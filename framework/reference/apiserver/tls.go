package apiserver

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"

	"github.com/service-conformance/conformance/internal/certificates"
)

// serverTLS is what one server is verified with: an authority of its own, and a certificate for its host and the loopback names.
type serverTLS struct {
	authorityPEM []byte
	config       *tls.Config
}

func newServerTLS(address string) (*serverTLS, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("address %q is not host:port: %w", address, err)
	}
	names, addresses := []string{"localhost"}, []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	if ip, err := netip.ParseAddr(host); err == nil {
		addresses = append(addresses, ip)
	} else if host != "" {
		names = append(names, host)
	}
	authority, err := certificates.NewAuthority("conformance reference API server")
	if err != nil {
		return nil, err
	}
	certificate, key, err := authority.Serving(names, addresses...)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	return &serverTLS{
		authorityPEM: authority.PEM,
		config:       &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
	}, nil
}

func (t *serverTLS) listen(l net.Listener) net.Listener { return tls.NewListener(l, t.config) }
