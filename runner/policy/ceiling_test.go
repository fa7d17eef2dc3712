package policy

import (
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
)

// under is an engine of one policy below ceilings of one policy each.
func under(t *testing.T, own string, ceilings ...string) *Engine {
	t.Helper()
	all := engine(t, append([]string{own}, ceilings...)...)
	c := all.context
	var compiled []*Compiled
	for i, text := range append([]string{own}, ceilings...) {
		p := compile(t, text)
		p.name = []string{"own", "c1", "c2", "c3"}[i]
		for _, rules := range p.rules {
			for _, r := range rules {
				r.id = p.name + "/" + r.spec.Name
			}
		}
		compiled = append(compiled, p)
	}
	for _, p := range compiled[1:] {
		c.Ceilings = append(c.Ceilings, Ceiling{Policies: []*Compiled{p}})
	}
	return NewEngine(compiled[:1], c)
}

func TestACeilingOnlyNarrows(t *testing.T) {
	const (
		allow     = `rules: [{name: all, match: {}, action: allow}]`
		deny      = `rules: [{name: stop, match: {tools: [bash]}, action: deny}]`
		ask       = `rules: [{name: may, match: {tools: [bash]}, action: ask}]`
		denyElse  = "rules: [{name: look, match: {tools: [read]}, action: allow}]\ndefault: deny"
		elsewhere = `rules: [{name: other, match: {tools: [write]}, action: deny}]`
		audit     = "mode: Audit\nrules: [{name: stop, match: {tools: [bash]}, action: deny}]"
		list      = `permissions: [{permission: bash, pattern: "*", action: deny}, {permission: bash, pattern: "git *", action: allow}]`
	)
	for name, c := range map[string]struct {
		reason   string
		own      string
		ceilings []string
		call     message.ToolCall
		want     message.Action
		rule     string
	}{
		"none":              {"nothing bounds it", allow, nil, bash("ls"), message.Allow, "own/all"},
		"silent":            {"a ceiling that does not speak of the call has no effect", allow, []string{elsewhere}, bash("ls"), message.Allow, "own/all"},
		"deny":              {"a deny holds below", allow, []string{deny}, bash("ls"), message.Deny, "c1/stop"},
		"ask":               {"so does a question", allow, []string{ask}, bash("ls"), message.Ask, "c1/may"},
		"allow gives none":  {"an allow of a ceiling lifts nothing", ask, []string{allow}, bash("ls"), message.Ask, "own/may"},
		"allow and risk":    {"nor what only the risk asks about", elsewhere, []string{allow}, bash("ls"), message.Ask, "default/byRisk"},
		"default of it":     {"an own allow does not beat the default of a ceiling", allow, []string{denyElse}, bash("ls"), message.Deny, "c1/default"},
		"allowed by it":     {"what that ceiling allows is left to the own policies", allow, []string{denyElse}, call("read", map[string]any{"path": "x"}), message.Allow, "own/all"},
		"second":            {"each ceiling is judged by itself: one's allow does not lift the other's default", allow, []string{allow, denyElse}, bash("ls"), message.Deny, "c2/default"},
		"own deny":          {"the own deny is told first", deny, []string{ask}, bash("ls"), message.Deny, "own/stop"},
		"audit":             {"a policy that does not enforce narrows nothing", allow, []string{audit}, bash("ls"), message.Allow, "own/all"},
		"list":              {"a list is a ceiling, too", allow, []string{list}, bash("rm x"), message.Deny, "c1/permissions"},
		"list allows":       {"and what it allows is left to the own policies", allow, []string{list}, bash("git log"), message.Allow, "own/all"},
		"wrapped in a list": {"in any spelling", allow, []string{list}, bash("git log; /bin/rm x"), message.Deny, "c1/permissions"},
	} {
		e := under(t, c.own, c.ceilings...)
		if d := decide(t, e, c.call); d.Action != c.want || d.Rule != c.rule {
			t.Errorf("%s: %s by %s, want %s by %s: %s", name, d.Action, d.Rule, c.want, c.rule, c.reason)
		}
	}
}

