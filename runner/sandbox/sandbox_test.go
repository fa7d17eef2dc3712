package sandbox

import (
	"context"
	"net"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

const (
	none, sandbox, container = v1alpha1.IsolationNone, v1alpha1.IsolationSandbox, v1alpha1.IsolationContainer
	off, proxy, wide         = v1alpha1.NetworkNone, v1alpha1.NetworkProxy, v1alpha1.NetworkHost
)

// on is a launcher on a host with this result of the probe.
func on(o Options, answer probed) *Launcher {
	l := New(o)
	l.probe = func() probed { return answer }
	return l
}

func TestRequireFailsClosed(t *testing.T) {
	good, bad := probed{}, probed{Missing: "user namespaces are switched off", Hint: "switch them on"}
	serve := func(context.Context, net.Listener, *spec.Profile) {}
	for name, c := range map[string]struct {
		reason  string
		host    probed
		opts    Options
		minimum v1alpha1.IsolationLevel
		network v1alpha1.NetworkMode
		want    string // in the error; "" is none
		hint    string
	}{
		"none":               {reason: "the tool asks for nothing", host: bad, minimum: none, network: off},
		"none, host network": {reason: "the host's network is there", host: bad, minimum: none, network: wide},
		"sandbox":            {reason: "this host gives it", host: good, minimum: sandbox, network: off},
		"sandbox undeclared": {
			reason: "this host gives None", host: bad, minimum: sandbox, network: off,
			want: `tool "x" needs isolation Sandbox, but this host gives None: user namespaces are switched off`, hint: "switch them on; or pass --allow-unsandboxed",
		},
		"sandbox by default":   {reason: "an absent level is Sandbox", host: bad, minimum: "", network: "", want: "needs isolation Sandbox", hint: "spec.isolation.minimum: None"},
		"sandbox allowed":      {reason: "the user said so", host: bad, opts: Options{AllowUnsandboxed: true}, minimum: sandbox, network: off},
		"sandbox in container": {reason: "the outer isolation is declared", host: bad, opts: Options{Outer: "container"}, minimum: sandbox, network: off},
		"outer misspelt": {
			reason: "a wrong word is no declaration, not even for None", host: good, opts: Options{Outer: "Container", AllowUnsandboxed: true}, minimum: none, network: off,
			want: `AGENTCTL_OUTER_ISOLATION is "Container"`, hint: "AGENTCTL_OUTER_ISOLATION=container",
		},
		"container": {
			reason: "nothing lifts it", host: good, opts: Options{AllowUnsandboxed: true, Outer: "container"}, minimum: container, network: off,
			want: "starts no containers", hint: "Sandbox or None",
		},
		"proxy":                {reason: "it is served in an empty network", host: good, opts: Options{Serve: serve}, minimum: sandbox, network: proxy},
		"proxy, nobody serves": {reason: "there is none", host: good, minimum: sandbox, network: proxy, want: "network mode Proxy", hint: "Host"},
		"proxy at None": {
			reason: "nothing would make the tool use it", host: good, opts: Options{Serve: serve}, minimum: none, network: proxy,
			want: "runs at level None", hint: "Sandbox",
		},
		"proxy unsandboxed": {
			reason: "to allow no sandbox is not to allow the network", host: bad, opts: Options{Serve: serve, AllowUnsandboxed: true}, minimum: sandbox, network: proxy,
			want: "network mode Proxy", hint: "agentctl doctor",
		},
		"unknown level":   {reason: "fails closed", host: good, opts: Options{AllowUnsandboxed: true}, minimum: "VM", network: off, want: `"VM"`, hint: "Container"},
		"unknown network": {reason: "fails closed", host: good, opts: Options{AllowUnsandboxed: true}, minimum: none, network: "Bridge", want: `"Bridge"`, hint: "Proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			err := on(c.opts, c.host).Require("x", c.minimum, c.network)
			if c.want == "" {
				if err != nil {
					t.Errorf("refused: %v, but %s", err, c.reason)
				}
				return
			}
			if err == nil {
				t.Fatalf("allowed, but %s", c.reason)
			}
			if reason.Of(err) != reason.IsolationUnavailable || reason.Of(err).ExitCode() != 8 {
				t.Errorf("reason = %s, want IsolationUnavailable with exit code 8", reason.Of(err))
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(reason.Hint(err), c.hint) {
				t.Errorf("error = %q, hint %q, want %q and %q: %s", err, reason.Hint(err), c.want, c.hint, c.reason)
			}
		})
	}
}

func TestALevelIsWhatTheHostGives(t *testing.T) {
	declared := Options{AllowUnsandboxed: true, Outer: "container"}
	if got := on(declared, probed{Missing: "x"}).Level(); got != none {
		t.Errorf("level = %s, want None: a declaration contains nobody", got)
	}
	l := on(declared, probed{})
	if got := l.Level(); got != sandbox {
		t.Errorf("level = %s, want Sandbox", got)
	}
	for minimum, want := range map[v1alpha1.IsolationLevel]v1alpha1.IsolationLevel{none: none, "": sandbox, sandbox: sandbox} {
		if got := l.Grant(minimum); got != want {
			t.Errorf("a tool with minimum %q runs at %s, want %s: what is there is used although nobody insists", minimum, got, want)
		}
	}
}
