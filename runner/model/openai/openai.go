// Package openai speaks OpenAI's two APIs, chat completions and responses, streamed, to OpenAI and to the servers that imitate it; it is the only user of openai-go.
//
// A typed request of the SDK would encode the whole history in every turn, and
// its typed stream costs more than the network. So the history is kept encoded
// and only grows, and the answer is read in one pass. The SDK carries the bytes
// of the responses API. Those of chat completions are sent with net/http.
package openai

import (
	"context"
	"encoding/json"
	"net/http"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// maxCacheKey is what the API takes at most.
const maxCacheKey = 64

// api is one of the two APIs.
type api struct {
	provider httpapi.Provider
	// send sends a request in the way of the API.
	send func(c *Conversation, ctx context.Context, b httpapi.Body) (*http.Response, error)
	// fixed are the members at the beginning of every request.
	fixed      string
	parameters *model.ParameterTable
	// limits are the names servers have for the most an answer may hold; least is
	// the smallest limit the API takes.
	limits []string
	least  int64
	// silent forbids calls with tool_choice: none, which leaves the bytes before
	// it unchanged. Not every server that imitates the chat API supports it.
	silent bool
	// hint is the advice about a refusal that sounds like the wrong API, "" for
	// any other.
	hint func(*model.Error) string
	open func(model string, given model.GivenParameters) wire
}

// wire writes and reads what differs between the APIs. The functions that write
// add to b.
type wire interface {
	// begin writes the system prompt and opens the list of messages.
	begin(b []byte, system string) []byte
	// text, image and document write a piece of a user's message.
	text(b []byte, text string) []byte
	image(b []byte, url string) []byte
	document(b []byte, name, url string) []byte
	// said writes a message of the model, and the results of its calls.
	said(b []byte, said model.PastAnswer) []byte
	// format writes what the text of an answer has to look like, schema nil: like
	// anything.
	format(b []byte, schema json.RawMessage) []byte
	tool(b []byte, t message.ToolSpec) []byte
	answer(tell func(message.Delta)) httpapi.Answer
}

// Conversation is a model.Conversation over one of the APIs.
type Conversation struct {
	*httpapi.Exchange
	cfg  httpapi.Config
	api  *api
	wire wire

	// history is the request up to the last message; it only grows. Together
	// with one of the ends it is a whole request.
	history  []byte
	prefix   int // of the history, before its first message
	withTool []byte
	noTool   []byte
	aside    []byte
	always   model.Members
}

// New prepares a conversation over chat completions; it sends nothing. The prompt
// is encoded here, once.
func New(cfg httpapi.Config, prompt message.Prompt) (*Conversation, error) {
	return open(&chatAPI, cfg, prompt)
}

// NewResponses is New over the responses API.
func NewResponses(cfg httpapi.Config, prompt message.Prompt) (*Conversation, error) {
	return open(&responsesAPI, cfg, prompt)
}

func open(a *api, cfg httpapi.Config, prompt message.Prompt) (*Conversation, error) {
	x, err := httpapi.New(cfg, a.provider)
	if err != nil {
		return nil, err
	}
	given := a.parameters.Read(cfg.Parameters)
	if len(given.Problems) > 0 {
		return nil, reason.New(reason.ModelError, "model %q: %s", cfg.Name, given.Problems[0])
	}
	c := &Conversation{Exchange: x, cfg: cfg, api: a, wire: a.open(cfg.Model, given), always: given.Always}
	if err := c.layout(given, prompt); err != nil {
		return nil, err
	}
	return c, nil
}

// layout writes the request around its messages. The parts that may differ
// between two requests follow the messages, so that the requests share every
// byte before.
func (c *Conversation) layout(given model.GivenParameters, prompt message.Prompt) error {
	schema := c.schema(given, prompt.Output)
	if schema == nil {
		prompt.System = model.OutputContract(prompt.System, prompt.Output)
	}
	c.history = c.begin(c.always, prompt.System)
	c.prefix = len(c.history)
	c.aside = append(c.wire.format([]byte("]"), nil), '}')
	end := c.wire.format([]byte("]"), schema)
	if prompt.CacheKey != "" && c.Official() && !has(given.Always, cacheKey) {
		end = append(end, `,"`+cacheKey+`":`...)
		end = jsonpass.AppendString(end, prompt.CacheKey[:min(len(prompt.CacheKey), maxCacheKey)])
	}
	c.noTool = append(end[:len(end):len(end)], '}')
	c.withTool = c.noTool
	if len(prompt.Tools) == 0 {
		return nil
	}
	tools, err := c.tools(prompt.Tools)
	if err != nil {
		return err
	}
	end = append(end, ',')
	c.withTool = append(given.WithTools.Encode(end[:len(end):len(end)]), tools...)
	if c.api.silent || c.Official() {
		c.noTool = append(append(end[:len(end):len(end)], `"tool_choice":"none",`...), tools...)
	}
	return nil
}

// tools writes the tools, and the end of the request.
func (c *Conversation) tools(tools []message.ToolSpec) ([]byte, error) {
	b := []byte(`"tools":[`)
	for _, t := range tools {
		if len(t.Parameters) == 0 {
			t.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		var err error
		if t.Parameters, err = model.CompactSchema(t.Parameters); err != nil {
			return nil, reason.New(reason.ModelError, "model %q: the parameters of tool %q: %w", c.cfg.Name, t.Name, err)
		}
		b = c.wire.tool(jsonpass.Open(b), t)
	}
	return append(b, `]}`...), nil
}

// begin writes a request up to its first message.
func (c *Conversation) begin(always model.Members, system string) []byte {
	b := jsonpass.AppendString([]byte(`{"model":`), c.cfg.Model)
	b = append(append(b, `,"stream":true,`...), c.api.fixed...)
	return c.wire.begin(always.Encode(b), system)
}

// Append encodes a message and adds it.
func (c *Conversation) Append(m *message.Message) error {
	b, err := c.message(c.history, m)
	if err != nil {
		return reason.New(reason.Internal, "model %q: %w", c.cfg.Name, err)
	}
	c.history = b
	return nil
}

// Reset encodes a conversation again after the prompt. The bytes of the old one
// are left alone: a request may still be reading them.
func (c *Conversation) Reset(history []*message.Message) error {
	b := append(make([]byte, 0, len(c.history)), c.history[:c.prefix]...)
	for _, m := range history {
		var err error
		if b, err = c.message(b, m); err != nil {
			return reason.New(reason.Internal, "model %q: %w", c.cfg.Name, err)
		}
	}
	c.history = b
	return nil
}

// Next sends the conversation, or a separate question, and reads the answer.
func (c *Conversation) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	history, end := c.history, c.withTool
	if req.NoTools {
		end = c.noTool
	}
	if a := req.Aside; a != nil {
		most := a.MaxOutputTokens
		if most > 0 {
			most = max(most, c.api.least)
		}
		history = appendSimple(c.begin(c.always.Capped(most, c.api.limits...), a.System), "user", a.Text)
		end = c.aside
	}
	return c.Ask(ctx, req, httpapi.Body{history, end}, c.send, emit, c.wire.answer)
}
