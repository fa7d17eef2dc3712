package display

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	"agentctl.dev/agentctl/cmd/agentctl/internal/junit"
	"agentctl.dev/agentctl/runner/policy/policytest"
)

func TestPercentNeverRoundsUpToAHundred(t *testing.T) {
	for share, want := range map[float64]string{100: "100", 99.99: "99.9", 96.875: "96.8", 0: "0", 50: "50"} {
		if got := percent(share); got != want {
			t.Errorf("%v is shown as %s, want %s", share, got, want)
		}
	}
}

func TestGapsAreBounded(t *testing.T) {
	var many []policytest.Gap
	for range maxGaps + 2 {
		many = append(many, policytest.Gap{Name: "a", Never: "true"})
	}
	if got := gaps(many); !strings.HasSuffix(got, "a never true, 2 more)") || gaps(nil) != "" {
		t.Errorf("got %q", got)
	}
}

// hostileReport holds what a manifest of a stranger may hold.
const hostileReport = `{"cases": 2, "failed": 2, "policies": [{"name": "p", "position": {"file": "p.yaml"}, "cases": [
{"name": "a\u001b]52;c;x\u0007<&'\u202e", "position": {"file": "t.yaml", "line": 3, "col": 3}, "agent": "me", "tool": "read", "args": {"path": "\u001b[2J"},
 "want": {"action": "redact", "text": "x"}, "got": {"action": "deny", "rule": "p/r", "message": "m\u001b[31m", "text": "y"}, "rulePosition": {"file": "p.yaml", "line": 4, "col": 1}},
{"name": "b", "position": {"file": "t.yaml"}, "tool": "none", "args": {}, "want": {"action": "deny"}, "got": null, "problem": "there is no tool none"}]},
{"name": "untested", "position": {"file": "q.yaml"}, "cases": []}]}`

func TestWhatFailsIsToldHarmlessly(t *testing.T) {
	report := &policytest.Report{}
	if err := json.Unmarshal([]byte(hostileReport), report); err != nil {
		t.Fatal(err)
	}
	p := PolicyTests{Report: report, Again: "agentctl policy test -f x", Mutate: true}
	var text, written bytes.Buffer
	if err := p.WriteText(&Screen{w: &text}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(text.String(), "\x1b\x07\u202e") {
		t.Errorf("the terminal is told to do something: %q", text.String())
	}
	for _, want := range []string{
		"(agent me)", `want  redact, the text "x"`, `got   deny by p/r: "m`, `the text "y"`, "rule  p.yaml:4:1", "got   there is no tool none",
		"2 of 2 cases failed", "mutants were not tried: a mutant counts as noticed when a case fails, and", "untested  no cases", `'\''`,
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not told:\n%s", want, text.String())
		}
	}
	if err := p.WriteJUnit(&Screen{w: &written}); err != nil {
		t.Fatal(err)
	}
	var back junit.Document
	if err := xml.Unmarshal(written.Bytes(), &back); err != nil {
		t.Fatalf("no XML: %v\n%s", err, written.String())
	}
	if back.Tests != 2 || back.Failures != 2 || len(back.Suites) != 2 || !strings.Contains(back.Suites[0].Cases[0].Failure.Message, "want redact, got deny by p/r") {
		t.Errorf("got %+v", back)
	}
}
