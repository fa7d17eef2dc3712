package delivery

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentctl.dev/agentctl/api/safetext"
	"agentctl.dev/agentctl/runner/publish/item"
	"agentctl.dev/agentctl/runner/sandbox/egress/ranges"
	"agentctl.dev/agentctl/runner/secret"
)

// Bounds of a request.
const (
	dialTime    = 10 * time.Second
	requestTime = 30 * time.Second
	maxAnswer   = 16 << 20
	maxHeader   = 1 << 20
	// maxText bounds what is shown of an answer.
	maxText = 200
)

// Client sends requests to one server, with one credential, and follows no redirect.
type Client struct {
	base  *url.URL
	token secret.Value
	hide  *secret.Redactor
	http  *http.Client
	close func()
}

// NewClient returns a client of a target. The zero token sends none. Close it.
func NewClient(t item.Target, token secret.Value) (*Client, error) {
	base, err := item.Server(t.URL)
	if err != nil {
		return nil, err
	}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: base})
	if err != nil {
		return nil, fmt.Errorf("proxy for %s: %w", base.Host, err)
	}
	dialer := &net.Dialer{Timeout: dialTime}
	if proxy == nil { // else the proxy resolves the name
		dialer.Control = refuse(item.Local(base.Hostname()))
	}
	transport := &http.Transport{
		Proxy: http.ProxyURL(proxy), DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTime, ForceAttemptHTTP2: true,
		MaxResponseHeaderBytes: maxHeader, IdleConnTimeout: time.Minute,
	}
	return &Client{
		base: base, token: token, hide: secret.NewRedactor(append(secret.ProxyPasswords(), token)...),
		http: &http.Client{
			Transport: transport, Timeout: requestTime,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		close: transport.CloseIdleConnections,
	}, nil
}

// Close ends its connections.
func (c *Client) Close() { c.close() }

// errAddress is the error of an address that no target has.
var errAddress = errors.New("the address is refused")

// refuse looks at the address that a name has, before it is dialled: a name of the internet
// must not lead to this host, or to a metadata service.
func refuse(local bool) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: %s", errAddress, address)
		}
		addr := at.Addr().Unmap()
		kind := cmp.Or(ranges.Never(addr), ranges.Special(addr))
		switch {
		case addr.IsLoopback() && local, kind == "", kind == "a private address":
			return nil
		}
		return fmt.Errorf("%w: %s is %s", errAddress, addr, kind)
	}
}

// Request is a request to the API of the target.
type Request struct {
	Method string
	// Path below the base, with its segments escaped; "" is the base itself.
	Path  string
	Query url.Values
	// Header besides the credential.
	Header map[string]string
	// Body is sent as JSON: raw bytes as they are. nil: there is none.
	Body any
	// Into takes the JSON of the answer; nil: it is not read.
	Into any
}

// Do sends a request. An answer that is not 2xx is an *Error.
func (c *Client) Do(ctx context.Context, r Request) error {
	at, err := c.at(r)
	if err != nil {
		return err
	}
	var body []byte
	switch b := r.Body.(type) {
	case nil:
	case []byte:
		body = b
	default:
		if body, err = json.Marshal(b); err != nil {
			return fmt.Errorf("%s %s: %w", r.Method, at.Path, err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, at.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s %s: %w", r.Method, at.Path, err)
	}
	req.Header.Set("User-Agent", "agentctl")
	req.Header.Set("Accept", "application/json")
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.Header {
		req.Header.Set(name, value)
	}
	if c.token != (secret.Value{}) {
		req.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.failed(ctx, r.Method, at, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return c.failed(ctx, r.Method, at, err)
	case len(b) > maxAnswer:
		return &Error{Text: fmt.Sprintf("%s %s: the answer is longer than %d bytes", r.Method, at.Host, maxAnswer)}
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return c.answered(r.Method, at, resp, b)
	case r.Into == nil:
		return nil
	}
	if err := json.Unmarshal(b, r.Into); err != nil {
		return &Error{Status: resp.StatusCode, Again: true, Text: fmt.Sprintf("%s %s: the answer is not the JSON of this API", r.Method, at.Host)}
	}
	return nil
}

// at is the URL of a request: on the server of the base, and nowhere else.
func (c *Client) at(r Request) (*url.URL, error) {
	at := *c.base
	if r.Path != "" {
		joined, err := url.Parse(strings.TrimRight(c.base.String(), "/") + r.Path)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", r.Method, r.Path, err)
		}
		at = *joined
	}
	if r.Query != nil {
		at.RawQuery = r.Query.Encode()
	}
	if at.Scheme != c.base.Scheme || at.Host != c.base.Host || at.User != nil {
		return nil, fmt.Errorf("%s %q leads to another server than %s", r.Method, r.Path, c.base.Host)
	}
	return &at, nil
}

// failed is the error of a request without an answer: whether it had an effect is not known.
func (c *Client) failed(ctx context.Context, method string, at *url.URL, err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return &Error{Again: ctx.Err() == nil && !errors.Is(err, errAddress), Text: c.show(fmt.Sprintf("%s %s: %v", method, at.Host, err))}
}

// answered is the error of an answer that is not 2xx.
func (c *Client) answered(method string, at *url.URL, resp *http.Response, b []byte) error {
	e := &Error{Status: resp.StatusCode}
	e.After = wait(resp.Header, time.Now())
	limited := e.After > 0 || resp.Header.Get("X-Ratelimit-Remaining") == "0"
	what := ""
	switch s := resp.StatusCode; {
	case s >= 300 && s <= 399:
		what = "it redirects, which is not followed: the repository may have another name now"
	case s == http.StatusUnauthorized:
		what = "the credential is not accepted"
	case s == http.StatusForbidden && limited, s == http.StatusTooManyRequests:
		what, e.Again = "too many requests", true
	case s == http.StatusForbidden:
		what = "the credential does not permit this"
	case s == http.StatusNotFound:
		what = "it does not exist, or the credential does not see it"
	case s == http.StatusConflict, s == http.StatusRequestTimeout, s >= 500:
		e.Again = true
	}
	e.Text = fmt.Sprintf("%s %s%s: %s", method, at.Host, at.Path, resp.Status)
	if what != "" {
		e.Text += " (" + what + ")"
	}
	var said struct {
		Message json.RawMessage `json:"message"`
		Error   json.RawMessage `json:"error"`
	}
	if json.Unmarshal(b, &said) == nil && len(said.Message)+len(said.Error) > 0 {
		e.Said = string(append(said.Message, said.Error...))
		e.Text += ": " + e.Said
	}
	e.Text = c.show(e.Text)
	return e
}

// show is a text of a server for people: short, on one line, without the credential.
func (c *Client) show(text string) string {
	text = safetext.Visible(c.hide.String(text), 0)
	if r := []rune(text); len(r) > 2*maxText {
		text = string(r[:2*maxText]) + "…"
	}
	return text
}

// wait is how long a server asks to wait; 0 where it does not say.
func wait(h http.Header, now time.Time) time.Duration {
	if text := h.Get("Retry-After"); text != "" {
		if n, err := strconv.Atoi(text); err == nil {
			return min(max(time.Duration(n)*time.Second, time.Second), 24*time.Hour)
		}
		if at, err := http.ParseTime(text); err == nil {
			return max(at.Sub(now), time.Second)
		}
	}
	if h.Get("X-Ratelimit-Remaining") == "0" {
		if n, err := strconv.ParseInt(h.Get("X-Ratelimit-Reset"), 10, 64); err == nil {
			return min(max(time.Unix(n, 0).Sub(now), time.Second), 24*time.Hour)
		}
	}
	return 0
}