func TestACeilingHidesMasksAndTakesOut(t *testing.T) {
	e := under(t, `rules: [{name: all, match: {}, action: allow}]`,
		"rules:\n"+
			"- {name: no-write, match: {tools: [write]}, action: deny}\n"+
			"- {name: keys, match: {tools: [read]}, when: \"paths.exists(p, p.clean.endsWith('.pem'))\", action: deny}\n"+
			"- {name: results, match: {tools: [bash]}, \"on\": Result, when: \"result.text.contains('hunter')\", action: deny}\n")
	if hidden := e.HiddenTools(); len(hidden) != 1 || hidden[0] != "write" {
		t.Errorf("hidden %v", hidden)
	}
	if masked, err := e.Masked(t.Context(), []string{"a.txt", "a.pem"}); err != nil || len(masked) != 1 || masked[0] != "a.pem" {
		t.Errorf("masked %v, %v", masked, err)
	}
	if _, err := e.Review(t.Context(), bash("cat x"), &message.ToolResult{Text: "hunter2"}); err == nil || !strings.Contains(err.Error(), "c1/results") {
		t.Errorf("the result is shown: %v", err)
	}
	if err := e.Forbids(t.Context(), "a.pem"); err == nil {
		t.Error("the file may be attached")
	}
	blockers := e.Blockers(t.Context(), call("write", map[string]any{"path": "x", "content": "y"}))
	if len(blockers) != 1 || blockers[0].Rule != "c1/no-write" {
		t.Errorf("blockers %+v", blockers)
	}
}

// What a ceiling takes out of a call is judged again by the own policies: a call that
// means something else without it does not slip through.
func TestWhatACeilingLeavesIsJudgedAgain(t *testing.T) {
	own := "rules:\n- {name: all, match: {}, action: allow}\n" +
		"- {name: empty, match: {tools: [write]}, when: \"call.args.content != 'hello'\", action: deny}"
	const redact = `rules: [{name: body, match: {tools: [write]}, action: redact, redact: {fields: [content]}}]`
	hello := call("write", map[string]any{"path": "x", "content": "hello"})
	if d := decide(t, under(t, own), hello); d.Action != message.Allow {
		t.Fatalf("%s by %s", d.Action, d.Rule)
	}
	if d := decide(t, under(t, own, redact), hello); d.Action != message.Deny || d.Rule != "own/empty" {
		t.Errorf("%s by %s with %s", d.Action, d.Rule, d.Args)
	}
	d := decide(t, under(t, `rules: [{name: all, match: {}, action: allow}]`, redact), hello)
	if d.Action != message.Redact || strings.Contains(string(d.Args), "hello") || len(d.Args) == 0 {
		t.Errorf("%s by %s with %s", d.Action, d.Rule, d.Args)
	}
}

// Policies that nobody has chosen, as those of a repository, may only tighten.
func TestATighteningCeilingAllowsNothing(t *testing.T) {
	const ask = `rules: [{name: may, match: {tools: [bash]}, action: ask}]`
	tightening := func(own, brought string) *Engine {
		c := under(t, own, brought).context
		p := compile(t, own)
		c.Ceilings[0].Tightens = true
		return NewEngine([]*Compiled{p}, c)
	}
	open := `permissions: [{permission: "*", action: allow}, {permission: external_directory, pattern: /etc/*, action: allow}]`
	outside := call("read", map[string]any{"path": "/etc/hostname"})
	own := decide(t, tightening(open, `rules: [{name: other, match: {tools: [write]}, action: deny}]`), outside)
	if own.Action != message.Allow || len(own.Outside) != 1 {
		t.Fatalf("%s by %s, outside %v", own.Action, own.Rule, own.Outside)
	}
	for name, brought := range map[string]string{
		"a rule that allows":           `rules: [{name: all, match: {}, action: allow}]`,
		"a list that allows":           `permissions: [{permission: "*", action: allow}]`,
		"a rule that takes out a part": `rules: [{name: cut, match: {tools: [read]}, action: redact, redact: {fields: [limit]}}]`,
	} {
		if d := decide(t, tightening(open, brought), outside); d.Action == message.Deny || len(d.Outside) != 1 {
			t.Errorf("%s: %s by %s, outside %v", name, d.Action, d.Rule, d.Outside)
		}
		if d := decide(t, tightening(ask, brought), bash("ls")); d.Action != message.Ask || len(d.Always) == 0 {
			t.Errorf("%s: %s by %s, always %v", name, d.Action, d.Rule, d.Always)
		}
		if d := decide(t, tightening(`default: deny`, brought), bash("ls")); d.Action != message.Deny {
			t.Errorf("%s: %s by %s", name, d.Action, d.Rule)
		}
	}
	// An approval that is remembered would answer the question of another policy later.
	if d := decide(t, tightening(`rules: [{name: all, match: {}, action: allow}]`, ask), bash("ls")); d.Action != message.Ask || len(d.Always) > 0 || d.Once == "" {
		t.Errorf("%s by %s, always %v, once %q", d.Action, d.Rule, d.Always, d.Once)
	}
}
