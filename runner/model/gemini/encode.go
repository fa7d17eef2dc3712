package gemini

import (
	"fmt"
	"slices"

	"agentctl.dev/agentctl/runner/model"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// The speakers the API knows. Results of calls are the user's.
const (
	roleUser  = "user"
	roleModel = "model"
)

// closing closes the content that is open at the end of a history.
const closing = "]}"

// foreignSignature is the API's own word for a call that another model made.
// Without any signature the third generation answers it with 400.
const foreignSignature = "skip_thought_signature_validator"

// mediaTypes are the files that every model of the API takes.
var mediaTypes = []string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf"}

// takes reports whether the model can be shown a file. Only files in the message or in the
// run itself can be sent.
func takes(f *message.File) bool {
	return model.Inline(f) && slices.Contains(mediaTypes, model.MimeOf(f))
}

// history is a growing request. Its last content stays open, since the same speaker may
// continue: the bytes that a request was given are never changed.
type history struct {
	b    []byte
	role string // whose content is open, "" for none
}

// part begins a part of a speaker.
func (h *history) part(role string) {
	if h.role != role {
		if h.role != "" {
			h.b = append(h.b, closing...)
		}
		h.b = append(append(append(jsonpass.Open(h.b), `{"role":"`...), role...), `","parts":[`...)
		h.role = role
	}
	h.b = jsonpass.Open(h.b)
}

func (h *history) text(role, text string) {
	h.part(role)
	h.b = append(jsonpass.AppendString(append(h.b, `{"text":`...), text), '}')
}

// encode adds the parts of a message: none for an empty one.
func (c *Conversation) encode(h *history, m *message.Message) error {
	switch m.Role {
	case message.RoleUser:
		return c.user(h, m)
	case message.RoleAssistant:
		said := model.ReadAnswer(m, c.Self(), func(f *message.File) bool { return takes(f) && c.cfg.ShowsResult(f) })
		h.answer(said, generation(c.cfg.Model) >= 3)
		if attached := model.Attached(said.Calls); attached != nil {
			return c.user(h, attached)
		}
		return nil
	}
	return fmt.Errorf("message %s: there is no role %q", m.ID, m.Role)
}

func (c *Conversation) user(h *history, m *message.Message) error {
	for _, p := range model.Pieces(m, takes) {
		if p.File == nil {
			h.text(roleUser, p.Text)
			continue
		}
		media, err := model.LoadMedia(p.File, c.Blob)
		if err != nil {
			return err
		}
		h.part(roleUser)
		h.b = jsonpass.AppendString(append(h.b, `{"inlineData":{"mimeType":`...), media.Mime)
		h.b = append(jsonpass.AppendString(append(h.b, `,"data":`...), media.Data), `}}`...)
	}
	return nil
}

// answer adds the message of a model, and the results of its calls as the user's answer to
// it, in their order. Strict: a first call must be signed.
func (h *history) answer(said model.PastAnswer, strict bool) {
	for _, r := range said.Reasoning {
		for _, p := range cut(r.Text, r.Metadata) {
			if p.signature != "" { // what is not signed is a summary for people
				h.said(p, true)
			}
		}
	}
	for _, p := range cut(said.Text, said.TextMetadata) {
		h.said(p, false)
	}
	for i, c := range said.Calls {
		signature := signatureOf(c.Metadata)
		if signature == "" && i == 0 && strict {
			signature = foreignSignature
		}
		h.part(roleModel)
		h.b = append(h.b, `{"functionCall":{`...)
		h.named(c)
		h.b = append(append(append(h.b, `,"args":`...), model.SentArguments(c.Raw)...), '}')
		h.sign(signature)
	}
	for _, c := range said.Calls {
		key := `,"response":{"output":`
		if c.Result == nil || c.Result.Failed() {
			key = `,"response":{"error":`
		}
		h.part(roleUser)
		h.b = append(h.b, `{"functionResponse":{`...)
		h.named(c)
		h.b = append(jsonpass.AppendString(append(h.b, key...), c.Text()), `}}}`...)
	}
}

// said adds a piece of what the model said or thought.
func (h *history) said(p piece, thought bool) {
	h.part(roleModel)
	h.b = jsonpass.AppendString(append(h.b, `{"text":`...), p.text)
	if thought {
		h.b = append(h.b, `,"thought":true`...)
	}
	h.sign(p.signature)
}

// sign ends a part.
func (h *history) sign(signature string) {
	if signature != "" {
		h.b = jsonpass.AppendString(append(h.b, `,"thoughtSignature":`...), signature)
	}
	h.b = append(h.b, '}')
}

// named names a call.
func (h *history) named(c model.PastCall) {
	h.b = jsonpass.AppendString(append(h.b, `"id":`...), c.CallID)
	h.b = jsonpass.AppendString(append(h.b, `,"name":`...), functionName(c.Tool))
}

// functionName is a name the API takes: it begins with a letter or an underscore.
func functionName(tool string) string {
	name := model.SentCallName(tool)
	if first := name[0]; first == '-' || first >= '0' && first <= '9' {
		name = "_" + name[:min(len(name), 63)]
	}
	return name
}
