package openai

import (
	"encoding/json"
	"errors"
	"fmt"

	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/httpapi"
)

// streamed is one event. Its bytes are those of the data, or scratch space that
// the next event uses again.
type streamed struct {
	kind, delta, id []byte
	text            bool  // delta is one
	index           int64 // of the item
	item, response  []byte
	args            []byte
	other           *foreignAPI
}

// read reads the members of an event.
func (a *replyAnswer) read(data []byte) {
	c, e := &a.cur, &a.event
	c.Reset(data)
	*e = streamed{kind: e.kind[:0], delta: e.delta[:0], id: e.id[:0], args: e.args[:0], index: -1}
	c.Object(func(key []byte) {
		switch string(key) {
		case "type":
			e.kind = append(e.kind, c.Text()...)
		case "delta":
			if e.text = c.Next() == '"'; !e.text {
				c.Skip() // of an unknown kind, or a mistake
				return
			}
			e.delta = append(e.delta, c.Text()...)
		case "item_id":
			e.id = append(e.id, c.Text()...)
		case "arguments":
			if c.Next() != '"' {
				c.Skip()
				return
			}
			e.args = append(e.args, c.Text()...)
		case "output_index":
			e.index = c.Integer()
		case "item":
			e.item = c.Raw()
		case "response":
			e.response = c.Raw()
		default:
			if other := shaped(key); other != nil {
				e.other = other
			}
			c.Skip()
		}
	})
	c.End()
}

// piece passes on the text of an event that must have one.
func (e *streamed) piece(say func([]byte)) error {
	if !e.text {
		return fmt.Errorf(`"delta" of %s: want a string`, e.kind)
	}
	say(e.delta)
	return nil
}

// untyped is the error for an event without a type: every event of this API has
// one, but an error of a gateway may not.
func untyped(e *streamed, data []byte) error {
	if e.other != nil {
		return mistaken(e.other, data)
	}
	if err := faultIn(data); err != nil {
		return err
	}
	return errors.New("it has no type")
}

// faultIn returns the error in a body, nil if there is none.
func faultIn(data []byte) error {
	var body struct{ Error json.RawMessage }
	if json.Unmarshal(data, &body) == nil && len(body.Error) > 0 && string(body.Error) != "null" {
		return httpapi.Refused(model.ParseFault(data))
	}
	return nil
}
