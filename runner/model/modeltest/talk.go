package modeltest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
)

// talk is one conversation with a server of its own.
type talk struct {
	*Server
	model.Conversation
	// whole is what the traits of the wire format say; they are long to write.
	whole  bool
	deltas []message.Delta
	waits  []time.Duration
}

func (s suite) talk(t *testing.T, steps ...Step) *talk {
	t.Helper()
	return s.patient(t, patience, steps...)
}

// patient is a talk with a provider that bears so long a silence.
func (s suite) patient(t *testing.T, idle time.Duration, steps ...Step) *talk {
	t.Helper()
	return s.connect(t, Options{Wire: s.wire}, idle, steps...)
}

// prompted is a talk with a prompt of its own.
func (s suite) prompted(t *testing.T, prompt message.Prompt, steps ...Step) *talk {
	t.Helper()
	return s.begin(t, Options{Wire: s.wire}, patience, prompt, steps...)
}

// connect is a talk with a server of any kind.
func (s suite) connect(t *testing.T, o Options, idle time.Duration, steps ...Step) *talk {
	t.Helper()
	return s.begin(t, o, idle, message.Prompt{System: "Be brief.", Tools: tools}, steps...)
}

func (s suite) begin(t *testing.T, o Options, idle time.Duration, prompt message.Prompt, steps ...Step) *talk {
	t.Helper()
	server, err := o.Serve(steps...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	k := s.over(t, Setup{BaseURL: server.URL, Prompt: prompt, FirstByte: idle, Idle: idle})
	k.Server = server
	return k
}

// over is a talk with whatever a setup leads to.
func (s suite) over(t *testing.T, setup Setup) *talk {
	t.Helper()
	k := &talk{whole: s.wire.traits().whole}
	setup.APIKey = Key
	setup.Retry = model.Retry{
		Attempts: 3, MaxDelay: time.Minute,
		Rand: func() float64 { return 0 },
		Sleep: func(ctx context.Context, d time.Duration) error {
			k.waits = append(k.waits, d)
			return ctx.Err()
		},
	}
	k.Conversation = s.open(t, setup)
	k.say(t, user("What is in the folder?"))
	return k
}

var tools = []message.ToolSpec{
	{Name: "bash", Description: "Runs a command.", Parameters: []byte("{\n  \"type\": \"object\",\n  \"properties\": {\"command\": {\"type\": \"string\"}},\n  \"required\": [\"command\"]\n}\n")},
	{Name: "read", Description: "Reads a file.", Parameters: []byte(`{"type":"object"}`)},
}

func user(text string) *message.Message {
	return &message.Message{ID: "m1", Role: message.RoleUser, Parts: []message.Part{{Type: message.PartText, Text: text}}}
}

func (k *talk) say(t *testing.T, m *message.Message) {
	t.Helper()
	if err := k.Append(m); err != nil {
		t.Fatalf("Append: %v", err)
	}
}

// next asks and checks what holds for every answer.
func (k *talk) next(t *testing.T, ctx context.Context, req message.Request) (*message.Output, error) { //nolint:revive // t comes first in a test helper
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := k.Next(ctx, req, func(d message.Delta) error {
		k.deltas = append(k.deltas, d)
		return nil
	})
	if (out == nil) == (err == nil) {
		t.Fatalf("Next returned output %v and error %v: exactly one is due", out, err)
	}
	if ctx.Err() == context.DeadlineExceeded {
		t.Fatalf("Next took longer than %s: %v", patience, err)
	}
	if out != nil {
		k.checkDeltas(t, out)
	}
	return out, err
}

// checkDeltas holds what was streamed since the last retry against the answer.
func (k *talk) checkDeltas(t *testing.T, out *message.Output) {
	t.Helper()
	var text, thought strings.Builder
	args, names := map[int]string{}, map[int]message.Delta{}
	for _, d := range k.deltas {
		switch d.Kind {
		case message.DeltaRetry:
			text.Reset()
			thought.Reset()
			clear(args)
			clear(names)
		case message.DeltaText:
			text.WriteString(d.Text)
		case message.DeltaReasoning:
			thought.WriteString(d.Text)
		case message.DeltaTool:
			args[d.Index] += d.Text
			if _, ok := names[d.Index]; !ok {
				names[d.Index] = d
			}
		}
	}
	k.deltas = nil
	if text.String() != out.Text || thought.String() != out.Reasoning {
		t.Errorf("streamed %q and %q, answered %q and %q", text.String(), thought.String(), out.Text, out.Reasoning)
	}
	for i, c := range out.Calls {
		if args[i] != c.Args {
			t.Errorf("call %d: streamed arguments %q, answered %q", i, args[i], c.Args)
		}
		// An id that the model did not write is made up when the answer is complete.
		if first := names[i]; first.Tool != c.Tool || first.Call != "" && first.Call != c.ID {
			t.Errorf("call %d: the first piece names tool %q and call %q, answered %q and %q", i, first.Tool, first.Call, c.Tool, c.ID)
		}
	}
}

var full = Answer{
	Text: "I look: ☃ \"quoted\" \\ and\nlines.", Reasoning: "The user wants a list.",
	Calls: []Call{
		{ID: "call_a", Tool: "bash", Args: `{"command": "ls -la \"ü\" | head\n"}`},
		{ID: "call_b", Tool: "read", Args: `{"path":"a.txt"}`},
	},
	Usage: &Usage{Prompt: 100, Completion: 20, Cached: 40, Reasoning: 5},
}

func wantFull() *message.Output {
	return &message.Output{
		Text: full.Text, Reasoning: full.Reasoning, Finish: message.FinishToolCalls,
		Calls: []message.CallRequest{
			{ID: "call_a", Tool: "bash", Args: full.Calls[0].Args},
			{ID: "call_b", Tool: "read", Args: full.Calls[1].Args},
		},
		Usage: message.Usage{Input: 60, Output: 20, Reasoning: 5, CacheRead: 40},
	}
}

func (k *talk) wants(t *testing.T, want *message.Output) {
	t.Helper()
	got, err := k.next(t, t.Context(), message.Request{ID: "r1"})
	if err != nil {
		t.Fatalf("Next: %v", err)
	}
	k.matches(t, want, got)
}

// matches compares what every provider has to make of an answer.
func (k *talk) matches(t *testing.T, want, got *message.Output) {
	t.Helper()
	bare(got)
	if k.whole {
		want = respelled(want)
		got = respelled(got)
	}
	if want.Usage == (message.Usage{}) {
		got.Uncounted = false // whether a server has counted is its own affair
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("answer (-want +got):\n%s", d)
	}
}

// bare takes away what is the provider's own affair: its name, and what it wants
// back with the answer.
func bare(out *message.Output) {
	out.Model, out.TextMetadata, out.ReasoningMetadata = message.ModelRef{}, nil, nil
	for i := range out.Calls {
		out.Calls[i].Metadata = nil
	}
}

// respelled is an output whose arguments are all spelled alike.
func respelled(out *message.Output) *message.Output {
	alike := *out
	alike.Calls = slices.Clone(out.Calls)
	for i := range alike.Calls {
		var args any
		if json.Unmarshal([]byte(alike.Calls[i].Args), &args) == nil {
			alike.Calls[i].Args = string(encode(args))
		}
	}
	return &alike
}

func (k *talk) says(t *testing.T, text string) {
	t.Helper()
	if out, err := k.next(t, t.Context(), message.Request{}); err != nil || out.Text != text {
		t.Fatalf("answer %+v, %v, want %q", out, err, text)
	}
}
