package diagnose

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

const (
	// maxFrame bounds a message of a language server, maxHeader what is before it.
	maxFrame  = 4 << 20
	maxHeader = 8 << 10
)

var errFrame = errors.New("the server does not speak the protocol")

// framed reads and writes messages as the Language Server Protocol frames them. The codec
// of the library reads a message of any length.
type framed struct{}

// WriteObject implements jsonrpc2.ObjectCodec.
func (framed) WriteObject(w io.Writer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write a message to the server: %w", err)
	}
	_, err = fmt.Fprintf(w, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return err
}

// ReadObject implements jsonrpc2.ObjectCodec.
func (framed) ReadObject(r *bufio.Reader, v any) error {
	length, read := -1, 0
	for {
		text, err := r.ReadSlice('\n') // a longer line is an error
		if err != nil {
			return err
		}
		if read += len(text); read > maxHeader {
			return fmt.Errorf("%w: its header is longer than %d bytes", errFrame, maxHeader)
		}
		name, value, field := strings.Cut(strings.TrimSpace(string(text)), ":")
		if !field {
			if name == "" && length >= 0 {
				break
			}
			return fmt.Errorf("%w: a header line without a colon", errFrame)
		}
		if strings.EqualFold(name, "Content-Length") {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil || length < 0 || length > maxFrame {
				return fmt.Errorf("%w: a message of %s bytes, and %d are read at most", errFrame, strings.TrimSpace(value), maxFrame)
			}
		}
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	return json.Unmarshal(body, v)
}

// maxWaiting bounds what a server has not read yet.
const maxWaiting = 32 << 20

// outbox is the standard input of a server. Writing never waits: a server that reads
// nothing must not keep a call waiting beyond its time.
type outbox struct {
	mu      sync.Mutex
	more    *sync.Cond
	waiting []byte
	closed  bool
}

func newOutbox() *outbox {
	o := &outbox{}
	o.more = sync.NewCond(&o.mu)
	return o
}

// Write implements io.Writer.
func (o *outbox) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.waiting)+len(p) > maxWaiting {
		return 0, io.ErrClosedPipe
	}
	o.waiting = append(o.waiting, p...)
	o.more.Signal()
	return len(p), nil
}

// Read implements io.Reader.
func (o *outbox) Read(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.waiting) == 0 && !o.closed {
		o.more.Wait()
	}
	if len(o.waiting) == 0 {
		return 0, io.EOF
	}
	n := copy(p, o.waiting)
	o.waiting = o.waiting[n:]
	return n, nil
}

// Close implements io.Closer. What is waiting is still read.
func (o *outbox) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.more.Broadcast()
	return nil
}

// pipes are both ends of a program.
type pipes struct {
	io.ReadCloser
	w io.WriteCloser
}

func (p pipes) Write(b []byte) (int, error) { return p.w.Write(b) }

// Close implements io.Closer.
func (p pipes) Close() error { return errors.Join(p.ReadCloser.Close(), p.w.Close()) }

// silent drops what the library would log.
type silent struct{}

func (silent) Printf(string, ...any) {}
