// Package openai speaks the chat completions API, streamed, to OpenAI and to the servers that imitate it; it is the only user of openai-go.
//
// The SDK is the transport. Its typed requests would encode the whole history
// in every turn, and its typed stream costs more than the network: so the
// history is kept encoded and only grows, and the answer is read in one pass.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model"
)

// DefaultBaseURL is OpenAI's own endpoint.
const DefaultBaseURL = "https://api.openai.com/v1"

// maxErrorBody bounds how much of an error's body is read.
const maxErrorBody = 64 << 10

// Config says how a model is reached.
type Config struct {
	// Name of the Model object, for errors and answers. Required.
	Name string
	// Model is the name the server knows. Required.
	Model string
	// BaseURL with version, for example https://host/v1. Default: DefaultBaseURL.
	BaseURL string
	// APIKey is asked for the key before the first request; nil sends none.
	APIKey func(ctx context.Context) (string, error)
	// Parameters is spec.parameters; CheckParameters says what is wrong with it.
	Parameters json.RawMessage
	// Retry is the layer around every request.
	Retry model.Retry
	// FirstByte and Idle bound the silence before and inside an answer. Default:
	// model.DefaultFirstByte and model.DefaultIdle.
	FirstByte, Idle time.Duration
	// Transport is shared with others when given; by default the conversation
	// has its own, which honours HTTPS_PROXY and SSL_CERT_FILE.
	Transport http.RoundTripper
	// Now stands for the clock.
	Now func() time.Time
}

// Conversation is a model.Conversation over chat completions.
type Conversation struct {
	cfg    Config
	client openai.Client
	own    *http.Transport
	key    string
	asked  bool

	// history is the request up to the last message; it only grows. Together
	// with one of the two ends it is a whole request.
	history  []byte
	prefix   int // of the history, before its first message
	withTool []byte
	noTool   []byte
	always   members
	ref      message.ModelRef
}

// New prepares a conversation; it sends nothing. The prompt is encoded here,
// once.
func New(cfg Config, prompt message.Prompt) (*Conversation, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	u, err := url.Parse(cfg.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, reason.New(reason.ModelError, "model %q: baseURL %q is no http or https address", cfg.Name, cfg.BaseURL)
	}
	if u.User != nil {
		return nil, reason.New(reason.ModelError, "model %q: baseURL holds a login", cfg.Name).WithHint("a key is named by spec.apiKey, never written into a manifest")
	}
	always, withTools, problems := encodeParameters(cfg.Parameters)
	if len(problems) > 0 {
		return nil, reason.New(reason.ModelError, "model %q: %s", cfg.Name, problems[0])
	}
	if cfg.FirstByte <= 0 {
		cfg.FirstByte = model.DefaultFirstByte
	}
	if cfg.Idle <= 0 {
		cfg.Idle = model.DefaultIdle
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &Conversation{cfg: cfg, ref: message.ModelRef{Name: cfg.Name, Provider: "openai", Model: cfg.Model}, always: always}
	if err := c.layout(withTools, prompt); err != nil {
		return nil, err
	}
	if cfg.Transport == nil {
		c.own = newTransport()
		cfg.Transport = c.own
	}
	// A Client literal instead of NewClient: that one reads OPENAI_* variables,
	// and a key or an address that no manifest names must never be used. It also
	// builds two dozen services that are not.
	c.client = openai.Client{Options: []option.RequestOption{
		option.WithBaseURL(cfg.BaseURL), option.WithMaxRetries(0),
		option.WithHTTPClient(&http.Client{Transport: cfg.Transport, CheckRedirect: stay}),
	}}
	return c, nil
}

// stay leaves a redirect as the answer: following one would carry the key and
// the conversation to a place that no manifest names.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        90 * time.Second,
		DisableCompression:     true,
		WriteBufferSize:        1 << 10, // for the head of a request; its body is handed over as it is
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// layout writes the request around its messages. The tools stand behind them,
// so that a request without tools shares every byte before.
func (c *Conversation) layout(withTools members, prompt message.Prompt) error {
	c.history = c.begin(c.always, prompt.System)
	c.prefix = len(c.history)
	c.noTool = []byte("]}")
	c.withTool = c.noTool
	if len(prompt.Tools) == 0 {
		return nil
	}
	end := withTools.encode([]byte("],"))
	end = append(end, `"tools":[`...)
	for _, t := range prompt.Tools {
		params := t.Parameters
		if len(params) == 0 {
			params = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		if !json.Valid(params) {
			return reason.New(reason.ModelError, "model %q: the parameters of tool %q are no JSON", c.cfg.Name, t.Name)
		}
		end = append(open(end), `{"type":"function","function":{"name":`...)
		end = appendString(end, t.Name)
		end = append(end, `,"description":`...)
		end = appendString(end, t.Description)
		end = append(end, `,"parameters":`...)
		end = append(append(end, params...), `}}`...)
	}
	c.withTool = append(end, `]}`...)
	return nil
}

// begin writes a request up to its first message that is no system prompt.
func (c *Conversation) begin(parameters members, system string) []byte {
	b := appendString([]byte(`{"model":`), c.cfg.Model)
	b = append(b, `,"stream":true,"stream_options":{"include_usage":true},`...)
	b = append(parameters.encode(b), `"messages":[`...)
	if system != "" {
		b = appendSimple(b, "system", system)
	}
	return b
}

// Append encodes a message and adds it.
func (c *Conversation) Append(m *message.Message) error {
	b, err := appendMessage(c.history, m)
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
		if b, err = appendMessage(b, m); err != nil {
			return reason.New(reason.Internal, "model %q: %w", c.cfg.Name, err)
		}
	}
	c.history = b
	return nil
}

// Next sends the conversation, or a question beside it, and reads the answer.
func (c *Conversation) Next(ctx context.Context, req message.Request, emit func(message.Delta) error) (*message.Output, error) {
	if err := c.credential(ctx); err != nil {
		return nil, fmt.Errorf("model %q: %w", c.cfg.Name, err)
	}
	end := c.withTool
	if req.NoTools {
		end = c.noTool
	}
	history := c.history
	if a := req.Aside; a != nil {
		history, end = appendSimple(c.begin(c.always.capped(a.MaxOutputTokens), a.System), "user", a.Text), c.noTool
	}
	out, err := c.cfg.Retry.Do(ctx, emit, func(ctx context.Context) (*message.Output, error) {
		return c.attempt(ctx, history, end, emit)
	})
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", c.cfg.Name, err)
	}
	if req.NoTools || req.Aside != nil {
		// A server may call a tool that it was not offered.
		out.Calls = nil
		if out.Finish == message.FinishToolCalls {
			out.Finish = message.FinishStop
		}
	}
	out.Model = c.ref
	return out, nil
}

