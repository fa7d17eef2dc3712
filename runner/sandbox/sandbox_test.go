package sandbox

import (
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

func TestRequireFailsClosed(t *testing.T) {
	const (
		none, sandbox, container = v1alpha1.IsolationNone, v1alpha1.IsolationSandbox, v1alpha1.IsolationContainer
		off, proxy, host         = v1alpha1.NetworkNone, v1alpha1.NetworkProxy, v1alpha1.NetworkHost
	)
	for name, c := range map[string]struct {
		reason  string
		opts    Options
		minimum v1alpha1.IsolationLevel
		network v1alpha1.NetworkMode
		want    string // in the error; "" is none
		hint    string
	}{
		"none":               {reason: "the tool asks for nothing", minimum: none, network: off},
		"none, host network": {reason: "the host's network is there", minimum: none, network: host},
		"sandbox undeclared": {
			reason: "this host gives None", minimum: sandbox, network: off,
			want: `tool "x" needs isolation Sandbox, but this host gives None`, hint: "--allow-unsandboxed",
		},
		"sandbox by default":   {reason: "an absent level is Sandbox", minimum: "", network: "", want: "needs isolation Sandbox", hint: "spec.isolation.minimum: None"},
		"sandbox allowed":      {reason: "the user said so", opts: Options{AllowUnsandboxed: true}, minimum: sandbox, network: off},
		"sandbox in container": {reason: "the outer isolation is declared", opts: Options{Outer: "container"}, minimum: sandbox, network: off},
		"outer misspelt": {
			reason: "a wrong word is no declaration, not even for None", opts: Options{Outer: "Container", AllowUnsandboxed: true}, minimum: none, network: off,
			want: `AGENTCTL_OUTER_ISOLATION is "Container"`, hint: "AGENTCTL_OUTER_ISOLATION=container",
		},
		"container": {
			reason: "nothing lifts it", opts: Options{AllowUnsandboxed: true, Outer: "container"}, minimum: container, network: off,
			want: "starts no containers", hint: "Sandbox or None",
		},
		"proxy":           {reason: "there is none", opts: Options{AllowUnsandboxed: true}, minimum: sandbox, network: proxy, want: "network mode Proxy", hint: "Host"},
		"unknown level":   {reason: "fails closed", opts: Options{AllowUnsandboxed: true}, minimum: "VM", network: off, want: `"VM"`, hint: "Container"},
		"unknown network": {reason: "fails closed", opts: Options{AllowUnsandboxed: true}, minimum: none, network: "Bridge", want: `"Bridge"`, hint: "Proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			err := New(c.opts).Require("x", c.minimum, c.network)
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

func TestLevelIsWhatTheHostGives(t *testing.T) {
	if got := New(Options{AllowUnsandboxed: true, Outer: "container"}).Level(); got != v1alpha1.IsolationNone {
		t.Errorf("level = %s, want None: a declaration contains nobody", got)
	}
}
