package policy

import (
	"os"
	"testing"

	"agentctl.dev/agentctl/api/message"
)

func TestWhichCallsAlterTheFilesThatOthersAreJudgedBy(t *testing.T) {
	e := engine(t, "default: allow")
	for _, c := range []struct {
		call            message.ToolCall
		alters, depends bool
	}{
		{bash("ls; cat a"), false, true},
		{bash("ln -s LICENSE x"), true, true},
		{bash("ls > x"), true, true},
		{bash("rm x"), true, true},
		{bash("frobnicate"), true, true},
		{bash("$x"), true, true},
		{call("read", map[string]any{"path": "a"}), false, true},
		{call("write", map[string]any{"path": "a", "content": ""}), true, true},
		{call("boxed", nil), false, false},
	} {
		if d := decide(t, e, c.call); d.Alters != c.alters || d.Depends != c.depends {
			t.Errorf("%s %s: alters %v, depends %v", c.call.Tool, c.call.Args, d.Alters, d.Depends)
		}
	}
}

// A deny of a file holds for the link to it that a call beside has made.
func TestADenyHoldsForALinkThatWasMadeBeside(t *testing.T) {
	for name, link := range map[string]func(from, to string) error{"symbolic": os.Symlink, "hard": os.Link} {
		t.Run(name, func(t *testing.T) {
			e := engine(t, "permissions: [{permission: '*', action: allow}, {permission: edit, pattern: LICENSE, action: deny}]")
			root := e.context.Workspace.Root
			put(t, root, "LICENSE")
			calls := []message.ToolCall{bash("echo x > x"), bash("rm -f a; cp a x"), call("write", map[string]any{"path": "x", "content": "y"})}
			for _, c := range calls {
				if d := decide(t, e, c); d.Action != message.Allow {
					t.Fatalf("before: %s %s: %s by %s (%s)", c.Tool, c.Args, d.Action, d.Rule, d.Message)
				}
			}
			if err := link(root+"/LICENSE", root+"/x"); err != nil {
				t.Fatal(err)
			}
			for _, c := range calls {
				if d := decide(t, e, c); d.Action != message.Deny {
					t.Errorf("behind the link: %s %s: %s by %s (%s)", c.Tool, c.Args, d.Action, d.Rule, d.Message)
				}
			}
		})
	}
}
