package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"agentctl.dev/agentctl/api/message"
)

const interrupted = "interrupted: the call has no result; it may or may not have run"

// appendMessage adds the wire form of a message to b: none for a message that
// says nothing, several for an assistant's with calls. Reasoning is left out:
// this wire format has no field that carries it back. So is the metadata of
// every part, which belongs to the provider that gave it.
func appendMessage(b []byte, m *message.Message) ([]byte, error) {
	switch m.Role {
	case message.RoleUser:
		return appendUser(b, m), nil
	case message.RoleAssistant:
		return appendAssistant(b, m), nil
	}
	return b, fmt.Errorf("message %s: there is no role %q", m.ID, m.Role)
}

func appendSimple(b []byte, role, text string) []byte {
	b = append(open(b), `{"role":"`...)
	b = append(b, role...)
	b = append(b, `","content":`...)
	return append(appendString(b, text), '}')
}

// open begins an element of an array.
func open(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] != '[' {
		b = append(b, ',')
	}
	return b
}

// appendUser adds a user message: one text, or a list where it holds media.
func appendUser(b []byte, m *message.Message) []byte {
	pieces := userPieces(m)
	if len(pieces) == 0 {
		return b
	}
	if len(pieces) == 1 && pieces[0].image == "" {
		return appendSimple(b, "user", pieces[0].text)
	}
	b = append(open(b), `{"role":"user","content":[`...)
	for _, p := range pieces {
		b = open(b)
		if p.image == "" {
			b = append(appendString(append(b, `{"type":"text","text":`...), p.text), '}')
			continue
		}
		b = append(appendString(append(b, `{"type":"image_url","image_url":{"url":`...), p.image), `}}`...)
	}
	return append(b, `]}`...)
}

func appendAssistant(b []byte, m *message.Message) []byte {
	text, calls := assistantParts(m)
	if len(calls) == 0 {
		if text == "" {
			return b
		}
		return appendSimple(b, "assistant", text)
	}
	b = append(open(b), `{"role":"assistant","content":`...)
	if text == "" {
		b = append(b, "null"...)
	} else {
		b = appendString(b, text)
	}
	b = append(b, `,"tool_calls":[`...)
	for _, c := range calls {
		b = append(open(b), `{"id":`...)
		b = appendString(b, c.CallID)
		b = append(b, `,"type":"function","function":{"name":`...)
		b = appendString(b, callName(c.Tool))
		b = append(b, `,"arguments":`...)
		b = appendString(b, arguments(c.Raw))
		b = append(b, `}}`...)
	}
	b = append(b, `]}`...)
	for _, c := range calls {
		b = append(b, `,{"role":"tool","tool_call_id":`...)
		b = appendString(b, c.CallID)
		b = append(b, `,"content":`...)
		b = appendString(b, resultText(c))
		b = append(b, '}')
	}
	return b
}

// arguments are sent as the model wrote them. Where they are no JSON object
// they are wrapped in one: servers that parse the history answer anything else
// with 400, and the model could never read what was wrong with its call.
func arguments(raw string) string {
	trimmed := strings.TrimSpace(raw)
	if trimmed == "" {
		return "{}"
	}
	if strings.HasPrefix(trimmed, "{") && json.Valid([]byte(trimmed)) {
		return raw
	}
	return string(append(appendString([]byte(`{"invalid_arguments":`), raw), '}'))
}

// callName keeps a name that a model made up from being refused by the server.
func callName(name string) string {
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

// resultText is what the model reads. This wire format has no mark for an
// error, so an error begins with its code.
func resultText(c *message.ToolPart) string {
	r := c.Result
	if r == nil {
		if c.Progress != "" {
			return strings.TrimRight(c.Progress, "\n") + "\n" + interrupted
		}
		return interrupted
	}
	text := r.Text
	if c.Compacted != 0 {
		text = leftOut(r.Blob)
	}
	if r.Failed() && !strings.HasPrefix(text, string(r.Code)) {
		return string(r.Code) + ": " + text
	}
	return text
}

// leftOut stands for an output that was taken out of the conversation.
func leftOut(blob string) string {
	if blob == "" {
		return "[output left out to save room]"
	}
	return "[output left out to save room; read blob:" + blob + " to see it]"
}

const hexDigits = "0123456789abcdef"

// appendString adds s as a JSON string. Unlike encoding/json it leaves < > & as
// they are: source code is full of them, and escaped they are six tokens each.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			b = append(append(b, s[start:i]...), "\uFFFD"...)
		} else {
			b = append(b, s[start:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\r':
				b = append(b, '\\', 'r')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}
