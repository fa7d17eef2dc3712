// Package openai speaks the chat completions API, streamed, to OpenAI and to the servers that imitate it; it is the only user of openai-go.
//
// The SDK is the transport. Its typed requests would encode the whole history
// in every turn, and its typed stream costs more than the network: so the
// history is kept encoded and only grows, and the answer is read in one pass.
package openai

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model/exchange"
	"agentctl.dev/agentctl/runner/model/jsonpass"
	"agentctl.dev/agentctl/runner/model/parameter"
)

// provider is OpenAI itself; compatible servers are reached with a baseURL.
var provider = exchange.Provider{
	Name: "openai", BaseURL: "https://api.openai.com/v1", KeyVariable: "OPENAI_API_KEY", Speaks: "chat completion",
	Wants: "provider openai wants baseURL: https://host/v1",
}

// Conversation is a model.Conversation over chat completions.
type Conversation struct {
	*exchange.Exchange
	cfg    exchange.Config
	client openai.Client

	// history is the request up to the last message; it only grows. Together
	// with one of the two ends it is a whole request.
	history  []byte
	prefix   int // of the history, before its first message
	withTool []byte
	noTool   []byte
	always   parameter.Members
}

// New prepares a conversation; it sends nothing. The prompt is encoded here,
// once.
func New(cfg exchange.Config, prompt message.Prompt) (*Conversation, error) {
	x, err := exchange.New(cfg, provider)
	if err != nil {
		return nil, err
	}
	given := chatParameters.Read(cfg.Parameters)
	if len(given.Problems) > 0 {
		return nil, reason.New(reason.ModelError, "model %q: %s", cfg.Name, given.Problems[0])
	}
	c := &Conversation{Exchange: x, cfg: cfg, always: given.Always}
	if err := c.layout(given.WithTools, prompt); err != nil {
		return nil, err
	}
	// A Client literal instead of NewClient: that one reads OPENAI_* variables,
	// and a key or an address that no manifest names must never be used. It also
	// builds two dozen services that are not.
	c.client = openai.Client{Options: []option.RequestOption{
		option.WithBaseURL(x.BaseURL()), option.WithMaxRetries(0), option.WithHTTPClient(x.Client()),
	}}
	return c, nil
}

// layout writes the request around its messages. The tools stand behind them,
// so that a request without tools shares every byte before.
func (c *Conversation) layout(withTools parameter.Members, prompt message.Prompt) error {
	c.history = c.begin(c.always, prompt.System)
	c.prefix = len(c.history)
	c.noTool = []byte("]}")
	c.withTool = c.noTool
	if len(prompt.Tools) == 0 {
		return nil
	}
	end := withTools.Encode([]byte("],"))
	end = append(end, `"tools":[`...)
	for _, t := range prompt.Tools {
		params := t.Parameters
		if len(params) == 0 {
			params = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		if !json.Valid(params) {
			return reason.New(reason.ModelError, "model %q: the parameters of tool %q are no JSON", c.cfg.Name, t.Name)
		}
		end = append(jsonpass.Open(end), `{"type":"function","function":{"name":`...)
		end = jsonpass.AppendString(end, t.Name)
		end = append(end, `,"description":`...)
		end = jsonpass.AppendString(end, t.Description)
		end = append(end, `,"parameters":`...)
		end = append(append(end, params...), `}}`...)
	}
	c.withTool = append(end, `]}`...)
	return nil
}

// begin writes a request up to its first message that is no system prompt.
func (c *Conversation) begin(parameters parameter.Members, system string) []byte {
	b := jsonpass.AppendString([]byte(`{"model":`), c.cfg.Model)
	b = append(b, `,"stream":true,"stream_options":{"include_usage":true},`...)
	b = append(parameters.Encode(b), `"messages":[`...)
	if system != "" {
		b = appendSimple(b, "system", system)
	}
	return b
}

// Append encodes a message and adds it.
func (c *Conversation) Append(m *message.Message) error {
	b, err := c.appendMessage(c.history, m)
	if err != nil {
		return reason.New(reason.Internal, "model %q: %w", c.cfg.Name, err)
	}
	c.history = b
	return nil
}

// Reset encodes a conversation anew behind the prompt. The bytes of the old one
// are left alone: a request may still be reading them.
func (c *Conversation) Reset(history []*message.Message) error {
	b := append(make([]byte, 0, len(c.history)), c.history[:c.prefix]...)
	for _, m := range history {
		var err error
		if b, err = c.appendMessage(b, m); err != nil {
			return reason.New(reason.Internal, "model %q: %w", c.cfg.Name, err)
		}
	}
	c.history = b
	return nil
}

// Next sends the conversation, or a question beside it, and reads the answer.
func (c *Conversation) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	end := c.withTool
	if req.NoTools {
		end = c.noTool
	}
	history := c.history
	if a := req.Aside; a != nil {
		history, end = appendSimple(c.begin(c.always.Capped(a.MaxOutputTokens, outputLimits...), a.System), "user", a.Text), c.noTool
	}
	out, err := c.Ask(ctx, exchange.Body{history, end}, c.send, emit, newChatAnswer)
	if err == nil && (req.NoTools || req.Aside != nil) {
		exchange.DropCalls(out)
	}
	return out, err
}

func (c *Conversation) send(ctx context.Context, b exchange.Body) (*http.Response, error) {
	opts := []option.RequestOption{
		option.WithRequestBody("application/json", io.Reader(b.Reader())),
		option.WithHeader("Accept", "text/event-stream"),
		option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
			return c.Pass(r, b, next)
		}),
	}
	if key := c.Key(); key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	var resp *http.Response
	if err := c.client.Post(ctx, "chat/completions", nil, &resp, opts...); err != nil {
		return nil, err
	}
	return resp, nil
}
