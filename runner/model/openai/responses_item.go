package openai

import (
	"bytes"
	"encoding/json"

	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// item is one item of an output: a message, a call, a reasoning.
type item struct {
	kind, id, phase string
	call, name      string
	args            []byte
	// text is what a message or a reasoning shows.
	text []byte
	// summary, content and encrypted as they came; nil where there is nothing.
	summary, content, encrypted json.RawMessage
}

// readItem reads an item. Of a kind that nobody knows only the kind is read.
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
	switch i.kind {
	case "function_call":
		c.Reset(args)
		switch {
		case len(args) == 0:
		case c.Next() == '{':
			i.args = args // not the wire format, but it has only one reading
		default:
			i.args = append(i.args, c.Text()...)
		}
	case "message":
		i.texts(&c, i.content)
	case "reasoning":
		if i.texts(&c, i.summary); len(i.text) == 0 && c.Err() == nil {
			i.texts(&c, i.content)
		}
	}
	return i, c.Err()
}

// texts reads the text of a list of pieces.
func (i *item) texts(c *jsonpass.Cursor, pieces json.RawMessage) {
	c.Reset(pieces)
	if len(pieces) == 0 {
		return
	}
	c.Array(func() {
		c.Object(func(key []byte) {
			if k := string(key); (k == "text" || k == "refusal") && c.Next() == '"' {
				i.text = append(i.text, c.Text()...)
				return
			}
			c.Skip()
		})
	})
}

// thought returns a reasoning item as the API takes it back, nil when it does not.
// Without its content it is a name for something that nobody has kept. A status,
// and members that are null, are what the API sends and does not take.
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

// response is what a stream ends with.
type response struct {
	status, cause string
	// fault is the error, nil where there is none.
	fault  []byte
	output [][]byte
}

// response reads a response and its usage.
func (a *replyAnswer) response(raw []byte) (*response, error) {
	c, r := &a.cur, &response{}
	c.Reset(raw)
	c.Object(func(key []byte) {
		switch string(key) {
		case "status":
			r.status = string(c.Text())
		case "error":
			if v := c.Raw(); string(v) != "null" {
				r.fault = v
			}
		case "incomplete_details":
			c.Object(func(key []byte) {
				if string(key) == "reason" {
					r.cause = string(c.Text())
					return
				}
				c.Skip()
			})
		case "output":
			c.Array(func() { r.output = append(r.output, c.Raw()) })
		case "usage":
			a.tally.read(c)
		default:
			c.Skip()
		}
	})
	return r, c.Err()
}
