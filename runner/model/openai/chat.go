package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/exchange"
	"agentctl.dev/agentctl/runner/model/jsonpass"
	"agentctl.dev/agentctl/runner/model/parameter"
	"agentctl.dev/agentctl/runner/model/turns"
)

// chatAPI is chat completions.
var chatAPI = api{
	// Compatible servers are reached with a baseURL.
	provider: exchange.Provider{
		Name: "openai", BaseURL: "https://api.openai.com/v1", KeyVariable: "OPENAI_API_KEY", Speaks: "chat completion",
		Wants: "provider openai wants baseURL: https://host/v1",
	},
	path:       "chat/completions",
	fixed:      `"stream_options":{"include_usage":true},`,
	parameters: &chatParameters,
	limits:     []string{"max_completion_tokens", "max_tokens", "max_output_tokens", "max_new_tokens", "n_predict"},
	hint: func(e *model.Error) string {
		if strings.Contains(e.Error(), "v1/responses") {
			return "the model answers under the other API only: set spec.api: responses"
		}
		return ""
	},
	open: func(x *exchange.Exchange, _ parameter.Given) wire { return &chat{x} },
}

// chat writes and reads chat completions.
type chat struct{ *exchange.Exchange }

func (c *chat) begin(b []byte, system string) []byte {
	b = append(b, `"messages":[`...)
	if system != "" {
		b = appendSimple(b, "system", system)
	}
	return b
}

func (c *chat) question(b []byte, text string) []byte { return appendSimple(b, "user", text) }

func (c *chat) format(b []byte, schema json.RawMessage) []byte {
	if schema == nil {
		return b
	}
	b = append(b, `,"response_format":{"type":"json_schema","json_schema":{`...)
	return append(appendSchema(b, schema), `}}`...)
}

func (c *chat) tool(b []byte, t message.ToolSpec) []byte {
	b = append(b, `{"type":"function","function":{"name":`...)
	return append(appendFunction(b, t), `}}`...)
}

// appendFunction writes what both APIs say of a tool, from its name on.
func appendFunction(b []byte, t message.ToolSpec) []byte {
	b = jsonpass.AppendString(b, t.Name)
	b = append(b, `,"description":`...)
	b = jsonpass.AppendString(b, t.Description)
	b = append(b, `,"parameters":`...)
	return append(b, t.Parameters...)
}

func (c *chat) answer(tell func(message.Delta)) exchange.Answer {
	return &chatAnswer{Gather: exchange.NewGather(tell)}
}

// imageTypes are the images that every server takes which takes images at all.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

const pdf = "application/pdf"

// takes says whether the server can show a file to the model. One that stands
// anywhere else than in the message or in the run itself is out of its reach. Few
// of the servers that imitate OpenAI read documents.
func takes(x *exchange.Exchange) func(f *message.File) bool {
	return func(f *message.File) bool {
		mime := turns.MimeOf(f)
		return turns.Inline(f) && (slices.Contains(imageTypes, mime) || mime == pdf && x.Official())
	}
}

// fileName is what a document is called: the API wants a name for it.
func fileName(f *message.File) string {
	if f.Filename == "" {
		return "document.pdf"
	}
	return f.Filename
}

// message adds the wire form of a message to b: none for a message that says
// nothing, several for an assistant's with calls. Reasoning is left out, but for
// servers that want it back.
func (c *chat) message(b []byte, m *message.Message) ([]byte, error) {
	switch m.Role {
	case message.RoleUser:
		return c.user(b, m)
	case message.RoleAssistant:
		return appendAssistant(b, turns.Assistant(m, c.Self())), nil
	}
	return b, fmt.Errorf("message %s: there is no role %q", m.ID, m.Role)
}

// appendSimple adds a message that is one text. Both APIs take it.
func appendSimple(b []byte, role, text string) []byte {
	b = append(jsonpass.Open(b), `{"role":"`...)
	b = append(b, role...)
	b = append(b, `","content":`...)
	return append(jsonpass.AppendString(b, text), '}')
}

// user adds a user message: one text, or a list where it holds media.
func (c *chat) user(b []byte, m *message.Message) ([]byte, error) {
	pieces := turns.User(m, takes(c.Exchange))
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
			b = append(jsonpass.AppendString(append(b, `{"type":"text","text":`...), p.Text), '}')
			continue
		}
		media, err := turns.Load(p.File, c.Blob)
		if err != nil {
			return b, err
		}
		if media.Mime == pdf {
			b = jsonpass.AppendString(append(b, `{"type":"file","file":{"filename":`...), fileName(p.File))
			b = append(jsonpass.AppendString(append(b, `,"file_data":`...), media.URL()), `}}`...)
			continue
		}
		b = append(jsonpass.AppendString(append(b, `{"type":"image_url","image_url":{"url":`...), media.URL()), `}}`...)
	}
	return append(b, `]}`...), nil
}

func appendAssistant(b []byte, said turns.Said) []byte {
	if said.Text == "" && len(said.Calls) == 0 {
		return b
	}
	b = append(jsonpass.Open(b), `{"role":"assistant","content":`...)
	if said.Text == "" {
		b = append(b, "null"...)
	} else {
		b = jsonpass.AppendString(b, said.Text)
	}
	b = appendThought(b, said.Reasoning)
	if len(said.Calls) == 0 {
		return append(b, '}')
	}
	b = append(b, `,"tool_calls":[`...)
	for _, c := range said.Calls {
		b = append(jsonpass.Open(b), `{"id":`...)
		b = jsonpass.AppendString(b, callID(c.CallID, said.Own))
		b = append(b, `,"type":"function","function":{"name":`...)
		b = jsonpass.AppendString(b, turns.CallName(c.Tool))
		b = append(b, `,"arguments":`...)
		b = jsonpass.AppendString(b, turns.Arguments(c.Raw))
		b = append(b, `}}`...)
	}
	b = append(b, `]}`...)
	for _, c := range said.Calls {
		b = append(b, `,{"role":"tool","tool_call_id":`...)
		b = jsonpass.AppendString(b, callID(c.CallID, said.Own))
		b = append(b, `,"content":`...)
		b = jsonpass.AppendString(b, turns.ResultText(c.ToolPart))
		b = append(b, '}')
	}
	return b
}

// maxCallID is the longest id of a call that OpenAI takes from another model: some
// models take 64 bytes by now.
const maxCallID = 40

// callID shortens the id of a call that another model made and that the API would
// refuse. The model's own go back as they came: gateways keep things in them.
func callID(id string, own bool) string {
	if own || len(id) <= maxCallID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:16])
}
