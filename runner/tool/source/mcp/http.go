package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentctl.dev/agentctl/runner/keys"
	"agentctl.dev/agentctl/runner/tool"
	"agentctl.dev/agentctl/runner/tool/source/mcp/oauth"
)

// Bounds of a connection to a URL.
const (
	dialTime     = 10 * time.Second
	maxRedirects = 5
)

// http connects to a server at a URL. The runner itself sends the requests: to the host
// of the URL, and to no other.
func (s *source) http(d *tool.Definition) dialer {
	at, headers, access, wrong := s.remote(d)
	if wrong != nil {
		return func(context.Context) (*link, error) { return nil, wrong }
	}
	return s.dial(d, at, headers, access)
}

func (s *source) dial(d *tool.Definition, at *url.URL, headers http.Header, access *oauth.Tokens) dialer {
	name, declared := d.Program(), d.Spec.Source.MCP.HTTP.URL
	return func(ctx context.Context) (*link, error) {
		base := &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: dialTime}).DialContext,
			TLSHandshakeTimeout: dialTime, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 16,
			MaxResponseHeaderBytes: 1 << 20,
		}
		living, end := context.WithCancel(context.Background())
		var sends http.RoundTripper = &pinned{base: base, at: at, headers: headers, living: living}
		if access != nil {
			sends = access.Transport(sends)
		}
		client := &http.Client{Transport: sends, CheckRedirect: stays(at)}
		stop := func() {
			end()
			base.CloseIdleConnections()
		}
		l, err := s.connect(ctx, name, &mcp.StreamableClientTransport{Endpoint: declared, HTTPClient: client, MaxEventSize: maxFrame}, func() error { return nil }, stop)
		if err == nil {
			l.remote = true
		}
		return l, err
	}
}

// remote returns where the server of a Tool is, the headers that it is sent, and what
// obtains its access tokens; nil if the Tool has no spec.source.mcp.http.auth.
func (s *source) remote(d *tool.Definition) (*url.URL, http.Header, *oauth.Tokens, error) {
	name, declared := d.Program(), d.Spec.Source.MCP.HTTP
	at, err := url.Parse(declared.URL)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("tool %q: %w", name, err)
	}
	values, headers := s.pool.Options().Secrets[name], http.Header{}
	for _, h := range declared.Headers {
		value, ok := values[h.Name]
		if !ok {
			return nil, nil, nil, fmt.Errorf("tool %q: the value of header %s is not known", name, h.Name)
		}
		headers.Set(h.Name, value)
	}
	if declared.Auth == nil {
		return at, headers, nil, nil
	}
	access, err := s.tokens(d)
	return at, headers, access, err
}

// tokens are those of a Tool with spec.source.mcp.http.auth.
func (s *source) tokens(d *tool.Definition) (*oauth.Tokens, error) {
	o := s.authorization(d)
	if s.person != nil {
		return oauth.Asking(o, *s.person)
	}
	return oauth.New(o)
}

func (s *source) authorization(d *tool.Definition) oauth.Options {
	o := s.pool.Options()
	options := oauth.Options{Tool: d.Program(), Server: d.Spec.Source.MCP.HTTP, Secret: o.Secrets[d.Program()][oauth.ClientSecret], Learn: o.Learn}
	if state := o.Site.Options().State; state != "" {
		options.Store = keys.LoginsOf(state)
	}
	return options
}

// stays refuses a redirect to another host: it would get the arguments of the call.
func stays(at *url.URL) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("the server redirects more than %d times", maxRedirects)
		}
		return oauth.SameHost(at, req.URL)
	}
}

// pinned sends requests to one host only, with the declared headers, and bounds answers.
type pinned struct {
	base    *http.Transport
	at      *url.URL
	headers http.Header
	// living ends with the connection: a stream that the server holds open ends then.
	living context.Context //nolint:containedctx // it bounds every request of the connection
}

// RoundTrip implements http.RoundTripper.
func (p *pinned) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := oauth.SameHost(p.at, req.URL); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(p.living, cancel)
	req = req.Clone(ctx)
	maps.Copy(req.Header, p.headers)
	resp, err := p.base.RoundTrip(req)
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	body := &bounded{ReadCloser: resp.Body, left: maxFrame, end: func() { stop(); cancel() }}
	if resp.Header.Get("Content-Type") != "" && isStream(resp.Header.Get("Content-Type")) {
		body.left = -1 // each of its events has a bound of its own
	}
	resp.Body = body
	return resp, nil
}

func isStream(contentType string) bool {
	return len(contentType) >= len(eventStream) && contentType[:len(eventStream)] == eventStream
}

const eventStream = "text/event-stream"

// bounded is a body that fails when it is too long.
type bounded struct {
	io.ReadCloser
	left int
	end  func()
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return b.ReadCloser.Read(p)
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		b.left = 0
		return 0, errors.Join(errTooBig, err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *bounded) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
