package runner

import (
	"os"
	"path/filepath"
	"testing"

	"agentctl.dev/agentctl/api/reason"
)

// What the policy denies to edit cannot be changed by a program either, whatever it was
// judged to do: it is read-only in its sandbox.
func TestWhatNobodyMayEditIsReadOnlyForPrograms(t *testing.T) {
	buildSandbox(t)
	tools := "apiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: change}\nspec:\n  description: x\n  parameters: {type: object}\n  risk: R1\n  workspaceAccess: ReadWrite\n" +
		"  source:\n    exec: {command: [/bin/sh, -c, \"echo evil >> LICENSE; rm -f LICENSE; mv third away; echo evil >> third/deep/b.c; echo new > third/n; echo fine >> a.go; echo fine > new.go; ls\"]}\n---\n" +
		policyOf("rules:\n- {name: all, match: {tools: [change]}, action: allow}\n- {name: licence, when: \"paths.exists(p, p.op != 'read' && p.clean.endsWith('/LICENSE'))\", action: deny}\n"+
			"permissions: [{permission: edit, pattern: 'third/*', action: deny}]\n")
	files := map[string]string{"LICENSE": "mine\n", "third/a.c": "theirs\n", "third/deep/b.c": "theirs\n", "a.go": "package a\n"}
	p := newPlace(t, agent("tools: [{name: change}]\npolicyRefs: [{name: p}]", "- calls: [{tool: change}]\n- say: done\n", tools), files)
	out := p.run(t, func(o *RunOptions) { o.AllowUnsandboxed = false })
	if out.Run.Started.Isolation != "Sandbox" {
		t.Skipf("this host gives no sandbox: %s", out.Run.Finished.Message)
	}
	want(t, out, reason.Completed)
	files["a.go"] += "fine\n"
	files["new.go"] = "fine\n"
	for name, text := range files {
		if got, err := os.ReadFile(filepath.Join(out.Run.Started.Workspace.Dir, name)); err != nil || string(got) != text {
			t.Errorf("%s is %q, %v; want %q", name, got, err, text)
		}
	}
	for _, name := range []string{"away", "third/n"} {
		if _, err := os.Lstat(filepath.Join(out.Run.Started.Workspace.Dir, name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}
