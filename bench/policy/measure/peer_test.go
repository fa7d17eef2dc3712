package measure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

// policyText is a policy of another corpus in a manifest with an agent.
const policyText = `kind: Agent
---
kind: Policy
spec:
  permissions:
  - {permission: "*", pattern: "*", action: allow}
  - {permission: bash, pattern: "make *", action: ask}
  - {permission: bash, pattern: "make clean *", action: deny}
  - {permission: edit, pattern: "docs/*", action: deny}
  rules:
  - {name: stay-inside}
`

func TestAListIsWrittenAsOtherProgramsReadIt(t *testing.T) {
	corpora, _ := smallCorpus(t)
	b := &bench{options: options{corpora: corpora}}
	if err := os.WriteFile(b.corpus("shell-attacks/policies/p.yaml"), []byte(policyText), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := b.readList("p")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"*": "allow", "bash": {"make *": "ask", "make clean *": "deny"}, "edit": {"docs/*": "deny"}, "external_directory": "deny"}`
	if got := openCodePermissions(l); got != want || !json.Valid([]byte(got)) {
		t.Errorf("OpenCode: got %s, want %s", got, want)
	}
	want = "prefix_rule(pattern=[\"make\"], decision=\"prompt\")\nprefix_rule(pattern=[\"make\",\"clean\"], decision=\"forbidden\")\n"
	if got := codexRules(l); got != want {
		t.Errorf("Codex: got %s, want %s", got, want)
	}
}

func TestAProgramInPlaceOfAShellRunsNothing(t *testing.T) {
	for name, want := range map[string]string{"/usr/bin/bash": stubText + "\n", "sh": stubText + "\n", "/x/policy": ""} {
		var out bytes.Buffer
		if got := Stub(name, &out); got != (want != "") || out.String() != want {
			t.Errorf("%s: %t, %q", name, got, out.String())
		}
	}
}

func TestTheScriptedModelCallsAShellOnceForEachCommand(t *testing.T) {
	m, err := startModel()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.close(); err != nil {
			t.Error(err)
		}
	})
	m.ask(`cat <a "b"`)
	cases := map[string]struct{ reason, path, body, want string }{
		"chat":            {"a call", "/chat/completions", `{"tools":[{}],"messages":[{"role":"user"}]}`, `"name":"bash"`},
		"the command":     {"as it is", "/chat/completions", `{"tools":[{}],"messages":[{"role":"user"}]}`, `{\"command\":\"cat <a \\\"b\\\"\"`},
		"chat, a title":   {"no tools, no call", "/chat/completions", `{"messages":[{"role":"user"}]}`, `"content":"done"`},
		"chat, a result":  {"the end", "/chat/completions", `{"tools":[{}],"messages":[{"role":"user"},{"role":"tool"}]}`, `"finish_reason":"stop"`},
		"responses":       {"a call", "/responses", `{"input":[{"type":"message"}]}`, `"name":"exec_command"`},
		"a response ends": {"the end", "/responses", `{"input":[{"type":"function_call_output","output":"it ran"}]}`, `"text":"done"`},
	}
	for name, c := range cases {
		if got := post(t, m.url+c.path, c.body); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s: got %s", name, c.reason, got)
		}
	}
	if got := m.result(); got != `"it ran"` {
		t.Errorf("the result is %s", got)
	}
}

func post(t *testing.T, url, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDecisionsThatCannotBeReadAreNotAllowed(t *testing.T) {
	peers := tally{codex: {"allow": 1, "ask": 2, unclear: 1}}
	r := &report{part: "p"}
	r.share("s", 1, 4, nil).Peers = peers.shares(4)
	peers.noteUnclear(r)
	var out bytes.Buffer
	if err := r.write(&out, "text"); err != nil || !strings.Contains(out.String(), "1 decisions of Codex could not be read") {
		t.Errorf("%v: %s", err, out.String())
	}
	if got := fmt.Sprint(r.row(r.Figures[0])); !strings.HasSuffix(got, " 25]") || !strings.Contains(out.String(), codex) || strings.Contains(out.String(), openCode) {
		t.Errorf("got %s in %s", got, out.String())
	}
}

func TestStoppingTwiceEnds(t *testing.T) {
	m, err := startModel()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{model: m}
	if err := errors.Join(b.stopPeers(), b.stopPeers()); err != nil {
		t.Error(err)
	}
}
