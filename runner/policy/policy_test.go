package policy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

func schema(fields ...string) json.RawMessage {
	props := map[string]any{}
	for _, f := range fields {
		name, typ, _ := strings.Cut(f, ":")
		if typ == "" {
			typ = "string"
		}
		props[name] = map[string]any{"type": typ}
	}
	b, _ := json.Marshal(map[string]any{"type": "object", "properties": props})
	return b
}

func testTools() []Tool {
	return []Tool{
		{Name: "read", Builtin: "read", Source: "builtin", Risk: "R0", Effects: []v1alpha1.Effect{"Read"}, Category: "Read", Schema: schema("path", "offset:integer", "limit:integer"), Digest: "d1"},
		{Name: "grep", Builtin: "grep", Source: "builtin", Risk: "R0", Effects: []v1alpha1.Effect{"Read"}, Category: "Search", Schema: schema("pattern", "path", "include"), Digest: "d2"},
		{Name: "edit", Builtin: "edit", Source: "builtin", Risk: "R1", Effects: []v1alpha1.Effect{"Read", "Write"}, Category: "Edit", Schema: schema("path", "oldString", "newString", "replaceAll:boolean"), Digest: "d3"},
		{Name: "write", Builtin: "write", Source: "builtin", Risk: "R1", Effects: []v1alpha1.Effect{"Write"}, Category: "Edit", Schema: schema("path", "content"), Digest: "d4"},
		{Name: "bash", Builtin: "bash", Source: "builtin", Risk: "R2", Effects: []v1alpha1.Effect{"Execute"}, Category: "Execute", Schema: schema("command", "timeout:integer", "workdir", "description"), Digest: "d5"},
		{
			Name: "send", Source: "plugin", Risk: "R3", Effects: []v1alpha1.Effect{"Message"}, Category: "Other", Digest: "d6",
			Schema: json.RawMessage(`{"type":"object","required":["to"],"properties":{"to":{"type":"string"},"body":{"type":"string"},"amount":{"type":"number"},"mode":{"type":"string","enum":["fast","slow"]}}}`),
		},
		{Name: "free", Source: "exec", Risk: "R2", Category: "Other", Digest: "d7"},
		{Name: "boxed", Source: "exec", Risk: "R2", Category: "Other", Digest: "d8", Contained: true},
	}
}

func parse(t testing.TB, text string) *v1alpha1.Policy {
	t.Helper()
	var p v1alpha1.Policy
	if err := yaml.UnmarshalStrict([]byte(text), &p.Spec); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	p.Name = "test"
	return &p
}

func compile(t testing.TB, text string) *Compiled {
	t.Helper()
	c, problems := Compile(parse(t, text), testTools())
	for _, p := range problems {
		if !p.Warning {
			t.Fatalf("%v\n%s", p, text)
		}
	}
	return c
}

func engine(t testing.TB, texts ...string) *Engine {
	t.Helper()
	root := t.TempDir()
	var all []*Compiled
	for i, text := range texts {
		c := compile(t, text)
		c.name = fmt.Sprintf("p%d", i)
		for _, rules := range c.rules {
			for _, r := range rules {
				r.id = c.name + "/" + r.spec.Name
			}
		}
		all = append(all, c)
	}
	return NewEngine(all, Context{
		Agent: Agent{Name: "a", Labels: map[string]string{"team": "web"}}, Workspace: Workspace{Root: root}, Tools: testTools(),
		Now: func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) },
	})
}

func call(tool string, args map[string]any) message.ToolCall {
	if args == nil {
		args = map[string]any{}
	}
	b, _ := json.Marshal(args)
	return message.ToolCall{ID: "c1", Tool: tool, Args: b, Step: 1}
}

func bash(script string) message.ToolCall { return call("bash", map[string]any{"command": script}) }

