// Package modeltest holds what every provider must do, as tests to run against it, and a local server that speaks every wire format with all its faults.
//
// Four things differ between the formats, and the suite with them:
//
//	chat       signs no reasoning: none goes back
//	gemini     sends arguments as one object: they are never split, broken or cut, and
//	           come back in another spelling
//	gemini     counts nothing written to a cache
//	gemini     may ask to wait in the body of a refusal; the others do in headers only
package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model"
)

// Setup is what a provider is opened with.
type Setup struct {
	BaseURL, APIKey string
	Prompt          message.Prompt
	Retry           model.Retry
	FirstByte, Idle time.Duration
}

// Open opens a conversation of the provider under test.
type Open func(t testing.TB, s Setup) model.Conversation

// patience ends a case that hangs.
const patience = 20 * time.Second

// Key is the key the suite gives to the provider.
const Key = "sk-test-0123456789abcdef"

// Run holds a provider that speaks a wire format against the contract of
// model.Conversation.
func Run(t *testing.T, wire Wire, open Open) {
	t.Helper()
	Talks(t, wire, open)
	Bytes(t, wire, open)
	s := suite{wire, open}
	t.Run("EnvironmentOfTheSDKIsIgnored", s.environment)
}

// Talks is the part of Run that also holds for what stands around a provider.
func Talks(t *testing.T, wire Wire, open Open) {
	t.Helper()
	s := suite{wire, open}
	t.Run("Answer", s.answer)
	t.Run("FinishWordsAreMapped", s.finishes)
	t.Run("UsageIsCounted", s.usage)
	t.Run("ReasoningGoesBackToTheSameModelOnly", s.reasoning)
	t.Run("UnknownEventsAreIgnored", s.unknown)
	t.Run("ServersThatDiffer", s.quirks)
	t.Run("MediaAreShown", s.media)
	t.Run("SchemaOfTheAnswerIsKept", s.contract)
	t.Run("OneConnectionForAllTurns", s.connection)
	t.Run("HistoryOnlyGrows", s.history)
	t.Run("ClosingRequestHasNoTools", s.closing)
	t.Run("AsideLeavesTheConversationAsItIs", s.aside)
	t.Run("ResetReplacesTheHistory", s.reset)
	t.Run("FaultsEndInTheirReason", s.faults)
	t.Run("StallIsRetried", s.stall)
	t.Run("RetryAfterIsWaited", s.retryAfter)
	t.Run("WaitInTheBodyIsWaited", s.asksInTheBody)
	t.Run("CancelEndsTheStream", s.cancel)
	t.Run("EmitErrorEndsTheStream", s.emitError)
}

// Bytes is the part of Run about the wire, split and cut at every byte.
func Bytes(t *testing.T, wire Wire, open Open) {
	t.Helper()
	s := suite{wire, open}
	t.Run("ArgumentsSplitAtEveryByte", s.everySplit)
	t.Run("CutAtEveryByte", s.everyCut)
	t.Run("WhateverIsSaidComesAsItIs", s.random)
	t.Run("EventsOutOfOrderAreNoMistakeOfOurs", s.disorder)
}

type suite struct {
	wire Wire
	open Open
}

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
	k := &talk{Server: server, whole: s.wire.traits().whole}
	k.Conversation = s.open(t, Setup{
		BaseURL: server.URL, APIKey: Key, Prompt: prompt,
		Retry: model.Retry{
			Attempts: 3, MaxDelay: time.Minute,
			Rand: func() float64 { return 0 },
			Sleep: func(ctx context.Context, d time.Duration) error {
				k.waits = append(k.waits, d)
				return ctx.Err()
			},
		},
		FirstByte: idle, Idle: idle,
	})
	k.say(t, user("What is in the folder?"))
	return k
}

