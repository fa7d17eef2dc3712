package execution

import (
	"context"
	"slices"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/loop"
	"agentctl.dev/agentctl/runner/secret"
)

// redacted is a model whose answers contain no secret. The journal removes secrets from
// each event, but a secret that a server repeats in pieces is whole in none of them.
type redacted struct {
	loop.Model
	redactor *secret.Redactor
}

// redact returns a model whose answers are redacted.
func redact(m loop.Model, r *secret.Redactor) loop.Model {
	if r == nil {
		return m
	}
	return &redacted{m, r}
}

// Next implements loop.Model.
func (d *redacted) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	p := &pieces{redactor: d.redactor, emit: emit}
	out, err := d.Model.Next(ctx, req, p.add)
	if err != nil {
		return nil, err // what is held back may be half of a secret
	}
	if err := p.flush(); err != nil {
		return nil, err
	}
	return d.clean(out), nil
}

// clean returns the answer without secrets. An id that contains one is dropped: the loop
// makes another.
func (d *redacted) clean(out *message.Output) *message.Output {
	o, r := *out, d.redactor
	o.Text, o.Reasoning = r.String(o.Text), r.String(o.Reasoning)
	o.TextMetadata, o.ReasoningMetadata = r.JSON(o.TextMetadata), r.JSON(o.ReasoningMetadata)
	o.Calls = slices.Clone(o.Calls)
	for i := range o.Calls {
		c := &o.Calls[i]
		c.ID, c.Tool, c.Args, c.Metadata = id(r, c.ID), r.String(c.Tool), string(r.JSON([]byte(r.String(c.Args)))), r.JSON(c.Metadata)
	}
	return &o
}

func id(r *secret.Redactor, id string) string {
	if r.String(id) != id {
		return ""
	}
	return id
}

// pieces passes on the pieces of an answer. Each part of it is a text of its own: the
// text, the reasoning, the arguments of each call.
type pieces struct {
	redactor *secret.Redactor
	emit     func(message.Delta) error
	parts    []*partial
}

// partial is a part that is being written, last its last piece.
type partial struct {
	last   message.Delta
	stream *secret.Stream
}

func (p *pieces) add(d message.Delta) error {
	if d.Kind == message.DeltaRetry { // what came before is void
		p.parts = nil
		return p.emit(d)
	}
	d.Call, d.Tool = id(p.redactor, d.Call), p.redactor.String(d.Tool)
	at := slices.IndexFunc(p.parts, func(o *partial) bool { return o.last.Kind == d.Kind && o.last.Index == d.Index })
	if at < 0 {
		at = len(p.parts)
		p.parts = append(p.parts, &partial{stream: p.redactor.NewStream()})
	}
	part, empty := p.parts[at], d.Text == ""
	part.last = d
	d.Text = part.stream.Push(d.Text)
	if d.Text == "" && !empty && d.Kind != message.DeltaTool {
		return nil
	}
	return p.emit(d)
}

// flush passes on what was held back.
func (p *pieces) flush() error {
	for _, part := range p.parts {
		if part.last.Text = part.stream.Flush(); part.last.Text == "" {
			continue
		}
		if err := p.emit(part.last); err != nil {
			return err
		}
	}
	return nil
}