func decide(t testing.TB, e *Engine, c message.ToolCall) message.Decision {
	t.Helper()
	d, err := e.Decide(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestCompileFindsMistakes(t *testing.T) {
	tests := map[string]struct {
		reason, policy, path, message, suggestion string
		warning                                   bool
	}{
		"field":        {"a misspelt argument", "rules: [{name: a, match: {tools: [read]}, when: \"call.args.pth == ''\", action: deny}]", "spec.rules[0].when", "call.args has no field pth", "did you mean path?", false},
		"type":         {"text against number", "rules: [{name: a, match: {tools: [read]}, when: \"call.args.path > 3\", action: deny}]", "spec.rules[0].when", "does not work on", "", false},
		"no bool":      {"a condition of another type", "rules: [{name: a, when: \"tool.name\", action: deny}]", "spec.rules[0].when", "must be of type bool", "", false},
		"enum":         {"an enum literal", "rules: [{name: a, match: {tools: [send]}, when: \"call.args.mode == 'fsat'\", action: deny}]", "spec.rules[0].when", "never", "did you mean fast?", false},
		"own enum":     {"an enum of ours", "rules: [{name: a, when: \"paths.exists(p, p.op == 'wirte')\", action: deny}]", "spec.rules[0].when", "never", "did you mean write?", false},
		"path field":   {"a field of a path", "rules: [{name: a, when: \"paths.exists(p, p.claen == '')\", action: deny}]", "spec.rules[0].when", "claen", "did you mean clean?", false},
		"one lacks":    {"an argument that one tool lacks", "rules: [{name: a, match: {tools: [read, bash]}, when: \"call.args.path == ''\", action: deny}]", "spec.rules[0].when", "bash has no argument path", "write has(call.args.path)", false},
		"none has":     {"has() of what no tool has", "rules: [{name: a, match: {tools: [read, bash]}, when: \"has(call.args.paht)\", action: deny}]", "spec.rules[0].when", "has no field paht", "", false},
		"message":      {"a message that is no text", "rules: [{name: a, action: deny, messageExpression: \"1\"}]", "spec.rules[0].messageExpression", "must be of type string", "", false},
		"twice":        {"a name twice", "rules: [{name: a, action: deny}, {name: a, action: ask}]", "spec.rules[1].name", "is taken", "", false},
		"variable":     {"a variable that does not compile", "variables: [{name: d, expression: nope}]\nrules: [{name: a, action: deny}]", "spec.variables[0].expression", "no variable or function nope", "", false},
		"no variable":  {"a variable that is not declared", "rules: [{name: a, when: \"variables.x == ''\", action: deny}]", "spec.rules[0].when", "variables has no field x", "declare it", false},
		"params":       {"a parameter that does not exist", "params: {hosts: [a]}\nrules: [{name: a, when: \"'x' in params.host\", action: deny}]", "spec.rules[0].when", "params has no field host", "did you mean hosts?", false},
		"result":       {"a call has no result", "rules: [{name: a, when: \"result.size > 1\", action: deny}]", "spec.rules[0].when", "no result yet", "set on: Result", false},
		"redact":       {"a redaction of nothing", "rules: [{name: a, action: redact}]", "spec.rules[0].redact", "must say what", "", false},
		"flow":         {"a function that does not exist yet", "rules: [{name: a, when: \"flow('x') == 1\", action: deny}]", "spec.rules[0].when", "no variable or function flow", "", false},
		"constant":     {"a rule that never counts", "rules: [{name: a, when: \"false && tool.name == ''\", action: deny}]", "spec.rules[0].when", "always false", "", true},
		"no tool":      {"a match that selects nothing", "rules: [{name: a, match: {tools: [reed]}, action: deny}]", "spec.rules[0].match", "no tool is selected", "did you mean read?", true},
		"R3":           {"an allow that does not lift R3", "rules: [{name: a, match: {tools: [send]}, action: allow}]", "spec.rules[0].match", "its risk is R3", "list R3", true},
		"permission":   {"a permission of no tool", "permissions: [{permission: bsh, pattern: '*', action: deny}]", "spec.permissions[0].permission", "no tool is called bsh", "did you mean bash?", true},
		"result asked": {"nobody is asked about results", "rules: [{name: a, 'on': Result, action: ask}]", "spec.rules[0].action", "nobody can be asked", "", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, problems := Compile(parse(t, tc.policy), testTools())
			for _, p := range problems {
				if p.Path == tc.path && strings.Contains(p.Message, tc.message) && strings.HasPrefix(p.Suggestion, tc.suggestion) && p.Warning == tc.warning {
					return
				}
			}
			t.Errorf("%s: got %+v", tc.reason, problems)
		})
	}
}

func TestCompileAcceptsGuardedArguments(t *testing.T) {
	e := engine(t, `
variables: [{name: target, expression: "has(call.args.path) ? call.args.path : ''"}, {name: to, expression: call.args.to}]
rules:
- {name: a, match: {tools: [read, bash]}, when: "has(call.args.path) && call.args.path == 'x'", action: deny}
- {name: b, match: {tools: [send]}, when: "variables.to == 'eve'", action: deny, messageExpression: "'not to ' + variables.to"}`)
	if d := decide(t, e, call("read", map[string]any{"path": "x"})); d.Action != message.Deny || d.Rule != "p0/a" {
		t.Errorf("got %+v", d)
	}
	if d := decide(t, e, bash("ls")); d.Action != message.Ask || d.Rule != "default/byRisk" {
		t.Errorf("a tool without the argument: got %+v", d)
	}
	if d := decide(t, e, call("send", map[string]any{"to": "eve"})); d.Message != "not to eve" {
		t.Errorf("got %+v", d)
	}
}

func TestDecisions(t *testing.T) {
	const (
		denyAll  = "rules: [{name: deny, match: {tools: [write]}, action: deny}]"
		askAll   = "rules: [{name: ask, match: {tools: [write]}, action: ask}]"
		allowAll = "rules: [{name: allow, action: allow}]"
		redact   = "rules: [{name: redact, match: {tools: [write]}, action: redact, redact: {fields: [content]}}]"
	)
	write := call("write", map[string]any{"path": "a", "content": "x"})
	tests := map[string]struct {
		reason   string
		policies []string
		call     message.ToolCall
		action   message.Action
		rule     string
	}{
		"deny beats ask":             {"the order of policies does not matter", []string{askAll, denyAll, allowAll}, write, message.Deny, "p1/deny"},
		"ask beats redact":           {"", []string{redact, askAll}, write, message.Ask, "p1/ask"},
		"redact beats allow":         {"", []string{allowAll, redact}, write, message.Redact, "p1/redact"},
		"allow beats default":        {"", []string{allowAll}, bash("ls"), message.Allow, "p0/allow"},
		"allow beats a default deny": {"", []string{"default: deny", allowAll}, bash("ls"), message.Allow, "p1/allow"},
		"strictest default":          {"", []string{"default: allow", "default: ask", "default: byRisk"}, write, message.Ask, "p1/default"},
		"R0":                         {"reading is allowed", nil, call("read", map[string]any{"path": "/etc/passwd"}), message.Allow, "default/byRisk"},
		"R1 inside":                  {"", nil, write, message.Allow, "default/byRisk"},
		"R1 outside":                 {"", nil, call("write", map[string]any{"path": "../x", "content": ""}), message.Ask, "default/byRisk"},
		"R1 home":                    {"~ is somewhere else", nil, call("write", map[string]any{"path": "~/x", "content": ""}), message.Ask, "default/byRisk"},
		"R2":                         {"", nil, call("free", nil), message.Ask, "default/byRisk"},
		"R2 contained":               {"", nil, call("boxed", nil), message.Allow, "default/byRisk"},
		"R3":                         {"", nil, call("send", map[string]any{"to": "x"}), message.Ask, "default/byRisk"},
		"R3 not lifted":              {"an allow must name R3", []string{allowAll}, call("send", map[string]any{"to": "x"}), message.Ask, "default/byRisk"},
		"R3 default allow":           {"a default does not lift R3", []string{"default: allow"}, call("send", map[string]any{"to": "x"}), message.Ask, "default/byRisk"},
		"R3 lifted":                  {"", []string{"rules: [{name: a, match: {risks: [R3]}, action: allow}]"}, call("send", map[string]any{"to": "x"}), message.Allow, "p0/a"},
		"R3 permission":              {"a list does not lift R3", []string{"permissions: [{permission: send, action: allow}]"}, call("send", map[string]any{"to": "x"}), message.Ask, "default/byRisk"},
		"unknown tool":               {"", []string{allowAll}, call("nope", nil), message.Deny, "default/unknown-tool"},
		"error":                      {"a missing optional argument", []string{"rules: [{name: a, match: {tools: [read]}, when: 'call.args.limit > 1', action: allow}]"}, call("read", map[string]any{"path": "x"}), message.Deny, "p0/a"},
		"division":                   {"", []string{"rules: [{name: a, when: '1 / call.repeats == 1', action: allow}]"}, write, message.Deny, "p0/a"},
		"no budget":                  {"facts nobody gave", []string{"rules: [{name: a, when: 'budget.tokens.used > 1', action: deny}]"}, write, message.Deny, "p0/a"},
		"dynamic deny":               {"deny on unknown asks", []string{"rules: [{name: a, when: \"cmd.commands.exists(c, c.name == 'rm')\", action: deny}]"}, bash("$x"), message.Ask, "default/dynamic"},
		"dynamic allow":              {"allow on unknown does not allow", []string{"rules: [{name: a, when: \"cmd.commands.all(c, c.name == 'ls')\", action: allow}]"}, bash("ls; $x"), message.Ask, "default/byRisk"},
		"dynamic not read":           {"a rule that does not read the facts is not affected", []string{"rules: [{name: a, when: \"tool.name == 'bash'\", action: allow}]"}, bash("$x"), message.Allow, "p0/a"},
		"dynamic known":              {"that it is dynamic is known", []string{"rules: [{name: a, when: cmd.dynamic, action: deny}]"}, bash("$x"), message.Deny, "p0/a"},
		"dynamic variable":           {"through a variable", []string{"variables: [{name: many, expression: size(cmd.commands)}]\nrules: [{name: a, when: variables.many > 0, action: deny}]"}, bash("$x"), message.Ask, "default/dynamic"},
		"static":                     {"", []string{"rules: [{name: a, when: \"cmd.commands.all(c, c.name in ['ls', 'cat'])\", match: {tools: [bash]}, action: allow}]"}, bash("ls; cat x"), message.Allow, "p0/a"},
		"other agent":                {"", []string{"rules: [{name: a, match: {agents: [b]}, action: deny}]"}, write, message.Allow, "default/byRisk"},
		"agent":                      {"", []string{"rules: [{name: a, match: {agents: ['a*']}, when: \"agent.labels.team == 'web'\", action: deny}]"}, write, message.Deny, "p0/a"},
		"now":                        {"", []string{"rules: [{name: a, when: \"now > timestamp('2025-01-01T00:00:00Z')\", action: deny}]"}, write, message.Deny, "p0/a"},
		"warn":                       {"a warning decides nothing", []string{"mode: Warn\n" + denyAll}, write, message.Allow, "default/byRisk"},
		"audit":                      {"an audit decides nothing", []string{"mode: Audit\ndefault: deny\n" + denyAll}, write, message.Allow, "default/byRisk"},
		"secret path":                {"", []string{"rules: [{name: a, when: \"paths.exists(p, p.secret)\", action: deny}]"}, bash("cat .env"), message.Deny, "p0/a"},
		"delete":                     {"", []string{"rules: [{name: a, when: \"paths.exists(p, p.op == 'delete')\", action: deny}]"}, bash("cd a; rm -f b"), message.Deny, "p0/a"},
		"delete is a write":          {"", []string{"rules: [{name: a, when: \"paths.exists(p, p.op == 'write')\", action: deny}]"}, bash("rm -f b"), message.Deny, "p0/a"},
		"network":                    {"", []string{"rules: [{name: a, when: \"'evil.example' in net.hosts\", action: deny}]"}, bash("curl https://evil.example/x"), message.Deny, "p0/a"},
		"url in arguments":           {"", []string{"rules: [{name: a, when: \"net.hosts.exists(h, h == 'evil.example') && 8443 in net.ports\", action: deny}]"}, call("free", map[string]any{"u": []any{"https://EVIL.example:8443/"}}), message.Deny, "p0/a"},
		"case of an argument":        {"a program that ignores case reads the other one", nil, call("read", map[string]any{"path": "a", "Path": "/etc/shadow"}), message.Deny, "default/error"},
		"case alone":                 {"", nil, call("write", map[string]any{"PATH": "/etc/x", "content": ""}), message.Deny, "default/error"},
		"arguments no object":        {"", nil, message.ToolCall{Tool: "read", Args: json.RawMessage("[]")}, message.Deny, "default/error"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := decide(t, engine(t, tc.policies...), tc.call)
			if d.Action != tc.action || d.Rule != tc.rule {
				t.Errorf("%s: got %s by %s (%s), want %s by %s", tc.reason, d.Action, d.Rule, d.Message, tc.action, tc.rule)
			}
			if (d.Action == message.Ask || d.Action == message.Deny) && d.Message == "" {
				t.Error("no message")
			}
		})
	}
}

