package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
	"agentctl.dev/agentctl/runner/policy/shell"
)

// grants writes grants as a test states them.
func written(grants []message.Grant) string {
	var out []string
	for _, g := range grants {
		if g.Tool != "" {
			out = append(out, g.Tool+" when "+g.When)
		} else {
			text := g.Permission + ": " + g.Pattern
			if g.Dir != "" {
				text += " in " + g.Dir
			}
			if g.Within != "" {
				text += " changing " + g.Within
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}

func TestAlwaysIsNarrow(t *testing.T) {
	tests := map[string]struct {
		reason string
		call   message.ToolCall
		want   string
		once   string
	}{
		"plain":         {"one word says what a plain tool is", bash("ls -la"), "bash: ls *", ""},
		"git":           {"git is many programs", bash("git commit -m x"), "bash: git commit -m *", ""},
		"git alone":     {"without a command there is nothing that may follow", bash("git"), "bash: git", ""},
		"git option":    {"an option that stands for the command is no word", bash("git -C sub status"), "", "no plain word"},
		"git config":    {"a setting decides what runs later", bash("git config core.pager x"), "", ""},
		"several":       {"each command counts", bash("ls && git status; ls -l"), "bash: ls *; bash: git status *", ""},
		"interpreter":   {"an interpreter runs anything", bash("python3.12 -c 'print(1)'"), "", ""},
		"node":          {"an interpreter without a script", bash("node --version"), "", ""},
		"shell":         {"a shell runs anything", bash("sh -c ls"), "", ""},
		"wrapper":       {"a wrapper starts something else", bash("sudo ls"), "", ""},
		"env":           {"an assignment changes what the command does", bash("FOO=1 ls"), "", "it sets FOO"},
		"xargs":         {"what xargs starts is given at run time", bash("ls | xargs rm"), "", ""},
		"dynamic":       {"what is not known cannot be remembered", bash("$CMD x"), "", "only the run can tell"},
		"redirect":      {"a redirection changes a file", bash("ls > list.txt"), "bash: ls * changing list.txt", ""},
		"redirect in":   {"what is read from is not remembered", bash("wc < list.txt"), "", "redirects"},
		"remove":        {"a file is removed in its folder", bash("rm src/a.go"), "bash: rm * changing src/*", ""},
		"remove root":   {"or by its name", bash("rm a"), "bash: rm * changing a", ""},
		"remove tree":   {"a folder by itself, with the options", bash("rm -rf src"), "bash: rm -rf * changing src; bash: rm -rf * changing src/*", ""},
		"remove all":    {"never the whole workspace", bash("rm -rf ."), "", "whole workspace"},
		"remove some":   {"a pattern in a folder", bash("rm src/*.o"), "bash: rm * changing src/*", ""},
		"option behind": {"an option behind the file", bash("rm src/a -f"), "", "stands behind"},
		"sort output":   {"an option that writes", bash("sort -o src/x list.txt"), "bash: sort -o * changing src/*", ""},
		"dd":            {"an operand that writes", bash("dd if=a of=src/b"), "bash: dd * changing src/*", ""},
		"two places":    {"each place for each command", bash("touch src/a && rm real/b"), "bash: touch * changing src/*; bash: touch * changing real/*; bash: rm * changing src/*; bash: rm * changing real/*", ""},
		"opaque":        {"what is not known cannot be remembered", bash("frobnicate src/a.sh"), "", "what `frobnicate` does is not known"},
		"opaque word":   {"beside others", bash("ls && frobnicate"), "", "is not known"},
		"folder":        {"a command in a folder is one there", bash("cd src && ls -l"), "bash: ls * in src", ""},
		"workdir":       {"however it gets there", call("bash", map[string]any{"command": "ls -l", "workdir": "src"}), "bash: ls * in src", ""},
		"folder late":   {"behind something else nobody knows which commands run there", bash("make test; cd src"), "", "changes the folder"},
		"folder sub":    {"nor in a subshell", bash("(cd src); make test"), "", "changes the folder"},
		"folder back":   {"nor behind a command in the background", bash("cd src && sleep 1 & make test"), "", "changes the folder"},
		"folder twice":  {"nor twice", bash("cd src && cd sub && make test"), "", "changes the folder"},
		"folder link":   {"nor behind a link", bash("cd link && make test"), "", "link"},
		"folder gone":   {"nor in one that is not there", bash("cd gone && make test"), "", "not there"},
		"git branch":    {"its options decide what becomes of branches", bash("git branch -D x"), "bash: git branch -D *", ""},
		"git log":       {"what only shows may show otherwise", bash("git log -3"), "bash: git log *", ""},
		"kill":          {"exactly that process", bash("kill -9 17"), "bash: kill -9 17", ""},
		"chmod":         {"the mode says what is done", bash("chmod +x src/a.sh"), "bash: chmod +x * changing src/*", ""},
		"outside":       {"the workspace ends the approval", bash("cat /etc/passwd"), "", ""},
		"secret":        {"a secret is asked about each time", bash("cat .env"), "", "secrets"},
		"own program":   {"the agent may change what it may start", bash("./build.sh all"), "", ""},
		"network":       {"hosts differ", bash("curl http://a.test/x"), "", "reaches other hosts"},
		"push":          {"git names a place elsewhere", bash("git push origin main"), "bash: git push origin main", ""},
		"push away":     {"git reaches another host", bash("git push https://a.test/x"), "", "reaches a.test"},
		"git output":    {"what shows writes instead", bash("git diff --output=src/a.go"), "", "--output"},
		"git short":     {"an option that is cut short", bash("git log --outp src/a.go"), "", "--outp"},
		"git folder":    {"a hook runs later", bash("cp a .git/hooks/pre-commit"), "", "hooks"},
		"git settings":  {"a setting runs later", bash("tee .git/config"), "", "hooks"},
		"other wrapper": {"a wrapper starts something else", bash("firejail ls"), "", "runs whatever"},
		"empty":         {"nothing found is never allowed", bash(""), "", "only the run can tell"},

		"edit":       {"that folder", call("edit", map[string]any{"path": "src/a.go"}), "edit: src/*", ""},
		"write":      {"write and edit are one permission", call("write", map[string]any{"path": "src/sub/a.go"}), "edit: src/sub/*", ""},
		"edit hook":  {"a hook runs later", call("edit", map[string]any{"path": ".git/hooks/pre-commit"}), "", "hooks"},
		"edit root":  {"a file of the workspace's own folder by its name", call("edit", map[string]any{"path": "go.mod"}), "edit: go.mod", ""},
		"read":       {"that folder", call("read", map[string]any{"path": "src/a.go"}), "read: src/*", ""},
		"read all":   {"never the whole workspace", call("read", map[string]any{"path": "."}), "", "whole workspace"},
		"grep":       {"the folder that is searched", call("grep", map[string]any{"pattern": "x", "path": "src"}), "grep: src", ""},
		"dots":       {"a path counts where it leads", call("edit", map[string]any{"path": "src/../a"}), "edit: a", ""},
		"link":       {"a link may be turned", call("edit", map[string]any{"path": "link/a.go"}), "", "symbolic link"},
		"star":       {"a name that is a pattern", call("edit", map[string]any{"path": "a*/x"}), "", "pattern"},
		"edit away":  {"outside is not inside", call("edit", map[string]any{"path": "/tmp/elsewhere/a"}), "", "outside"},
		"undoable":   {"R3 is approved one by one", call("send", map[string]any{"to": "x"}), "", "cannot be undone"},
		"untyped":    {"that tool with those arguments", call("free", map[string]any{"title": "a", "body": "b"}), "free when call.args.all(k, k in ['body', 'title'])", ""},
		"no args":    {"that tool with no arguments", call("free", nil), "free when call.args.all(k, k in [])", ""},
		"host":       {"and those hosts", call("free", map[string]any{"url": "https://a.test/x"}), "free when call.args.all(k, k in ['url']) && net.hosts.all(h, h in ['a.test'])", ""},
		"path":       {"and the folder of the path", call("free", map[string]any{"path": "a/b"}), "free when call.args.all(k, k in ['path']) && paths.all(p, p.inWorkspace && !p.raw.contains('..') && (p.raw.startsWith('a/')))", ""},
		"path root":  {"or its name", call("free", map[string]any{"path": "a"}), "free when call.args.all(k, k in ['path']) && paths.all(p, p.inWorkspace && !p.raw.contains('..') && (p.raw == 'a'))", ""},
		"odd path":   {"a path that no rule can write", call("free", map[string]any{"path": "a'/b"}), "", "strange name"},
		"odd key":    {"a name that no rule can write", call("free", map[string]any{"it's": 1}), "", "it's"},
		"typed":      {"a schema names what was not given", call("typed", map[string]any{"title": "a"}), "typed when has(call.args.title) && !has(call.args.body)", ""},
		"typed none": {"nothing given", call("typed", nil), "typed when !has(call.args.body) && !has(call.args.title)", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := remembering(t, nil)
			d := decide(t, e, tc.call)
			if d.Action != message.Ask {
				t.Fatalf("got %+v", d)
			}
			if got := written(d.Always); got != tc.want {
				t.Errorf("%s: got %q, want %q (%s)", tc.reason, got, tc.want, d.Once)
			}
			if (d.Once == "") != (tc.want != "") || !strings.Contains(d.Once, tc.once) {
				t.Errorf("%s: once because %q, want %q", tc.reason, d.Once, tc.once)
			}
			if tc.want == "" {
				return
			}
			// As a policy, a grant allows the very call that it was made from.
			if d := decide(t, remembering(t, asPolicy(d.Always)), tc.call); d.Action != message.Allow {
				t.Errorf("as a policy: got %+v", d)
			}
		})
	}
}

// The words of a command that an approval would cover, whatever is known of it.
func TestTheWordsOfAnApproval(t *testing.T) {
	for _, c := range []struct{ reason, line, want, once string }{
		{"npm run is a group", "npm run build --fast", "npm run build *", ""},
		{"a cloud's program is groups of programs", "aws s3 ls", "aws s3 ls *", ""},
		{"another Makefile is another program", "make test -f other.mk", "", "what to work on"},
		{"in a cluster of letters", "make test -kf other.mk", "", "what to work on"},
		{"by a name that is cut short", "make test --makef other.mk", "", "what to work on"},
		{"an install", "go install ./...", "", "foreign code"},
		{"an install", "npm install", "", "foreign code"},
		{"cut short", "npm inst left-pad", "", "foreign code"},
		{"an install", "pip3 install x", "", "foreign code"},
		{"an install of everything", "yarn", "", "foreign code"},
		{"two words", "go test ./... -run X", "go test *", ""},
		{"a group and what is done to it", "gh pr list", "gh pr list *", ""},
		{"anything at all", "gh api repos/x -X DELETE", "", "runs whatever"},
	} {
		argv := strings.Fields(c.line)
		cmd := newCommand(shell.Command{Name: argv[0], Argv: argv})
		pattern, _, once := cmd.pattern(false)
		if pattern != c.want || (once == "") != (c.want != "") || !strings.Contains(once, c.once) {
			t.Errorf("%s: %s: got %q, want %q (%s)", c.reason, c.line, pattern, c.want, once)
		}
	}
}

func TestOnlyAQuestionIsRemembered(t *testing.T) {
	e := engine(t, "rules: [{name: no, match: {tools: [bash]}, action: deny}, {name: yes, match: {tools: [read]}, action: allow}]")
	for _, c := range []message.ToolCall{bash("ls"), call("read", map[string]any{"path": "a"})} {
		if d := decide(t, e, c); len(d.Always) > 0 || d.Once != "" {
			t.Errorf("%s: got %+v", c.Tool, d)
		}
	}
}

// remembering asks about everything that the policy does not allow.
func remembering(t testing.TB, allow *v1alpha1.Policy) *Engine {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"src", "real"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("real", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	tools := append(testTools(), Tool{Name: "typed", Source: "exec", Risk: "R2", Schema: schema("title", "body"), Digest: "d9"})
	policies := []*v1alpha1.Policy{parse(t, "default: ask")}
	if allow != nil {
		policies = append(policies, allow)
	}
	var compiled []*Compiled
	for _, p := range policies {
		c, problems := Compile(p, tools)
		for _, problem := range problems {
			t.Errorf("%v", problem)
		}
		compiled = append(compiled, c)
	}
	return NewEngine(compiled, Context{Workspace: Workspace{Root: root}, Tools: tools})
}

func asPolicy(grants []message.Grant) *v1alpha1.Policy {
	p := &v1alpha1.Policy{}
	p.Name = "remembered"
	for _, g := range grants {
		if g.Within != "" {
			p.Spec.Permissions = append(p.Spec.Permissions, v1alpha1.Permission{Permission: "edit", Pattern: g.Within, Action: v1alpha1.ActionAllow})
		}
		if g.Dir != "" {
			p.Spec.Permissions = append(p.Spec.Permissions, v1alpha1.Permission{Permission: g.Permission, Pattern: "cd " + g.Dir, Action: v1alpha1.ActionAllow})
		}
		if g.Tool == "" {
			p.Spec.Permissions = append(p.Spec.Permissions, v1alpha1.Permission{Permission: g.Permission, Pattern: g.Pattern, Action: v1alpha1.ActionAllow})
		} else {
			p.Spec.Rules = append(p.Spec.Rules, v1alpha1.Rule{Name: g.Tool, Match: v1alpha1.Match{Tools: []string{g.Tool}}, When: g.When, Action: v1alpha1.ActionAllow})
		}
	}
	return p
}

func TestAlwaysSaysTheSameEachTime(t *testing.T) {
	e := remembering(t, nil)
	c := call("free", map[string]any{"b": 1, "a": 2, "c": "https://x.test/ https://y.test"})
	if diff := cmp.Diff(decide(t, e, c).Always, decide(t, e, c).Always); diff != "" {
		t.Error(diff)
	}
}

// What is remembered of a script is a policy that allows the script, and
// nothing that starts other programs.
func FuzzAlways(f *testing.F) {
	for _, s := range []string{
		"ls -la", "git commit -m 'x y'", "make test && git push", "npm run build", "a=b ls", "sudo ls", "ls | xargs rm", "ls > x", "cat <<X\na\nX", "git -C x status",
		"'my tool' x", "l\\s", "docker compose up", "aws s3 ls s3://x", "cd src; go test ./...", "if true; then ls; fi", "f() { ls; }; f", "git 'a*b'", "python3.1 x", "[ -f x ] && wc x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		e := remembering(t, nil)
		d := decide(t, e, bash(script))
		if len(d.Always) == 0 {
			if d.Action == message.Ask && d.Once == "" {
				t.Errorf("%q: nothing is remembered, without a reason", script)
			}
			return
		}
		for _, g := range d.Always {
			word, _, _ := strings.Cut(g.Pattern, " ")
			if starters()[version().ReplaceAllString(word, "")] || strings.ContainsAny(strings.TrimSuffix(g.Pattern, " *"), "*?") {
				t.Errorf("%q is remembered as %q", script, written(d.Always))
			}
		}
		if again := decide(t, remembering(t, asPolicy(d.Always)), bash(script)); again.Action != message.Allow {
			t.Errorf("%q is remembered as %q, which says %s: %s", script, written(d.Always), again.Action, again.Message)
		}
	})
}
