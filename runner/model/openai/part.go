package openai

import (
	"fmt"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
)

// imageTypes are the images that every server takes which takes images at all.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// piece is a text or an image of a user message.
type piece struct{ text, image string }

// userPieces returns what a user message says, in order. Texts that stand
// together are one piece.
func userPieces(m *message.Message) []piece {
	var pieces []piece
	for i := range m.Parts {
		p := userPiece(&m.Parts[i])
		last := len(pieces) - 1
		switch {
		case p == piece{}:
		case p.image == "" && last >= 0 && pieces[last].image == "":
			pieces[last].text += "\n\n" + p.text
		default:
			pieces = append(pieces, p)
		}
	}
	return pieces
}

// userPiece is empty for a part that is not for the model, or of a kind that a
// later version has made.
func userPiece(p *message.Part) piece {
	switch {
	case p.Ignored:
	case p.Type == message.PartText:
		return piece{text: p.Text}
	case p.Type == message.PartFile && p.File != nil:
		if isImage(p.File.URL) {
			return piece{image: p.File.URL}
		}
		return piece{text: fileLine(p.File)}
	case p.Type == message.PartAgent && p.Agent != nil:
		return piece{text: fmt.Sprintf("[the user names the agent %q: use the task tool with this agent]", p.Agent.Name)}
	case p.Type == message.PartSubtask && p.Subtask != nil:
		return piece{text: subtaskText(p.Subtask)}
	}
	return piece{}
}

// isImage says whether the server can show the image to the model. One that
// stands anywhere else than in the message itself is out of its reach.
func isImage(url string) bool {
	kind, _, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	return ok && strings.HasPrefix(url, "data:") && slices.Contains(imageTypes, kind)
}

// fileLine names a file whose content the model is not sent.
func fileLine(f *message.File) string {
	name, mime := f.Filename, f.Mime
	if name == "" && f.Source != nil {
		name = f.Source.Path
	}
	if name == "" {
		name = "a file"
	}
	if mime != "" {
		mime = " (" + mime + ")"
	}
	return fmt.Sprintf("[attached: %s%s, content not shown]", name, mime)
}

func subtaskText(t *message.Subtask) string {
	what := ""
	if t.Description != "" {
		what = " (" + t.Description + ")"
	}
	return fmt.Sprintf("[the agent %q was given this task%s:]\n%s", t.Agent, what, t.Prompt)
}

// assistantParts returns the text and the calls of a message that a model may
// be sent: nothing of a void one, what is complete of one that was cut short.
func assistantParts(m *message.Message) (text string, calls []*message.ToolPart) {
	if m.Error != "" && m.Error != message.Aborted {
		return "", nil
	}
	aborted := m.Error == message.Aborted
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case p.Type == message.PartText && !p.Ignored && (!aborted || p.End != 0):
			text += p.Text
		case p.Type == message.PartTool && p.Tool != nil:
			// Without a result and not running, the model was still writing it.
			if !aborted || p.Tool.Result != nil || p.Tool.State == message.StateRunning {
				calls = append(calls, p.Tool)
			}
		}
	}
	return text, calls
}
