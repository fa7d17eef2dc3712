package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// responsesAPI is the responses API. It keeps nothing: what the model thought
// comes back encrypted, and is sent again with what followed it.
var responsesAPI = api{
	provider: httpapi.Provider{
		Name: "openai", BaseURL: chatAPI.provider.BaseURL, KeyVariable: chatAPI.provider.KeyVariable, Speaks: "response",
		Wants: chatAPI.provider.Wants,
	},
	send:       (*Conversation).sendResponses,
	fixed:      `"store":false,`,
	parameters: &responsesParameters,
	limits:     []string{"max_output_tokens"},
	least:      16,
	silent:     true,
	hint: func(e *model.Error) string {
		if strings.Contains(e.Error(), "Encrypted content is not supported") {
			return "the model does not reason: set spec.parameters." + encrypted + ": false"
		}
		if slices.Contains([]string{"404", "405", "501"}, e.Class) || strings.Contains(e.Error(), "chat/completions") {
			return "does the server have the responses API, and the model there? With spec.api: chat it is asked for chat completions"
		}
		return ""
	},
	open: openReplies,
}

// replies writes requests to the responses API and reads its answers.
type replies struct {
	verbosity json.RawMessage
	reasoning []byte
	// encrypted is set when the reasoning of the model is requested.
	encrypted bool
}

func openReplies(model string, given model.GivenParameters) wire {
	r := &replies{verbosity: given.Values["verbosity"], encrypted: thinks(model)}
	if v, ok := given.Values[encrypted]; ok {
		r.encrypted = string(v) == "true"
	}
	for _, p := range []struct{ name, wire string }{{"reasoningEffort", "effort"}, {"reasoningSummary", "summary"}} {
		if v, ok := given.Values[p.name]; ok {
			r.reasoning = append(jsonpass.Open(r.reasoning), `"`+p.wire+`":`...)
			r.reasoning = append(r.reasoning, v...)
		}
	}
	return r
}

// thinks reports whether a model may think. OpenAI refuses requests for the
// reasoning of a model that has none. A model with an unknown name is assumed
// to think.
func thinks(name string) bool {
	name = strings.TrimPrefix(name, "ft:")
	return !slices.ContainsFunc([]string{"gpt-3.5", "gpt-4", "chatgpt-4", "gpt-5-chat"}, func(p string) bool { return strings.HasPrefix(name, p) })
}

func (r *replies) begin(b []byte, system string) []byte {
	if r.encrypted {
		b = append(b, `"include":["reasoning.encrypted_content"],`...)
	}
	if len(r.reasoning) > 0 {
		b = append(append(append(b, `"reasoning":{`...), r.reasoning...), `},`...)
	}
	if system != "" {
		b = jsonpass.AppendString(append(b, `"instructions":`...), system)
		b = append(b, ',')
	}
	return append(b, `"input":[`...)
}

func (*replies) text(b []byte, text string) []byte {
	return append(jsonpass.AppendString(append(b, `{"type":"input_text","text":`...), text), '}')
}

func (*replies) image(b []byte, url string) []byte {
	return append(jsonpass.AppendString(append(b, `{"type":"input_image","image_url":`...), url), '}')
}

func (*replies) document(b []byte, name, url string) []byte {
	b = jsonpass.AppendString(append(b, `{"type":"input_file","filename":`...), name)
	return append(jsonpass.AppendString(append(b, `,"file_data":`...), url), '}')
}

func (r *replies) format(b []byte, schema json.RawMessage) []byte {
	if schema == nil && r.verbosity == nil {
		return b
	}
	b = append(b, `,"text":{`...)
	if r.verbosity != nil {
		b = append(append(b, `"verbosity":`...), r.verbosity...)
	}
	if schema != nil {
		b = append(jsonpass.Open(b), `"format":{"type":"json_schema",`...)
		b = append(appendSchema(b, schema), '}')
	}
	return append(b, '}')
}

// tool writes a tool without strictness, which is the default and would refuse a
// schema with an optional member.
func (*replies) tool(b []byte, t message.ToolSpec) []byte {
	b = append(b, `{"type":"function","name":`...)
	return append(appendFunction(b, t), `,"strict":false}`...)
}

func (*replies) answer(tell func(message.Delta)) httpapi.Answer {
	return &replyAnswer{Gather: httpapi.NewGather(tell)}
}

// said adds items: the texts, the calls, and their results. Ids are left out,
// for the server stores nothing under them. A thought keeps its id, which
// belongs to its encrypted content.
func (*replies) said(b []byte, said model.PastAnswer) []byte {
	for _, s := range spokenIn(said) {
		b = appendThoughts(b, s.Thoughts)
		b = append(jsonpass.Open(b), `{"role":"assistant","content":`...)
		b = jsonpass.AppendString(b, s.text)
		if s.Phase != "" {
			b = jsonpass.AppendString(append(b, `,"phase":`...), s.Phase)
		}
		b = append(b, '}')
	}
	for _, c := range said.Calls {
		b = appendThoughts(b, thoughtsBefore(c.Metadata))
		b = append(jsonpass.Open(b), `{"type":"function_call","call_id":`...)
		b = jsonpass.AppendString(b, callID(c.CallID, said.Own))
		b = append(b, `,"name":`...)
		b = jsonpass.AppendString(b, model.SentCallName(c.Tool))
		b = append(b, `,"arguments":`...)
		b = append(jsonpass.AppendString(b, model.SentArguments(c.Raw)), '}')
	}
	for _, c := range said.Calls {
		b = append(jsonpass.Open(b), `{"type":"function_call_output","call_id":`...)
		b = jsonpass.AppendString(b, callID(c.CallID, said.Own))
		b = append(b, `,"output":`...)
		b = append(jsonpass.AppendString(b, c.Text()), '}')
	}
	return b
}

func appendThoughts(b []byte, thoughts []json.RawMessage) []byte {
	for _, t := range thoughts {
		b = append(jsonpass.Open(b), t...)
	}
	return b
}
