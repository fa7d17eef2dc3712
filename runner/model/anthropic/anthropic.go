// Package anthropic speaks the messages API, streamed, to Anthropic and to the servers that imitate it; it is the only user of anthropic-sdk-go.
//
// A typed request of the SDK would encode the whole history in every turn. So the
// history is kept encoded and only grows, and the answer is read in one pass.
// Client.Post, which the SDK has for bodies that it does not encode, carries it.
package anthropic

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"agentctl.dev/agentctl/runner/model"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/model/jsonpass"
)

// provider is Anthropic itself; compatible servers are reached with a baseURL.
var provider = httpapi.Provider{
	Name: "anthropic", BaseURL: "https://api.anthropic.com", KeyVariable: "ANTHROPIC_API_KEY", Speaks: "event of a message",
	Wants: "provider anthropic wants baseURL: https://host, without a version",
}

// noTools are the members of a request that offers no tools and whose history holds
// calls all the same: the API refuses them where no tool is declared at all.
const noTools = `,"tools":[{"name":"unavailable","description":"Stands for the tools that were called before. It cannot be called.",` +
	`"input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"none"}`

// Conversation is a model.Conversation over the messages API.
type Conversation struct {
	*httpapi.Exchange
	cfg     httpapi.Config
	options []option.RequestOption
	given   settings

	// prefix is the request up to its first message, history is that and the
	// messages.
	prefix  []byte
	history history
	tools   bool // are declared
}

// New prepares a conversation; it sends nothing. The prompt is encoded here,
// once.
func New(cfg httpapi.Config, prompt message.Prompt) (*Conversation, error) {
	x, err := httpapi.New(cfg, provider)
	if err != nil {
		return nil, err
	}
	given, problems := read(cfg.Parameters)
	if len(problems) > 0 {
		return nil, reason.New(reason.ModelError, "model %q: %s", cfg.Name, problems[0])
	}
	c := &Conversation{Exchange: x, cfg: cfg, given: given}
	if err := c.layout(prompt); err != nil {
		return nil, err
	}
	c.options = []option.RequestOption{
		option.WithBaseURL(x.BaseURL()), option.WithMaxRetries(0), option.WithHTTPClient(x.Client()), option.WithoutOpenTelemetry(),
	}
	return c, nil
}

// layout writes the request around its messages. The tools are declared in every
// request: the API refuses calls in the history without them.
func (c *Conversation) layout(prompt message.Prompt) error {
	var format json.RawMessage
	held := false
	if len(prompt.Output) > 0 && c.given.formats(c.cfg.Model, c.Official()) {
		format, held = strict(prompt.Output)
	}
	if !held {
		prompt.System = model.OutputContract(prompt.System, prompt.Output)
	}
	b := c.given.begin(c.cfg.Model, c.given.most(c.cfg.Model, 0), format)
	b, err := c.appendTools(b, prompt.Tools)
	if err != nil {
		return err
	}
	c.prefix = appendMessages(b, prompt.System, cached)
	c.history = history{b: c.prefix}
	c.tools = len(prompt.Tools) > 0
	return nil
}

// appendMessages adds the system prompt and opens the list of messages. What is
// blank is left out: the API refuses it.
func appendMessages(b []byte, system, mark string) []byte {
	if !blank(system) {
		b = jsonpass.AppendString(append(b, `"system":[{"type":"text","text":`...), system)
		b = append(append(b, mark...), `}],`...)
	}
	return append(b, `"messages":[`...)
}

// Append encodes a message and adds it.
func (c *Conversation) Append(m *message.Message) error {
	h, err := c.appendMessage(c.history, m)
	if err != nil {
		return reason.New(reason.Internal, "model %q: %w", c.cfg.Name, err)
	}
	c.history = h
	return nil
}

// Reset encodes a conversation again after the prompt. The bytes of the old one
// are left alone: a request may still be reading them.
func (c *Conversation) Reset(messages []*message.Message) error {
	h := history{b: append(make([]byte, 0, len(c.history.b)), c.prefix...)}
	for _, m := range messages {
		var err error
		if h, err = c.appendMessage(h, m); err != nil {
			return reason.New(reason.Internal, "model %q: %w", c.cfg.Name, err)
		}
	}
	c.history = h
	return nil
}

// Next sends the conversation, or a separate question, and reads the answer.
func (c *Conversation) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	h, mark, limit := c.history, cached, c.given.most(c.cfg.Model, 0)
	choice := c.choice(req.NoTools)
	if a := req.Aside; a != nil {
		// A question is asked once: nothing of it is worth a place in the cache.
		mark, choice, limit = "", "", c.given.most(c.cfg.Model, a.MaxOutputTokens)
		h = history{b: appendMessages(c.given.begin(c.cfg.Model, limit, nil), a.System, mark)}.text(a.Text)
	}
	body := httpapi.Body{h.b, h.closing(mark), c.end(choice, c.given.thinks(limit, h.unthought))}
	return c.Ask(ctx, req, body, c.send, emit, newAnswer)
}

// choice returns the members that select which tools may be called.
func (c *Conversation) choice(silent bool) string {
	switch {
	case c.history.calls && !c.tools:
		return noTools
	case !c.tools:
		return ""
	case silent:
		return `,"tool_choice":{"type":"none"}`
	case c.given.oneCall:
		return `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`
	}
	return ""
}

// end returns what follows the messages.
func (c *Conversation) end(choice string, thinking json.RawMessage) []byte {
	b := []byte("]")
	if thinking != nil {
		b = append(append(b, `,"thinking":`...), thinking...)
	}
	return append(append(b, choice...), '}')
}

func (c *Conversation) send(ctx context.Context, b httpapi.Body) (*http.Response, error) {
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
	// A Client literal instead of NewClient, which reads ANTHROPIC_* variables
	// and profiles: a key or an address that no manifest names must never be
	// used. The client must not be stored in a value that is ever converted to
	// an interface, as a Conversation is: the linker would keep the Get of each
	// of its services, and all they need.
	client := anthropic.Client{Options: c.options}
	var resp *http.Response
	if err := client.Post(ctx, "v1/messages", nil, &resp, opts...); err != nil {
		return nil, err
	}
	return resp, nil
}
