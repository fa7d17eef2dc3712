package runapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// subprotocol is the WebSocket subprotocol of the events. A browser can send its token
// only as a further subprotocol, and then has to name one that the server accepts.
const subprotocol = "events.agentctl.dev"

// maxClose bounds the text of a close frame.
const maxClose = 120

// isSocket reports whether a request asks for a WebSocket.
func isSocket(r *http.Request) bool {
	for _, line := range r.Header.Values("Connection") {
		for word := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(word), "upgrade") {
				return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
			}
		}
	}
	return false
}

// socket serves the events of a run as a WebSocket.
func (s *Server) socket(w http.ResponseWriter, r *http.Request, run *v1alpha1.Run, want wanted) error {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{subprotocol}})
	if err != nil {
		return nil //nolint:nilerr // it has answered already
	}
	defer c.CloseNow() //nolint:errcheck // closed before, or the client is gone
	ctx, gone := context.WithCancel(r.Context())
	defer gone()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer c.CloseNow() //nolint:errcheck // ends the reader
	wg.Go(func() {
		defer gone()
		listen(c)
	})
	s.stream(ctx, run, want, &socket{c, s.o.writePatience})
	return nil
}

// listen handles the frames of the protocol itself. A message of the client ends the
// connection.
func listen(c *websocket.Conn) {
	if _, _, err := c.Reader(context.Background()); err == nil {
		_ = c.Close(websocket.StatusUnsupportedData, "nothing is read here")
	}
}

// socket is an eventWriter.
type socket struct {
	c        *websocket.Conn
	patience time.Duration
}

func (s *socket) write(line []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	return s.c.Write(ctx, websocket.MessageText, line)
}

func (s *socket) event(_ head, line []byte) error { return s.write(line) }

func (s *socket) below(_ event.Type, line []byte) error { return s.write(line) }

func (s *socket) record(r record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return s.write(line)
}

func (s *socket) flush() error { return nil }

func (s *socket) ping() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	return s.c.Ping(ctx)
}

func (s *socket) end(r record, w why) {
	code := websocket.StatusNormalClosure
	switch w {
	case whyEnd:
	case whyLater:
		code = websocket.StatusTryAgainLater
	case whyReader:
		code = websocket.StatusPolicyViolation
	}
	if err := s.record(r); err != nil && errors.Is(err, context.DeadlineExceeded) {
		return // the connection was closed
	}
	text := r.Message
	if len(text) > maxClose {
		text = strings.ToValidUTF8(text[:maxClose], "")
	}
	_ = s.c.Close(code, text) // the client may be gone
}
