package host

import (
	"bytes"
	"encoding/json"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

// informed is what a call says of itself while it runs.
type informed struct {
	Title    string          `json:"t,omitempty"`
	Metadata json.RawMessage `json:"m,omitempty"`
}

// informing passes it on as far as the bounds of progress allow; the newest is shown last.
func informing(on func(title string, metadata json.RawMessage)) *throttle {
	t := newThrottle(func(text string) {
		var in informed
		if on != nil && json.Unmarshal([]byte(text), &in) == nil {
			on(in.Title, in.Metadata)
		}
	})
	t.quiet = true
	return t
}

// progressed shows the newest output, or what the call says of itself. What is no JSON
// object, or too large, is left out.
func (r *reception) progressed(p *toolpb.Progress) {
	title, metadata := head(p.GetTitle(), maxTitle), bytes.TrimSpace(p.GetMetadataJson())
	if title == "" && len(metadata) == 0 {
		r.show(tail(p.GetText(), toolpb.MaxProgress))
		return
	}
	in := informed{Title: title}
	if len(metadata) > 0 && len(metadata) <= toolpb.MaxProgressMetadata && metadata[0] == '{' && json.Valid(metadata) {
		in.Metadata = metadata
	}
	if in.Title == "" && in.Metadata == nil {
		return
	}
	if text, err := json.Marshal(in); err == nil {
		r.informs.show(string(text))
	}
}

// Part is data for other programs that a result brings.
type Part struct {
	Type string
	Data json.RawMessage
}

// parts are those of a result that keep the bounds.
func parts(sent []*toolpb.Part) (all []Part) {
	size := 0
	for _, p := range sent[:min(len(sent), toolpb.MaxParts)] {
		data := p.GetDataJson()
		if size += len(data); len(data) > toolpb.MaxPart || size > toolpb.MaxAllParts || !json.Valid(data) {
			data = nil // the caller says that it is missing
		}
		all = append(all, Part{Type: head(p.GetType(), maxPartType), Data: data})
	}
	return all
}

// maxPartType is more than two names of 64 characters have.
const maxPartType = 160
