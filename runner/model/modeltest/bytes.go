package modeltest

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"agentctl.dev/agentctl/api/message"
)

func (s suite) everySplit(t *testing.T) {
	longest := len(full.Calls[0].Args)
	if s.wire.traits().whole {
		// Arguments cannot be split where they are one object. Text can, and the
		// network splits whatever it likes.
		longest = len(full.Text)
	}
	var steps []Step
	for n := 1; n <= longest; n++ {
		a := full
		a.ArgsSize, a.TextSize = n, n
		steps = append(steps, a.Step())
	}
	// The network splits as well, inside characters and lines.
	for n := 1; n <= 7; n++ {
		steps = append(steps, full.Step().Pieces(n*13))
	}
	k := s.talk(t, steps...)
	for range steps {
		k.wants(t, wantFull())
	}
}

// everyCut breaks a stream behind every byte: the answer is whole or the
// request is sent again, and nothing is ever half.
func (s suite) everyCut(t *testing.T) {
	a := Answer{Text: "ok", Calls: []Call{{ID: "call_a", Tool: "bash", Args: `{"command":"ls"}`}, {ID: "call_b", Tool: "read", Args: `{"path":"☃"}`}}, NoDone: true}
	want := &message.Output{
		Text: "ok", Finish: message.FinishToolCalls,
		Calls: []message.CallRequest{{ID: "call_a", Tool: "bash", Args: `{"command":"ls"}`}, {ID: "call_b", Tool: "read", Args: `{"path":"☃"}`}},
	}
	stream := s.wire.Stream(a)
	for name, end := range map[string]error{"broken": io.ErrUnexpectedEOF, "ended": io.EOF} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &Played{}
			k := s.over(t, Setup{Transport: p})
			for n := range stream {
				p.Streams = []io.Reader{io.MultiReader(bytes.NewReader(stream[:n]), iotest.ErrReader(end)), bytes.NewReader(stream)}
				k.wants(t, want)
				if t.Failed() {
					t.Fatalf("cut at byte %d of %d", n, len(stream))
				}
			}
		})
	}
	// A network makes no difference.
	k := s.talk(t)
	for n := 0; n < len(stream); n += len(stream) / 10 {
		k.restart(a.Step().CutAt(n), a.Step())
		k.wants(t, want)
	}
}
