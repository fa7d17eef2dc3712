package model

import (
	"fmt"

	"agentctl.dev/agentctl/api/message"
)

// attach splits the attachments of a result into those that the reader can be shown and
// those that it only reads about. A result that was left out to save room has none.
func (c *PastCall) attach(takes func(*message.File) bool) {
	if c.Result == nil || c.Compacted != 0 {
		return
	}
	for i := range c.Result.Attachments {
		f := &c.Result.Attachments[i]
		if takes != nil && takes(f) {
			c.Files = append(c.Files, f)
		} else {
			c.named = append(c.named, f)
		}
	}
}

// Text is what the reader is sent as the text of the result. It names every attachment.
func (c *PastCall) Text() string {
	text := ResultText(c.ToolPart)
	for _, f := range c.Files {
		text += fmt.Sprintf("\n[attached: %s (%s)]", f.Filename, f.Mime)
	}
	for _, f := range c.named {
		text += "\n" + fileLine(f)
	}
	return text
}

// Attached is a message of the user with the files of these calls, for an API that takes
// no files in the result of a call: it comes after all results of the step. It is nil
// when there are none.
func Attached(calls []PastCall) *message.Message {
	m := &message.Message{Role: message.RoleUser}
	for _, c := range calls {
		if len(c.Files) == 0 {
			continue
		}
		about := fmt.Sprintf("[attached by the call of %s:]", c.Tool)
		m.Parts = append(m.Parts, message.Part{Type: message.PartText, Text: about, Synthetic: true})
		for _, f := range c.Files {
			m.Parts = append(m.Parts, message.Part{Type: message.PartFile, File: f, Synthetic: true})
		}
	}
	if len(m.Parts) == 0 {
		return nil
	}
	return m
}
