package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// TestContainedToolReachesWhatItsManifestLists asks by hand for two servers of
// this host, of which one is listed, and for a name.
func TestContainedToolReachesWhatItsManifestLists(t *testing.T) {
	needSandbox(t)
	libexec := buildTools(t)
	serve := func(text string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, text) }))
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	listed, other := serve("the listed server"), serve("the other server")
	get := func(host string) string {
		return `exec 3<>/dev/tcp/127.0.0.1/3128; printf 'GET http://` + host + `/ HTTP/1.1\r\nHost: ` + host + `\r\nConnection: close\r\n\r\n' >&3; cat <&3; echo; `
	}
	text := strings.Replace(manifest("allow", calling(strings.ReplaceAll(get(listed)+get(other)+get("example.com:80")+"echo begun", `\`, `\\`))),
		"kind: Policy", "kind: Tool\nmetadata: {name: bash}\nspec:\n  source: {builtin: {name: bash}}\n  network: {mode: Proxy, allow: [\""+listed+"\"]}\n---\napiVersion: agentctl.dev/v1alpha1\nkind: Policy", 1)
	l := begin(t, libexec, text)
	var connections []event.EgressConnection
	l.watch = func(e event.Event) {
		if c, ok := e.Data.(event.EgressConnection); ok {
			connections = append(connections, c)
		}
	}
	l.until(t, "")
	if err := l.cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, l.stderr.String())
	}
	read := l.run.Messages[1].Calls()[0].Result.Text
	for _, want := range []string{"the listed server", "403", "NetworkDenied: " + other + " not in spec.network.allow", "NetworkDenied: example.com:80"} {
		if !strings.Contains(read, want) {
			t.Errorf("the tool does not read %q but\n%s", want, read)
		}
	}
	if strings.Contains(read, "the other server") {
		t.Error("the other server has answered")
	}
	// Each is told when it ends, which may be after the next has begun.
	told := map[string]event.EgressConnection{}
	for _, c := range connections {
		told[fmt.Sprintf("%s:%d %s", c.Host, c.Port, c.Tools)] = c
	}
	for host, want := range map[string]message.Action{listed: message.Allow, other: message.Deny, "example.com:80": message.Deny} {
		if c, ok := told[host+" [bash]"]; !ok || c.Decision != want {
			t.Errorf("%s is told as %+v, want %s", host, c, want)
		}
	}
	if c := told[listed+" [bash]"]; len(connections) != 3 || c.Received == 0 || c.Address != listed {
		t.Errorf("connections: %+v", connections)
	}
}
