package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

const configured = `{"tokenDigest":"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b","pod":{"namespace":"ns","name":"web"},"ports":[{"name":"http","protocol":"TCP","number":80},
	{"protocol":"UDP","number":8080}],"control":8080,"unready":true}`

func TestConfigIsRead(t *testing.T) {
	got, err := ParseConfig(configured)
	want := Config{
		TokenDigest: TokenDigest("secret"), Pod: candidate.PodName{Namespace: "ns", Name: "web"}, Control: 8080, Unready: true,
		Ports: []candidate.PodPort{{Name: "http", Protocol: corev1.ProtocolTCP, Number: 80}, {Protocol: corev1.ProtocolUDP, Number: 8080}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

func TestConfigIsRefused(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{configured, "", "not set"},
		{configured, "{", "malformed JSON"},
		{configured, configured + "{}", "something follows"},
		{`"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"`, `""`, "tokenDigest: the SHA-256 of a token is needed"},
		{`"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"`, `"secret"`, "tokenDigest: the SHA-256 of a token is needed"},
		{`"2bb8`, `"2BB8`, "tokenDigest: the SHA-256 of a token is needed"},
		{`"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"`, `7`, "malformed JSON"},
		{`"tokenDigest"`, `"token"`, `unknown field "token"`},
		{`"web"`, `""`, "pod: the namespace and the name"},
		{`"ns"`, `""`, "pod: the namespace and the name"},
		{`"control":8080`, `"control":0`, "control: 0 is no port"},
		{`"control":8080`, `"control":65536`, "control: 65536 is no port"},
		{`"control":8080`, `"control":80`, "ports[0]: 80/TCP is taken by control"},
		{`"number":80}`, `"number":0}`, "ports[0]: 0 is no port"},
		{`"number":80}`, `"number":-1}`, "ports[0]: -1 is no port"},
		{`"TCP","number":80}`, `"UDP","number":8080}`, "ports[1]: 8080/UDP is taken by ports[0]"},
		{`"UDP"`, `"udp"`, `ports[1]: protocol "udp" is none of`},
	} {
		if _, err := ParseConfig(strings.Replace(configured, c.old, c.new, 1)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s instead of %s: got %v, want %q", c.new, c.old, err, c.want)
		}
	}
}

// FuzzParseConfig looks for a configuration that is taken although no agent could run with it, or that means another thing than it says.
func FuzzParseConfig(f *testing.F) {
	f.Add(configured)
	digest := TokenDigest("t")
	f.Add(`{"tokenDigest":"` + digest + `","pod":{"namespace":"n","name":"p"},"control":1}`)
	f.Add(`{"tokenDigest":"` + digest + `","pod":{"namespace":"n","name":"p"},"control":1,"ports":[{"protocol":"SCTP","number":1},{"protocol":"SCTP","number":1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseConfig(text)
		if err != nil {
			return
		}
		if len(c.TokenDigest) != 64 || c.Pod.Name == "" || c.Pod.Namespace == "" || c.Control < 1 || c.Control > 65535 {
			t.Fatalf("%+v was taken", c)
		}
		type socket struct {
			protocol corev1.Protocol
			number   int
		}
		sockets := map[socket]bool{{corev1.ProtocolTCP, c.Control}: true}
		for _, p := range c.Ports {
			s := socket{p.Protocol, p.Number}
			if sockets[s] || p.Number < 1 || p.Number > 65535 {
				t.Fatalf("port %+v was taken", p)
			}
			sockets[s] = true
		}
		again, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if read, err := ParseConfig(string(again)); err != nil || !reflect.DeepEqual(read, c) && len(c.Ports) > 0 {
			t.Fatalf("%+v was written as %s, and read as %+v, %v", c, again, read, err)
		}
	})
}

func TestDNSOfThePod(t *testing.T) {
	for _, c := range []struct{ text, server, domain string }{
		{"search ns.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\nnameserver 10.0.0.1\noptions ndots:5\n", "10.96.0.10:53", "cluster.local"},
		{"nameserver 10.96.0.10\nsearch ns.svc.k8s.example.com svc.k8s.example.com k8s.example.com example.com\n", "10.96.0.10:53", "k8s.example.com"},
		{"search ns.svc.cluster.local svc.cluster.local cluster.local svc.corp.example\nnameserver 10.96.0.10\n", "10.96.0.10:53", "cluster.local"}, // that of the node comes last
		{"search svc.cluster.local.\nnameserver 10.96.0.10", "10.96.0.10:53", "cluster.local."},
		{"# nameserver 1.1.1.1\n\tnameserver\tfd00:10:96::a\nsearch example.com", "[fd00:10:96::a]:53", ""},
		{"nameservers 10.96.0.10\nnameserver\n", "", ""},
		{"", "", ""},
	} {
		file := filepath.Join(t.TempDir(), "resolv.conf")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readDNS(file)
		if got.server != c.server || got.domain != c.domain || (err == nil) != (c.server != "") {
			t.Errorf("%q: %+v, %v, want %q and %q", c.text, got, err, c.server, c.domain)
		}
		if err != nil && !strings.Contains(err.Error(), "dnsPolicy") {
			t.Errorf("%q: the error does not say where to look: %v", c.text, err)
		}
	}
}
