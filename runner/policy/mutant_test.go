package policy

import (
	"slices"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/expr"
	"github.com/google/go-cmp/cmp"
)

const mutable = `
permissions:
- {permission: bash, pattern: "*", action: ask}
- {permission: bash, pattern: "ls *", action: allow}
rules:
- {name: outside, match: {tools: [write]}, when: "paths.exists(p, !p.inWorkspace)", action: deny}
- {name: send, match: {tools: [send]}, action: ask}
- {name: failed, "on": Result, when: "result.exitCode == 1", action: deny}
default: deny
`

func TestMutantsAreTheMistakesOfAnAuthor(t *testing.T) {
	var got []string
	for m := range compile(t, mutable).Mutants() {
		got = append(got, m.Path+": "+m.Change)
	}
	want := []string{
		"spec.rules[0]: rule outside dropped",
		"spec.rules[0].action: rule outside: allow instead of deny",
		"spec.rules[0].when: rule outside: when negated",
		"spec.rules[1]: rule send dropped",
		"spec.rules[1].action: rule send: allow instead of ask",
		"spec.rules[2]: rule failed dropped",
		"spec.rules[2].action: rule failed: allow instead of deny",
		"spec.rules[2].when: rule failed: when negated",
		`spec.permissions[0]: permission bash "*" dropped`,
		`spec.permissions[0].action: permission bash "*": allow instead of ask`,
		`spec.permissions[1]: permission bash "ls *" dropped`,
		`spec.permissions[1].action: permission bash "ls *": deny instead of allow`,
		"spec.default: default allow instead of deny",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMutantsDecideOtherwiseAndLeaveThePolicyAsItIs(t *testing.T) {
	calls := map[string]struct {
		call message.ToolCall
		want message.Action
	}{
		"spec.rules[0]":              {call("write", map[string]any{"path": "/etc/x", "content": ""}), message.Deny}, // by default
		"spec.rules[0].action":       {call("write", map[string]any{"path": "/etc/x", "content": ""}), message.Allow},
		"spec.rules[0].when":         {call("write", map[string]any{"path": "x", "content": ""}), message.Deny},
		"spec.rules[1]":              {call("send", map[string]any{"to": "x"}), message.Deny},
		"spec.permissions[0].action": {bash("rm x"), message.Allow},
		"spec.permissions[1]":        {bash("ls x"), message.Ask},
		"spec.permissions[1].action": {bash("ls x"), message.Deny},
		"spec.default":               {call("read", map[string]any{"path": "x"}), message.Allow},
	}
	c := compile(t, mutable)
	about := Context{Workspace: Workspace{Root: t.TempDir()}, Tools: testTools()}
	for m := range c.Mutants() {
		want, ok := calls[m.Path]
		if !ok {
			continue
		}
		if d := decide(t, NewEngine([]*Compiled{m.Policy}, about), want.call); d.Action != want.want {
			t.Errorf("%s: got %s by %s, want %s", m.Change, d.Action, d.Rule, want.want)
		}
		if !m.Touches(&Tool{Name: want.call.Tool}) {
			t.Errorf("%s does not touch %s", m.Change, want.call.Tool)
		}
		if m.Path == "spec.rules[1]" && m.Touches(&Tool{Name: "write"}) {
			t.Errorf("%s touches write", m.Change)
		}
	}
	if d := decide(t, NewEngine([]*Compiled{c}, about), bash("ls x")); d.Action != message.Allow {
		t.Errorf("the policy itself has changed: %s by %s", d.Action, d.Rule)
	}
}

func TestARuleTraceHasTheRulesThatADenyOverrides(t *testing.T) {
	c := compile(t, `
permissions:
- {permission: bash, pattern: "*", action: ask}
- {permission: bash, pattern: "ls *", action: allow}
- {permission: edit, pattern: "*", action: allow}
rules:
- {name: all, match: {tools: [bash]}, action: deny}
- {name: removes, match: {tools: [bash]}, when: "cmd.commands.exists(c, c.name == 'rm')", action: ask}
- {name: lists, when: "cmd.commands.exists(c, c.name == 'ls')", action: allow}
- {name: wild, match: {tools: [bash]}, when: "1 / (cmd.commands.size() - 2) > 0", action: ask}
- {name: failed, "on": Result, when: "result.exitCode == 1", action: deny}`)
	about := Context{Workspace: Workspace{Root: t.TempDir()}, Tools: testTools()}
	one := 1
	s, err := c.Trace(t.Context(), about, bash("ls; rm x"), &message.ToolResult{ExitCode: &one})
	if err != nil {
		t.Fatal(err)
	}
	got := make([]expr.Truth, 5)
	failures := 0
	for _, a := range s.Answers {
		got[a.Rule] = a.Truth
		if a.Err != nil {
			failures++
		}
	}
	if want := []expr.Truth{expr.True, expr.True, expr.True, expr.False, expr.True}; !slices.Equal(got, want) || failures != 1 {
		t.Errorf("got %v with %d failures, want %v with 1", got, failures, want)
	}
	if want := []int{0, 1, 2}; !slices.Equal(s.Entries, want) { // to remove x is to edit it
		t.Errorf("entries %v have won, want %v", s.Entries, want)
	}
	if s, err = c.Trace(t.Context(), about, bash("ls"), nil); err != nil || len(s.Answers) != 4 {
		t.Errorf("got %d answers (%v) without a result, want 4", len(s.Answers), err)
	}
}

func TestAnAuditPolicyCanBeJudgedAsIfItCounted(t *testing.T) {
	c := compile(t, "mode: Audit\nrules: [{name: all, action: deny}]")
	about := Context{Workspace: Workspace{Root: t.TempDir()}, Tools: testTools()}
	if d := decide(t, NewEngine([]*Compiled{c.Enforced()}, about), bash("ls")); d.Action != message.Deny {
		t.Errorf("got %s by %s", d.Action, d.Rule)
	}
}
