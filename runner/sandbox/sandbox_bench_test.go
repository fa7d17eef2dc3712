//go:build linux

package sandbox

import (
	"context"
	"io"
	"testing"

	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox/spec"
)

// BenchmarkSandboxColdStart is a plugin from nothing to its first answer: in a
// sandbox of its own, and without one.
func BenchmarkSandboxColdStart(b *testing.B) {
	needed(b)
	for name, profile := range map[string]*spec.Profile{"plain": nil, "sandbox": {}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				l := New(Options{})
				s := Spec{Argv: []string{self(b), "serve-fixtures"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", Profile: profile}
				p, err := host.Start(b.Context(), host.Options{Name: "fixtures", Launch: l.PluginRunner(s)})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := p.Close(context.Background()); err != nil {
					b.Fatal(err)
				}
				_ = l.Close()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkCommandInResidentSandbox is a command in a sandbox that stands, beside
// the same command without one.
func BenchmarkCommandInResidentSandbox(b *testing.B) {
	for name, profile := range map[string]*spec.Profile{"plain": nil, "sandbox": {}} {
		b.Run(name, func(b *testing.B) {
			l := sandboxed(b)
			one := func() {
				p, err := l.Start(b.Context(), Spec{Argv: []string{"/usr/bin/true"}, Dir: "/", Stdout: io.Discard, Stderr: io.Discard, Profile: profile})
				if err != nil {
					b.Fatal(err)
				}
				if exit := p.Wait(); exit.Code != 0 {
					b.Fatal(exit)
				}
			}
			one()
			for b.Loop() {
				one()
			}
		})
	}
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
