package anthropic

import (
	"encoding/json"
	"slices"

	"agentctl.dev/agentctl/runner/model"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// noted is the metadata of a reasoning: the structure of its blocks, which the
// text does not show. The API accepts them back only unchanged and in their
// order.
type noted struct {
	Blocks []notedBlock `json:"blocks"`
}

// notedBlock is a thought, or a block between it and the next one.
type notedBlock struct {
	// Thinking is the length of a thought in bytes; nil in a block that is not a
	// thought.
	Thinking  *int   `json:"thinking,omitempty"`
	Signature string `json:"signature,omitempty"`
	// Redacted is a thought that only the API can read.
	Redacted string `json:"redacted,omitempty"`
	// Other is a block of the API's own tools.
	Other json.RawMessage `json:"other,omitempty"`
	// Text in bytes, and the number of Calls, before the next thought.
	Text  int `json:"text,omitempty"`
	Calls int `json:"calls,omitempty"`
}

// thought is a block of thinking as it is sent back, and what is between it and
// the one before.
type thought struct {
	thinking, signature, redacted string
	// other is a block of the API's own tools instead of a thought.
	other       json.RawMessage
	text, calls int
}

func (t thought) append(b []byte) []byte {
	if t.other != nil {
		return append(b, t.other...)
	}
	if t.redacted != "" {
		return append(jsonpass.AppendString(append(b, `{"type":"redacted_thinking","data":`...), t.redacted), '}')
	}
	b = jsonpass.AppendString(append(b, `{"type":"thinking","thinking":`...), t.thinking)
	return append(jsonpass.AppendString(append(b, `,"signature":`...), t.signature), '}')
}

// layout returns the thoughts of a message that can be sent back. Two kinds
// cannot: a reasoning whose text is not the one that the API has signed, and a
// reasoning without a following text or call, because the API refuses a message
// that ends in a thought. A paused turn goes back unchanged, with the blocks of
// the API's own tools, and so does what continues it: it has the results of
// those blocks.
func layout(said model.PastAnswer, continues bool) []thought {
	var all []thought
	text, calls := len(said.Text), len(said.Calls)
	for _, p := range said.Reasoning {
		some, ok := thoughts(p)
		if !ok {
			continue
		}
		for i := range some {
			t := &some[i]
			// The text may have become shorter since.
			t.text, t.calls = min(t.text, text), min(t.calls, calls)
			text, calls = text-t.text, calls-t.calls
		}
		all = append(all, some...)
	}
	if said.Paused || continues {
		return all
	}
	all = withoutOthers(all)
	for len(all) > 0 && calls == 0 && blank(said.Text[len(said.Text)-text:]) {
		last := all[len(all)-1]
		text, calls, all = text+last.text, last.calls, all[:len(all)-1]
	}
	return all
}

// withoutOthers leaves out the blocks of the API's own tools. What preceded
// them then precedes the next thought.
func withoutOthers(all []thought) []thought {
	var kept []thought
	text, calls := 0, 0
	for _, t := range all {
		if t.other != nil {
			text, calls = text+t.text, calls+t.calls
			continue
		}
		t.text, t.calls = t.text+text, t.calls+calls
		text, calls = 0, 0
		kept = append(kept, t)
	}
	return kept
}

func thoughts(p message.Part) ([]thought, bool) {
	var n noted
	if len(p.Metadata) == 0 || json.Unmarshal(p.Metadata, &n) != nil {
		return nil, false
	}
	var all []thought
	var next thought
	rest := p.Text
	for _, b := range n.Blocks {
		if b.Text < 0 || b.Calls < 0 {
			return nil, false
		}
		next.text, next.calls = next.text+b.Text, next.calls+b.Calls
		switch {
		case b.Redacted != "":
			next.redacted = b.Redacted
		case len(b.Other) > 0:
			next.other = b.Other
		case b.Thinking == nil:
			continue
		case *b.Thinking < 0 || *b.Thinking > len(rest):
			return nil, false
		default:
			next.thinking, next.signature, rest = rest[:*b.Thinking], b.Signature, rest[*b.Thinking:]
		}
		all = append(all, next)
		next = thought{}
	}
	return all, rest == ""
}

// note returns the metadata of an answer's reasoning; nil without a thought.
func note(blocks []block) json.RawMessage {
	var n noted
	isThought := func(b block) bool {
		return b.kind == thinkingBlock || b.kind == redactedBlock || b.kind == otherBlock
	}
	for len(blocks) > 0 && !isThought(blocks[len(blocks)-1]) {
		blocks = blocks[:len(blocks)-1]
	}
	for _, b := range blocks {
		switch b.kind {
		case thinkingBlock:
			if b.size > 0 || len(b.kept) > 0 {
				n.Blocks = append(n.Blocks, notedBlock{Thinking: &b.size, Signature: string(b.kept)})
			}
		case redactedBlock:
			n.Blocks = append(n.Blocks, notedBlock{Redacted: string(b.kept)})
		case textBlock:
			n.Blocks = append(n.Blocks, notedBlock{Text: b.size})
		case callBlock:
			n.Blocks = append(n.Blocks, notedBlock{Calls: 1})
		case otherBlock:
			if raw := b.whole(); raw != nil {
				n.Blocks = append(n.Blocks, notedBlock{Other: raw})
			}
		}
	}
	if !slices.ContainsFunc(n.Blocks, func(b notedBlock) bool { return b.Thinking != nil || b.Redacted != "" || b.Other != nil }) {
		return nil
	}
	raw, err := json.Marshal(n)
	if err != nil {
		return nil // cannot happen: these are plain values
	}
	return raw
}

// whole returns a block of the API's own tools as it is sent back: as it began, with
// the input that came in pieces. Nil is a block that cannot be sent.
func (b *block) whole() json.RawMessage {
	if len(b.input) == 0 {
		return b.kept
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(b.kept, &members) != nil || !json.Valid(b.input) {
		return nil
	}
	members["input"] = b.input
	raw, err := json.Marshal(members)
	if err != nil {
		return nil // cannot happen: its members were JSON
	}
	return raw
}
