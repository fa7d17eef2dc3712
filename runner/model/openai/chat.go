package openai

import (
	"encoding/json"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// chatAPI is chat completions.
var chatAPI = api{
	// Compatible servers are reached with a baseURL.
	provider: httpapi.Provider{
		Name: name, BaseURL: baseURL, KeyVariable: keyVariable, Speaks: "chat completion",
		Wants: "provider openai wants baseURL: https://host/v1",
	},
	send:       (*Conversation).sendChat,
	fixed:      `"stream_options":{"include_usage":true},`,
	parameters: &chatParameters,
	limits:     []string{"max_completion_tokens", "max_tokens", "max_output_tokens", "max_new_tokens", "n_predict"},
	hint: func(e *model.Error) string {
		if strings.Contains(e.Error(), "v1/responses") {
			return "the model answers under the other API only: set spec.api: responses"
		}
		return ""
	},
	open: func(string, model.GivenParameters) wire { return chat{} },
}

// chat writes and reads chat completions.
type chat struct{}

func (chat) begin(b []byte, system string) []byte {
	b = append(b, `"messages":[`...)
	if system != "" {
		b = appendSimple(b, "system", system)
	}
	return b
}

func (chat) text(b []byte, text string) []byte {
	return append(jsonpass.AppendString(append(b, `{"type":"text","text":`...), text), '}')
}

func (chat) image(b []byte, url string) []byte {
	return append(jsonpass.AppendString(append(b, `{"type":"image_url","image_url":{"url":`...), url), `}}`...)
}

func (chat) document(b []byte, name, url string) []byte {
	b = jsonpass.AppendString(append(b, `{"type":"file","file":{"filename":`...), name)
	return append(jsonpass.AppendString(append(b, `,"file_data":`...), url), `}}`...)
}

func (chat) format(b []byte, schema json.RawMessage) []byte {
	if schema == nil {
		return b
	}
	b = append(b, `,"response_format":{"type":"json_schema","json_schema":{`...)
	return append(appendSchema(b, schema), `}}`...)
}

func (chat) tool(b []byte, t message.ToolSpec) []byte {
	b = append(b, `{"type":"function","function":{"name":`...)
	return append(appendFunction(b, t), `}}`...)
}

func (chat) answer(tell func(message.Delta)) httpapi.Answer {
	return &chatAnswer{Gather: httpapi.NewGather(tell)}
}

// said adds several messages where there are calls. Reasoning is left out,
// except for servers that require it back.
func (chat) said(b []byte, said model.PastAnswer) []byte {
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
		b = jsonpass.AppendString(b, model.SentCallName(c.Tool))
		b = append(b, `,"arguments":`...)
		b = append(jsonpass.AppendString(b, model.SentArguments(c.Raw)), '}')
		b = append(appendExtra(b, c.Metadata), '}')
	}
	b = append(b, `]}`...)
	for _, c := range said.Calls {
		b = append(b, `,{"role":"tool","tool_call_id":`...)
		b = jsonpass.AppendString(b, callID(c.CallID, said.Own))
		b = append(b, `,"content":`...)
		b = jsonpass.AppendString(b, c.Text())
		b = append(b, '}')
	}
	return b
}