var tools = []message.ToolSpec{
	{Name: "bash", Description: "Runs a command.", Parameters: []byte(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`)},
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

func (s suite) answer(t *testing.T) {
	k := s.talk(t, full.Step())
	k.wants(t, wantFull())
	r := k.Requests()[0]
	if got := s.wire.Key(r.Header); got != Key {
		t.Errorf("the request carries the key %q", got)
	}
	if strings.Contains(r.Path+"?"+r.Query, Key) {
		t.Errorf("the key stands in the address %s?%s, where logs keep it", r.Path, r.Query)
	}
	if r.Header.Get("Content-Length") == "" && len(r.Body) == 0 {
		t.Errorf("the request has no body")
	}
}

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

// ToMessage is an answer with a result for every call.
func ToMessage(out *message.Output, id string, results ...*message.ToolResult) *message.Message {
	m := &message.Message{ID: id, Role: message.RoleAssistant, Finish: out.Finish, Model: &out.Model}
	if out.Reasoning != "" || len(out.ReasoningMetadata) > 0 {
		m.Parts = append(m.Parts, message.Part{Type: message.PartReasoning, Text: out.Reasoning, Metadata: out.ReasoningMetadata})
	}
	if out.Text != "" {
		m.Parts = append(m.Parts, message.Part{Type: message.PartText, Text: out.Text, Metadata: out.TextMetadata})
	}
	for i, c := range out.Calls {
		p := &message.ToolPart{CallID: c.ID, Tool: c.Tool, Raw: c.Args, State: message.StateCompleted}
		if i < len(results) {
			p.Result = results[i]
		}
		m.Parts = append(m.Parts, message.Part{Type: message.PartTool, Tool: p, Metadata: c.Metadata})
	}
	return m
}

func (s suite) history(t *testing.T) {
	broken := `{"cut": `
	if s.wire.traits().whole {
		broken = `{"cut":null}`
	}
	bad := Answer{Calls: []Call{{ID: "call_c", Tool: "no.such tool", Args: broken}}}
	k := s.talk(t, full.Step(), bad.Step(), Answer{Text: "done"}.Step())
	out, err := k.next(t, t.Context(), message.Request{})
	if err != nil {
		t.Fatal(err)
	}
	exit := 1
	k.say(t, ToMessage(out, "m2", &message.ToolResult{Text: "a.txt"}, &message.ToolResult{Text: "no such file", Code: message.CodeTool, ExitCode: &exit}))
	out, err = k.next(t, t.Context(), message.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if out.Calls[0].Args != broken {
		t.Errorf("broken arguments came as %q, they must stay as they are", out.Calls[0].Args)
	}
	k.say(t, ToMessage(out, "m3", &message.ToolResult{Text: "not JSON", Code: message.CodeBadJSON}))
	if out, err = k.next(t, t.Context(), message.Request{}); err != nil || out.Text != "done" {
		t.Fatalf("third answer: %+v, %v", out, err)
	}
	sent := k.Requests()
	for i := 1; i < len(sent); i++ {
		common := 0
		for common < len(sent[i-1].Body) && sent[i-1].Body[common] == sent[i].Body[common] {
			common++
		}
		if !strings.Contains(string(sent[i-1].Body[:common]), "What is in the folder?") || !strings.Contains(string(sent[i-1].Body[common:]), "]") || len(sent[i].Body) <= len(sent[i-1].Body) {
			t.Errorf("request %d does not extend the one before", i+1)
		}
	}
	for _, want := range append([]string{"a.txt", "no such file", "not JSON"}, s.wire.traits().failed...) {
		if !strings.Contains(string(sent[2].Body), want) {
			t.Errorf("the last request does not hold %q", want)
		}
	}
}

func (s suite) closing(t *testing.T) {
	k := s.talk(t, full.Step(), Answer{Text: "x"}.Step())
	out, err := k.next(t, t.Context(), message.Request{NoTools: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Calls) > 0 || out.Finish != message.FinishStop {
		t.Errorf("a closing answer holds %d calls and finish %s", len(out.Calls), out.Finish)
	}
	if _, err := k.next(t, t.Context(), message.Request{}); err != nil {
		t.Fatal(err)
	}
	sent := k.Requests()
	silent := s.wire.traits().silent
	if strings.Contains(string(sent[0].Body), `"tools"`) && (silent == "" || !strings.Contains(string(sent[0].Body), silent)) || !strings.Contains(string(sent[1].Body), `"tools"`) {
		t.Errorf("tools: the closing request must leave them out or forbid them, the next must have them\n%s\n%s", sent[0].Body, sent[1].Body)
	}
}

func (s suite) aside(t *testing.T) {
	k := s.talk(t, full.Step(), full.Step(), Refuse(429, nil, "{}"), full.Step(), full.Step())
	k.wants(t, wantFull())
	ask := message.Request{ID: "r2", Aside: &message.Aside{System: "Summarise.", Text: "All \"that\" was said.", MaxOutputTokens: 4097}}
	for range 2 { // the second one is sent twice
		out, err := k.next(t, t.Context(), ask)
		if err != nil || len(out.Calls) > 0 || out.Finish != message.FinishStop || out.Text != full.Text {
			t.Fatalf("aside: %+v, %v", out, err)
		}
	}
	k.wants(t, wantFull())
	sent := k.Requests()
	if d := cmp.Diff(string(sent[0].Body), string(sent[4].Body)); d != "" {
		t.Errorf("the conversation has changed (-before +after):\n%s", d)
	}
	body := string(sent[1].Body)
	if string(sent[2].Body) != body || string(sent[3].Body) != body {
		t.Error("equal questions gave different requests")
	}
	for _, part := range []string{"Summarise.", `All \"that\" was said.`, "4097"} {
		if !strings.Contains(body, part) {
			t.Errorf("the question lacks %q: %s", part, body)
		}
	}
	for _, part := range []string{"Be brief.", "What is in the folder?", `"tools"`} {
		if strings.Contains(body, part) {
			t.Errorf("the question holds %q of the conversation: %s", part, body)
		}
	}
}

func (s suite) reset(t *testing.T) {
	k := s.talk(t, full.Step(), full.Step(), full.Step())
	k.wants(t, wantFull())
	long := ToMessage(wantFull(), "m2", &message.ToolResult{Text: "a long result"}, &message.ToolResult{Text: "another"})
	k.say(t, long)
	k.wants(t, wantFull())
	short := *long.Calls()[0]
	short.Compacted, short.Result = 1, &message.ToolResult{Text: "a long result", Blob: "sha256:42"}
	summary := user("What was said before.")
	pruned := &message.Message{ID: "m2", Role: message.RoleAssistant, Parts: []message.Part{{Type: message.PartTool, Tool: &short}}}
	if err := k.Reset([]*message.Message{summary, pruned}); err != nil {
		t.Fatal(err)
	}
	k.say(t, user("Go on."))
	k.wants(t, wantFull())

	fresh := s.talk(t, full.Step())
	if err := fresh.Reset(nil); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*message.Message{summary, pruned, user("Go on.")} {
		fresh.say(t, m)
	}
	fresh.wants(t, wantFull())
	got := string(k.Requests()[2].Body)
	if d := cmp.Diff(string(fresh.Requests()[0].Body), got); d != "" {
		t.Errorf("a conversation that was reset differs from one that began so (-fresh +reset):\n%s", d)
	}
	if strings.Contains(got, "a long result") || !strings.Contains(got, "blob:sha256:42") || strings.Contains(got, "What is in the folder?") {
		t.Errorf("after the reset: %s", got)
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
	size := len(s.wire.Stream(a))
	for name, cut := range map[string]func(Step, int) Step{"broken": Step.CutAt, "ended": Step.EndAt} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := s.talk(t)
			for n := range size {
				k.mu.Lock()
				k.steps = []Step{cut(a.Step(), n), a.Step()}
				k.mu.Unlock()
				k.wants(t, want)
				if t.Failed() {
					t.Fatalf("cut at byte %d of %d", n, size)
				}
			}
		})
	}
}

