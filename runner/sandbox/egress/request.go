package egress

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// httpPort is what an address without a port means in plain HTTP.
const httpPort = 80

// ServeHTTP judges one request and carries it.
//
//	the request                      answer
//	malformed, or not for a proxy    400
//	to a server that is not allowed  403 NetworkDenied
//	to a server that does not answer 502
//	to any other                     the server's
func (s *session) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(clientKey{}).(*client) //nolint:forcetypeassert // withClient has put it there
	c.busy.Store(true)
	defer func() {
		c.busy.Store(false)
		if c.taken { // the server has released it, and its count
			_ = c.Close()
			s.wg.Done()
		}
	}()
	t, err := target(r)
	if err != nil {
		s.malformed(c, w, r, err)
		return
	}
	pattern, ok := s.proxy.allow.Find(t)
	if !ok {
		k, _ := c.begun(r.Context(), t, Pattern{})
		c.use(k)
		s.refuse(c, w, r.Method, k, s.proxy.denied(t))
		return
	}
	if r.Method == http.MethodConnect {
		k, ctx := c.begun(r.Context(), t, pattern)
		c.use(k)
		s.tunnel(ctx, c, w, k)
		return
	}
	if k := c.carried(); k != nil && k.target != t { // one client, another connection, and another record
		if refusal := s.spent(); refusal != "" {
			c.use(nil)
			answer(c, w, r.Method, http.StatusServiceUnavailable, strings.TrimSpace(refusal))
			return
		}
	}
	s.forward(c, w, r, c.continued(r.Context(), t, pattern))
}

// target returns the server that a request asks for. It returns an error for a
// request that is not meant for a proxy, and for one that two readers could
// read in two ways.
func target(r *http.Request) (Target, error) {
	if r.Method == http.MethodConnect {
		if r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
			return Target{}, errors.New("a CONNECT request has no body")
		}
		if r.RequestURI != r.Host || r.URL.User != nil {
			return Target{}, errors.New("a CONNECT request names host:port and nothing else")
		}
		return named(r.Host, 0)
	}
	switch {
	case !r.URL.IsAbs():
		return Target{}, errors.New("this is a proxy: a request names its server, as in GET http://host/path or CONNECT host:443")
	case !strings.EqualFold(r.URL.Scheme, "http"):
		return Target{}, fmt.Errorf("the proxy carries http:// requests and CONNECT tunnels, not %s://", clip(r.URL.Scheme))
	case r.URL.Opaque != "":
		return Target{}, errors.New("the address has no //")
	case r.URL.User != nil:
		return Target{}, errors.New("the address holds a user name: send an Authorization header instead")
	}
	return named(r.URL.Host, httpPort)
}

func named(hostport string, otherwise uint16) (Target, error) {
	t, err := ParseTarget(hostport, otherwise)
	if err != nil {
		return Target{}, fmt.Errorf("%q %w", clip(hostport), err)
	}
	return t, nil
}

// malformed answers a request that names no server.
func (s *session) malformed(c *client, w http.ResponseWriter, r *http.Request, err error) {
	c.use(nil)
	s.proxy.opts.OnConnection(event.EgressConnection{
		Tools: s.proxy.opts.Tools, Host: clip(r.Host), Decision: message.Deny, Rule: "malformed request: " + err.Error(),
	})
	answer(c, w, r.Method, http.StatusBadRequest, "BadRequest: "+err.Error())
}

// refuse answers a request that failed on the way to its server.
func (s *session) refuse(c *client, w http.ResponseWriter, method string, k *connection, err error) {
	status, text := http.StatusBadGateway, fmt.Sprintf("NetworkFailed: %s: %v", k.target, err)
	if e, ok := errors.AsType[*deniedError](err); ok {
		k.deny(e)
		status, text = http.StatusForbidden, e.text
	} else {
		k.fail(err)
	}
	if c.carried() == k {
		c.use(nil) // writes the record before the program reads the answer
	}
	answer(c, w, method, status, text)
}

// answer writes a line for people. The connection ends with it: what follows on
// it was written in the hope of another answer.
//
// The program behind a CONNECT shows the words of the status line, if anything,
// and never the body: for CONNECT the text is in both.
func answer(c *client, w http.ResponseWriter, method string, status int, text string) {
	if method == http.MethodConnect {
		if _, _, err := http.NewResponseController(w).Hijack(); err == nil {
			body := text + "\n"
			_, _ = fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", status, phrase(text), len(body), body)
			c.linger()
		}
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Connection", "close")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) //nolint:gosec // plain text, with its type and nosniff set
}

// phrase is a text that is valid in a status line.
func phrase(text string) string {
	const most = 400
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text[:min(len(text), most)])
}

// names writes the tools of a network as in an error text.
func names(tools []string) string {
	switch len(tools) {
	case 0:
		return "this network"
	case 1:
		return fmt.Sprintf("tool %q", tools[0])
	}
	quoted := make([]string, 0, len(tools))
	for _, t := range tools {
		quoted = append(quoted, fmt.Sprintf("%q", t))
	}
	return "tools " + strings.Join(quoted, ", ")
}