func TestWarnAndAuditAreRecorded(t *testing.T) {
	d := decide(t, engine(t, "mode: Warn\nrules: [{name: w, action: deny}]", "mode: Audit\nrules: [{name: x, action: ask}]"), call("read", map[string]any{"path": "a"}))
	if d.Action != message.Allow || len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "p0/w would deny") || !strings.Contains(string(d.Facts), "p1/x would ask") {
		t.Errorf("got %+v %s", d, d.Facts)
	}
}

func TestConformance(t *testing.T) {
	list := func(entries ...string) string { return "permissions:\n" + strings.Join(entries, "\n") }
	entry := func(permission, pattern, action string) string {
		return fmt.Sprintf("- {permission: %q, pattern: %q, action: %s}", permission, pattern, action)
	}
	denyRF := list(entry("bash", "rm*-rf*", "deny"))
	tests := map[string]struct {
		policy string
		call   message.ToolCall
		want   message.Action
	}{
		"a path behind a star":        {denyRF, bash("rm -rf /tmp/x"), message.Deny},
		"flags in another order":      {denyRF, bash("rm -fr /tmp/x"), message.Deny},
		"flags apart":                 {denyRF, bash("rm -r -f /tmp/x"), message.Deny},
		"flags in long form":          {denyRF, bash("rm --recursive --force /tmp/x"), message.Deny},
		"flags behind":                {denyRF, bash("rm /tmp/x -rf"), message.Deny},
		"by path":                     {denyRF, bash("/bin/rm -rf x"), message.Deny},
		"quoted":                      {denyRF, bash(`'r'm -rf x`), message.Deny},
		"in a wrapper":                {denyRF, bash("timeout 5 bash -c 'rm -rf x'"), message.Deny},
		"other command":               {denyRF, bash("echo rm -rf"), message.Ask},
		"wrapped":                     {list(entry("bash", "sudo*", "deny")), bash("env sudo id"), message.Deny},
		"second command":              {list(entry("bash", "sudo*", "deny")), bash("cd /; sudo id"), message.Deny},
		"both conditions":             {"rules: [{name: a, when: \"cmd.commands.exists(c, c.name == 'rm' && c.argv.exists(a, a.matches('^-[a-z]*(rf|fr)')))\", action: deny}]", bash("ls -rf"), message.Ask},
		"both conditions hold":        {"rules: [{name: a, when: \"cmd.commands.exists(c, c.name == 'rm' && c.argv.exists(a, a.matches('^-[a-z]*(rf|fr)')))\", action: deny}]", bash("rm -rf x"), message.Deny},
		"each command":                {list(entry("bash", "ls*", "allow")), bash("ls; rm -rf ~"), message.Ask},
		"the name is whole":           {list(entry("bash", "ls*", "allow")), bash("lsof"), message.Ask},
		"allowed":                     {list(entry("bash", "ls*", "allow")), bash("ls -la | ls"), message.Allow},
		"trailing star":               {list(entry("bash", "git *", "allow")), bash("git"), message.Allow},
		"last match":                  {list(entry("bash", "*", "ask"), entry("bash", "git *", "allow"), entry("bash", "git push *", "ask")), bash("git push origin"), message.Ask},
		"last match allows":           {list(entry("bash", "*", "ask"), entry("bash", "git *", "allow")), bash("git status && git log"), message.Allow},
		"another program":             {list(entry("bash", "git *", "allow")), bash("/tmp/git status"), message.Ask},
		"redirection is not covered":  {list(entry("bash", "cargo *", "allow")), bash("cargo check > x"), message.Ask},
		"redirection outside":         {list(entry("bash", "cargo *", "allow"), entry("edit", "*", "allow")), bash("cargo check > ~/.zshrc"), message.Ask},
		"redirection is covered":      {list(entry("bash", "cargo *", "allow"), entry("edit", "*.log", "allow")), bash("cargo check > x.log"), message.Allow},
		"redirection is denied":       {list(entry("bash", "*", "allow"), entry("edit", "*.env", "deny")), bash("echo x > a.env"), message.Deny},
		"a write is denied":           {list(entry("bash", "*", "allow"), entry("edit", "*.env", "deny")), bash("cp a b.env"), message.Deny},
		"a read is denied in bash":    {list(entry("bash", "*", "allow"), entry("read", "*.env", "deny")), bash("cat x/.env"), message.Deny},
		"a read is denied in grep":    {list(entry("grep", "*", "allow"), entry("read", "*.env", "deny")), call("grep", map[string]any{"pattern": "x", "path": ".env"}), message.Deny},
		"no command":                  {list(entry("bash", "*", "allow")), bash("x=1"), message.Ask},
		"a test":                      {list(entry("bash", "*", "allow")), bash("[[ -f x ]]"), message.Ask},
		"only a redirection":          {list(entry("bash", "*", "allow"), entry("edit", "*", "allow")), bash("> f"), message.Ask},
		"a pattern set that is empty": {list(entry("bash", "git status", "allow")), bash("git log -- x"), message.Ask},
		"dynamic under an allow":      {list(entry("bash", "git *", "allow")), bash("git log; $x"), message.Ask},
		"dynamic under a deny":        {list(entry("bash", "*", "allow"), entry("bash", "rm *", "deny")), bash("$x"), message.Ask},
		"a read by any program":       {list(entry("bash", "*", "allow"), entry("read", "*.env", "deny")), bash("mytool --in .env"), message.Deny},
		"a deletion is an edit":       {list(entry("bash", "*", "allow"), entry("edit", "*.env", "deny")), bash("rm .env"), message.Deny},
		"dynamic may leave":           {list(entry("bash", "*", "allow")), bash("x=~/.ssh; cat $x/id_rsa"), message.Ask},
		"dynamic anywhere":            {list(entry("bash", "*", "allow"), entry("external_directory", "*", "allow")), bash("cat $x"), message.Allow},
		"dynamic and a denied file":   {list(entry("bash", "*", "allow"), entry("external_directory", "*", "allow"), entry("read", "*.env", "deny")), bash("cat $x"), message.Ask},
		"dynamic and certain":         {list(entry("bash", "*", "allow"), entry("bash", "rm *", "deny")), bash("rm x; $x"), message.Deny},
		"dots in a path":              {list(entry("write", "/home/user/safe/*", "allow"), entry("external_directory", "/home/user/safe/*", "allow")), call("write", map[string]any{"path": "/home/user/safe/../../root/.ssh/authorized_keys", "content": ""}), message.Ask},
		"a safe path":                 {list(entry("write", "/home/user/safe/*", "allow"), entry("external_directory", "/home/user/safe/*", "allow")), call("write", map[string]any{"path": "/home/user/safe/x", "content": ""}), message.Allow},
		"outside is not covered":      {list(entry("write", "*", "allow")), call("write", map[string]any{"path": "/home/user/x", "content": ""}), message.Ask},
		"dots before a denied path":   {list(entry("read", "/etc/*", "deny")), call("read", map[string]any{"path": "/tmp/../etc/passwd"}), message.Deny},
		"a relative pattern":          {list(entry("edit", "src/*", "deny")), call("edit", map[string]any{"path": "./x/../src/a"}), message.Deny},
		"edit covers write":           {list(entry("edit", "*", "deny")), call("write", map[string]any{"path": "a", "content": ""}), message.Deny},
		"a wildcard denies all":       {list(entry("*", "*", "deny")), call("free", nil), message.Deny},
		"a wildcard keeps inside":     {list(entry("*", "*", "allow")), call("write", map[string]any{"path": "/x", "content": ""}), message.Ask},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if d := decide(t, engine(t, tc.policy), tc.call); d.Action != tc.want {
				t.Errorf("%s: got %s by %s (%s), want %s", tc.call.Args, d.Action, d.Rule, d.Message, tc.want)
			}
		})
	}
}

