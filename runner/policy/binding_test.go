package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
)

// binder returns an engine whose tools can be bound, in a folder with two files and a link.
func binder(t *testing.T, policy string, ceilings ...string) (*Engine, string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"f", "g"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("f", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	tools := testTools()
	for i := range tools {
		tools[i].Binds = tools[i].Name == "bash"
	}
	c := Context{Workspace: Workspace{Root: root}, Tools: tools}
	for _, text := range ceilings {
		c.Ceilings = append(c.Ceilings, Ceiling{Policies: []*Compiled{compile(t, text)}})
	}
	return NewEngine([]*Compiled{compile(t, policy)}, c), root
}

// described is a binding on one line, with paths relative to the folder.
func described(b *message.Binding, root string) string {
	if b == nil {
		return "unbound"
	}
	text := "starts " + strings.Join(b.Programs, " ")
	for _, p := range b.Paths {
		text += fmt.Sprintf(", %s %s", p.Op, strings.TrimPrefix(p.Path, root+"/"))
	}
	if b.Network {
		text += ", connects"
	}
	return text
}

const allowsAll = "permissions: [{permission: bash, pattern: '*', action: allow}, {permission: edit, pattern: '*', action: allow}, {permission: read, pattern: '*', action: allow}, {permission: bash, pattern: 'sudo *', action: deny}]"

func TestACallIsBoundToItsFacts(t *testing.T) {
	for name, tc := range map[string]struct{ reason, command, want string }{
		"reads":       {"a program that writes nothing", "cat f | wc -l", "starts cat wc"},
		"a redirect":  {"the shell writes the file itself", "cat f > out", "starts cat, write out"},
		"a writer":    {"touch writes nothing beside it", "touch f", "starts touch, write f"},
		"another":     {"sed may put another file in its place", "sed -i s/a/b/ f", "starts sed, replace f"},
		"a link":      {"what it leads to, or the link itself", "cat g > link", "starts cat, write f, write link"},
		"a removal":   {"", "rm f", "starts rm, write f, remove f"},
		"of a link":   {"rm removes the link, not what it leads to", "rm link", "starts rm, write f, write link, remove f, remove link"},
		"a rename":    {"", "mv f h", "starts mv, write h, rename h, write f, rename f, remove f"},
		"wrappers":    {"each program that starts another one", "timeout 5 env A=1 cat f", "starts timeout env cat"},
		"a pattern":   {"its matches, not the pattern", "rm g*", "starts rm, write g, remove g"},
		"by its path": {"", "/usr/bin/cat f", "starts /usr/bin/cat"},
		"git":         {"it has a program for each way to connect", "git ls-remote https://example.com/x", "starts git sh ssh git-remote-https git-remote-http, connects"},
		"dynamic":     {"nobody knows what it does", "cat $(cat f)", "unbound"},
		"opaque":      {"it may do anything", "nosuchprogram f", "unbound"},
	} {
		t.Run(name, func(t *testing.T) {
			e, root := binder(t, allowsAll)
			d := decide(t, e, bash(tc.command))
			if d.Action == message.Ask && tc.want == "unbound" {
				d.Action = message.Allow
			}
			if got := described(d.Binding, root); d.Action != message.Allow || got != tc.want {
				t.Errorf("%s: %s by %s, %s; want %s", tc.reason, d.Action, d.Rule, got, tc.want)
			}
		})
	}
}

func TestACallIsBoundWhereFactsWereAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, policy string
		ceilings       []string
		bound          bool
	}{
		"a default":                   {"nothing reads facts", "default: allow", nil, false},
		"a plain entry":               {"it allows whatever the command is", "permissions: [{permission: bash, action: allow}]", nil, false},
		"an entry":                    {"", "permissions: [{permission: bash, pattern: 'touch *', action: allow}, {permission: edit, action: allow}]", nil, true},
		"an entry that gives nothing": {"it was asked all the same", "default: allow\npermissions: [{permission: bash, pattern: 'rm *', action: deny}]", nil, true},
		"an entry about paths":        {"", "default: allow\npermissions: [{permission: edit, pattern: '*.key', action: deny}]", nil, true},
		"a rule over commands":        {"", "default: allow\nrules: [{name: a, match: {tools: [bash]}, when: 'cmd.commands.exists(c, c.name == \"rm\")', action: deny}]", nil, true},
		"a rule over paths":           {"", "default: allow\nrules: [{name: a, when: 'paths.exists(p, !p.inWorkspace)', action: deny}]", nil, true},
		"a rule over hosts":           {"", "default: allow\nrules: [{name: a, match: {tools: [bash]}, when: 'net.hosts.exists(h, h == \"x\")', action: deny}]", nil, true},
		"a rule over a variable":      {"", "default: allow\nvariables: [{name: v, expression: 'paths.exists(p, p.secret)'}]\nrules: [{name: a, match: {tools: [bash]}, when: variables.v, action: deny}]", nil, true},
		"a rule about others":         {"", "default: allow\nrules: [{name: a, match: {tools: [bash]}, when: 'run.interactive', action: deny}]", nil, false},
		"of another tool":             {"it is never asked", "default: allow\nrules: [{name: a, match: {tools: [write]}, when: 'paths.exists(p, p.secret)', action: deny}]", nil, false},
		"one that asks":               {"a person who approves once binds nothing", "rules: [{name: a, when: 'paths.exists(p, p.inWorkspace)', action: ask}]", nil, false},
		"a policy that warns":         {"it decides nothing", "mode: Warn\nrules: [{name: a, match: {tools: [bash]}, when: 'paths.exists(p, p.inWorkspace)', action: deny}]\ndefault: allow", nil, false},
		"a ceiling":                   {"it judges the call, too", "default: allow", []string{"default: allow\nrules: [{name: a, match: {tools: [bash]}, when: 'paths.exists(p, !p.inWorkspace)', action: deny}]"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			e, root := binder(t, tc.policy, tc.ceilings...)
			d := decide(t, e, bash("touch f"))
			if got := d.Binding != nil; got != tc.bound || d.Action == message.Deny {
				t.Errorf("%s: %s by %s: %s", tc.reason, d.Action, d.Rule, described(d.Binding, root))
			}
			again := bash("touch f")
			again.Again = true
			if diff := cmp.Diff(d, decide(t, e, again)); diff != "" {
				t.Errorf("the second decision differs: %s", diff)
			}
		})
	}
}