func (s suite) stall(t *testing.T) {
	for _, at := range []int{0, 1, 400} {
		k := s.patient(t, 250*time.Millisecond, full.Step().StallAt(at), full.Step())
		k.wants(t, wantFull())
		if len(k.waits) != 1 || len(k.Requests()) != 2 {
			t.Errorf("stalled at %d: %d waits, %d requests", at, len(k.waits), len(k.Requests()))
		}
	}
	// A server that has said everything and does not hang up is no stall.
	body := s.wire.Stream(Answer{Text: "ok", Usage: full.Usage})
	k := s.patient(t, 250*time.Millisecond, Events(string(body)).StallAt(len(body)))
	out, err := k.next(t, t.Context(), message.Request{})
	if err != nil || out.Text != "ok" {
		t.Errorf("a stream that stays open behind its end: %+v, %v", out, err)
	}
}

func (s suite) retryAfter(t *testing.T) {
	date := func() string { return time.Now().Add(3 * time.Second).UTC().Format(http.TimeFormat) }
	cases := map[string]struct {
		header    http.Header
		low, high time.Duration
	}{
		"milliseconds first": {http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"9"}}, 1500 * time.Millisecond, 1500 * time.Millisecond},
		"seconds":            {http.Header{"Retry-After": {"2"}}, 2 * time.Second, 2 * time.Second},
		"fractions":          {http.Header{"Retry-After": {"0.5"}}, 500 * time.Millisecond, 500 * time.Millisecond},
		"date":               {http.Header{"Retry-After": {date()}}, time.Second, 3 * time.Second},
		"nonsense":           {http.Header{"Retry-After": {"soon"}}, 900 * time.Millisecond, 900 * time.Millisecond},
		"negative":           {http.Header{"Retry-After": {"-5"}}, 900 * time.Millisecond, 900 * time.Millisecond},
		"none":               {nil, 900 * time.Millisecond, 900 * time.Millisecond},
	}
	for name, c := range cases {
		for _, status := range []int{429, 503} {
			k := s.talk(t, Refuse(status, c.header, s.wire.Fault(status, "later", "")), full.Step())
			k.wants(t, wantFull())
			if len(k.waits) != 1 || k.waits[0] < c.low || k.waits[0] > c.high {
				t.Errorf("%s, %d: waited %v, want %s to %s", name, status, k.waits, c.low, c.high)
			}
		}
	}
}

