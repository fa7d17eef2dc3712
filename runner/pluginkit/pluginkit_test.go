package pluginkit

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner"
)

// begun begins a tool and builds it where that is needed.
func begunTool(t *testing.T, language string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "my-tool")
	files, err := Init(InitOptions{Name: "my-tool", Language: language, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 3 {
		t.Errorf("files: %v", files)
	}
	return dir
}

func TestAToolInGoIsBegunBuiltAndTested(t *testing.T) {
	dir := begunTool(t, "go")
	// As it is, without anything of a server: the modules of others are in the cache.
	for _, args := range [][]string{{"vet", "./..."}, {"build", "-o", "bin/my-tool", "."}} {
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir, c.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "GOPROXY=off")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	report, err := Test(t.Context(), TestOptions{
		Program: Program{Command: []string{filepath.Join(dir, "bin/my-tool")}, Env: []string{"DECLARED=yes"}, Workspace: t.TempDir()},
		Good:    []Sample{{Tool: "my-tool", Args: json.RawMessage(`{"text":"a"}`)}},
		Slow:    []Sample{{Tool: "my-tool", Args: json.RawMessage(`{"text":"a","seconds":60}`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range report.Checks {
		if c.Outcome != "passed" {
			t.Errorf("%s %s: %s", c.Name, c.Outcome, c.Problem)
		}
	}
	if report.Passed != 19 {
		t.Errorf("%d passed", report.Passed)
	}
	t.Run("called", func(t *testing.T) {
		p := Program{Command: []string{filepath.Join(dir, "bin/my-tool")}, Workspace: dir}
		var shown []string
		answer, err := Call(t.Context(), CallOptions{
			Program: p, Tool: "my-tool", Args: json.RawMessage(`{"text":"to be or not","seconds":1}`), Progress: func(s string) { shown = append(shown, s) },
		})
		if err != nil || answer.Output != "4 words" || answer.Error != "" || answer.DurationMs < 1000 || len(shown) != 1 {
			t.Errorf("%+v, %v, progress %q", answer, err, shown)
		}
		answer, err = Call(t.Context(), CallOptions{Program: p, Tool: "my-tool", Args: json.RawMessage(`{"text":"a","seconds":60}`), Timeout: time.Millisecond})
		if err != nil || answer.Error != "timeout" {
			t.Errorf("%+v, %v", answer, err)
		}
		for _, name := range []string{"", "other"} {
			_, err := Call(t.Context(), CallOptions{Program: p, Tool: name})
			if u, ok := errors.AsType[*reason.UsageError](err); !ok || u.Hint != "it serves: my-tool" {
				t.Errorf("tool %q: %v", name, err)
			}
		}
	})
	t.Run("in the sandbox", func(t *testing.T) {
		libexec := t.TempDir()
		t.Setenv("AGENTCTL_LIBEXEC", libexec)
		build := exec.CommandContext(t.Context(), "go", "build", "-o", libexec, "../../cmd/agentctl-sandbox")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		report, err := Test(t.Context(), TestOptions{Program: Program{
			Command: []string{filepath.Join(dir, "bin/my-tool")}, Workspace: t.TempDir(), Isolation: "Sandbox",
		}})
		if reason.Of(err) == reason.IsolationUnavailable {
			t.Skipf("this host gives no sandbox: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range report.Checks {
			if c.Outcome == "failed" || c.Outcome == "skipped" && c.Name != "orphan processes" {
				t.Errorf("%s %s: %s", c.Name, c.Outcome, c.Problem)
			}
		}
	})
}

// A tool may also be built from the SDK of a clone, which may be in any folder.
func TestAToolInGoUsesTheSDKOfAClone(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "my clone")
	if err := os.CopyFS(filepath.Join(clone, "plugins", "sdk"), os.DirFS("../../plugins/sdk")); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "tool")
	files, err := Init(InitOptions{Name: "my-tool", Language: "go", Dir: dir, SDK: clone})
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(f, filepath.Join(dir, "sdk")) }) {
		t.Errorf("it has an SDK of its own: %v", files)
	}
	c := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "agentctl.dev/agentctl/plugins/sdk")
	c.Dir, c.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "GOPROXY=off")
	out, err := c.CombinedOutput()
	if want := filepath.Join(clone, "plugins", "sdk"); err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("%v: %s, want %s", err, out, want)
	}
}

