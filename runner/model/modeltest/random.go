package modeltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
)

// odd are pieces of text that a stream of events or a JSON string could trip over.
var odd = []string{
	"a", "word ", "\n", "\n\n", "\r\n", "\t", `"`, `\`, `\u0041`, "data: ", "event: error\n", "[DONE]", ": ", "{", "}", "[", "]", "null", "</script>", "&amp;",
	"ü", "☃", "𝄞", "👩‍👩‍👧", "\u2028", "\u202e", "\ufeff", "\x00", "\x1b[31m", "\x7f", "\ufffd", `"}]}`, "```json\n", "<think>", "%s", "${x}",
}

// text is some of them.
func text(r *rand.Rand, most int) string {
	var b strings.Builder
	for range r.IntN(most + 1) {
		b.WriteString(odd[r.IntN(len(odd))])
	}
	return b.String()
}

// random checks that the answer of a model arrives unchanged, and goes back in a request
// that the API accepts.
func (s suite) random(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11)) //nolint:gosec // the same answers every time
	k := s.talk(t)
	for n := range 150 {
		a := Answer{Text: text(r, 12), Reasoning: text(r, 6), TextSize: 1 + r.IntN(20), ArgsSize: 1 + r.IntN(20)}
		want := &message.Output{Text: a.Text, Reasoning: a.Reasoning, Finish: message.FinishStop}
		for i := range r.IntN(4) {
			c := Call{ID: fmt.Sprintf("call_%d", i), Tool: "bash", Args: string(encode(object{"command": text(r, 8), text(r, 2): r.IntN(100)}))}
			a.Calls = append(a.Calls, c)
			want.Calls = append(want.Calls, message.CallRequest{ID: c.ID, Tool: c.Tool, Args: c.Args})
			want.Finish = message.FinishToolCalls
		}
		k.Add(a.Step(), Answer{Text: "done"}.Step())
		out, err := k.next(t, t.Context(), message.Request{})
		if err != nil {
			t.Fatalf("answer %d, %+v: %v", n, a, err)
		}
		results := make([]*message.ToolResult, len(out.Calls))
		for i := range results {
			results[i] = &message.ToolResult{Text: text(r, 10)}
		}
		said := ToMessage(out, "m2", results...)
		k.matches(t, want, out)
		if t.Failed() {
			t.Fatalf("answer %d, %+v", n, a)
		}
		k.say(t, said)
		for range 1 + r.IntN(3) { // right behind the results, also by several people
			k.say(t, user("Go on."+text(r, 4)))
		}
		k.says(t, "done")
		if err := k.Reset([]*message.Message{user("What is in the folder?")}); err != nil {
			t.Fatal(err)
		}
	}
}

// disorder loses, repeats and swaps each event of a stream. What comes of it is
// an answer or an error with a reason, never a panic, a hang or a mistake of ours.
func (s suite) disorder(t *testing.T) {
	whole := strings.SplitAfter(string(s.wire.Stream(full)), "\n\n")
	events := whole[:len(whole)-1]
	k := s.talk(t)
	for i, e := range events {
		next := events[(i+1)%len(events)]
		for what, pair := range map[string][]string{"lost": nil, "twice": {e, e}, "swapped": {next, e}, "three times next": {next, next, next}} {
			stream := strings.Join(events[:i], "") + strings.Join(pair, "") + strings.Join(events[i+1:], "")
			k.restart(slices.Repeat([]Step{Events(stream)}, 3)...)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			out, err := k.Next(ctx, message.Request{}, func(message.Delta) error { return nil })
			cancel()
			if err != nil && !slices.Contains([]reason.Reason{reason.ModelError, reason.ProviderUnavailable}, reason.Of(err)) {
				t.Errorf("event %q %s: reason %s: %v", e, what, reason.Of(err), err)
			}
			if out != nil && len(out.Calls) > 0 != (out.Finish == message.FinishToolCalls) {
				t.Errorf("event %q %s: %d calls and finish %s", e, what, len(out.Calls), out.Finish)
			}
			if t.Failed() {
				return
			}
		}
	}
}
