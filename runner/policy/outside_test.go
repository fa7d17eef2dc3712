package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
)

func TestPathsOutsideThatADecisionOpens(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "a.txt", "d/b.txt", "other/c.txt")
	if err := os.Symlink(dir+"/other", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	entries := func(more string) string {
		return fmt.Sprintf("permissions:\n- {permission: '*', action: allow}\n- {permission: external_directory, pattern: '%[1]s/a.txt', action: allow}\n- {permission: external_directory, pattern: '%[1]s/d*', action: allow}\n%s", dir, more)
	}
	rule := func(match, when string) string {
		return fmt.Sprintf("default: deny\nrules: [{name: a, action: allow, match: {%s}, when: %q}]", match, when)
	}
	path := func(tool, path string) message.ToolCall {
		return call(tool, map[string]any{"path": dir + path, "pattern": "*"})
	}
	in := func(workdir, script string) message.ToolCall {
		return call("bash", map[string]any{"command": script, "workdir": dir + workdir})
	}
	only := func(name string, writable bool) []message.OutsidePath {
		return []message.OutsidePath{{Name: dir + name, Real: dir + name, Writable: writable}}
	}
	tests := map[string]struct {
		reason, policy string
		call           message.ToolCall
		action         message.Action
		want           []message.OutsidePath
	}{
		"an entry":                    {"it names the path", entries(""), path("read", "/a.txt"), message.Allow, only("/a.txt", false)},
		"an entry, for a write":       {"'*' allows edit", entries(""), path("write", "/a.txt"), message.Allow, only("/a.txt", true)},
		"no entry for a write":        {"reading alone is allowed by name", fmt.Sprintf("default: allow\npermissions: [{permission: external_directory, pattern: '%s/*', action: allow}]", dir), path("write", "/a.txt"), message.Allow, nil},
		"beside an entry":             {"a person is asked", entries(""), path("read", "/other/c.txt"), message.Ask, only("/other/c.txt", false)},
		"denied":                      {"", entries("- {permission: read, pattern: '*.txt', action: deny}"), path("read", "/a.txt"), message.Deny, nil},
		"through a link":              {"an allow must hold for where it leads", entries(fmt.Sprintf("- {permission: external_directory, pattern: '%s/link/*', action: allow}", dir)), path("read", "/link/c.txt"), message.Ask, []message.OutsidePath{{Name: dir + "/link/c.txt", Real: dir + "/other/c.txt"}}},
		"byRisk":                      {"a default opens nothing", "default: byRisk", path("read", "/a.txt"), message.Allow, nil},
		"default allow":               {"a default opens nothing", "default: allow", path("write", "/a.txt"), message.Allow, nil},
		"a rule without a condition":  {"it speaks of the tool", "rules: [{name: a, action: allow, match: {tools: [read]}}]", path("read", "/a.txt"), message.Allow, nil},
		"a rule about something else": {"it speaks of the tool", rule("tools: [read]", "agent.name != ''"), path("read", "/a.txt"), message.Allow, nil},
		"a rule about the path":       {"", rule("tools: [read]", "paths.all(p, p.real.startsWith('"+dir+"/'))"), path("read", "/a.txt"), message.Allow, only("/a.txt", false)},
		"a rule about the argument":   {"", rule("tools: [write]", "call.args.path == '"+dir+"/a.txt'"), path("write", "/a.txt"), message.Allow, only("/a.txt", true)},
		"a rule about one of several": {"each path must be allowed by itself", "rules: [{name: a, action: allow, when: \"paths.exists(p, p.real == '" + dir + "/d')\"}]", in("/d", "cat "+dir+"/a.txt"), message.Allow, only("/d", false)},
		"a workdir":                   {"", entries(""), in("/d", "cat b.txt"), message.Allow, []message.OutsidePath{{Name: dir + "/d", Real: dir + "/d"}, {Name: dir + "/d/b.txt", Real: dir + "/d/b.txt"}}},
		"a workdir that is asked for": {"a person sees all of it", "rules: [{name: a, action: ask}]", in("/other", "true"), message.Ask, only("/other", false)},
		"in the workspace":            {"", entries(""), call("read", map[string]any{"path": "x"}), message.Allow, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := decide(t, engine(t, tc.policy), tc.call)
			if d.Action != tc.action {
				t.Errorf("%s: %s by %s: %s", tc.reason, d.Action, d.Rule, d.Message)
			}
			if diff := cmp.Diff(tc.want, d.Outside); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A script that is allowed because a sandbox holds it gets nothing that would take
// away the reason.
func TestWhatASandboxHoldsIsNotOpened(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a.txt")
	for _, policy := range []string{"default: byRisk", fmt.Sprintf("permissions: [{permission: external_directory, pattern: '%s/*', action: allow}]", dir)} {
		e := engine(t, policy)
		e.tools["bash"].tool.Contained = true
		d := decide(t, e, bash("rm -rf "+dir+"/a.txt"))
		if d.Action != message.Allow || len(d.Outside) > 0 && d.Outside[0].Writable {
			t.Errorf("%s: %s by %s, opens %v", policy, d.Action, d.Rule, d.Outside)
		}
	}
}

func TestASearchOutsideShowsWhatItsFolderWasApprovedFor(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "a.txt", ".env", "no.txt")
	policy := fmt.Sprintf("permissions:\n- {permission: '*', action: allow}\n- {permission: external_directory, pattern: '%[1]s*', action: ask}\n- {permission: read, pattern: '*/no.txt', action: deny}\n", dir)
	got, err := engine(t, policy).Unreadable(t.Context(), call("grep", map[string]any{"pattern": "x", "path": dir}), []string{dir + "/a.txt", dir + "/.env", dir + "/no.txt"})
	if diff := cmp.Diff([]string{dir + "/.env", dir + "/no.txt"}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
