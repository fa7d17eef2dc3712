package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Answer is what the model says in one step.
type Answer struct {
	Text, Reasoning string
	Calls           []Call
	// Finish reason on the wire; by default stop, or tool_calls with calls.
	Finish string
	// Usage is sent as a chunk of its own; nil sends none.
	Usage *Usage
	// TextSize and ArgsSize are the bytes of text and of arguments in one chunk.
	// Default: 24, and all arguments at once.
	TextSize, ArgsSize int
	// NoDone leaves out [DONE].
	NoDone bool
}

// Call is a tool call; Args is what the model writes as arguments, JSON or not.
type Call struct{ ID, Tool, Args string }

// Usage is the usage chunk.
type Usage struct{ Prompt, Completion, Cached, Reasoning int }

// Step is the streamed answer.
func (a Answer) Step() Step { return Events(string(a.Stream())) }

// Stream is the body of the answer: chunks as the real API sends them.
func (a Answer) Stream() []byte {
	var b bytes.Buffer
	a.delta(&b, map[string]any{"role": "assistant", "content": ""})
	size := a.TextSize
	if size <= 0 {
		size = 24
	}
	for _, s := range split(a.Reasoning, size) {
		a.delta(&b, map[string]any{"reasoning_content": s})
	}
	for _, s := range split(a.Text, size) {
		a.delta(&b, map[string]any{"content": s})
	}
	for i, c := range a.Calls {
		a.call(&b, i, c)
	}
	finish := a.Finish
	if finish == "" {
		finish = "stop"
		if len(a.Calls) > 0 {
			finish = "tool_calls"
		}
	}
	chunk(&b, []any{map[string]any{"index": 0, "delta": map[string]any{}, "logprobs": nil, "finish_reason": finish}}, nil)
	if u := a.Usage; u != nil {
		chunk(&b, []any{}, map[string]any{
			"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
			"prompt_tokens_details":     map[string]any{"cached_tokens": u.Cached, "audio_tokens": 0},
			"completion_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning},
		})
	}
	if !a.NoDone {
		b.WriteString("data: [DONE]\n\n")
	}
	return b.Bytes()
}

// call sends the name first and the arguments after it, as the real API does.
func (a Answer) call(b *bytes.Buffer, i int, c Call) {
	first := map[string]any{"index": i, "id": c.ID, "type": "function", "function": map[string]any{"name": c.Tool, "arguments": ""}}
	a.delta(b, map[string]any{"tool_calls": []any{first}})
	size := a.ArgsSize
	if size <= 0 {
		size = max(1, len(c.Args))
	}
	for _, s := range split(c.Args, size) {
		a.delta(b, map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": s}}}})
	}
}

func (a Answer) delta(b *bytes.Buffer, delta map[string]any) {
	chunk(b, []any{map[string]any{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": nil}}, nil)
}

func chunk(b *bytes.Buffer, choices []any, usage any) {
	c := map[string]any{
		"id": "chatcmpl-0123456789abcdefghijklmnopqrs", "object": "chat.completion.chunk", "created": 1750000000, "model": "test-model",
		"service_tier": "default", "system_fingerprint": "fp_0123456789", "choices": choices, "usage": usage,
	}
	raw, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("encode a chunk of plain values: %v", err)) // cannot happen
	}
	b.WriteString("data: ")
	b.Write(raw)
	b.WriteString("\n\n")
}

// split cuts a text into pieces of about size bytes, never inside a character.
func split(s string, size int) []string {
	var out []string
	for len(s) > 0 {
		n := min(size, len(s))
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}