// Close lets go of idle connections.
func (c *Conversation) Close() error {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
	return nil
}

// credential asks for the key, once.
func (c *Conversation) credential(ctx context.Context) error {
	if c.asked || c.cfg.APIKey == nil {
		return nil
	}
	key, err := c.cfg.APIKey(ctx)
	if err != nil {
		return err
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return reason.New(reason.CredentialRejected, "the key holds a space, a line break or another character that no key has").
			WithHint("check the value behind spec.apiKey")
	}
	c.key, c.asked = key, true
	return nil
}

// attempt is one request.
func (c *Conversation) attempt(parent context.Context, history, end []byte, emit func(message.Delta) error) (*message.Output, error) {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	stall := model.NewStall(cancel, c.cfg.FirstByte, c.cfg.Idle)
	defer stall.Stop()

	resp, err := c.send(ctx, history, end)
	if err != nil {
		if stalled, ok := errors.AsType[*model.Error](context.Cause(ctx)); ok {
			return nil, stalled
		}
		if failed, ok := errors.AsType[*model.Error](err); ok {
			return nil, c.hide(failed)
		}
		return nil, model.Network(err)
	}
	defer resp.Body.Close()
	a := &answer{emit: emit}
	if err := read(ctx, resp, stall, a); err != nil {
		if failed, ok := errors.AsType[*model.Error](err); ok && a.stopped == nil {
			return nil, c.hide(failed)
		}
		return nil, err
	}
	return a.output(), nil
}

func (c *Conversation) send(ctx context.Context, history, end []byte) (*http.Response, error) {
	first := newBody(history, end)
	opts := []option.RequestOption{
		option.WithRequestBody("application/json", io.Reader(first)),
		option.WithHeader("Accept", "text/event-stream"),
		option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
			// The SDK knows the length of its own buffers only; without one the
			// body would be chunked and could not be sent again on a connection
			// that the server has closed meanwhile.
			r.ContentLength = first.size()
			r.GetBody = func() (io.ReadCloser, error) { return newBody(history, end), nil }
			resp, err := next(r)
			if err != nil {
				return nil, err
			}
			return c.accept(resp)
		}),
	}
	if c.key != "" {
		opts = append(opts, option.WithAPIKey(c.key))
	}
	var resp *http.Response
	if err := c.client.Post(ctx, "chat/completions", nil, &resp, opts...); err != nil {
		return nil, err
	}
	return resp, nil
}

// accept turns every status but 200 into an Error. It does so before the SDK
// sees the answer, which would read an error's body without a bound.
func (c *Conversation) accept(resp *http.Response) (*http.Response, error) {
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil && len(body) == 0 {
		body = []byte(err.Error())
	}
	f := model.ParseFault(body)
	if at := resp.Header.Get("Location"); at != "" {
		f.Message = "redirect to " + model.Quote([]byte(at))
	}
	return nil, model.Status(resp.StatusCode, resp.Header, f, c.cfg.Now())
}

// hide takes the key out of a server's words: some repeat it in full. Where there
// is no key, that is the first thing to mend.
func (c *Conversation) hide(e *model.Error) *model.Error {
	if c.cfg.APIKey == nil && e.Kind == model.Credential {
		keyless := *e
		keyless.Hint = "the Model sends no key: name one, such as spec.apiKey: {valueFrom: {env: OPENAI_API_KEY}}"
		return &keyless
	}
	if c.key == "" || !strings.Contains(e.Error(), c.key) {
		return e
	}
	hidden := *e
	hidden.Err = errors.New(strings.ReplaceAll(e.Error(), c.key, "***"))
	return &hidden
}
