package model

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model/jsonpass"
)

const interrupted = "interrupted: the call has no result; it may or may not have run"

// SentArguments are sent as the model wrote them. Arguments that are not a JSON object are
// wrapped in one: servers that parse the history answer anything else with 400, and the
// model could never read what was wrong with its call.
func SentArguments(raw string) string {
	trimmed := strings.TrimSpace(raw)
	if trimmed == "" {
		return "{}"
	}
	if strings.HasPrefix(trimmed, "{") && json.Valid([]byte(trimmed)) {
		return raw
	}
	return string(append(jsonpass.AppendString([]byte(`{"invalid_arguments":`), raw), '}'))
}

// SentCallName keeps a name that a model made up from being refused by the server.
func SentCallName(name string) string {
	if name == "" {
		return "unknown"
	}
	s := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || (r < utf8.RuneSelf && (r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9')) {
			return r
		}
		return '_'
	}, name)
	return s[:min(len(s), 64)]
}

// ResultText is what the model reads. Not every wire format has a mark for an
// error, so an error begins with its code.
func ResultText(c *message.ToolPart) string {
	r := c.Result
	if r == nil {
		if c.Progress != "" {
			return strings.TrimRight(c.Progress, "\n") + "\n" + interrupted
		}
		return interrupted
	}
	text := r.Text
	if c.Compacted != 0 {
		text = leftOut(r)
	}
	if r.Failed() && !strings.HasPrefix(text, string(r.Code)) {
		return string(r.Code) + ": " + text
	}
	return text
}

// leftOut replaces an output that was removed from the conversation.
func leftOut(r *message.ToolResult) string {
	text := "[output left out to save room"
	if r.Blob != "" {
		text += "; read blob:" + r.Blob + " to see it"
	}
	for _, f := range r.Attachments {
		text += "; read " + f.URL + " to see " + f.Filename
	}
	return text + "]"
}