func TestLinksAreFollowed(t *testing.T) {
	e := engine(t, "rules: [{name: stay, when: \"paths.exists(p, !p.inWorkspace)\", action: deny}]")
	root := e.context.Workspace.Root
	outside := t.TempDir()
	for name, target := range map[string]string{"out": outside, "deep": "out", "in": "sub", "file": filepath.Join(outside, "f")} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "sub", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]message.Action{
		"out/new": message.Deny, "deep/a/b": message.Deny, "file": message.Deny, "in/x/y": message.Allow, "sub/../sub/z": message.Allow,
		"out/../x": message.Deny, root + "/sub": message.Allow, root + "x": message.Deny, "sub/../../x": message.Deny, "~": message.Deny,
	} {
		if d := decide(t, e, call("write", map[string]any{"path": path, "content": ""})); d.Action != want {
			t.Errorf("%s: got %s, want %s", path, d.Action, want)
		}
	}
}

func TestDotsBehindLinksInScripts(t *testing.T) {
	e := engine(t, "rules: [{name: stay, when: \"paths.exists(p, !p.inWorkspace)\", action: deny}, {name: ok, match: {tools: [bash]}, action: allow}]")
	root := e.context.Workspace.Root
	if err := os.MkdirAll(filepath.Join(root, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(root, "a", "out")); err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]message.Action{
		"cat a/out/../x": message.Deny, "cd a; cat out/../x": message.Deny, "cd a/out; cat ../x": message.Deny, "cd a; cat ../x": message.Allow,
		"cd a/out/..; cat x": message.Allow, "cat a/../../x": message.Deny, "foo ../x": message.Deny, "cd a; foo ../../x": message.Deny, "tool a/out/x": message.Deny, "tool a/x build": message.Allow, "tool --out=/x": message.Deny,
	} {
		if d := decide(t, e, bash(script)); d.Action != want {
			t.Errorf("%s: got %s (%s), want %s", script, d.Action, d.Facts, want)
		}
	}
	if d := decide(t, e, message.ToolCall{Tool: "bash", Args: json.RawMessage(`{"command":"cat ../x","workdir":"a/out"}`)}); d.Action != message.Deny {
		t.Errorf("workdir behind a link: got %s", d.Action)
	}
}

