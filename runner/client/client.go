// Package client is a client of a control plane for the kinds of agentctl: it finds the server and speaks the Kubernetes API.
//
// A verb starts, sends one request and ends. The kinds are those of package crds,
// and the requests are plain HTTP: client-go's dynamic and discovery clients bring
// the types of every Kubernetes API along, which makes agentctl 14 MB larger and
// its start 3 ms slower. Kubeconfigs are read by client-go's clientcmd, and
// programs that print credentials are run by its exec plugins, for 0.7 MB and
// half a millisecond.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd/api"

	"agentctl.dev/agentctl/api/crds"
)

// FieldManager is the name under which this program owns fields of objects.
const FieldManager = "agentctl"

// The limits of what is asked and answered. A server is not trusted to be
// reasonable.
const (
	// maxObject bounds the answer about one object; a server keeps at most 1.5 MB.
	maxObject = 4 << 20
	// maxList bounds one chunk of a list.
	maxList = 64 << 20
	// requestTime bounds one request that is not a watch.
	requestTime = 60 * time.Second
	// dialTime bounds the connection and, separately, the handshake.
	dialTime = 10 * time.Second
	// headerTime bounds the wait for the head of an answer.
	headerTime = 30 * time.Second
	// attempts is how often a request is sent that the server asks to send later.
	attempts = 3
	// longestWait is the longest time between them.
	longestWait = 10 * time.Second
)

// Endpoint is a server and the credentials for it.
type Endpoint struct {
	// Context is the name under which people know it.
	Context string
	// Server is its address: https://host:port, or http:// on this machine.
	Server string
	// ServerName is the name in its certificate, where that is not the host.
	ServerName string
	// CA are the certificates, as PEM, that vouch for it. Default: the system's.
	CA []byte
	// Token authenticates this client. TokenFile is read again for each request,
	// because such files are rotated.
	Token, TokenFile string
	// Certificate authenticates this client, too. Optional.
	Certificate *tls.Certificate
	// Exec is the program that prints the credentials, if none of the above is
	// set. Optional.
	Exec *api.ExecConfig
	// Proxy is the way to the server. Default: that of HTTPS_PROXY.
	Proxy *url.URL
	// Namespace is the default namespace.
	Namespace string
	// Local is set when it runs on this machine and sees the same files.
	Local bool
}

// Client sends requests to one server. It may be used by several goroutines.
type Client struct {
	endpoint Endpoint
	base     *url.URL
	http     *http.Client
	now      func() time.Time
}

// New returns a client of an endpoint. Nothing is sent.
func New(e Endpoint) (*Client, error) {
	base, err := url.Parse(e.Server)
	if err != nil || base.Host == "" {
		return nil, fail(nil, "context %q: the server %q is no address", e.Context, e.Server)
	}
	switch {
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, fail(nil, "context %q: the address of the server holds more than a host and a path", e.Context)
	case base.Scheme == "https":
	case base.Scheme == "http" && loopback(base.Hostname()):
	default:
		return nil, fail(nil, "context %q: %s is not https: whoever listens on the way could read the token and change the answers", e.Context, e.Server)
	}
	if e.Namespace == "" {
		e.Namespace = "default"
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: e.ServerName}
	if len(e.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(e.CA) {
			return nil, fail(nil, "context %q: the certificate authority holds no certificate", e.Context)
		}
	}
	if e.Certificate != nil {
		config.Certificates = []tls.Certificate{*e.Certificate}
	}
	t := &http.Transport{
		Proxy:           http.ProxyFromEnvironment, // never for this machine
		DialContext:     (&net.Dialer{Timeout: dialTime}).DialContext,
		TLSClientConfig: config, TLSHandshakeTimeout: dialTime, ResponseHeaderTimeout: headerTime,
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 8, DisableCompression: loopback(base.Hostname()),
	}
	if e.Proxy != nil {
		t.Proxy = http.ProxyURL(e.Proxy)
	}
	c := &Client{
		endpoint: e, base: base, now: time.Now,
		// The token is for the server that was named, not for a redirect.
		http: &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	if e.Exec != nil {
		if c.http.Transport, err = newLogin(e, t); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Endpoint is where the client's requests go.
func (c *Client) Endpoint() Endpoint { return c.endpoint }

// Namespace returns the given namespace, or that of the context.
func (c *Client) Namespace(name string) string {
	if name != "" {
		return name
	}
	return c.endpoint.Namespace
}

// Close lets go of the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Ready asks whether the server answers.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.send(ctx, request{method: http.MethodGet, path: "/readyz", accept: "*/*", limit: maxObject})
	return err
}

// request is one question to the server.
type request struct {
	method, path string
	// sub is the subresource, where the path is made of the object's name.
	sub         string
	query       url.Values
	accept      string
	contentType string
	body        []byte
	limit       int64
	// about names the object, for errors.
	about Ref
}

const (
	asJSON  = "application/json"
	asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"
)

// resourcePath is the path of the objects of a kind; an empty namespace is all
// of them, an empty name is every object. An invalid name is refused before:
// see named.
func resourcePath(kind *crds.KindSchema, namespace, name string) string {
	return join("/apis/"+crds.GroupVersion, namespace, kind.Plural, name)
}

func join(version, namespace, plural, name string) string {
	p := version
	if namespace != "" {
		p += "/namespaces/" + namespace
	}
	p += "/" + plural
	if name != "" {
		p += "/" + name
	}
	return p
}

// send sends a request and returns the body of the answer.
//
//	error           the server
//	nil             answered with 2xx
//	*StatusError    answered with something else
//	*Error          cannot be reached, or its answer cannot be used
func (c *Client) send(ctx context.Context, r request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	for attempt := 1; ; attempt++ {
		body, err := c.once(ctx, r)
		status, ok := errors.AsType[*StatusError](err)
		if !ok || status.RetryAfter <= 0 || attempt == attempts {
			return body, err
		}
		if sleep(ctx, min(status.RetryAfter, longestWait)) != nil {
			return nil, err
		}
	}
}

func (c *Client) once(ctx context.Context, r request) ([]byte, error) {
	answer, err := c.open(ctx, r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	limit := r.limit
	if limit == 0 {
		limit = maxObject
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, limit+1))
	if err == nil && len(body) == 0 {
		err = ctx.Err() // a server that notices a disconnected client may end its answer before it has begun
	}
	switch {
	case err != nil:
		return nil, c.unreachable(ctx, r, err)
	case int64(len(body)) > limit:
		return nil, c.strange(r, "its answer is larger than %d MiB", limit>>20)
	case answer.StatusCode >= 300:
		return nil, c.status(r, answer, body)
	}
	return body, nil
}

// open sends a request and returns the answer with its body unread.
func (c *Client) open(ctx context.Context, r request) (*http.Response, error) {
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "/") + r.path
	u.RawQuery = r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, fail(err, "ask %s", c.name())
	}
	req.Header.Set("User-Agent", FieldManager)
	req.Header.Set("Accept", r.accept)
	if r.accept == "" {
		req.Header.Set("Accept", asJSON)
	}
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	token, err := c.endpoint.token()
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, r, err)
	}
	return answer, nil
}

// name is how errors call the server.
func (c *Client) name() string {
	return fmt.Sprintf("context %q (%s)", c.endpoint.Context, c.endpoint.Server)
}

// retryAfter reads the header; only seconds are spoken here.
func retryAfter(h http.Header) time.Duration {
	n, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || n <= 0 || n > 3600 {
		return 0
	}
	return time.Duration(n) * time.Second
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
