// Package httpapi is the HTTP side of a conversation, the same for every provider: one request at a time with its bounds, its retries and its key, and the answer read as a stream.
//
// A provider brings two things: bytes to send, and an Answer that understands the
// events of its wire format.
package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"time"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/model"
)

// Bounds of an error's body: how much of it is read, and for how long.
const (
	maxErrorBody  = 64 << 10
	errorBodyTime = 5 * time.Second
)

// Config is the address and the settings of a model.
type Config struct {
	// Name of the Model object, for errors and answers. Required.
	Name string
	// Model is the name the server knows. Required.
	Model string
	// BaseURL as the provider takes it. Default: the provider's own.
	BaseURL string
	// APIKey is asked for the key before the first request; nil sends none.
	APIKey func(ctx context.Context) (string, error)
	// KeySource is where the key was found, for the error when it is refused: "environment
	// variable X".
	KeySource string
	// Parameters is spec.parameters; each provider checks its own.
	Parameters json.RawMessage
	// Retry is the layer around every request.
	Retry model.Retry
	// Patience bounds how long an answer may make no progress.
	model.Patience
	// Transport is shared with others when given; by default the conversation
	// has its own, of NewTransport.
	Transport http.RoundTripper
	// Blob returns the content of a blob that a message names; nil knows none.
	Blob func(id string) ([]byte, error)
	// Shows reports whether the model can be shown media of a type that a tool returned.
	// Nil: all that the API takes.
	Shows func(mime string) bool
	// Now is the clock.
	Now func() time.Time
}

// Provider is what an exchange must know about the other side.
type Provider struct {
	// Name as in spec.provider.
	Name string
	// BaseURL is the provider's own endpoint.
	BaseURL string
	// KeyVariable is where people keep its key, for the hint.
	KeyVariable string
	// Speaks names one answer of its API, for errors: "chat completion".
	Speaks string
	// Wants describes a valid baseURL, for the hint about a wrong one.
	Wants string
}

// Exchange sends the requests of one conversation to one endpoint.
type Exchange struct {
	cfg      Config
	provider Provider
	client   *http.Client
	own      *http.Transport
	key      string
	asked    bool
}

// New checks the configuration; it sends nothing.
func New(cfg Config, p Provider) (*Exchange, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = p.BaseURL
	}
	u, err := url.Parse(cfg.BaseURL)
	if strings.Contains(cfg.BaseURL, "@") && (err != nil || u.User != nil) { // not repeated: it may hold a password
		return nil, reason.New(reason.ModelError, "model %q: baseURL holds a login", cfg.Name).WithHint("a key is named by spec.apiKey, never written into a manifest")
	}
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, reason.New(reason.ModelError, "model %q: baseURL %q is not an http or https address", cfg.Name, cfg.BaseURL)
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, reason.New(reason.ModelError, "model %q: baseURL holds a query or a fragment, which no request would have", cfg.Name).
			WithHint("a key is named by spec.apiKey; baseURL ends with the path")
	}
	cfg.Patience = cfg.Patience.WithDefaults()
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	x := &Exchange{cfg: cfg, provider: p}
	if cfg.Transport == nil {
		x.own = NewTransport()
		x.own.ForceAttemptHTTP2 = u.Scheme == "https" // it is not spoken without TLS
		x.cfg.Transport = x.own
	}
	x.client = &http.Client{Transport: x.cfg.Transport, CheckRedirect: stay}
	return x, nil
}

// stay leaves a redirect as the answer: following one would carry the key and
// the conversation to a place that no manifest names.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// NewTransport returns a transport that honours HTTPS_PROXY, NO_PROXY and
// SSL_CERT_FILE, and keeps connections. Its idle ones must be closed.
func NewTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                  proxyFor,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        90 * time.Second,
		DisableCompression:     true,
		WriteBufferSize:        1 << 10, // for the head of a request; its body is handed over as it is
		MaxResponseHeaderBytes: 256 << 10,
		OnProxyConnectResponse: throughProxy,
	}
}

// Client returns the client to send with: it follows no redirect.
func (x *Exchange) Client() *http.Client { return x.client }

// BaseURL returns the address of the endpoint.
func (x *Exchange) BaseURL() string { return x.cfg.BaseURL }

// Official reports whether the endpoint is the provider's own, which supports everything
// that the provider documents. A compatible endpoint may not.
func (x *Exchange) Official() bool {
	u, err := url.Parse(x.cfg.BaseURL)
	own, ownErr := url.Parse(x.provider.BaseURL)
	return err == nil && ownErr == nil && u.Scheme == own.Scheme && strings.EqualFold(u.Host, own.Host)
}

// ShowsResult reports whether the model can be shown a file that a tool returned.
func (c *Config) ShowsResult(f *message.File) bool { return c.Shows == nil || c.Shows(model.MimeOf(f)) }

// Blob returns the content of a blob that a message names.
func (x *Exchange) Blob(id string) ([]byte, error) {
	if x.cfg.Blob == nil {
		return nil, fmt.Errorf("blob %s is not at hand", id)
	}
	return x.cfg.Blob(id)
}

// Key returns the key, "" when the endpoint is sent none. It is known once Ask
// sends.
func (x *Exchange) Key() string { return x.key }

// Close lets go of idle connections.
func (x *Exchange) Close() error {
	if x.own != nil {
		x.own.CloseIdleConnections()
	}
	return nil
}

// Send sends a request and returns the answer to it, whatever its status.
type Send func(ctx context.Context, b Body) (*http.Response, error)