func TestRedactionIsJudgedAgain(t *testing.T) {
	e := engine(t, `
rules:
- {name: hide, match: {tools: [write]}, action: redact, redact: {fields: [content], secrets: true}}
- {name: no-marks, match: {tools: [write]}, when: "call.args.content == '[redacted]' && call.args.path == 'b'", action: deny}`)
	d := decide(t, e, call("write", map[string]any{"path": "a", "content": "s3cret"}))
	if d.Action != message.Redact || string(d.Args) != `{"content":"[redacted]","path":"a"}` || d.Hash != Hash("d4", d.Args) {
		t.Errorf("got %+v %s", d, d.Args)
	}
	if d := decide(t, e, call("write", map[string]any{"path": "b", "content": "s3cret"})); d.Action != message.Deny || d.Args != nil {
		t.Errorf("the rewritten call was not judged: %+v", d)
	}
}

func TestReview(t *testing.T) {
	e := engine(t, `
rules:
- {name: secrets, "on": Result, match: {tools: [read]}, action: redact, redact: {secrets: true, fields: [pin]}}
- {name: big, "on": Result, match: {tools: [read]}, when: "result.size > 200", action: deny}
- {name: failing, "on": Result, match: {tools: [grep]}, when: "1 / result.exitCode == 1", action: redact, redact: {secrets: true}}`)
	read := call("read", map[string]any{"path": "x"})
	in := &message.ToolResult{Text: "api_key=abcdef123456 and AKIAABCDEFGHIJKLMNOP", Blob: "b"}
	out, err := e.Review(t.Context(), read, in)
	if err != nil || strings.Contains(out.Text, "abcdef") || strings.Contains(out.Text, "AKIA") || out.Blob != "" || in.Blob != "b" {
		t.Errorf("got %+v, %v", out, err)
	}
	out, err = e.Review(t.Context(), read, &message.ToolResult{Text: `{"pin":"1234","n":[{"pin":5}]}` + "\n(footer)"})
	if err != nil || out.Text != `{"n":[{}],"pin":"[redacted]"}`+"\n(footer)" {
		t.Errorf("got %+v, %v", out, err)
	}
	if out, err = e.Review(t.Context(), read, &message.ToolResult{Text: `{"pin":"12`}); err != nil || strings.Contains(out.Text, "12") {
		t.Errorf("cut JSON: got %+v, %v", out, err)
	}
	if _, err = e.Review(t.Context(), read, &message.ToolResult{Text: strings.Repeat("x", 300)}); err == nil || !strings.Contains(err.Error(), "p0/big") {
		t.Errorf("got %v", err)
	}
	if _, err = e.Review(t.Context(), call("grep", map[string]any{"pattern": "x"}), &message.ToolResult{Text: "x"}); err == nil || !strings.Contains(err.Error(), "p0/failing") {
		t.Errorf("got %v", err)
	}
	same := &message.ToolResult{Text: "plain"}
	if out, err = e.Review(t.Context(), bash("ls"), same); err != nil || out != same {
		t.Errorf("a result no rule concerns: got %+v, %v", out, err)
	}
}

