//go:build linux

package container_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox/container"
)

// allowing is the least proxy: one host passes, all others get a readable no.
func allowing(host string, ended chan<- struct{}) func(context.Context, net.Listener) {
	return func(ctx context.Context, l net.Listener) {
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Host != host {
				http.Error(w, "NetworkDenied: "+r.Host, http.StatusForbidden)
				return
			}
			_, _ = w.Write([]byte("hello by the proxy"))
		})}
		if err := s.Serve(l); !errors.Is(err, net.ErrClosed) {
			panic(err)
		}
		_ = s.Close()
		if ctx.Err() == nil {
			panic("the listener was closed before the context")
		}
		close(ended)
	}
}

func TestAProgramReachesTheProxyAndNothingElse(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	ended := make(chan struct{})
	out, info := output(t, r, container.Spec{
		Network: v1alpha1.NetworkProxy, Egress: allowing("allowed.example", ended),
		Argv: []string{"/tool", "get", "http://allowed.example/", "http://denied.example/"},
	})
	if want := "200 hello by the proxy\n403 NetworkDenied: denied.example\n"; out != want || info.Code != 0 {
		t.Errorf("got %q, %v; want %q", out, info, want)
	}
	select {
	case <-ended:
	default:
		t.Error("the proxy still runs although the process was waited for")
	}
}

func TestTheNetworkOfTheHostHasToBeDeclared(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dial := "dial:" + l.Addr().String()
	if got := look(t, r, container.Spec{Network: v1alpha1.NetworkHost}, dial).Attempts[dial]; got != "ok" {
		t.Errorf("network Host: %s", got)
	}
	for _, spec := range []container.Spec{{}, {Network: v1alpha1.NetworkNone}, {Network: v1alpha1.NetworkProxy, Egress: allowing("none", make(chan struct{}))}} {
		if got := look(t, r, spec, dial).Attempts[dial]; !strings.Contains(got, "refused") {
			t.Errorf("network %q reaches a listener of the host: %s", spec.Network, got)
		}
	}
}