// Ask sends a request as b, as often as the retry layer allows, and reads the answer. Read
// makes the reader of one attempt, which passes each delta to its argument. Errors name
// the model and never hold the key.
func (x *Exchange) Ask(ctx context.Context, req message.Request, b Body, send Send, emit func(message.Delta) error, read func(pass func(message.Delta)) Answer) (*message.Output, error) {
	if err := x.credential(ctx); err != nil {
		return nil, fmt.Errorf("model %q: %w", x.cfg.Name, err)
	}
	out, err := x.cfg.Retry.Do(ctx, emit, func(ctx context.Context) (*message.Output, error) {
		return x.attempt(ctx, b, send, emit, read)
	})
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", x.cfg.Name, err)
	}
	model.Silence(req, out)
	out.Model = x.Self()
	return out, nil
}

// Self returns the model that answers here.
func (x *Exchange) Self() message.ModelRef {
	return message.ModelRef{Name: x.cfg.Name, Provider: x.provider.Name, Model: x.cfg.Model}
}

// credential asks for the key, once.
func (x *Exchange) credential(ctx context.Context) error {
	if x.asked || x.cfg.APIKey == nil {
		return nil
	}
	key, err := x.cfg.APIKey(ctx)
	if err != nil {
		return err
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return reason.New(reason.CredentialRejected, "%sthe key holds a space, a line break or another character that no key has", x.keyField()).
			WithHint("check the value behind spec.apiKey")
	}
	x.key, x.asked = key, true
	return nil
}

// attempt is one request.
func (x *Exchange) attempt(parent context.Context, b Body, send Send, emit func(message.Delta) error, read func(func(message.Delta)) Answer) (*message.Output, error) {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	stall := model.NewStall(cancel, x.cfg.Patience)
	defer stall.Stop()

	resp, err := send(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: stall.Begin}), b)
	if err != nil {
		if stalled, ok := errors.AsType[*model.Error](context.Cause(ctx)); ok {
			return nil, stalled
		}
		if failed, ok := errors.AsType[*model.Error](err); ok {
			return nil, x.explain(failed)
		}
		return nil, model.Network(err)
	}
	defer resp.Body.Close()
	s := stream{stall: stall, emit: emit, idle: x.cfg.Idle, speaks: x.provider.Speaks}
	s.answer = read(s.pass)
	if err := s.read(ctx, resp); err != nil {
		if failed, ok := errors.AsType[*model.Error](err); ok && s.stopped == nil {
			return nil, x.explain(failed)
		}
		return nil, err
	}
	return s.answer.Output(), nil
}

// Pass sends a request with the bytes of b by next, and turns every answer but a 200 into
// an error. It is the middleware of an SDK: the SDK knows the length of its own buffers
// only, and would read an error's body without a limit.
func (x *Exchange) Pass(r *http.Request, b Body, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	// Without a length the body would be chunked, and could not be sent again on a
	// connection that the server has closed meanwhile.
	r.ContentLength = b.Size()
	r.GetBody = func() (io.ReadCloser, error) { return b.Reader(), nil }
	resp, err := next(r)
	if err != nil || resp.StatusCode == http.StatusOK {
		return resp, err
	}
	defer resp.Body.Close()
	late := time.AfterFunc(errorBodyTime, func() { _ = resp.Body.Close() }) // what has come by then counts
	defer late.Stop()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil && len(body) == 0 {
		body = []byte(err.Error())
	}
	f := model.ParseFault(body)
	if at := resp.Header.Get("Location"); at != "" {
		f.Message = "redirect to " + model.Quote([]byte(at))
	}
	return nil, model.Status(resp.StatusCode, resp.Header, f, x.cfg.Now())
}

// wrongAddress are the classes of errors that a wrong baseURL leads to.
var wrongAddress = []string{"404", "405", "501", protocol}

// explain adds what only the exchange knows: where the key is named, what the
// provider takes as an address. It takes the key out of a server's words, some of
// which repeat it in full.
func (x *Exchange) explain(e *model.Error) *model.Error {
	explained := *e
	switch {
	case x.cfg.APIKey == nil && e.Kind == model.Credential:
		explained.Hint = fmt.Sprintf("the Model sends no key: name one, such as spec.apiKey: {valueFrom: {env: %s}}", x.provider.KeyVariable)
	case slices.Contains(wrongAddress, e.Class) && x.provider.Wants != "":
		explained.Hint = strings.TrimSpace(e.Hint + " (" + x.provider.Wants + ")")
	}
	if words := x.withoutKey(e.Error()); words != e.Error() {
		explained.Err = errors.New(words)
	}
	if e.Kind == model.Credential {
		explained.Err = fmt.Errorf("%s%w", x.keyField(), explained.Err)
	}
	return &explained
}

// leastKey is the shortest beginning of a key that is taken out of words.
const leastKey = 4

// withoutKey takes the key out of words, and a beginning of it that words end in
// which were cut.
func (x *Exchange) withoutKey(words string) string {
	if x.key == "" {
		return words
	}
	words = strings.ReplaceAll(words, x.key, "***")
	for n := len(x.key) - 1; n >= leastKey; n-- {
		words = strings.ReplaceAll(words, x.key[:n]+model.Cut, "***"+model.Cut)
	}
	return words
}

// keyField names the field of the key and where its value was found, for the
// beginning of an error.
func (x *Exchange) keyField() string {
	if x.cfg.APIKey == nil || x.cfg.KeySource == "" {
		return ""
	}
	return "spec.apiKey (" + x.cfg.KeySource + "): "
}
