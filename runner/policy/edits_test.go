package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/v1alpha1"
)

func TestARuleThatOverlooksEditsIsWarnedOf(t *testing.T) {
	tools := []Tool{
		{
			Name: "edit", Builtin: "edit", Source: "builtin", Risk: "R1", Effects: []v1alpha1.Effect{"Write"}, Category: "Edit", Digest: "d1",
			Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"oldString":{"type":"string"},"newString":{"type":"string"},` +
				`"edits":{"type":"array","items":{"type":"object","properties":{"oldString":{"type":"string"},"newString":{"type":"string"}},"required":["oldString","newString"]}}},"required":["path"]}`),
		},
		{Name: "write", Builtin: "write", Source: "builtin", Risk: "R1", Effects: []v1alpha1.Effect{"Write"}, Category: "Edit", Schema: schema("path", "content"), Digest: "d2"},
	}
	for name, tc := range map[string]struct {
		rule string
		want bool
	}{
		"guarded":       {`{name: a, match: {builtins: [edit]}, when: "has(call.args.newString) && call.args.newString == 'x'", action: deny}`, true},
		"unguarded":     {`{name: a, match: {builtins: [edit]}, when: "call.args.newString == 'x'", action: ask}`, true},
		"what goes":     {`{name: a, when: "has(call.args.oldString) && call.args.oldString == 'x'", action: deny}`, true},
		"both":          {`{name: a, match: {builtins: [edit]}, when: "has(call.args.newString) && call.args.newString == 'x' || has(call.args.edits) && call.args.edits.exists(e, e.newString == 'x')", action: deny}`, false},
		"an allow":      {`{name: a, match: {builtins: [edit]}, when: "has(call.args.newString) && call.args.newString == 'x'", action: allow}`, false},
		"another field": {`{name: a, match: {builtins: [edit]}, when: "call.args.path == 'x'", action: deny}`, false},
		"another tool":  {`{name: a, match: {builtins: [write]}, when: "call.args.content == 'x'", action: deny}`, false},
		"no condition":  {`{name: a, match: {builtins: [edit]}, action: deny}`, false},
	} {
		_, problems := Compile(parse(t, "rules: ["+tc.rule+"]"), tools)
		got := false
		for _, p := range problems {
			if !p.Warning {
				t.Errorf("%s: %v", name, p)
			}
			got = got || strings.Contains(p.Message, "may have edits instead of") && p.Path == "spec.rules[0].when"
		}
		if got != tc.want {
			t.Errorf("%s: warned %v, want %v: %v", name, got, tc.want, problems)
		}
	}
}
