package model

import (
	"encoding/json"

	"agentctl.dev/agentctl/api/message"
)

// PastAnswer is an earlier message of a model, as the model that reads it gets it.
type PastAnswer struct {
	// Own: the reader wrote the message itself.
	Own bool
	// Paused: the reader paused its turn here, and continues it.
	Paused bool
	// Reasoning is there only where the reader wrote it itself, with its metadata.
	Reasoning []message.Part
	Text      string
	// TextMetadata is the reader's own; nil where another model wrote the text.
	TextMetadata json.RawMessage
	Calls        []PastCall
}

// PastCall is a call and its result.
type PastCall struct {
	*message.ToolPart
	// Metadata is the reader's own.
	Metadata json.RawMessage
	// Files are the attachments of the result that the reader can be shown.
	Files []*message.File

	named []*message.File
}

// ReadAnswer returns what a reader may be sent of a model's message: nothing of a
// void one, what is complete of one that was cut short, and of the reasoning and
// the metadata only what the reader wrote: those of one provider mean nothing to
// another, and little to another model. Two Models may reach one model at two
// endpoints, of which each refuses what the other has signed. Takes reports whether the
// reader can be shown a file that a call returned; nil: none.
func ReadAnswer(m *message.Message, reader message.ModelRef, takes func(*message.File) bool) PastAnswer {
	var s PastAnswer
	if m.Error != "" && m.Error != message.Aborted {
		return s
	}
	s.Own = m.Model != nil && m.Model.Name == reader.Name && m.Model.Provider == reader.Provider && m.Model.Model == reader.Model
	s.Paused = s.Own && m.Finish == message.FinishPause
	aborted := m.Error == message.Aborted
	for i := range m.Parts {
		p := &m.Parts[i]
		metadata := p.Metadata
		if !s.Own {
			metadata = nil
		}
		switch {
		case p.Type == message.PartReasoning && s.Own && !p.Ignored && (!aborted || p.End != 0):
			s.Reasoning = append(s.Reasoning, *p)
		case p.Type == message.PartText && !p.Ignored && (!aborted || p.End != 0):
			s.Text += p.Text
			s.TextMetadata = metadata
		case p.Type == message.PartTool && p.Tool != nil:
			// Without a result and not running, the model was still writing it.
			if !aborted || p.Tool.Result != nil || p.Tool.State == message.StateRunning {
				c := PastCall{ToolPart: p.Tool, Metadata: metadata}
				c.attach(takes)
				s.Calls = append(s.Calls, c)
			}
		}
	}
	return s
}
