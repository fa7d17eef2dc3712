// Package gemini speaks the Gemini API, streamed, over net/http; its tests are compared with Google's SDK.
//
// The SDK cannot send prepared bytes, so every turn would convert the whole history by
// reflection, and its streams end at 256 MB a line and in the global log. It also links
// text/template, after which the linker keeps every exported method: the program would be
// twice as large.
package gemini

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"agentctl.dev/agentctl/runner/model"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model/httpapi"
	"agentctl.dev/agentctl/runner/model/jsonpass"
)

var provider = httpapi.Provider{
	Name: "gemini", BaseURL: "https://generativelanguage.googleapis.com", KeyVariable: "GEMINI_API_KEY", Speaks: "chunk of a Gemini answer",
	Wants: "provider gemini wants baseURL: https://host, without a version",
}

// Conversation is a model.Conversation over streamGenerateContent. Nothing is
// sent for the provider's cache, which looks for equal beginnings by itself.
type Conversation struct {
	*httpapi.Exchange
	cfg httpapi.Config
	url string
	settings

	// history is the request up to its last part; it only grows. Together with one
	// of the two ends it is a whole request.
	history history
	prefix  int // of the history, before its first message
	end     string
	// silent ends a request whose answer may hold no calls. The tools are declared
	// all the same: the history may hold calls of them.
	silent string
}

// New prepares a conversation; it sends nothing. The prompt is encoded here,
// once.
func New(cfg httpapi.Config, prompt message.Prompt) (*Conversation, error) {
	x, err := httpapi.New(cfg, provider)
	if err != nil {
		return nil, err
	}
	set, problems := read(cfg.Parameters)
	if len(problems) > 0 {
		return nil, reason.New(reason.ModelError, "model %q: %s", cfg.Name, problems[0])
	}
	c := &Conversation{Exchange: x, cfg: cfg, url: address(x.BaseURL(), cfg.Model), settings: set}
	if err := c.layout(prompt); err != nil {
		return nil, err
	}
	return c, nil
}

// address is where a model answers. A name may say which collection it is of.
func address(base, name string) string {
	if !strings.HasPrefix(name, "models/") && !strings.HasPrefix(name, "tunedModels/") {
		name = "models/" + name
	}
	collection, name, _ := strings.Cut(name, "/")
	return strings.TrimSuffix(base, "/") + "/v1beta/" + collection + "/" + url.PathEscape(name) + ":streamGenerateContent?alt=sse"
}

// newest is the generation of models that are only called the latest.
const newest = 3

// generation is the number in a model's name, 0 if there is none. Models of the third
// generation have thinking levels and require every call's signature; older ones count
// thinking tokens and cannot follow a schema while they have tools.
func generation(name string) int {
	_, version, ok := strings.Cut(strings.TrimPrefix(name, "models/"), "gemini-")
	if !ok {
		return 0
	}
	digits := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if digits < 0 {
		digits = len(version)
	}
	n, err := strconv.Atoi(version[:digits])
	switch {
	case err == nil:
		return n
	case digits == 0 && strings.HasSuffix(version, "-latest"):
		return newest
	}
	return 0
}

// holds reports whether the API can enforce the prompt's schema: the endpoint is known or
// declared to do so, and every keyword of the schema is supported.
func (c *Conversation) holds(p message.Prompt) bool {
	able := c.Official()
	if c.structured != nil {
		able = *c.structured
	}
	return able && len(p.Output) > 0 && (len(p.Tools) == 0 || generation(c.cfg.Model) >= 3) && supported(p.Output)
}