func TestHiddenTools(t *testing.T) {
	got := strings.Join(engine(t, `
permissions:
- {permission: bash, pattern: "*", action: deny}
- {permission: grep, pattern: "*", action: deny}
- {permission: grep, pattern: "src/*", action: allow}
rules:
- {name: a, match: {tools: [write]}, action: deny}
- {name: b, match: {tools: [edit]}, when: "call.args.path == 'x'", action: deny}
- {name: c, match: {tools: [send]}, "on": Result, action: deny}`).HiddenTools(), " ")
	if got != "bash write" {
		t.Errorf("got %q", got)
	}
}

func TestHashBindsDigestAndArguments(t *testing.T) {
	base := Hash("d", json.RawMessage(`{"a":1,"b":"x"}`))
	if base != Hash("d", json.RawMessage("{ \"b\": \"x\",\n \"a\": 1 }")) {
		t.Error("the order of fields matters")
	}
	for _, other := range []string{Hash("e", json.RawMessage(`{"a":1,"b":"x"}`)), Hash("d", json.RawMessage(`{"a":999,"b":"x"}`)), Hash("d", json.RawMessage(`{"a":"1","b":"x"}`)), Hash("", json.RawMessage(`{}`))} {
		if other == base {
			t.Error("two calls share a hash")
		}
	}
}

