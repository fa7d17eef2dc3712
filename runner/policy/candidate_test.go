package policy

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
)

func TestCandidatesSayWhatEachOfThemSaid(t *testing.T) {
	texts := []string{`
permissions: [{permission: bash, pattern: "*", action: ask}, {permission: bash, pattern: "cat *", action: allow}]
default: deny
rules:
- {name: never, match: {tools: [bash]}, when: "cmd.commands.exists(c, c.name == 'rm')", action: deny}
- {name: other, match: {tools: [write]}, action: deny}
- {name: fails, match: {tools: [bash]}, when: "1 / call.args.timeout == 1", action: allow}
- {name: env, match: {tools: [read]}, when: "paths.exists(p, p.raw == '.env')", action: deny}`, "mode: Audit\nrules: [{name: seen, match: {tools: [bash]}, action: ask}]"}
	e := engine(t, texts...)
	var policies []*Compiled
	for i, text := range texts {
		c := compile(t, text)
		c.name = fmt.Sprintf("p%d", i)
		policies = append(policies, c)
	}
	got := func(c message.ToolCall) []string {
		all, err := e.Candidates(t.Context(), policies, c)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, x := range all {
			lines = append(lines, fmt.Sprintf("%s %s %s %s %s", x.Truth, x.Action, x.Path, x.Rule, x.Mode))
		}
		return lines
	}
	want := []string{
		"true allow spec.permissions[1] permissions Enforce", "false deny spec.rules[0] never Enforce", "error allow spec.rules[2] fails Enforce",
		"true deny spec.rules[3] env Enforce", "true deny spec.default default Enforce", "true ask spec.rules[0] seen Audit",
	}
	if diff := cmp.Diff(want, got(call("bash", map[string]any{"command": "cat .env", "timeout": 0}))); diff != "" {
		t.Errorf("a rule about reading counts where another tool reads (-want +got):\n%s", diff)
	}
	if d := decide(t, e, call("bash", map[string]any{"command": "cat x", "timeout": 1})); d.Rule != "p0/fails" {
		t.Errorf("the engine decides otherwise after it was asked: %+v", d)
	}
	if got := got(call("nothing", nil)); len(got) != 0 {
		t.Errorf("a tool that is not there has candidates: %v", got)
	}
}
