package standing

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// forward accepts connections and passes each on to a TCP address, until the listener is closed. A listener belongs to
// the network namespace in which it was opened, wherever it is used. So it is the way into the namespaces of a lab.
func forward(l *net.TCPListener, to string) {
	for {
		c, err := l.AcceptTCP()
		switch {
		case err == nil:
			go pass(c, to)
		case errors.Is(err, net.ErrClosed):
			return
		default: // too many open files, or a connection that went away: that may pass
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// pass copies both ways between a connection and a new one. Each direction ends by itself.
func pass(near *net.TCPConn, to string) {
	defer near.Close()
	var dialer net.Dialer
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := dialer.DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	far := c.(*net.TCPConn)
	defer far.Close()
	var both sync.WaitGroup
	both.Go(func() { passOneWay(far, near) })
	both.Go(func() { passOneWay(near, far) })
	both.Wait()
}

func passOneWay(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil { // one of them is broken: nothing can come the other way either
		to.Close()
		from.Close()
		return
	}
	_ = to.CloseWrite()
}
