package anthropic

import (
	"errors"
	"fmt"
	"strings"

	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// The events with content; any other is ignored.
const (
	messageStart = "message_start"
	messageDelta = "message_delta"
	messageStop  = "message_stop"
	blockStart   = "content_block_start"
	blockDelta   = "content_block_delta"
	blockStop    = "content_block_stop"
	fault        = "error"
)

// piece is the content of one event. Its bytes are reused for the next event.
type piece struct {
	index int64
	// kind of a block or of a piece of one, and its text.
	kind, text []byte
	// kept is a signature, or a thought that only the API can read.
	kept []byte
	// raw is the whole beginning of a block.
	raw []byte
	// id, name and input of a call, args a piece of its arguments.
	id, name, input, args []byte
	stop                  []byte
}

func (p *piece) reset() {
	*p = piece{
		kind: p.kind[:0], raw: p.raw[:0], text: p.text[:0], kept: p.kept[:0], id: p.id[:0], name: p.name[:0],
		input: p.input[:0], args: p.args[:0], stop: p.stop[:0],
	}
}

// event returns the known name for a word, without a copy of it.
func event(word []byte) string {
	switch string(word) {
	case messageStart:
		return messageStart
	case messageDelta:
		return messageDelta
	case messageStop:
		return messageStop
	case blockStart:
		return blockStart
	case blockDelta:
		return blockDelta
	case blockStop:
		return blockStop
	case fault:
		return fault
	}
	return string(word)
}

// part is a member of an event with content.
type part int

const (
	noPart part = iota
	indexPart
	blockPart
	deltaPart
	messagePart
	usagePart
	errorPart
	parts // how many there are
)

func partOf(key []byte) part {
	switch string(key) {
	case "index":
		return indexPart
	case "content_block":
		return blockPart
	case "delta":
		return deltaPart
	case "message":
		return messagePart
	case "usage":
		return usagePart
	case fault:
		return errorPart
	}
	return noPart
}

// read reads an event and returns its type. Of an unknown event only the type
// is read. The API sends the type first; members in front of it have to wait.
func (a *answer) read(name string, data []byte) (kind string, err error) {
	var early [parts][]byte
	a.piece.reset()
	c := &a.cur
	c.Reset(data)
	c.Object(func(key []byte) {
		switch {
		case string(key) == "type":
			kind = event(c.Text())
		case kind == "":
			p := partOf(key)
			early[p] = c.Raw()
		default:
			a.member(kind, partOf(key))
		}
	})
	c.End()
	if kind == "" {
		kind = name
	}
	if kind == "" && early[errorPart] != nil {
		kind = fault // a gateway's own
	}
	for p, raw := range early {
		if raw != nil && c.Err() == nil {
			c.Reset(raw)
			a.member(kind, part(p))
			c.End()
		}
	}
	switch {
	case c.Err() != nil:
		return kind, c.Err()
	case kind == "":
		return "", errors.New("it has no type")
	case strings.HasPrefix(kind, "response."):
		return "", fmt.Errorf("%s is of the responses API", kind)
	}
	return kind, nil
}

// member reads a member of an event.
func (a *answer) member(kind string, p part) {
	c := &a.cur
	switch {
	case p == indexPart && (kind == blockStart || kind == blockDelta):
		a.piece.index = c.Integer()
	case p == blockPart && kind == blockStart:
		a.beginning()
	case p == deltaPart && kind == blockDelta:
		a.block()
	case p == deltaPart && kind == messageDelta:
		c.Object(func(key []byte) {
			if string(key) == "stop_reason" {
				a.piece.stop = append(a.piece.stop, c.Text()...)
				return
			}
			c.Skip()
		})
	case p == usagePart && kind == messageDelta:
		a.usage(true)
	case p == messagePart && kind == messageStart:
		c.Object(func(key []byte) {
			if string(key) == "usage" {
				a.usage(false)
				return
			}
			c.Skip()
		})
	default:
		c.Skip()
	}
}

// beginning reads the beginning of a block, and keeps it: an unknown block is
// sent back in this form.
func (a *answer) beginning() {
	raw := a.cur.Raw()
	if a.cur.Err() != nil {
		return
	}
	outer := a.cur
	a.cur = jsonpass.Cursor{}
	a.cur.Reset(raw)
	a.block()
	err := a.cur.Err()
	a.cur = outer
	if err != nil {
		a.cur.Fail("%v", err)
	}
	a.piece.raw = append(a.piece.raw, raw...)
}

// block reads the beginning of a block, or a piece of one.
func (a *answer) block() {
	c, p := &a.cur, &a.piece
	c.Object(func(key []byte) {
		switch string(key) {
		case "type":
			p.kind = append(p.kind, c.Text()...)
		case "text", "thinking":
			a.string(&p.text)
		case "signature", "data":
			a.string(&p.kept)
		case "partial_json":
			a.string(&p.args)
		case "id":
			a.string(&p.id)
		case "name":
			a.string(&p.name)
		case "input":
			if c.Next() != '{' {
				c.Skip()
				return
			}
			if raw := c.Raw(); string(raw) != "{}" {
				p.input = append(p.input, raw...)
			}
		default:
			c.Skip()
		}
	})
}

// string appends a string. Blocks of the API's own tools have other types under
// the same names.
func (a *answer) string(into *[]byte) {
	if a.cur.Next() != '"' {
		a.cur.Skip()
		return
	}
	*into = append(*into, a.cur.Text()...)
}

// usage takes the counts of a report: the last one of each counts, for they are
// sums. The output tokens are not known at the start.
func (a *answer) usage(final bool) {
	c := &a.cur
	if c.Null() {
		return
	}
	a.tally.Reported = a.tally.Reported || final
	c.Object(func(key []byte) {
		switch string(key) {
		case "input_tokens":
			a.tally.Count(c, &a.counts.input)
		case "cache_read_input_tokens":
			a.tally.Count(c, &a.counts.read)
		case "cache_creation_input_tokens":
			a.tally.Count(c, &a.counts.written)
		case "output_tokens":
			a.tally.Count(c, &a.counts.output)
		case "output_tokens_details":
			c.Object(func(key []byte) {
				if string(key) == "thinking_tokens" {
					a.tally.Count(c, &a.counts.thought)
					return
				}
				c.Skip()
			})
		default:
			c.Skip()
		}
	})
}

// message reads a message that is whole.
func (a *answer) message(data []byte) error {
	c := &a.cur
	var failed error
	stop := ""
	c.Reset(data)
	c.Object(func(key []byte) {
		switch string(key) {
		case "content":
			c.Array(func() {
				a.piece.reset()
				a.piece.index = int64(len(a.blocks))
				if a.beginning(); c.Err() == nil && failed == nil {
					failed = a.begin()
				}
			})
		case "stop_reason":
			stop = string(c.Text())
		case "usage":
			a.usage(true)
		default:
			c.Skip()
		}
	})
	if err := errors.Join(c.Err(), failed, a.Err()); err != nil {
		return err
	}
	a.finish(stop)
	return nil
}
