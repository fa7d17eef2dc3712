package policy

import (
	"net/url"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/v1alpha1"
)

func decideFetch(t *testing.T, list, address string) message.Action {
	t.Helper()
	fetch := Tool{Name: "webfetch", Builtin: "webfetch", Source: "builtin", Risk: "R2", Effects: []v1alpha1.Effect{"Network"}, Schema: schema("url"), Digest: "d"}
	c, problems := Compile(parse(t, list), []Tool{fetch})
	for _, p := range problems {
		if !p.Warning {
			t.Fatal(p)
		}
	}
	e := NewEngine([]*Compiled{c}, Context{Workspace: Workspace{Root: t.TempDir()}, Tools: []Tool{fetch}})
	return decide(t, e, call("webfetch", map[string]any{"url": address})).Action
}

func TestAnAllowOfAHostCoversNoOtherHost(t *testing.T) {
	const list = `permissions: [{permission: webfetch, pattern: "*", action: deny}, {permission: webfetch, pattern: "https://*.kernel.org/*", action: allow}]`
	for _, a := range []string{
		"https://www.kernel.org/", "https://www.kernel.org", "HTTPS://WWW.Kernel.Org/a", "https://www.kernel.org:443/a", "https://www.kernel.org./a", "https://www.kernel.org?x",
		"https://www.kernel.org/a#b", "https://a.b.kernel.org/x/../y",
	} {
		if got := decideFetch(t, list, a); got != message.Allow {
			t.Errorf("%s: %s", a, got)
		}
	}
	for _, a := range []string{
		"https://evil.com/.kernel.org/x", "https://evil.com?.kernel.org/x", "https://evil.com#.kernel.org/", "https://evil.com/#.kernel.org/", "https://evil.com:443/.kernel.org/",
		"https://x.kernel.org@evil.com/", "https://evil.com/@x.kernel.org/", "https://evil.com:8443/.kernel.org/", "https://www.kernel.org:8443/", "http://www.kernel.org/",
		"https://kernel.org.evil.com/", "https://evilkernel.org/", "https://user@www.kernel.org/",
	} {
		if got := decideFetch(t, list, a); got != message.Deny {
			t.Errorf("%s: %s", a, got)
		}
	}
}

func TestADenyOfAServerHoldsHoweverItIsWritten(t *testing.T) {
	for _, pattern := range []string{"https://internal.corp/*", "HTTPS://Internal.Corp:443/*", "https://internal.corp./*", "https://internal.corp*", "*://internal.corp/*", "*internal.corp/*"} {
		list := `permissions: [{permission: webfetch, pattern: "*", action: allow}, {permission: webfetch, pattern: "` + pattern + `", action: deny}]`
		for _, a := range []string{
			"https://internal.corp/a", "HTTPS://internal.corp/a", "https://INTERNAL.corp/a", "https://internal.corp:443/a", "https://internal.corp./a", "https://internal.corp?x",
			"https://internal.corp", "https://internal.corp#x", "https://internal.corp:/a", "https://me@internal.corp/a", "https://ｉnternal.corp/a", " https://internal.corp/a\n",
		} {
			if got := decideFetch(t, list, a); got != message.Deny {
				t.Errorf("%s: %s: %s", pattern, a, got)
			}
		}
		if got := decideFetch(t, list, "https://example.com/internal.corp"); got != message.Allow {
			t.Errorf("%s: another server: %s", pattern, got)
		}
	}
}

func TestPathsOfAddresses(t *testing.T) {
	for _, tt := range []struct {
		pattern, action, address string
		matches                  bool
		reason                   string
	}{
		{"https://go.dev/pkg/*", "allow", "https://go.dev/pkg/x", true, ""},
		{"https://go.dev/pkg/*", "allow", "https://go.dev/pkg/../admin", false, "a server may resolve the dots"},
		{"https://go.dev/pkg/*", "allow", "https://go.dev/pkg/%2e%2e/admin", false, "or the escapes"},
		{"https://go.dev/admin/*", "deny", "https://go.dev/%61dmin/x", true, "one form is enough to deny"},
		{"https://go.dev/admin/*", "deny", "https://go.dev/pkg/../admin/x", true, ""},
		{"https://go.dev/admin/*", "deny", "https://go.dev//admin/x", true, ""},
		{"https://go.dev", "allow", "https://go.dev/", true, "one page"},
		{"https://go.dev", "allow", "https://go.dev/x", false, ""},
		{"https://*", "allow", "https://go.dev:8443/x", true, "whatever has the scheme"},
		{"https*", "allow", "https://go.dev/x", true, ""},
		{"https://*/*", "deny", "https://go.dev:8443/x", true, "a deny matches as text as well"},
		{"https://go.dev:*/x", "allow", "https://go.dev/x", true, ""},
		{"https://go.dev:*/x", "allow", "https://go.dev:8443/x", true, ""},
		{"https://[::1]/*", "deny", "https://[0:0:0:0:0:0:0:1]/x", true, "one address, one form"},
		{"https://bücher.de/*", "deny", "https://xn--bcher-kva.de/x", true, "as it is looked up"},
		{"https://*.bücher.de/*", "allow", "https://www.xn--bcher-kva.de/x", true, ""},
	} {
		other := map[string]string{"allow": "deny", "deny": "allow"}[tt.action]
		list := `permissions: [{permission: webfetch, pattern: "*", action: ` + other + `}, {permission: webfetch, pattern: "` + tt.pattern + `", action: ` + tt.action + `}]`
		if got := decideFetch(t, list, tt.address); (string(got) == tt.action) != tt.matches {
			t.Errorf("%s %s: %s: %s, %s", tt.action, tt.pattern, tt.address, got, tt.reason)
		}
	}
}

