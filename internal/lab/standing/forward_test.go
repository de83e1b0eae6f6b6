package standing

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"
)

// listenTCP opens a listener that is closed at the end.
func listenTCP(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	fakes.Must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

func TestForwardPassesBothWaysAndEachEnd(t *testing.T) {
	far, near := listenTCP(t), listenTCP(t)
	go forward(near, far.Addr().String())
	go func() {
		for {
			c, err := far.Accept()
			if err != nil {
				return
			}
			go func() { // the whole request comes first, and only its end lets the answer begin
				defer c.Close()
				b, _ := io.ReadAll(c)
				_, _ = c.Write([]byte(strings.ToUpper(string(b))))
			}()
		}
	}()
	for _, text := range []string{"", "hello", strings.Repeat("x", 5<<20)} {
		c, err := net.Dial("tcp", near.Addr().String())
		fakes.Must(t, err)
		_, err = c.Write([]byte(text))
		fakes.Must(t, err)
		fakes.Must(t, c.(*net.TCPConn).CloseWrite())
		b, err := io.ReadAll(c)
		if err != nil || string(b) != strings.ToUpper(text) {
			t.Errorf("%d bytes came back of %d: %v", len(b), len(text), err)
		}
		c.Close()
	}
}

func TestForwardClosesWhatLeadsNowhere(t *testing.T) {
	far, near := listenTCP(t), listenTCP(t)
	far.Close()
	ended := make(chan struct{})
	go func() {
		forward(near, far.Addr().String())
		close(ended)
	}()
	c, err := net.Dial("tcp", near.Addr().String())
	fakes.Must(t, err)
	defer c.Close()
	if b, err := io.ReadAll(c); len(b) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("got %q, %v from a connection that leads nowhere", b, err)
	}
	near.Close()
	<-ended
}
