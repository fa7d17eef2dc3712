package policy

import (
	"sync"
	"testing"

	"agentctl.dev/agentctl/api/message"
)

func TestDecideIsSafeForManyGoroutines(t *testing.T) {
	e := engine(t, `
variables: [{name: many, expression: size(cmd.commands)}]
rules:
- {name: a, match: {tools: [bash]}, when: variables.many > 2 && agent.name == 'a', action: deny}
- {name: b, when: "has(session.calls.bash) && session.calls.bash > 100000", action: deny}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 30 {
				if d := decide(t, e, bash("a; b; c")); d.Action != message.Deny || d.Rule != "p0/a" {
					t.Errorf("got %s by %s", d.Action, d.Rule)
				}
				decide(t, e, bash("a; $x"))
				decide(t, e, call("read", map[string]any{"path": "x"}))
			}
		})
	}
	wg.Wait()
	if e.calls["bash"] != 480 || e.denials != 240 {
		t.Errorf("counted %d calls of bash and %d denials", e.calls["bash"], e.denials)
	}
}

func TestSessionCountsEarlierCalls(t *testing.T) {
	e := engine(t, `rules: [{name: often, match: {tools: [read]}, when: "has(session.calls.read) && session.calls.read >= 2", action: deny}]`)
	for i, want := range []message.Action{message.Allow, message.Allow, message.Deny} {
		if d := decide(t, e, call("read", map[string]any{"path": "x"})); d.Action != want {
			t.Errorf("call %d: got %s (%s), want %s", i, d.Action, d.Message, want)
		}
	}
}
