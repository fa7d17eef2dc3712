package modeltest

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
)

// Over opens a conversation of the provider under test over a transport. It asks
// once, and its prompt has a tool.
type Over func(t testing.TB, transport http.RoundTripper) model.Conversation

// Played is a transport without a network.
type Played struct {
	// Streams are the bodies of the next answers; after the last one, an answer is empty.
	Streams []io.Reader
	// Sent is the body of the newest request, Resend reads it from where it came.
	Sent   []byte
	Resend func() (io.ReadCloser, error)
}

// RoundTrip implements http.RoundTripper.
func (p *Played) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	p.Sent, p.Resend = sent, r.GetBody
	body := io.Reader(http.NoBody)
	if len(p.Streams) > 0 {
		body, p.Streams = p.Streams[0], p.Streams[1:]
	}
	return &http.Response{StatusCode: http.StatusOK, Header: eventStream(), Body: io.NopCloser(body), Request: r}, nil
}

// play is a conversation without a network.
type play struct {
	Played
	model.Conversation
	wire Wire
}

func begin(t testing.TB, wire Wire, open Over) *play {
	t.Helper()
	p := &play{wire: wire}
	p.Conversation = open(t, &p.Played)
	return p
}

func (p *play) say(t testing.TB, messages ...*message.Message) {
	t.Helper()
	for _, m := range messages {
		if err := p.Append(m); err != nil {
			t.Fatalf("message %s: %v", m.ID, err)
		}
	}
}

// hear reads a stream as the next answer.
func (p *play) hear(t testing.TB, stream io.Reader) (*message.Output, error) {
	t.Helper()
	p.Streams = []io.Reader{stream}
	return p.Next(t.Context(), message.Request{}, func(message.Delta) error { return nil })
}

// request is what is sent for the next answer.
func (p *play) request(t testing.TB) string {
	t.Helper()
	if _, err := p.hear(t, bytes.NewReader(p.wire.Stream(Answer{Text: "ok"}))); err != nil {
		t.Fatal(err)
	}
	return string(p.Sent)
}
