package openai

import (
	"encoding/json"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// thoughtKey is the member in which DeepSeek, Moonshot and others send
// reasoning, and in which they require it back: they answer a call without it
// with 400. Servers that send it under another name refuse it or do not need
// it, so it is not sent back to them.
const thoughtKey = "reasoning_content"

// shown is the metadata of a reasoning that is sent back as it was shown.
type shown struct {
	Member string `json:"member"`
}

// appendThought adds the reasoning of the model to its message.
func appendThought(b []byte, reasoning []message.Part) []byte {
	i := slices.IndexFunc(reasoning, func(p message.Part) bool {
		var s shown
		return len(p.Metadata) > 0 && json.Unmarshal(p.Metadata, &s) == nil && s.Member == thoughtKey
	})
	if i < 0 {
		return b
	}
	return jsonpass.AppendString(append(b, `,"`+thoughtKey+`":`...), reasoning[i].Text)
}

// extraKey is the member of a call in which Gemini, asked for chat completions, puts
// what it has signed: it answers a call without it with 400.
const extraKey = "extra_content"

// maxExtra bounds what all calls of an answer have in it.
const maxExtra = 2 << 20

// extra is the metadata of a call with such a member.
type extra struct {
	Content json.RawMessage `json:"extra_content,omitempty"`
}

// appendExtra adds to a call what came with it.
func appendExtra(b []byte, metadata json.RawMessage) []byte {
	var e extra
	if len(metadata) == 0 || json.Unmarshal(metadata, &e) != nil || len(e.Content) == 0 {
		return b
	}
	return append(append(b, `,"`+extraKey+`":`...), e.Content...)
}
