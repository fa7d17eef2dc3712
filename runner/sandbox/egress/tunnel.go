package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// tunnel connects to the server and carries bytes both ways until both sides
// have ended.
func (s *session) tunnel(ctx context.Context, c *client, w http.ResponseWriter, k *connection) {
	conn, to, err := s.proxy.dial(ctx, k.target)
	if err != nil {
		s.refuse(c, w, http.MethodConnect, k, err)
		return
	}
	up, err := k.take(conn, to)
	if err != nil {
		return
	}
	hijacked, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.refuse(c, w, http.MethodConnect, k, err)
		return
	}
	_ = hijacked.SetDeadline(time.Time{}) // that of the request's head
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var early io.Reader = c
	if n := buffered.Reader.Buffered(); n > 0 {
		// A program may send its first bytes before it has read the answer.
		early = io.MultiReader(io.LimitReader(buffered.Reader, int64(n)), c)
	}
	var both sync.WaitGroup
	both.Go(func() { k.carry(up, early) })
	both.Go(func() { k.carry(c, up) })
	both.Wait()
}

// buffers are what bytes are copied through, one for each direction.
var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// pool gives the buffers to a ReverseProxy.
type pool struct{}

// Get returns a buffer.
func (pool) Get() []byte { return buffers.Get().(*[64 << 10]byte)[:] } //nolint:forcetypeassert // the pool has values of this type only

// Put takes it back.
func (pool) Put(b []byte) {
	if len(b) == 64<<10 {
		buffers.Put((*[64 << 10]byte)(b))
	}
}

// carry copies one direction to its end and hands the end on. An error ends both
// directions: half a conversation without its end would look like a whole one.
func (k *connection) carry(to net.Conn, from io.Reader) {
	b := pool{}.Get()
	defer pool{}.Put(b)
	// Wrapped in plain interfaces, because the copy would otherwise bypass the
	// counters.
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, b)
	if err == nil {
		_ = closeWrite(to) // fails where the other side has gone already
		return
	}
	if errors.Is(err, net.ErrClosed) {
		return
	}
	if !errors.Is(err, context.Canceled) {
		k.fail(plainDial(err))
	}
	k.client.use(nil)
	_ = k.client.Conn.Close()
}
