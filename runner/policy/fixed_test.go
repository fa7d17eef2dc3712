package policy

import (
	"strings"
	"testing"
)

func TestWhatNobodyMayEditIsFixed(t *testing.T) {
	for name, tc := range map[string]struct{ reason, policy, want string }{
		"list":        {"", "permissions: [{permission: edit, pattern: 'LICENSE', action: deny}]", "LICENSE"},
		"asked":       {"a person may allow it", "permissions: [{permission: edit, pattern: 'LICENSE', action: ask}]", ""},
		"read":        {"reading is another matter", "permissions: [{permission: read, pattern: 'LICENSE', action: deny}]", ""},
		"every file":  {"what holds for each file says nothing of programs", "permissions: [{permission: edit, action: deny}]", ""},
		"all but one": {"", "permissions: [{permission: edit, action: deny}, {permission: edit, pattern: 'docs/*', action: allow}]", "LICENSE a.go"},
		"rule":        {"", "rules: [{name: a, when: 'paths.exists(p, p.op != \"read\" && p.clean.endsWith(\"LICENSE\"))', action: deny}]", "LICENSE"},
		"of edit":     {"", "rules: [{name: a, match: {tools: [edit]}, when: 'call.args.path.endsWith(\".go\")', action: deny}]", "a.go"},
		"of bash":     {"edit may change it", "rules: [{name: a, match: {tools: [bash]}, when: 'paths.exists(p, p.clean.endsWith(\"LICENSE\"))', action: deny}]", ""},
		"of content":  {"it is not known for a program", "rules: [{name: a, match: {tools: [edit]}, when: 'has(call.args.newString) && call.args.newString.contains(\"x\")', action: deny}]", ""},
	} {
		e := engine(t, tc.policy)
		put(t, e.context.Workspace.Root, "LICENSE", "a.go", "docs/a.md")
		got, err := e.Fixed(t.Context(), []string{"LICENSE", "a.go", "docs/a.md"})
		if err != nil || strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %s: got %q, %v; want %q", name, tc.reason, got, err, tc.want)
		}
	}
}
