package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/connect"
	"agentctl.dev/agentctl/runner/plan"
)

// TestARunIsHeldToItsPins gives a run what its tool was found to be, and then
// what it was not: with parameters in the manifest the call is refused, without
// any the run ends before a model is told of a tool that nobody has seen.
func TestARunIsHeldToItsPins(t *testing.T) {
	exe := filepath.Join(os.Getenv("AGENTCTL_LIBEXEC"), "agentctl-tools")
	plugin := func(parameters string) string {
		return "apiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: look}\nspec:\n  risk: R0\n" + parameters +
			"  source: {plugin: {command: [\"" + exe + "\"], tool: read}}\n"
	}
	declared := "  parameters: {type: object, properties: {path: {type: string}}}\n"
	facts, err := connect.Probe(t.Context(), connect.ProbeOptions{State: t.TempDir(), Tool: &v1alpha1.Tool{Spec: v1alpha1.ToolSpec{
		CallName: "look", Isolation: v1alpha1.Isolation{Minimum: v1alpha1.IsolationNone},
		Source: v1alpha1.ToolSource{Plugin: &v1alpha1.PluginSource{Command: []string{exe}, Tool: "read"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		parameters, pin string
		why             reason.Reason
		want            string
	}{
		"known":            {declared, facts.Digest, reason.Completed, "1: one"},
		"changed":          {declared, "sha256:0", reason.Completed, "ToolChanged: "},
		"known, untyped":   {"", facts.Digest, reason.Completed, "1: one"},
		"changed, untyped": {"", "sha256:0", reason.ToolError, "ToolChanged: "},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, agent("tools: [{name: look}]", "- calls: [{tool: look, args: {path: a.txt}}]\n- say: done\n", plugin(c.parameters)), map[string]string{"a.txt": "one\n"})
			out := p.run(t, func(o *RunOptions) { o.Pins = map[string]string{"look": c.pin} })
			want(t, out, c.why)
			got := out.Run.Finished.Message
			if c.why == reason.Completed {
				got = text(t, out, 0)
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("it says %q, want %q", got, c.want)
			}
			r, err := plan.ReadRecord(out.Journal, out.Run)
			if err != nil || r.Pins["look"] != c.pin {
				t.Errorf("a resume would know the pins %v, %v", r, err)
			}
		})
	}
}
