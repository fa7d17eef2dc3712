//go:build linux

package sandbox

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// pair measures the same at level None and in a sandbox, in turns, because what a
// machine does besides moves milliseconds by a factor. It reports the middle of
// each, and of what the sandbox adds to its neighbour.
func pair(b *testing.B, profile *spec.Profile, one func(p *spec.Profile) time.Duration) {
	b.Helper()
	var plain, held, over []float64
	for b.Loop() {
		p, h := one(nil).Seconds(), one(profile).Seconds()
		plain, held, over = append(plain, p), append(held, h), append(over, h-p)
	}
	for name, all := range map[string][]float64{"plain-p50-ms": plain, "sandbox-p50-ms": held, "over-p50-ms": over} {
		slices.Sort(all)
		b.ReportMetric(1000*all[len(all)/2], name)
	}
}

// fixtures starts a plugin and returns how long its first answer took.
func fixtures(b *testing.B, l *Launcher, p *spec.Profile) (*host.Plugin, time.Duration) {
	b.Helper()
	s := Spec{Argv: []string{self(b), "serve-fixtures"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", Profile: p}
	begin := time.Now()
	plugin, err := host.Start(b.Context(), host.Options{Name: "fixtures", Launch: l.PluginRunner(s)})
	if err == nil {
		_, err = plugin.Call(b.Context(), host.CallRequest{Tool: "echo", Args: []byte(`{"text":"x"}`), Timeout: time.Minute}, nil)
	}
	if err != nil {
		b.Fatal(err)
	}
	return plugin, time.Since(begin)
}

// BenchmarkPluginInSandbox is a plugin from nothing to the answer of its first
// call: in a sandbox of its own, and without one.
func BenchmarkPluginInSandbox(b *testing.B) {
	needed(b)
	pair(b, &spec.Profile{}, func(p *spec.Profile) time.Duration {
		l := New(Options{})
		plugin, took := fixtures(b, l, p)
		if err := errors.Join(plugin.Close(context.Background()), l.Close()); err != nil {
			b.Fatal(err)
		}
		return took
	})
}

// BenchmarkCommandInResidentSandbox is a command in a sandbox that stands, beside
// the same command without one.
func BenchmarkCommandInResidentSandbox(b *testing.B) {
	l := sandboxed(b)
	one := func(profile *spec.Profile) time.Duration {
		begin := time.Now()
		p, err := l.Start(b.Context(), Spec{Argv: []string{"/usr/bin/true"}, Dir: "/", Stdout: io.Discard, Stderr: io.Discard, Profile: profile})
		if err != nil {
			b.Fatal(err)
		}
		if exit := p.Wait(); exit.Code != 0 {
			b.Fatal(exit)
		}
		return time.Since(begin)
	}
	one(&spec.Profile{}) // which builds the sandbox
	pair(b, &spec.Profile{}, one)
}

// BenchmarkWarmCallInSandbox is a call of 1 KB to a plugin that runs, with and
// without a sandbox.
func BenchmarkWarmCallInSandbox(b *testing.B) {
	l := sandboxed(b)
	args := []byte(`{"text":"` + strings.Repeat("x", 1000) + `"}`)
	plugins := map[bool]*host.Plugin{}
	for _, p := range []*spec.Profile{nil, {}} {
		plugin, _ := fixtures(b, l, p)
		defer func() { _ = plugin.Close(context.Background()) }() // the launcher's end reports what is left
		plugins[p != nil] = plugin
	}
	pair(b, &spec.Profile{}, func(p *spec.Profile) time.Duration {
		begin := time.Now()
		if _, err := plugins[p != nil].Call(b.Context(), host.CallRequest{Tool: "echo", Args: args, Timeout: time.Minute}, nil); err != nil {
			b.Fatal(err)
		}
		return time.Since(begin)
	})
}

// BenchmarkFreshSandbox is a command in a sandbox of its own, from nothing to
// nothing: the price of isolation.fresh.
func BenchmarkFreshSandbox(b *testing.B) {
	l := sandboxed(b)
	for b.Loop() {
		p, err := l.Start(b.Context(), Spec{Argv: []string{"/usr/bin/true"}, Dir: "/", Profile: &spec.Profile{}, Fresh: true})
		if err != nil {
			b.Fatal(err)
		}
		p.Wait()
	}
}
