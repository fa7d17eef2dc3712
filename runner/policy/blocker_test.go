package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
)

func TestBlockersAreAllThatKeepACallFromBeingAllowed(t *testing.T) {
	ways := []string{
		"rules: [{name: a, match: {tools: [bash]}, action: deny}, {name: b, match: {tools: [bash]}, when: \"cmd.commands.exists(c, c.name == 'rm')\", action: ask}]",
		"permissions: [{permission: bash, pattern: \"rm *\", action: deny}]\ndefault: ask",
		"rules: [{name: other, match: {tools: [read]}, action: deny}]",
	}
	tests := map[string]struct {
		reason, script string
		want           []string
	}{
		"all":  {"each of them would be the next to refuse", "rm x", []string{"deny p0/a", "deny p1/permissions", "ask p0/b", "ask p1/default"}},
		"some": {"what does not hold for the call is none", "ls", []string{"deny p0/a", "ask p1/default"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := engine(t, ways...)
			for range 2 { // to ask changes nothing
				var got []string
				for _, d := range e.Blockers(t.Context(), bash(tc.script)) {
					got = append(got, string(d.Action)+" "+d.Rule)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			}
			if d := decide(t, e, bash(tc.script)); d.Rule != "p0/a" {
				t.Errorf("the engine itself lost a rule: %s", d.Rule)
			}
		})
	}
	secrets := "rules: [{name: secret, when: \"paths.exists(p, p.secret)\", action: deny}]"
	for _, c := range []struct {
		call message.ToolCall
		want []string
	}{
		{bash("cat .env"), []string{"deny p0/secret", "deny p1/secret", "ask p2/default"}},
		{call("read", map[string]any{"path": ".env"}), []string{"deny p0/secret", "deny p1/secret", "ask p2/default"}},
	} {
		var got []string
		for _, d := range engine(t, secrets, secrets, "default: ask").Blockers(t.Context(), c.call) {
			got = append(got, string(d.Action)+" "+d.Rule)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: a rule that also holds for the file that is read is one blocker (-want +got):\n%s", c.call.Tool, diff)
		}
	}
	e := engine(t, "rules: [{name: a, match: {tools: [read]}, action: allow}]")
	if got := e.Blockers(t.Context(), call("read", map[string]any{"path": "x"})); len(got) != 0 {
		t.Errorf("an allowed call has blockers: %+v", got)
	}
	if got := e.Blockers(t.Context(), call("nothing", nil)); len(got) != 0 {
		t.Errorf("a tool that is not there has blockers: %+v", got)
	}
}
