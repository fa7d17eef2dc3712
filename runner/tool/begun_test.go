package tool

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/runner/sandbox"
)

// A process that one pool has begun to start serves the calls of the pool that takes it
// over, which asks the person that only it knows, and ends it.
func TestAProcessThatWasBegunBelongsToTheNextPool(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	launcher := sandbox.New(sandbox.Options{AllowUnsandboxed: true})
	t.Cleanup(func() { _ = launcher.Close() })
	site, dir := testSite(launcher), t.TempDir()
	of := func(function string) Definition {
		return of(Definition{Name: "my_" + function, Spec: v1alpha1.ToolSpec{Source: v1alpha1.ToolSource{
			Plugin: &v1alpha1.PluginSource{Command: []string{exe, "serve"}, Tool: function},
		}}})
	}
	echo := of("echo")
	first := NewPool(PoolOptions{Site: site, Dir: dir})
	first.Start(t.Context(), []Definition{echo})
	asked := false
	pool := NewPool(PoolOptions{Site: site, Dir: dir, Begun: first.HandOver(), Past: func() []Past { asked = true; return nil }})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	server, err := pool.Serve(t.Context(), &echo, Outside{})
	if err != nil {
		t.Fatal(err)
	}
	reply, err := server.Call(t.Context(), host.CallRequest{Tool: "echo", Args: json.RawMessage(`{"text":"hi"}`), Timeout: time.Minute}, func(string) {})
	if err != nil || reply.Output != "hi" || !asked {
		t.Errorf("%+v, %v; the second pool was asked: %t", reply, err, asked)
	}
	if n := len(pool.processes); n != 1 {
		t.Errorf("%d processes, want the one that was begun", n)
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
	if launcher.Busy() {
		t.Error("the process still runs")
	}
}

// What is begun and never used ends with its pool as well.
func TestABegunProcessThatNoToolUsesIsEnded(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	launcher := sandbox.New(sandbox.Options{AllowUnsandboxed: true})
	t.Cleanup(func() { _ = launcher.Close() })
	first := NewPool(PoolOptions{Site: testSite(launcher), Dir: t.TempDir()})
	d := of(Definition{Name: "x", Spec: v1alpha1.ToolSpec{Source: v1alpha1.ToolSource{Plugin: &v1alpha1.PluginSource{Command: []string{exe, "serve"}}}}})
	first.Start(t.Context(), []Definition{d})
	pool := NewPool(PoolOptions{Site: first.Options().Site, Begun: first.HandOver()})
	if err := pool.Close(); err != nil || launcher.Busy() {
		t.Errorf("%v, a program runs: %t", err, launcher.Busy())
	}
}

// A program that does not start is reported with all tools that wait for it, also those
// that came after it was begun.
func TestAProgramThatDoesNotStartNamesAllItsTools(t *testing.T) {
	launcher := sandbox.New(sandbox.Options{AllowUnsandboxed: true})
	t.Cleanup(func() { _ = launcher.Close() })
	source := v1alpha1.ToolSource{Plugin: &v1alpha1.PluginSource{Command: []string{"/bin/true"}}}
	one, two := of(Definition{Name: "one", Spec: v1alpha1.ToolSpec{Source: source}}), of(Definition{Name: "two", Spec: v1alpha1.ToolSpec{Source: source}})
	first := NewPool(PoolOptions{Site: testSite(launcher), Dir: "/"})
	first.Start(t.Context(), []Definition{one})
	pool := NewPool(PoolOptions{Site: first.Options().Site, Dir: "/", Begun: first.HandOver()})
	pool.Start(t.Context(), []Definition{one, two})
	if _, err := pool.Serve(t.Context(), &one, Outside{}); err == nil || !strings.Contains(err.Error(), "start plugin /bin/true (tools: one, two): ") {
		t.Errorf("%v", err)
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
}
