package tool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/plugins/files"
	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/plugins/sdk"
	"agentctl.dev/agentctl/plugins/sdktest"
	"agentctl.dev/agentctl/runner/sandbox"
)

// TestMain makes the test's own binary the program under test.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		sdk.Serve(slices.Concat(files.Tools(), sdktest.Fixtures())...)
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "changing" {
		sdk.Serve(changing(os.Args[2])...)
		return
	}
	goleak.VerifyTestMain(m)
}

// TestAProcessInTheMiddleOfARunKnowsItsPast edits a file that only an earlier
// process has read, then kills the process and edits again.
func TestAProcessInTheMiddleOfARunKnowsItsPast(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	launcher := sandbox.New(sandbox.Options{AllowUnsandboxed: true})
	var past []Past
	pool := NewPool(PoolOptions{Site: testSite(launcher), Dir: dir, Past: func() []Past { return past }})
	t.Cleanup(func() {
		_ = pool.Close()
		_ = launcher.Close()
	})
	call := func(function, args string) Reply {
		t.Helper()
		d := of(Definition{Name: "my_" + function, Spec: v1alpha1.ToolSpec{Source: v1alpha1.ToolSource{
			Plugin: &v1alpha1.PluginSource{Command: []string{exe, "serve"}, Tool: function},
		}}})
		for _, name := range []string{"read", "edit"} { // the tools of the run
			other := d
			other.Name, other.Spec.Source.Plugin = "my_"+name, &v1alpha1.PluginSource{Command: []string{exe, "serve"}, Tool: name}
			other = of(other)
			pool.Start(t.Context(), []Definition{other})
		}
		server, err := pool.Serve(t.Context(), &d, Outside{})
		if err != nil {
			t.Fatal(err)
		}
		reply, err := server.Call(t.Context(), host.CallRequest{
			Tool: function, Args: json.RawMessage(args), Run: "r", Workspace: dir, Timeout: time.Minute,
		}, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	// What the journal has of the process before this one.
	past = []Past{
		{Tool: "other", Metadata: json.RawMessage(`{}`)},
		{Tool: "my_read", Metadata: json.RawMessage(`{"path":"f","hash":"sha256:2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806","size":4}`)},
	}
	first := call("edit", `{"path":"f","oldString":"one","newString":"two"}`)
	if first.Failed {
		t.Fatalf("after a resume: %s", first.Output)
	}
	past = append(past, Past{Tool: "my_edit", Metadata: first.Metadata})
	if died := call("dies", `{"text":"now"}`); !died.Failed || !strings.Contains(died.Output, "died") {
		t.Fatalf("it did not die: %+v", died)
	}
	if again := call("edit", `{"path":"f","oldString":"two","newString":"three"}`); again.Failed {
		t.Errorf("after a crash: %s", again.Output)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || string(b) != "three\n" {
		t.Errorf("%q, %v", b, err)
	}
}