func TestAToolInShellIsBegunCalledAndTested(t *testing.T) {
	if _, err := exec.LookPath("jq"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("missing: jq; .ci/plugins installs it")
		}
		t.Skip("missing: jq; .ci/plugins installs it")
	}
	dir := begunTool(t, "shell")
	p := Program{Command: []string{filepath.Join(dir, "my-tool")}, Exec: true, Workspace: dir}
	report, err := Test(t.Context(), TestOptions{
		Program: p, Good: []Sample{{Args: json.RawMessage(`{"text":"a"}`)}}, Slow: []Sample{{Args: json.RawMessage(`{"text":"a","seconds":60}`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range report.Checks {
		if c.Outcome != "passed" {
			t.Errorf("%s %s: %s", c.Name, c.Outcome, c.Problem)
		}
	}
	answer, err := Call(t.Context(), CallOptions{Program: p, Args: json.RawMessage(`{"text":"to be or not"}`)})
	if err != nil || answer.Output != "4 words\n" || answer.Error != "" || *answer.ExitCode != 0 {
		t.Errorf("%+v, %v", answer, err)
	}
	answer, err = Call(t.Context(), CallOptions{Program: p})
	if err != nil || answer.Error != "tool" || *answer.ExitCode != 2 {
		t.Errorf("%+v, %v", answer, err)
	}
}

func TestBegunToolsAreValidManifests(t *testing.T) {
	for _, language := range Languages() {
		dir := begunTool(t, language)
		report, err := runner.Validate(t.Context(), runner.ValidateOptions{Paths: []string{filepath.Join(dir, "tool.yaml")}})
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := report.Write(&b, 10); err != nil || report.HasErrors() || report.Documents != 1 {
			t.Errorf("%s: %d documents, %v\n%s", language, report.Documents, err, b.String())
		}
	}
}

func TestWhatCannotBeBegunOrCalledIsUsage(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	begin := func(o InitOptions) func(context.Context) error {
		return func(context.Context) error { _, err := Init(o); return err }
	}
	call := func(o CallOptions) func(context.Context) error {
		return func(ctx context.Context) error { _, err := Call(ctx, o); return err }
	}
	sh := []string{"/bin/sh"}
	for want, do := range map[string]func(context.Context) error{
		"cannot be a tool's name":     begin(InitOptions{Name: "../x", Language: "go"}),
		"no example in \"rust\"":      begin(InitOptions{Name: "x", Language: "rust"}),
		"is not empty":                begin(InitOptions{Name: "x", Language: "shell", Dir: full}),
		"not a directory":             begin(InitOptions{Name: "x", Language: "shell", Dir: filepath.Join(full, "mine")}),
		"only a tool in Go":           begin(InitOptions{Name: "x", Language: "node", SDK: ".", Dir: filepath.Join(full, "n")}),
		"does not hold the source":    begin(InitOptions{Name: "x", Language: "go", SDK: full, Dir: filepath.Join(full, "n")}),
		"no program is named":         call(CallOptions{}),
		"not of the form NAME=value":  call(CallOptions{Program: Program{Command: sh, Env: []string{"=x"}, Workspace: full}}),
		"tried at None or Sandbox":    call(CallOptions{Program: Program{Command: sh, Workspace: full, Isolation: "Container"}}),
		"mounts are for isolation":    call(CallOptions{Program: Program{Command: sh, Workspace: full, Mounts: []string{"/usr"}}}),
		"is not a folder":             call(CallOptions{Program: Program{Command: sh, Workspace: filepath.Join(full, "mine")}}),
		"arguments are no JSON objec": call(CallOptions{Program: Program{Command: sh, Workspace: full}, Args: json.RawMessage(`[]`)}),
	} {
		err := do(t.Context())
		if _, ok := errors.AsType[*reason.UsageError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want usage with %q", err, want)
		}
	}
	for program, want := range map[string]string{"/bin/true": "--exec", filepath.Join(full, "gone"): "build the program"} {
		err := call(CallOptions{Program: Program{Command: []string{program}, Workspace: full}})(t.Context())
		if hint := reason.Hint(err); !strings.Contains(hint, want) {
			t.Errorf("%s: %v, hint %q", program, err, hint)
		}
	}
	if _, err := Test(t.Context(), TestOptions{}); err == nil {
		t.Error("a test of nothing")
	}
}

func TestAProgramThatIsNoPluginCannotBeCalled(t *testing.T) {
	for _, exec := range []bool{true, false} {
		_, err := Call(t.Context(), CallOptions{
			Program: Program{Command: []string{"/no/such/program"}, Workspace: t.TempDir(), Exec: exec}, Tool: "x",
		})
		if reason.Of(err) != reason.ToolError || !strings.Contains(err.Error(), "no such file") || reason.Hint(err) == "" {
			t.Errorf("exec %v: %v", exec, err)
		}
	}
}
