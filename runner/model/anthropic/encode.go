package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentctl.dev/agentctl/runner/model"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model/jsonpass"
)

const pdf = "application/pdf"

// imageTypes are the images the API takes.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// takes reports whether the API can show a file to the model. A file that is
// neither in the message nor in the run itself cannot be sent.
func takes(f *message.File) bool {
	mime := model.MimeOf(f)
	return model.Inline(f) && (mime == pdf || slices.Contains(imageTypes, mime))
}

// maxImage is the most bytes of an image in base64 that the API takes.
const maxImage = 5 << 20

// takesResult is takes for what a call returned: no person has chosen that file, so one
// that the API would refuse for its size is only named.
func (c *Conversation) takesResult(f *message.File) bool {
	return takes(f) && c.cfg.ShowsResult(f) && (model.MimeOf(f) == pdf || f.Size*4/3 < maxImage)
}

// appendMessage adds the wire form of a message: none for an empty message, two
// for an assistant's with calls, whose results begin the user's next message.
func (c *Conversation) appendMessage(h history, m *message.Message) (history, error) {
	switch m.Role {
	case message.RoleUser:
		return c.appendUser(h, m)
	case message.RoleAssistant:
		return c.appendAssistant(h, model.ReadAnswer(m, c.Self(), c.takesResult))
	}
	return h, fmt.Errorf("message %s: there is no role %q", m.ID, m.Role)
}

func (c *Conversation) appendUser(h history, m *message.Message) (history, error) {
	for _, p := range model.Pieces(m, takes) {
		if p.File == nil {
			h = h.text(p.Text)
			continue
		}
		media, err := model.LoadMedia(p.File, c.Blob)
		if err != nil {
			return h, err
		}
		h = h.user()
		h.b = appendMedia(h.b, media, p.File.Filename)
	}
	return h, nil
}

// appendMedia adds an image or a document, whose block stays open.
func appendMedia(b []byte, media model.Media, name string) []byte {
	kind := "image"
	if media.Mime == pdf {
		kind = "document"
	}
	b = append(append(append(b, `{"type":"`...), kind...), `","source":{"type":"base64","media_type":`...)
	b = append(jsonpass.AppendString(b, media.Mime), `,"data":`...)
	b = append(jsonpass.AppendString(b, media.Data), '}')
	if kind == "document" && !blank(name) {
		b = jsonpass.AppendString(append(b, `,"title":`...), name)
	}
	return b
}

func (c *Conversation) appendAssistant(h history, said model.PastAnswer) (history, error) {
	// The API refuses an answer that ends in white space.
	said.Text = strings.TrimRightFunc(said.Text, unicode.IsSpace)
	continues := h.paused && said.Own
	thoughts := layout(said, continues)
	if said.Text == "" && len(said.Calls) == 0 && (len(thoughts) == 0 || !said.Paused && !continues) {
		return h, nil
	}
	h = h.assistant(continues)
	h.paused = said.Paused
	h.unthought = len(said.Calls) > 0 && (len(thoughts) == 0 || thoughts[0].text > 0 || thoughts[0].calls > 0)
	h.b = append(appendBlocks(h.b, thoughts, said), `]}`...)
	var beside []model.PastCall // the API takes no files in the result of a failed call
	for _, call := range said.Calls {
		h.calls = true
		h = h.user()
		var err error
		if h.b, err = c.appendResult(h.b, call); err != nil {
			return h, err
		}
		if failed(call) {
			beside = append(beside, call)
		}
	}
	if attached := model.Attached(beside); attached != nil {
		return c.appendUser(h, attached)
	}
	return h, nil
}

func failed(c model.PastCall) bool { return c.Result == nil || c.Result.Failed() }

// appendBlocks adds what the model said, with its thoughts in their places.
func appendBlocks(b []byte, thoughts []thought, said model.PastAnswer) []byte {
	text, calls := said.Text, said.Calls
	for _, t := range thoughts {
		b = appendText(b, text[:t.text])
		b = appendCalls(b, calls[:t.calls])
		text, calls = text[t.text:], calls[t.calls:]
		b = t.append(jsonpass.Open(b))
	}
	return appendCalls(appendText(b, text), calls)
}

func appendText(b []byte, s string) []byte {
	if blank(s) {
		return b
	}
	return append(jsonpass.AppendString(append(jsonpass.Open(b), `{"type":"text","text":`...), s), '}')
}

