package oauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Bounds of the requests of a browser.
const (
	browserTime = 10 * time.Second
	maxRedirect = 32 << 10
)

// callback is the path to which the browser returns.
const callback = "/callback"

// listener waits on this machine for the browser to return from a login.
type listener struct {
	net.Listener
	url string
}

// listen takes a port of the loopback interface; 0 is any.
func listen(ctx context.Context, port int) (*listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("wait for the browser: %w", err)
	}
	return &listener{l, "http://" + l.Addr().String() + callback}, nil
}

// page is what the browser shows. It holds nothing of the request.
const page = `<!doctype html><meta charset="utf-8"><title>agentctl</title><p>You can close this page and return to the terminal.</p>`

// wait returns what the authorization server has sent the browser with. A request with
// another state, of whatever page or program, is refused and changes nothing.
func (l *listener) wait(ctx context.Context, state string) (url.Values, error) {
	answers := make(chan url.Values, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+callback, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cache-Control", "no-store")
		if r.Host != l.Addr().String() || !sameState(q, state) {
			http.Error(w, "this address belongs to no login that is in progress", http.StatusBadRequest)
			return
		}
		select {
		case answers <- q:
		default: // the first counts
		}
		_, _ = w.Write([]byte(page)) // the browser may be gone
	})
	server := &http.Server{Handler: mux, ReadTimeout: browserTime, WriteTimeout: browserTime, IdleTimeout: browserTime, MaxHeaderBytes: maxRedirect}
	done := make(chan struct{})
	go func() { // ends when the server is closed
		defer close(done)
		_ = server.Serve(l.Listener)
	}()
	defer func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(grace) // the browser reads its page
		_ = server.Close()
		<-done
	}()
	select {
	case q := <-answers:
		return q, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// sameState compares without telling how much of a guess is right.
func sameState(q url.Values, state string) bool {
	return len(q["state"]) == 1 && subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) == 1
}

// pasted reads the address at which the browser has ended.
func pasted(text, redirect, state string) (url.Values, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxRedirect {
		return nil, errors.New("the address is too long")
	}
	got, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("that is not the address at which the browser ended")
	}
	want, err := url.Parse(redirect)
	if err != nil {
		return nil, err
	}
	if got.Scheme != want.Scheme || got.Host != want.Host || got.Path != want.Path {
		return nil, fmt.Errorf("the browser ended at %s://%s%s, and not at %s: nothing of it is used", clean(got.Scheme), clean(got.Host), clean(got.Path), redirect)
	}
	q := got.Query()
	if !sameState(q, state) {
		return nil, errors.New("the address belongs to another login: its state is not that of this one")
	}
	return q, nil
}
