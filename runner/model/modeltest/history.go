package modeltest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/message"
)

// ToMessage is an answer with a result for every call.
func ToMessage(out *message.Output, id string, results ...*message.ToolResult) *message.Message {
	m := &message.Message{ID: id, Role: message.RoleAssistant, Finish: out.Finish, Model: &out.Model}
	if out.Reasoning != "" || len(out.ReasoningMetadata) > 0 {
		m.Parts = append(m.Parts, message.Part{Type: message.PartReasoning, Text: out.Reasoning, Metadata: out.ReasoningMetadata})
	}
	if out.Text != "" {
		m.Parts = append(m.Parts, message.Part{Type: message.PartText, Text: out.Text, Metadata: out.TextMetadata})
	}
	for i, c := range out.Calls {
		p := &message.ToolPart{CallID: c.ID, Tool: c.Tool, Raw: c.Args, State: message.StateCompleted}
		if i < len(results) {
			p.Result = results[i]
		}
		m.Parts = append(m.Parts, message.Part{Type: message.PartTool, Tool: p, Metadata: c.Metadata})
	}
	return m
}

func (s suite) history(t *testing.T) {
	broken := `{"cut": `
	if s.wire.traits().whole {
		broken = `{"cut":null}`
	}
	bad := Answer{Calls: []Call{{ID: "call_c", Tool: "no.such tool", Args: broken}}}
	k := s.talk(t, full.Step(), bad.Step(), Answer{Text: "done"}.Step())
	out, err := k.next(t, t.Context(), message.Request{})
	if err != nil {
		t.Fatal(err)
	}
	exit := 1
	k.say(t, ToMessage(out, "m2", &message.ToolResult{Text: "a.txt"}, &message.ToolResult{Text: "no such file", Code: message.CodeTool, ExitCode: &exit}))
	out, err = k.next(t, t.Context(), message.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if out.Calls[0].Args != broken {
		t.Errorf("broken arguments came as %q, they must stay as they are", out.Calls[0].Args)
	}
	k.say(t, ToMessage(out, "m3", &message.ToolResult{Text: "not JSON", Code: message.CodeBadJSON}))
	if out, err = k.next(t, t.Context(), message.Request{}); err != nil || out.Text != "done" {
		t.Fatalf("third answer: %+v, %v", out, err)
	}
	sent := k.Requests()
	for i := 1; i < len(sent); i++ {
		common := 0
		for common < len(sent[i-1].Body) && sent[i-1].Body[common] == sent[i].Body[common] {
			common++
		}
		if !strings.Contains(string(sent[i-1].Body[:common]), "What is in the folder?") || !strings.Contains(string(sent[i-1].Body[common:]), "]") || len(sent[i].Body) <= len(sent[i-1].Body) {
			t.Errorf("request %d does not extend the one before", i+1)
		}
	}
	for _, want := range append([]string{"a.txt", "no such file", "not JSON"}, s.wire.traits().failed...) {
		if !strings.Contains(string(sent[2].Body), want) {
			t.Errorf("the last request does not hold %q", want)
		}
	}
}

func (s suite) closing(t *testing.T) {
	k := s.talk(t, full.Step(), Answer{Text: "x"}.Step())
	out, err := k.next(t, t.Context(), message.Request{NoTools: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Calls) > 0 || out.Finish != message.FinishStop {
		t.Errorf("a closing answer holds %d calls and finish %s", len(out.Calls), out.Finish)
	}
	if _, err := k.next(t, t.Context(), message.Request{}); err != nil {
		t.Fatal(err)
	}
	sent := k.Requests()
	silent := s.wire.traits().silent
	if strings.Contains(string(sent[0].Body), `"tools"`) && (silent == "" || !strings.Contains(string(sent[0].Body), silent)) || !strings.Contains(string(sent[1].Body), `"tools"`) {
		t.Errorf("tools: the closing request must leave them out or forbid them, the next must have them\n%s\n%s", sent[0].Body, sent[1].Body)
	}
}

func (s suite) aside(t *testing.T) {
	k := s.talk(t, full.Step(), full.Step(), Refuse(429, nil, "{}"), full.Step(), full.Step())
	k.wants(t, wantFull())
	ask := message.Request{ID: "r2", Aside: &message.Aside{System: "Summarise.", Text: "All \"that\" was said.", MaxOutputTokens: 4097}}
	for range 2 { // the second one is sent twice
		out, err := k.next(t, t.Context(), ask)
		if err != nil || len(out.Calls) > 0 || out.Finish != message.FinishStop || out.Text != full.Text {
			t.Fatalf("aside: %+v, %v", out, err)
		}
	}
	k.wants(t, wantFull())
	sent := k.Requests()
	if d := cmp.Diff(string(sent[0].Body), string(sent[4].Body)); d != "" {
		t.Errorf("the conversation has changed (-before +after):\n%s", d)
	}
	body := string(sent[1].Body)
	if string(sent[2].Body) != body || string(sent[3].Body) != body {
		t.Error("equal questions gave different requests")
	}
	for _, part := range []string{"Summarise.", `All \"that\" was said.`, "4097"} {
		if !strings.Contains(body, part) {
			t.Errorf("the question lacks %q: %s", part, body)
		}
	}
	for _, part := range []string{"Be brief.", "What is in the folder?", `"tools"`} {
		if strings.Contains(body, part) {
			t.Errorf("the question holds %q of the conversation: %s", part, body)
		}
	}
}

func (s suite) reset(t *testing.T) {
	k := s.talk(t, full.Step(), full.Step(), full.Step())
	k.wants(t, wantFull())
	long := ToMessage(wantFull(), "m2", &message.ToolResult{Text: "a long result"}, &message.ToolResult{Text: "another"})
	k.say(t, long)
	k.wants(t, wantFull())
	short := *long.Calls()[0]
	short.Compacted, short.Result = 1, &message.ToolResult{Text: "a long result", Blob: "sha256:42"}
	summary := user("What was said before.")
	pruned := &message.Message{ID: "m2", Role: message.RoleAssistant, Parts: []message.Part{{Type: message.PartTool, Tool: &short}}}
	if err := k.Reset([]*message.Message{summary, pruned}); err != nil {
		t.Fatal(err)
	}
	k.say(t, user("Go on."))
	k.wants(t, wantFull())

	fresh := s.talk(t, full.Step())
	if err := fresh.Reset(nil); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*message.Message{summary, pruned, user("Go on.")} {
		fresh.say(t, m)
	}
	fresh.wants(t, wantFull())
	got := string(k.Requests()[2].Body)
	if d := cmp.Diff(string(fresh.Requests()[0].Body), got); d != "" {
		t.Errorf("a conversation that was reset differs from one that began so (-fresh +reset):\n%s", d)
	}
	if strings.Contains(got, "a long result") || !strings.Contains(got, "blob:sha256:42") || strings.Contains(got, "What is in the folder?") {
		t.Errorf("after the reset: %s", got)
	}
}