// TestMoreRulesAreNeverWeaker: adding a deny rule never turns a deny or an ask
// into allow, and the order of policies never matters.
func TestMoreRulesAreNeverWeaker(t *testing.T) {
	conditions := []string{"", "cmd.dynamic", "paths.exists(p, !p.inWorkspace)", "cmd.commands.exists(c, c.name == 'rm')", "1 / call.repeats == 1", "call.repeats > 1", "tool.risk >= 2", "cmd.commands.all(c, c.name == 'ls')"}
	actions := []string{"allow", "ask", "deny", "redact"}
	calls := []message.ToolCall{bash("ls"), bash("rm x; $y"), bash("rm -rf /x"), call("read", map[string]any{"path": "/x"}), call("write", map[string]any{"path": "a", "content": "b"}), call("send", map[string]any{"to": "x"})}
	r := rand.New(rand.NewPCG(1, 2))
	policy := func(action string) string {
		s := fmt.Sprintf("rules: [{name: r, action: %s, when: %q", action, conditions[r.IntN(len(conditions))])
		if action == "redact" {
			s += ", redact: {fields: [content]}"
		}
		return s + "}]"
	}
	for range 150 {
		var texts []string
		for range 1 + r.IntN(4) {
			texts = append(texts, policy(actions[r.IntN(len(actions))]))
		}
		if r.IntN(2) == 0 {
			texts = append(texts, "permissions: [{permission: bash, pattern: '*', action: allow}, {permission: bash, pattern: 'rm *', action: ask}]\ndefault: allow")
		}
		before, after := engine(t, texts...), engine(t, append([]string{policy("deny")}, texts...)...)
		turned := append([]string{}, texts...)
		for i, j := 0, len(turned)-1; i < j; i, j = i+1, j-1 {
			turned[i], turned[j] = turned[j], turned[i]
		}
		back := engine(t, turned...)
		for _, c := range calls {
			a, b, x := decide(t, before, c), decide(t, after, c), decide(t, back, c)
			if rank(verdict(b.Action)) < rank(verdict(a.Action)) && (a.Action == message.Deny || a.Action == message.Ask) {
				t.Fatalf("%s: %s became %s by a deny rule\n%s", c.Args, a.Action, b.Action, strings.Join(texts, "\n"))
			}
			if a.Action != x.Action {
				t.Fatalf("%s: %s, in another order %s\n%s", c.Args, a.Action, x.Action, strings.Join(texts, "\n"))
			}
		}
	}
}

