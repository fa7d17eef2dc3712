package policy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/message"
)

// Tools that have an argument alike share a program; that must not hide what is
// wrong for one of them, nor change what is read at run time.
func TestSharedProgramsAreCheckedForEachTool(t *testing.T) {
	tools := []Tool{
		{Name: "a", Source: "exec", Risk: "R0", Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"},"mode":{"type":"string","enum":["fast","slow"]},"o":{"type":"object","properties":{"k":{"type":"string"}}}}}`)},
		{Name: "b", Source: "exec", Risk: "R0", Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"},"mode":{"type":"string","enum":["quick"]},"o":{"type":"object","properties":{"k":{"type":"integer"}}}}}`)},
		{Name: "c", Source: "exec", Risk: "R0", Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"string"}}}`)},
		{Name: "d", Source: "exec", Risk: "R0", Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"},"z":{"type":"string"}}}`)},
	}
	mistakes := map[string]struct{ reason, match, when, want string }{
		"type":   {"x is a number for c", "[a, b, c]", "call.args.x.startsWith('q')", "(for tool c)"},
		"enum":   {"b has other modes", "[a, b]", "call.args.mode == 'fast'", "(for tool b)"},
		"object": {"k is a number for b", "[a, b]", "call.args.o.k.startsWith('q')", "(for tool b)"},
		"lacks":  {"d has no y", "[c, d]", "call.args.y == 'q'", "d has no argument y"},
		"none":   {"nothing is wrong", "[a, b, d]", "has(call.args.x) && call.args.x == 'q'", ""},
		"absent": {"x is in no list of required arguments", "[a, b, d]", "call.args.x == 'q'", "call.args.x may be absent"},
		"whole":  {"the arguments as a whole", "[a, b, d]", "has(call.args.x) && call.args == call.args", ""},
	}
	for name, tc := range mistakes {
		_, problems := Compile(parse(t, "rules: [{name: r, match: {tools: "+tc.match+"}, when: \""+tc.when+"\", action: deny}]"), tools)
		found := slices.ContainsFunc(problems, func(p Problem) bool { return strings.Contains(p.Message, tc.want) })
		if tc.want == "" && len(problems) > 0 || tc.want != "" && !found {
			t.Errorf("%s: %s: got %v", name, tc.reason, problems)
		}
	}
	c, _ := Compile(parse(t, "rules: [{name: r, match: {tools: [a, b, d]}, when: \"call.args.x == 'q'\", action: deny}]"), tools)
	e := NewEngine([]*Compiled{c}, Context{Agent: Agent{Name: "a"}, Workspace: Workspace{Root: t.TempDir()}, Tools: tools, Now: time.Now})
	for _, tool := range []string{"a", "b", "d"} {
		for value, want := range map[string]message.Action{"q": message.Deny, "r": message.Allow} {
			if d := decide(t, e, call(tool, map[string]any{"x": value})); d.Action != want {
				t.Errorf("%s with %s: got %s (%s), want %s", tool, value, d.Action, d.Message, want)
			}
		}
	}
}
