package mcp

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox"
	"agentctl.dev/agentctl/runner/tool"
)

// BenchmarkCall is a call of a server that answers at once: what is measured is what the
// client, the pipes and the processes add.
func BenchmarkCall(b *testing.B) {
	pool, d := benchPool(b, "quick", "")
	found, err := pool.Several(b.Context(), &d, "")
	if err != nil {
		b.Fatal(err)
	}
	all, err := tool.Expand(&d, found)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		server, err := pool.Serve(b.Context(), &all[0], tool.Outside{})
		if err != nil {
			b.Fatal(err)
		}
		r, err := server.Call(b.Context(), host.CallRequest{Tool: all[0].Function, Args: json.RawMessage(`{}`), ID: "c", Key: "k", Timeout: time.Minute}, func(string) {})
		if err != nil || r.Failed {
			b.Fatalf("%+v, %v", r, err)
		}
	}
}

// BenchmarkStartWith500Functions is what the functions of a server cost a run that is not
// the first one: they are read and expanded.
func BenchmarkStartWith500Functions(b *testing.B) {
	state := b.TempDir()
	pool, d := benchPool(b, "many", state)
	if _, err := pool.Functions(b.Context(), &d); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		next, d := benchPool(b, "many", state)
		found, err := next.Several(b.Context(), &d, "")
		if err != nil {
			b.Fatal(err)
		}
		all, err := tool.Expand(&d, found)
		if err != nil || len(all) != 500 {
			b.Fatal(len(all), err)
		}
		if err := tool.Distinct(all); err != nil {
			b.Fatal(err)
		}
	}
}

func benchPool(b *testing.B, mode, state string) (*tool.Pool, tool.Definition) {
	b.Helper()
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	launcher := sandbox.New(sandbox.Options{AllowUnsandboxed: true})
	site := tool.NewSite(tool.SiteOptions{Kinds: tool.Kinds{Kind()}, Launcher: launcher, State: state})
	pool := tool.NewPool(tool.PoolOptions{Site: site, Dir: os.TempDir()})
	b.Cleanup(func() { _ = pool.Close(); _ = launcher.Close(); _ = pool.Release() })
	d, err := tool.Kinds{Kind()}.Define(&v1alpha1.Tool{Spec: v1alpha1.ToolSpec{
		CallName: "s", Isolation: v1alpha1.Isolation{Minimum: v1alpha1.IsolationNone},
		Source: v1alpha1.ToolSource{MCP: &v1alpha1.MCPSource{Stdio: &v1alpha1.MCPStdio{Command: []string{exe, "serve", mode}}}},
	}})
	if err != nil {
		b.Fatal(err)
	}
	return pool, d
}
