package mcpserver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Path is where clients reach the server.
const Path = "/mcp"

// HTTPOptions are who may reach a server over HTTP.
type HTTPOptions struct {
	// Token is what clients send as a bearer token. Required.
	Token string
	// Hosts are further names under which clients reach the server. Always accepted are
	// localhost and the addresses of the loopback interface. A request for another host
	// is refused: a web page could have let its own name lead here.
	Hosts []string
}

const (
	headerTime = 10 * time.Second
	bodyTime   = 30 * time.Second
	idleTime   = 2 * time.Minute
	// closeTime is how long answers may take to be sent when the server ends.
	closeTime = 2 * time.Second
	// mostRequests bounds the requests at the same time.
	mostRequests = 2 * mostCalls
)

// HTTP serves clients until ctx ends. It closes the listener.
func (s *Server) HTTP(ctx context.Context, l net.Listener, o HTTPOptions) error {
	if o.Token == "" {
		return errors.Join(errors.New("serve over HTTP: there is no token"), l.Close())
	}
	protocol := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.protocol }, &mcp.StreamableHTTPOptions{
		Stateless: true, MaxRequestBodyBytes: mostMessage, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // guard is stricter, and knows further names
	})
	server := &http.Server{
		Handler:           o.guard(protocol),
		ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer s.rounds.end()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if server.Shutdown(last) != nil {
		_ = server.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// guard lets through who may use the server.
func (o HTTPOptions) guard(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte("Bearer " + o.Token))
	places := make(chan struct{}, mostRequests)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !o.known(r.Host) {
			http.Error(w, "forbidden: unknown host", http.StatusForbidden)
			return
		}
		if !sameOrigin(r) {
			http.Error(w, "forbidden: the request comes from a page of another site", http.StatusForbidden)
			return
		}
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "unauthorized: send the token of the server as a bearer token", http.StatusUnauthorized)
			return
		}
		if r.URL.Path != Path {
			http.NotFound(w, r)
			return
		}
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			http.Error(w, "too many requests", http.StatusServiceUnavailable)
			return
		}
		// The body must come soon; the answer may take as long as the call.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), goneKey{}, r.Context().Done())))
	})
}

// known reports whether a host is a name of this server.
func (o HTTPOptions) known(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if name == "localhost" || slices.ContainsFunc(o.Hosts, func(h string) bool { return strings.EqualFold(h, name) }) {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.IsLoopback()
}

// sameOrigin reports whether a request comes from no web page, or from one of the same
// server.
func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return origin == "" || origin == "http://"+r.Host || origin == "https://"+r.Host
}

// Loopback reports whether only programs of this host reach an address.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