// layout writes the request around its messages.
func (c *Conversation) layout(prompt message.Prompt) error {
	held := c.holds(prompt)
	if !held {
		prompt.System = model.OutputContract(prompt.System, prompt.Output)
	}
	b := appendSystem([]byte{'{'}, prompt.System)
	c.end = closing + "]}"
	c.silent = c.end
	if len(prompt.Tools) > 0 {
		b = append(jsonpass.Open(b), `"tools":[{"functionDeclarations":[`...)
		for _, t := range prompt.Tools {
			if len(t.Parameters) > 0 {
				var err error
				if t.Parameters, err = model.CompactSchema(t.Parameters); err != nil {
					return reason.New(reason.ModelError, "model %q: the parameters of tool %q: %w", c.cfg.Name, t.Name, err)
				}
			}
			b = appendTool(b, t)
		}
		b = append(b, `]}]`...)
		c.silent = closing + `],"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}}`
	}
	config := c.generationConfig(c.cfg.Model)
	if held {
		schema, err := model.CompactSchema(prompt.Output)
		if err != nil {
			return reason.New(reason.ModelError, "model %q: the schema of the output: %w", c.cfg.Name, err)
		}
		config = append(config,
			model.Member{Name: "responseMimeType", Value: json.RawMessage(`"application/json"`)},
			model.Member{Name: "responseJsonSchema", Value: schema})
	}
	c.history = history{b: c.begin(b, config)}
	c.prefix = len(c.history.b)
	return nil
}

// begin writes the part of the request after the system prompt and the tools, up to the
// first message.
func (c *Conversation) begin(b []byte, config model.Members) []byte {
	if len(config) > 0 {
		b = config.Encode(append(jsonpass.Open(b), `"generationConfig":{`...))
		b[len(b)-1] = '}' // for the comma behind the last member
	}
	return append(c.extra.Encode(jsonpass.Open(b)), `"contents":[`...)
}

func appendSystem(b []byte, system string) []byte {
	if system == "" {
		return b
	}
	b = append(jsonpass.Open(b), `"systemInstruction":{"parts":[{"text":`...)
	return append(jsonpass.AppendString(b, system), `}]}`...)
}

// appendTool declares a function. One without parameters has no member for them: in some
// places the API refuses an object that has no properties.
func appendTool(b []byte, t message.ToolSpec) []byte {
	b = jsonpass.AppendString(append(jsonpass.Open(b), `{"name":`...), t.Name)
	if t.Description != "" {
		b = jsonpass.AppendString(append(b, `,"description":`...), t.Description)
	}
	if len(t.Parameters) > 0 {
		b = append(append(b, `,"parametersJsonSchema":`...), t.Parameters...)
	}
	return append(b, '}')
}

// Append encodes a message and adds it.
func (c *Conversation) Append(m *message.Message) error {
	h := c.history
	if err := c.add(&h, m); err != nil {
		return err
	}
	c.history = h
	return nil
}

// Reset encodes a conversation again after the prompt. The old bytes are not changed: a
// request may still be reading them.
func (c *Conversation) Reset(messages []*message.Message) error {
	h := history{b: append(make([]byte, 0, len(c.history.b)), c.history.b[:c.prefix]...)}
	for _, m := range messages {
		if err := c.add(&h, m); err != nil {
			return err
		}
	}
	c.history = h
	return nil
}

func (c *Conversation) add(h *history, m *message.Message) error {
	if err := c.encode(h, m); err != nil {
		return reason.New(reason.Internal, "model %q: %w", c.cfg.Name, err)
	}
	return nil
}

// Next sends the conversation, or a question beside it, and reads the answer.
func (c *Conversation) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	h, end := c.history, c.end
	if req.NoTools {
		end = c.silent
	}
	if a := req.Aside; a != nil {
		h, end = c.question(a), closing+"]}"
	}
	if h.role == "" {
		end = end[len(closing):]
	}
	return c.Ask(ctx, req, httpapi.Body{h.b, []byte(end)}, c.send, emit, newAnswer)
}

// question is a request of its own.
func (c *Conversation) question(a *message.Aside) history {
	b := appendSystem([]byte{'{'}, a.System)
	h := history{b: c.begin(b, c.asideConfig(c.cfg.Model, a.MaxOutputTokens))}
	h.text(roleUser, a.Text)
	return h
}

func (c *Conversation) send(ctx context.Context, b httpapi.Body) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, b.Reader())
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	if key := c.Key(); key != "" {
		// In the address it would be in every log on the way.
		r.Header.Set("X-Goog-Api-Key", key)
	}
	return c.Pass(r, b, c.Client().Do)
}
