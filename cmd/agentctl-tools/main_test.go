package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentctl.dev/agentctl/plugins/host"
	"agentctl.dev/agentctl/plugins/sdktest"
)

// TestMain makes the test's own binary the program: whoever shakes hands with
// it gets the tools.
func TestMain(m *testing.M) {
	if os.Getenv("PLUGIN_PROTOCOL_VERSIONS") != "" {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// program is this program with an environment of two variables.
func program(t *testing.T) sdktest.Program {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return sdktest.Program{Command: []string{exe}, Env: []string{"PATH=/usr/bin:/bin", "DECLARED=yes"}}
}

func call(t *testing.T, p *host.Plugin, workspace, tool, args string) *host.CallResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res, err := p.Call(ctx, host.CallRequest{Tool: tool, Args: json.RawMessage(args), ID: "c1", Run: "r1", Workspace: workspace, Timeout: 2 * time.Minute}, func(host.Event) {})
	if err != nil {
		t.Fatalf("%s %s: %v", tool, args, err)
	}
	return res
}

func TestTheProgramKeepsTheProtocol(t *testing.T) { sdktest.Run(t, program(t)) }

func TestDescribePrintsEveryTool(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"--describe"}, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	var tools []struct {
		Name, Description string
		Parameters        map[string]any
	}
	if err := json.Unmarshal(out.Bytes(), &tools); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
		if tool.Description == "" || tool.Parameters["type"] != "object" || tool.Parameters["additionalProperties"] != false {
			t.Errorf("%s: %+v", tool.Name, tool)
		}
	}
	if want := []string{"read", "list", "glob", "grep", "codesearch", "edit", "patch", "workspace_fs", "write", "bash", "workspace_shell", "webfetch", "websearch"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

func TestTheProgramSaysWhatItIs(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"--describe", "x"}} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != 2 || out.Len() > 0 {
			t.Errorf("%v: exit %d, stdout %q", args, code, out.String())
		}
		if want := "agentctl-tools serves agentctl's built-in tools and is started by agentctl; run it with --describe to see them.\n"; errs.String() != want {
			t.Errorf("%v: got %q", args, errs.String())
		}
	}
}

func TestToolsWorkOverTheWire(t *testing.T) {
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// A descriptor without close-on-exec, as a person's shell may leave behind.
	leak, err := syscall.Dup(2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(leak) })
	p := program(t).Start(t)
	for _, tc := range []struct{ reason, tool, args, want string }{
		{"a file is made", "write", `{"path":"a/f.txt","content":"one\ntwo\n"}`, "created a/f.txt; 8 bytes, sha256:"},
		{"the next call knows it", "edit", `{"path":"a/f.txt","oldString":"two","newString":"zwei"}`, "edited a/f.txt: 1 replacement at line 2 (exact match); "},
		{"read", "read", `{"path":"a/f.txt"}`, "1: one\n2: zwei\n"},
		{"grep", "grep", `{"pattern":"zw.i"}`, "a/f.txt:2:zwei\n"},
		{"glob", "glob", `{"pattern":"**/*.txt"}`, "a/f.txt\n"},
		{"list", "list", `{"depth":2}`, "a/\na/f.txt 9\n"},
		{"the shell sees the same files", "bash", `{"command":"cat a/f.txt; pwd"}`, "one\nzwei\n" + ws + "\n"},
		{"the environment is what was declared", "bash", `{"command":"cat /proc/self/environ | tr '\\0' '\\n' | grep -vE '^(PWD|SHLVL|_|OLDPWD)=' | sort"}`, "DECLARED=yes\nPATH=/usr/bin:/bin\n"},
		{"no descriptor is inherited, whoever left it open", "bash", `{"command":"ls /proc/self/fd | wc -l"}`, "4\n"},
		{"no path leads out", "read", `{"path":"/etc/passwd"}`, "/etc/passwd is outside the workspace"},
	} {
		if res := call(t, p, ws, tc.tool, tc.args); !strings.HasPrefix(res.Text, tc.want) {
			t.Errorf("%s: got %q, want %q", tc.reason, res.Text, tc.want)
		}
	}
}

func TestAFloodCostsLittleMemory(t *testing.T) {
	p := program(t).Start(t)
	ws := t.TempDir()
	start := time.Now()
	res := call(t, p, ws, "bash", `{"command":"yes 0123456789012345678901234567890123456789 | head -c 200000000"}`)
	took := time.Since(start)
	if len(res.Text) > 10<<20 || res.Dropped != 0 || !strings.Contains(res.Text, " bytes left out)\n") {
		t.Errorf("%d bytes of text, %d dropped", len(res.Text), res.Dropped)
	}
	peak := call(t, p, ws, "bash", `{"command":"awk '/VmHWM/{print $2}' /proc/$PPID/status"}`)
	kb, err := strconv.Atoi(strings.TrimSpace(peak.Text))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("200 MB in %s, peak of the program %d kB", took.Round(time.Millisecond), kb)
	if kb > 192<<10 {
		t.Errorf("the program took %d kB", kb)
	}
}

func TestProgressComesWhileTheCommandRuns(t *testing.T) {
	p := program(t).Start(t)
	ws := t.TempDir()
	var seen []string
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// The command goes on only when somebody has seen that it waits.
	res, err := p.Call(ctx, host.CallRequest{Tool: "bash", Args: json.RawMessage(`{"command":"echo waiting; while [ ! -e go ]; do sleep 0.02; done; echo done"}`), Workspace: ws}, func(e host.Event) {
		if e.Progress != "" {
			seen = append(seen, e.Progress)
			if err := os.WriteFile(filepath.Join(ws, "go"), nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil || res.Text != "waiting\ndone\n" || len(seen) == 0 || seen[0] != "waiting\n" {
		t.Errorf("got %+v, %v, progress %q", res, err, seen)
	}
}

func TestATimeoutBringsTheOutputSoFar(t *testing.T) {
	p := program(t).Start(t)
	res, err := p.Call(t.Context(), host.CallRequest{Tool: "bash", Args: json.RawMessage(`{"command":"echo so far; sleep 60"}`), Workspace: t.TempDir(), Timeout: 4 * time.Second}, func(host.Event) {})
	if err != nil || res.Code != "timeout" || !strings.HasPrefix(res.Text, "so far\n[timed out after ") {
		t.Errorf("got %+v, %v", res, err)
	}
}
