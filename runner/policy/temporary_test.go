package policy

import (
	"testing"

	"agentctl.dev/agentctl/api/message"
)

func TestTheTemporaryFolderOfASandboxIsInside(t *testing.T) {
	tools := testTools()
	tools[4].Contained, tools[4].OwnTemporary = true, true // bash
	var all []*Compiled
	c, problems := Compile(parse(t, "rules: [{name: out, when: \"paths.exists(p, !p.inWorkspace)\", action: deny}, {name: keys, when: \"paths.exists(p, p.secret)\", action: deny}]"), tools)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	all = append(all, c)
	for name, c := range map[string]struct {
		reason, root string
		call         message.ToolCall
		want         message.Action
	}{
		"written":        {"", "/srv/ws", bash("ls > /tmp/x && wc -l /tmp/x"), message.Allow},
		"removed":        {"", "/srv/ws", bash("rm -rf /tmp/x"), message.Allow},
		"a pattern":      {"", "/srv/ws", bash("rm /tmp/*.log"), message.Allow},
		"entered":        {"", "/srv/ws", bash("cd /tmp && ls > x"), message.Allow},
		"left by dots":   {"a link may lead elsewhere", "/srv/ws", bash("cat /tmp/x/../../etc/passwd"), message.Deny},
		"dots below":     {"behind a link, dots lead elsewhere", "/srv/ws", bash("cat /tmp/x/../y"), message.Deny},
		"another folder": {"", "/srv/ws", bash("ls > /var/tmp/x"), message.Deny},
		"a key":          {"a name is a name", "/srv/ws", bash("cat /tmp/.env"), message.Deny},
		"around":         {"the workspace itself is in it", "/tmp/ws", bash("ls > /tmp/x"), message.Deny},
		"a file tool":    {"it is served the host's", "/srv/ws", call("read", map[string]any{"path": "/tmp/x"}), message.Deny},
	} {
		t.Run(name, func(t *testing.T) {
			e := NewEngine(all, Context{Workspace: Workspace{Root: c.root}, Tools: tools})
			if d := decide(t, e, c.call); d.Action != c.want {
				t.Errorf("%s: %s by %s (%s), want %s", c.reason, d.Action, d.Rule, d.Message, c.want)
			}
		})
	}
}
