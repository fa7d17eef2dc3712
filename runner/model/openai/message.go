package openai

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"agentctl.dev/agentctl/runner/model"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// message adds the wire form of a message to b: nothing for an empty message,
// several for an assistant's with calls.
func (c *Conversation) message(b []byte, m *message.Message) ([]byte, error) {
	switch m.Role {
	case message.RoleUser:
		return c.user(b, m)
	case message.RoleAssistant:
		answer := model.ReadAnswer(m, c.Self(), func(f *message.File) bool { return c.takes(f) && c.cfg.ShowsResult(f) })
		b = c.wire.said(b, answer)
		if attached := model.Attached(answer.Calls); attached != nil {
			return c.user(b, attached)
		}
		return b, nil
	}
	return b, fmt.Errorf("message %s: there is no role %q", m.ID, m.Role)
}

// user adds a user message: one text, or a list where it holds media.
func (c *Conversation) user(b []byte, m *message.Message) ([]byte, error) {
	pieces := model.Pieces(m, c.takes)
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
			b = c.wire.text(b, p.Text)
			continue
		}
		media, err := model.LoadMedia(p.File, c.Blob)
		switch {
		case err != nil:
			return b, err
		case media.Mime == pdf: // the API requires a name for it
			b = c.wire.document(b, cmp.Or(p.File.Filename, "document.pdf"), media.URL())
		default:
			b = c.wire.image(b, media.URL())
		}
	}
	return append(b, `]}`...), nil
}

// appendSimple adds a message that is one text. Both APIs take it.
func appendSimple(b []byte, role, text string) []byte {
	b = append(jsonpass.Open(b), `{"role":"`...)
	b = append(b, role...)
	b = append(b, `","content":`...)
	return append(jsonpass.AppendString(b, text), '}')
}

// appendFunction writes the description of a tool in both APIs, from its name
// on.
func appendFunction(b []byte, t message.ToolSpec) []byte {
	b = jsonpass.AppendString(b, t.Name)
	b = append(b, `,"description":`...)
	b = jsonpass.AppendString(b, t.Description)
	b = append(b, `,"parameters":`...)
	return append(b, t.Parameters...)
}

// imageTypes are the images that every server takes which takes images at all.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

const pdf = "application/pdf"

// takes reports whether the server can show a file to the model. A file that is
// neither in the message nor in the run itself cannot be sent. Few of the
// servers that imitate OpenAI read documents.
func (c *Conversation) takes(f *message.File) bool {
	mime := model.MimeOf(f)
	return model.Inline(f) && (slices.Contains(imageTypes, mime) || mime == pdf && c.Official())
}

// maxCallID is the longest id of a call that OpenAI takes from another model: some
// models take 64 bytes by now.
const maxCallID = 40

// callID shortens the id of a call that another model made and that the API
// would refuse. The model's own ids are sent back unchanged: gateways keep data
// in them.
func callID(id string, own bool) string {
	if own || len(id) <= maxCallID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:16])
}
