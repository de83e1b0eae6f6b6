package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestClientsVerifyTheServingCertificate(t *testing.T) {
	ca, err := NewAuthority("test")
	must(t, err)
	cert, key, err := ca.Serving([]string{"kubernetes.default.svc"}, netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("fd00::1"))
	must(t, err)
	pair, err := tls.X509KeyPair(cert, key)
	must(t, err)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.StartTLS()
	defer s.Close()

	if err := get(s.URL, ca); err != nil {
		t.Errorf("with the authority that signed: %v", err)
	}
	other, err := NewAuthority("test")
	must(t, err)
	if err := get(s.URL, other); err == nil {
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
	private, public, err := NewSigningKey()
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

// get asks a server that is verified with the authority.
func get(url string, ca *Authority) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
	r, err := client.Get(url)
	if err != nil {
		return err
	}
	return r.Body.Close()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
