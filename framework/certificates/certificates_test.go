package lab

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/service-conformance/conformance/framework/candidate"
)

func TestClientsVerifyTheServingCertificate(t *testing.T) {
	ca, err := newAuthority()
	must(t, err)
	cert, key, err := ca.serving(netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("fd00::1"))
	must(t, err)
	pair, err := tls.X509KeyPair(cert, key)
	must(t, err)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.StartTLS()
	defer s.Close()

	c, err := newClient(candidate.Access{URL: s.URL, CA: ca.pem})
	must(t, err)
	defer c.close()
	if err := c.get(t.Context(), "/", nil); err != nil {
		t.Errorf("with the authority of the lab: %v", err)
	}
	other, err := newAuthority()
	must(t, err)
	stranger, err := newClient(candidate.Access{URL: s.URL, CA: other.pem})
	must(t, err)
	defer stranger.close()
	if err := stranger.get(t.Context(), "/", nil); err == nil {
		t.Error("another authority verifies the server")
	}

	block, _ := pem.Decode(cert)
	parsed, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	for host, ok := range map[string]bool{"127.0.0.1": true, "fd00::1": true, "kubernetes.default.svc": true, "127.0.0.2": false, "example.com": false} {
		if err := parsed.VerifyHostname(host); (err == nil) != ok {
			t.Errorf("the certificate for %s: %v", host, err)
		}
	}
}

func TestSigningKeysBelongTogether(t *testing.T) {
	private, public, err := newSigningKey()
	must(t, err)
	block, _ := pem.Decode(private)
	key, err := x509.ParseECPrivateKey(block.Bytes)
	must(t, err)
	block, _ = pem.Decode(public)
	pub, err := x509.ParsePKIXPublicKey(block.Bytes)
	must(t, err)
	if !key.PublicKey.Equal(pub) {
		t.Error("the public key belongs to another private key")
	}
}

func TestNewClientRefusesAnEmptyAuthority(t *testing.T) {
	if _, err := newClient(candidate.Access{CA: []byte("no certificate")}); err == nil {
		t.Error("no error")
	}
}
