package embedded

import (
	"errors"
	"net"
	"testing"
	"time"
)

func TestConnectionsAreBounded(t *testing.T) {
	if n := connectionLimit(); n < 64 || n > mostConnections {
		t.Errorf("%d connections", n)
	}
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newLimited(inner, 2)
	type accepted struct {
		c   net.Conn
		err error
	}
	accept := make(chan accepted)
	go func() {
		defer close(accept)
		for {
			c, err := l.Accept()
			accept <- accepted{c, err}
			if err != nil {
				return
			}
		}
	}()
	for range 3 {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() //nolint:revive // there are three
	}
	first, second := <-accept, <-accept
	select {
	case a := <-accept:
		t.Fatalf("a third one: %+v", a)
	case <-time.After(20 * time.Millisecond): // it would come at once
	}
	for range 2 { // twice, and still it was one
		_ = first.c.Close()
	}
	third := <-accept
	if third.err != nil || len(l.open) != 2 {
		t.Fatalf("%+v, %d are open", third, len(l.open))
	}
	if err := l.Close(); err != nil { // while nobody is accepted
		t.Fatal(err)
	}
	if a := <-accept; !errors.Is(a.err, net.ErrClosed) {
		t.Errorf("after the end: %+v", a)
	}
	_, _ = second.c.Close(), third.c.Close()
	if len(l.open) != 0 {
		t.Errorf("%d are open", len(l.open))
	}
}
