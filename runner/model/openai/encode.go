package openai

import (
	"fmt"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model/jsonpass"
	"agentctl.dev/agentctl/runner/model/turns"
)

// imageTypes are the images that every server takes which takes images at all.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// takes says whether the server can show a file to the model. One that stands
// anywhere else than in the message or in the run itself is out of its reach.
func takes(f *message.File) bool {
	return turns.Inline(f) && slices.Contains(imageTypes, turns.MimeOf(f))
}

// appendMessage adds the wire form of a message to b: none for a message that
// says nothing, several for an assistant's with calls. Reasoning is left out:
// this wire format has no field that carries it back. So is the metadata of
// every part, which belongs to the provider that gave it.
func (c *Conversation) appendMessage(b []byte, m *message.Message) ([]byte, error) {
	switch m.Role {
	case message.RoleUser:
		return c.appendUser(b, m)
	case message.RoleAssistant:
		return appendAssistant(b, turns.Assistant(m, c.Self())), nil
	}
	return b, fmt.Errorf("message %s: there is no role %q", m.ID, m.Role)
}

func appendSimple(b []byte, role, text string) []byte {
	b = append(jsonpass.Open(b), `{"role":"`...)
	b = append(b, role...)
	b = append(b, `","content":`...)
	return append(jsonpass.AppendString(b, text), '}')
}

// appendUser adds a user message: one text, or a list where it holds media.
func (c *Conversation) appendUser(b []byte, m *message.Message) ([]byte, error) {
	pieces := turns.User(m, takes)
	if len(pieces) == 0 {
		return b, nil
	}
	if len(pieces) == 1 && pieces[0].File == nil {
		return appendSimple(b, "user", pieces[0].Text), nil
	}
	b = append(jsonpass.Open(b), `{"role":"user","content":[`...)
	for _, p := range pieces {
		b = jsonpass.Open(b)
		if p.File == nil {
			b = append(jsonpass.AppendString(append(b, `{"type":"text","text":`...), p.Text), '}')
			continue
		}
		media, err := turns.Load(p.File, c.Blob)
		if err != nil {
			return b, err
		}
		b = append(jsonpass.AppendString(append(b, `{"type":"image_url","image_url":{"url":`...), media.URL()), `}}`...)
	}
	return append(b, `]}`...), nil
}

func appendAssistant(b []byte, said turns.Said) []byte {
	if len(said.Calls) == 0 {
		if said.Text == "" {
			return b
		}
		return appendSimple(b, "assistant", said.Text)
	}
	b = append(jsonpass.Open(b), `{"role":"assistant","content":`...)
	if said.Text == "" {
		b = append(b, "null"...)
	} else {
		b = jsonpass.AppendString(b, said.Text)
	}
	b = append(b, `,"tool_calls":[`...)
	for _, c := range said.Calls {
		b = append(jsonpass.Open(b), `{"id":`...)
		b = jsonpass.AppendString(b, c.CallID)
		b = append(b, `,"type":"function","function":{"name":`...)
		b = jsonpass.AppendString(b, turns.CallName(c.Tool))
		b = append(b, `,"arguments":`...)
		b = jsonpass.AppendString(b, turns.Arguments(c.Raw))
		b = append(b, `}}`...)
	}
	b = append(b, `]}`...)
	for _, c := range said.Calls {
		b = append(b, `,{"role":"tool","tool_call_id":`...)
		b = jsonpass.AppendString(b, c.CallID)
		b = append(b, `,"content":`...)
		b = jsonpass.AppendString(b, turns.ResultText(c.ToolPart))
		b = append(b, '}')
	}
	return b
}
