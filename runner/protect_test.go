package runner

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/runner/misuse"
)

// A tool whose sandbox cannot be built as its manifest says does not run: not in
// another sandbox, and not without one.
func TestMountThatIsNotThereEndsTheRun(t *testing.T) {
	tool := "apiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: touch}\nspec:\n  description: x\n  parameters: {type: object}\n  risk: R0\n" +
		"  isolation: {mounts: [{path: ./gone}]}\n  source:\n    exec: {command: [\"./touch.sh\"]}\n"
	libexec := t.TempDir()
	t.Setenv("AGENTCTL_LIBEXEC", libexec)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", libexec, "../cmd/agentctl-sandbox")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := newPlace(t, agent("tools: [{name: touch}]", "- calls: [{tool: touch}]\n- say: done\n", tool), nil)
	write(t, filepath.Join(p.manifests, "touch.sh"), "#!/bin/sh\ntouch ran\n")
	if err := os.Chmod(filepath.Join(p.manifests, "touch.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	out := p.run(t, func(o *RunOptions) { o.AllowUnsandboxed = false })
	want(t, out, reason.IsolationUnavailable)
	if n := len(out.Result().ToolCalls); n != 0 {
		t.Errorf("%d calls were made", n)
	}
	f := out.Run.Finished
	if out.Run.Started.Isolation != "Sandbox" {
		t.Skipf("this host gives no sandbox: %s", f.Message)
	}
	if !strings.Contains(f.Message, `tool "touch": mount `) || !strings.Contains(f.Hint, "spec.isolation.mounts") {
		t.Errorf("the error says %q, the hint %q", f.Message, f.Hint)
	}
}

func TestRunAtHomeBeginsNothing(t *testing.T) {
	p := newPlace(t, agent("tools: []", "- say: done\n"), nil)
	t.Setenv("HOME", p.workspace)
	for name, o := range map[string]RunOptions{"a copy": p.options(), "in place": p.options(func(o *RunOptions) { o.InPlace = true })} {
		_, err := Run(t.Context(), o)
		if u, ok := errors.AsType[*misuse.Error](err); !ok || !strings.Contains(u.Error(), "is the home folder") || !strings.Contains(u.Hint, "--workspace") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if runs, err := os.ReadDir(filepath.Join(p.state, "runs")); err == nil && len(runs) > 0 {
		t.Errorf("a run was begun: %v", runs)
	}
}