func appendCalls(b []byte, calls []model.PastCall) []byte {
	for _, c := range calls {
		b = jsonpass.AppendString(append(jsonpass.Open(b), `{"type":"tool_use","id":`...), callID(c.CallID))
		b = jsonpass.AppendString(append(b, `,"name":`...), model.SentCallName(c.Tool))
		b = append(append(b, `,"input":`...), input(c.Raw)...)
		b = append(b, '}')
	}
	return b
}

// appendResult adds a result, whose block stays open.
func (c *Conversation) appendResult(b []byte, call model.PastCall) ([]byte, error) {
	b = jsonpass.AppendString(append(b, `{"type":"tool_result","tool_use_id":`...), callID(call.CallID))
	if failed(call) {
		b = append(b, `,"is_error":true`...)
	}
	text := call.Text()
	if failed(call) || len(call.Files) == 0 {
		if !blank(text) {
			b = jsonpass.AppendString(append(b, `,"content":`...), text)
		}
		return b, nil
	}
	b = append(b, `,"content":[`...)
	b = appendText(b, text)
	for _, f := range call.Files {
		media, err := model.LoadMedia(f, c.Blob)
		if err != nil {
			return b, err
		}
		b = append(appendMedia(jsonpass.Open(b), media, f.Filename), '}')
	}
	return append(b, ']'), nil
}

// callID keeps an id that another provider made up from being refused. Two ids
// that differ stay different.
func callID(id string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || (r < utf8.RuneSelf && (r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9')) {
			return r
		}
		return '_'
	}, id)
	if clean == id && id != "" {
		return id
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(id)) // a hash takes everything
	return fmt.Sprintf("%s_%08x", clean, sum.Sum32())
}

// input returns arguments as a JSON object. They go in as they are, and not as a
// text: half a character, which JSON lets a model write, is refused by the API.
func input(raw string) []byte {
	args := []byte(model.SentArguments(raw))
	if !bytes.Contains(args, []byte(`\ud`)) && !bytes.Contains(args, []byte(`\uD`)) && utf8.Valid(args) {
		return args
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return []byte("{}") // cannot happen: they are an object
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return []byte("{}") // cannot happen: it was decoded
	}
	return bytes.TrimSpace(out.Bytes())
}

// appendTools declares the tools, the last of them marked for the cache.
func (c *Conversation) appendTools(b []byte, tools []message.ToolSpec) ([]byte, error) {
	if len(tools) == 0 {
		return b, nil
	}
	b = append(b, `"tools":[`...)
	for i, t := range tools {
		params, words, err := parameters(t.Parameters)
		if err != nil {
			return b, reason.New(reason.ModelError, "model %q: the parameters of tool %q: %w", c.cfg.Name, t.Name, err)
		}
		b = jsonpass.AppendString(append(jsonpass.Open(b), `{"name":`...), t.Name)
		if about := strings.TrimSpace(t.Description + words); about != "" {
			b = jsonpass.AppendString(append(b, `,"description":`...), about)
		}
		b = append(append(b, `,"input_schema":`...), params...)
		if i == len(tools)-1 {
			b = append(b, cached...)
		}
		b = append(b, '}')
	}
	return append(b, `],`...), nil
}

// parameters returns the schema of a tool's arguments in the form that the API
// accepts: an object without a choice at its top. A choice is described in
// words instead; the arguments of the model are validated against the whole
// schema anyway.
func parameters(raw json.RawMessage) (schema json.RawMessage, words string, err error) {
	if len(raw) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`), "", nil
	}
	if raw, err = model.CompactSchema(raw); err != nil {
		return nil, "", err
	}
	var c jsonpass.Cursor
	c.Reset(raw)
	typed, kept := false, []byte("{")
	c.Object(func(key []byte) {
		name := string(key)
		value := c.Raw()
		switch name {
		case "anyOf", "oneOf", "allOf":
			words += fmt.Sprintf("\n\nThe arguments must satisfy %s of this JSON Schema: %s", name, value)
			return
		case "type":
			typed = true
		}
		kept = append(jsonpass.AppendString(jsonpass.Open(kept), name), ':')
		kept = append(kept, value...)
	})
	c.End()
	if c.Err() != nil {
		return nil, "", c.Err()
	}
	if typed && words == "" {
		return raw, "", nil
	}
	if !typed {
		kept = append(jsonpass.Open(kept), `"type":"object"`...)
	}
	return append(kept, '}'), words, nil
}
