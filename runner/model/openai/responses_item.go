package openai

import (
	"bytes"
	"encoding/json"

	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// item is one item of an output: a message, a call, a reasoning.
type item struct {
	kind, id, phase string
	status          string
	call, name      string
	args            []byte
	// summary, content and encrypted as they came; nil where there is nothing.
	summary, content, encrypted json.RawMessage
}

// readItem reads an item. Of an unknown kind only the kind is read.
func readItem(raw []byte) (*item, error) {
	var c jsonpass.Cursor
	var args json.RawMessage
	i := &item{}
	c.Reset(raw)
	text := func(into *string) {
		if c.Next() != '"' {
			c.Skip()
			return
		}
		*into = string(c.Text())
	}
	value := func(into *json.RawMessage) {
		if v := c.Raw(); string(v) != "null" && string(v) != "[]" {
			*into = v
		}
	}
	c.Object(func(key []byte) {
		switch string(key) {
		case "type":
			text(&i.kind)
		case "id":
			text(&i.id)
		case "phase":
			text(&i.phase)
		case "status":
			text(&i.status)
		case "call_id":
			text(&i.call)
		case "name":
			text(&i.name)
		case "arguments":
			value(&args)
		case "summary":
			value(&i.summary)
		case "content":
			value(&i.content)
		case "encrypted_content":
			value(&i.encrypted)
		default:
			c.Skip()
		}
	})
	if err := c.Err(); err != nil {
		return nil, err
	}
	if i.kind != "function_call" || len(args) == 0 {
		return i, nil
	}
	c.Reset(args)
	if c.Next() == '{' {
		i.args = args // not the wire format, but it has only one reading
		return i, nil
	}
	i.args = append(i.args, c.Text()...)
	return i, c.Err()
}

// text returns what a message or a reasoning shows. It is read only where it has
// not been streamed.
func (i *item) text() (text []byte, err error) {
	for _, pieces := range []json.RawMessage{i.summary, i.content} {
		if len(pieces) == 0 || len(text) > 0 {
			continue
		}
		var c jsonpass.Cursor
		c.Reset(pieces)
		c.Array(func() {
			c.Object(func(key []byte) {
				if k := string(key); (k == "text" || k == "refusal") && c.Next() == '"' {
					text = append(text, c.Text()...)
					return
				}
				c.Skip()
			})
		})
		if c.Err() != nil {
			return nil, c.Err()
		}
	}
	return text, nil
}

// thought returns a reasoning item in the form that the API accepts back, nil
// when it does not accept it. Without its content the item refers to a response
// that was not stored. The API sends a status, and members that are null, but
// does not accept them.
func (i *item) thought() json.RawMessage {
	if i.id == "" || i.encrypted == nil && i.content == nil {
		return nil
	}
	b := jsonpass.AppendString([]byte(`{"type":"reasoning","id":`), i.id)
	b = append(b, `,"summary":`...)
	if i.summary == nil {
		b = append(b, `[]`...)
	}
	b = append(b, i.summary...)
	if i.encrypted != nil {
		b = append(append(b, `,"encrypted_content":`...), i.encrypted...)
	}
	if i.content != nil {
		b = append(append(b, `,"content":`...), i.content...)
	}
	return bytes.ToValidUTF8(append(b, '}'), []byte("\uFFFD"))
}