// asksInTheBody waits as long as a refusal's own words ask for.
func (s suite) asksInTheBody(t *testing.T) {
	asks := s.wire.traits().asks
	if asks == "" {
		t.Skip("this API asks in headers only, which RetryAfterIsWaited tests")
	}
	k := s.talk(t, Refuse(429, nil, asks), full.Step())
	k.wants(t, wantFull())
	if len(k.waits) != 1 || k.waits[0] != 2*time.Second {
		t.Errorf("waited %v, want 2s", k.waits)
	}
}

func (s suite) cancel(t *testing.T) {
	// Behind the first piece that is told.
	stream := s.wire.Stream(full)
	begun := bytes.Index(stream, []byte("The user"))
	begun += bytes.Index(stream[begun:], []byte("\n\n")) + 2
	k := s.talk(t, full.Step().StallAt(begun))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := k.Next(ctx, message.Request{}, func(message.Delta) error { cancel(); return nil })
	if got := reason.Of(err); got != reason.Cancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: reason %s, error %v", got, err)
	}
	if len(k.Requests()) != 1 || len(k.waits) > 0 {
		t.Errorf("%d requests and %d waits before the stream was cancelled", len(k.Requests()), len(k.waits))
	}
	k = s.talk(t, full.Step().StallAt(begun))
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = k.Next(ctx, message.Request{}, func(message.Delta) error { return nil })
	if got := reason.Of(err); got != reason.DeadlineExceeded {
		t.Errorf("deadline: reason %s, error %v", got, err)
	}
	if n := len(k.Requests()); n != 1 {
		t.Errorf("%d requests after the deadline", n)
	}
}

func (s suite) emitError(t *testing.T) {
	enough := errors.New("seen enough")
	k := s.talk(t, full.Step(), full.Step())
	_, err := k.Next(t.Context(), message.Request{}, func(message.Delta) error { return enough })
	if !errors.Is(err, enough) || len(k.Requests()) != 1 {
		t.Errorf("emit's error: %v after %d requests", err, len(k.Requests()))
	}
}
