package egress

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
)

// continued returns the connection to the target: the one that the client
// carries already, or a new one.
func (c *client) continued(ctx context.Context, t Target, pattern Pattern) *connection {
	if k := c.carried(); k != nil && k.target == t && k.transport != nil {
		return k
	}
	k, ctx := c.begun(ctx, t, pattern)
	k.transport = &http.Transport{
		DialContext:            func(context.Context, string, string) (net.Conn, error) { return k.dial(ctx) },
		DisableCompression:     true, // bytes pass as they are
		MaxResponseHeaderBytes: maxHead,
		MaxIdleConns:           1,
		IdleConnTimeout:        k.proxy.limits.Idle,
	}
	c.use(k)
	return k
}

// forward forwards a request of plain HTTP and its answer. Both are parsed and
// written again. So the next reader finds exactly the one message that was
// checked, whatever lengths, folds and hosts the original was written with.
func (s *session) forward(c *client, w http.ResponseWriter, r *http.Request, k *connection) {
	proxy := httputil.ReverseProxy{
		// An answer of unknown length passes as it comes: it may be a stream.
		Transport:  k.transport,
		BufferPool: pool{},
		ErrorLog:   quiet,
		Rewrite: func(pr *httputil.ProxyRequest) {
			out := pr.Out
			out.URL.Scheme, out.URL.Host = "http", k.target.String()
			out.URL.RawQuery = pr.In.URL.RawQuery
			out.Host = k.target.hostHeader()
			dropProxyHeaders(out.Header)
		},
		ModifyResponse: func(resp *http.Response) error {
			dropProxyHeaders(resp.Header)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { s.refuse(c, w, r.Method, k, err) },
	}
	// A program that has sent everything may close its half and continue to
	// read. The request ends with the answer, the limits, or the end of the
	// connection.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	// A server may answer before it has read everything; the rest of the request
	// must not be dropped then.
	_ = http.NewResponseController(w).EnableFullDuplex() // the server of this proxy supports it
	proxy.ServeHTTP(w, r.WithContext(ctx))
}

// hostHeader leaves out the default port.
func (t Target) hostHeader() string {
	if t.Port != httpPort {
		return t.String()
	}
	if t.Addr.Is6() {
		return "[" + t.Host() + "]"
	}
	return t.Host()
}

// dropProxyHeaders removes what is between the program and this proxy. The other
// headers of one hop are removed by ReverseProxy.
func dropProxyHeaders(h http.Header) {
	maps.DeleteFunc(h, func(name string, _ []string) bool {
		return strings.HasPrefix(strings.ToLower(name), "proxy-")
	})
}