// An ask never lifts a deny for more than it names, and is never passed by another spelling.
func TestAnAskIsAsStrictAsBothReadings(t *testing.T) {
	closed := `permissions: [{permission: webfetch, pattern: "*", action: deny}, {permission: webfetch, pattern: "https://*.kernel.org/*", action: ask}]`
	if got := decideFetch(t, closed, "https://evil.com/.kernel.org/x"); got != message.Deny {
		t.Errorf("lifted: %s", got)
	}
	open := `permissions: [{permission: webfetch, pattern: "*", action: allow}, {permission: webfetch, pattern: "https://internal.corp/*", action: ask}]`
	if got := decideFetch(t, open, "https://me@INTERNAL.corp./x"); got != message.Ask {
		t.Errorf("passed: %s", got)
	}
}

func TestTheCanonicalFormOfAnAddress(t *testing.T) {
	for in, want := range map[string]string{
		"HTTPS://Internal.CORP.:443?x#y": "https://internal.corp/?x",
		"https://[0:0:0:0:0:0:0:1]:443/": "https://[::1]/",
		"https://[::1]:8443/a":           "https://[::1]:8443/a",
		"http://a.test:443/%2e":          "http://a.test:443/%2e",
		"//A.test":                       "//a.test/",
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if a := addressOf(in, u); a.String() != want {
			t.Errorf("%s: %s, want %s", in, a.String(), want)
		}
	}
}

func TestAnAddressIsJudgedWhateverElseTheCallNames(t *testing.T) {
	const deny = `{permission: get, pattern: "https://evil.example/*", action: deny}`
	const all = `permissions: [{permission: get, pattern: "*", action: allow}, ` + deny + `]`
	const some = `permissions: [{permission: get, pattern: "*", action: deny}, {permission: get, pattern: "https://good.example/*", action: allow}]`
	get := Tool{Name: "get", Source: "plugin", Risk: "R2", Effects: []v1alpha1.Effect{"Network"}, Schema: schema("url", "mirror", "path"), Digest: "d"}
	for _, c := range []struct {
		reason, list string
		args         map[string]any
		want         message.Action
	}{
		{"one address", all, map[string]any{"url": "https://good.example/"}, message.Allow},
		{"one that is denied, beside another", all, map[string]any{"url": "https://good.example/", "mirror": "https://evil.example/"}, message.Deny},
		{"one that cannot be read, beside another", all, map[string]any{"url": "https://good.example/", "mirror": "https://evil.example/ x"}, message.Ask},
		{"one that cannot be read", all, map[string]any{"url": "https://evil.example:port/"}, message.Ask},
		{
			"one that cannot be read, and an entry about paths", `permissions: [{permission: "*", pattern: "*", action: allow}, {permission: "*", pattern: "secret/*", action: deny}]`,
			map[string]any{"url": "https://good.example/ x"},
			message.Allow,
		},
		{"one that cannot be read, where little is allowed", some, map[string]any{"url": "https://good.example/", "mirror": "https://good.example:port/"}, message.Deny},
		{"one that is denied, beside a path", all, map[string]any{"url": "https://evil.example/x", "path": "a.txt"}, message.Deny},
		{"one that cannot be read, beside a path", all, map[string]any{"url": "https://evil.example:port/", "path": "a.txt"}, message.Ask},
		{"an address and a path", all, map[string]any{"url": "https://good.example/x", "path": "a.txt"}, message.Allow},
		{"an entry about paths", `permissions: [{permission: get, pattern: "src/*", action: allow}]`, map[string]any{"url": "https://good.example/x", "path": "src/a"}, message.Allow},
	} {
		compiled, problems := Compile(parse(t, c.list), []Tool{get})
		for _, p := range problems {
			if !p.Warning {
				t.Fatal(p)
			}
		}
		e := NewEngine([]*Compiled{compiled}, Context{Workspace: Workspace{Root: t.TempDir()}, Tools: []Tool{get}})
		if got := decide(t, e, call("get", c.args)).Action; got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}