func FuzzGlob(f *testing.F) {
	for _, s := range [][2]string{{"git *", "git"}, {"*a*b*", "xaxb"}, {"rm*-rf*", "rm -rf /"}, {"", ""}, {"?", "x"}, {"*********x", "aaaaaaaaa"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if glob(pattern, s) && !strings.ContainsAny(pattern, "*?") && pattern != s {
			t.Errorf("%q matches %q", pattern, s)
		}
		if !glob("*", s) || !strings.ContainsAny(s, "*?") && !glob(s, s) {
			t.Errorf("%q does not match itself", s)
		}
		c := Compiled{entries: []entry{
			{permission: "bash", pattern: pattern, action: "deny", like: newLikeness(pattern)}, {permission: "edit", pattern: pattern, action: "allow"},
		}}
		w := Workspace{Root: "/w"}
		args := map[string]any{"command": s}
		c.judge(&Tool{Name: "bash", Builtin: "bash"}, w.establish(&Tool{Name: "bash", Builtin: "bash"}, nil, args))
	})
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 1000} {
		var s strings.Builder
		s.WriteString("rules:\n")
		for i := range n {
			tool := []string{"read", "edit", "bash", "send"}[i%4]
			if n == 1000 && i >= 96 {
				tool = "other" // the index leaves 24 candidates for each tool
			}
			when := map[string]string{
				"read": "call.args.path.startsWith('/no/%d')", "edit": "call.args.path.endsWith('%d')",
				"bash": "cmd.commands.exists(c, c.name == 'x%d')", "send": "call.args.to == '%d'", "other": "tool.name == '%d'",
			}[tool]
			fmt.Fprintf(&s, "- {name: r%d, match: {tools: [%s]}, when: \"%s\", action: deny}\n", i, tool, fmt.Sprintf(when, i))
		}
		e := engine(b, s.String())
		for name, c := range map[string]message.ToolCall{"plain": call("read", map[string]any{"path": "src/main.go"}), "shell": bash("go test ./... 2>&1 | tail -n 50")} {
			b.Run(fmt.Sprintf("rules=%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if d, _ := e.Decide(b.Context(), c); d.Action == message.Deny {
						b.Fatal(d)
					}
				}
			})
		}
	}
}

func BenchmarkCompileHello(b *testing.B) {
	p := parse(b, `
permissions: [{permission: bash, pattern: "*", action: ask}, {permission: bash, pattern: "go *", action: allow}]
rules:
- {name: stay-inside, match: {tools: [edit, write]}, when: "paths.exists(p, !p.inWorkspace)", action: deny, messageExpression: "'outside: ' + paths.filter(p, !p.inWorkspace)[0].clean"}
- {name: secrets, when: "paths.exists(p, p.secret)", action: deny}
- {name: no-rm, match: {tools: [bash]}, when: "cmd.commands.exists(c, c.name == 'rm')", action: deny}
- {name: small, match: {tools: [write]}, when: "size(call.args.content) > 100000", action: ask}
- {name: dynamic, match: {tools: [bash]}, when: cmd.dynamic, action: ask}`)
	for b.Loop() {
		if _, problems := Compile(p, testTools()); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}
