package view

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

var begin = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// fold applies events one second apart and fails at the first error.
func fold(t *testing.T, events ...event.Event) *Run {
	t.Helper()
	r := &Run{}
	for i, e := range events {
		e.Seq, e.Run, e.Time = int64(i+1), "r", begin.Add(time.Duration(i)*time.Second)
		if err := r.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func exit(n int) *int { return &n }

var conversation = []event.Event{
	{Message: "u", Part: "p0", Data: event.RunStarted{Agent: "a", Prompt: "hi", Model: message.ModelRef{Name: "m"}, Workspace: event.Workspace{Dir: "/w"}}},
	{Data: event.StepStart{Step: 1}},
	{Message: "m1", Data: event.ModelRequest{Step: 1}},
	{Message: "m1", Part: "p1", Data: event.ReasoningStart{}},
	{Message: "m1", Part: "p1", Data: event.ReasoningDelta{Text: "h"}},
	{Message: "m1", Part: "p1", Data: event.ReasoningEnd{Text: "hm"}},
	{Message: "m1", Part: "p2", Data: event.TextStart{}},
	{Message: "m1", Part: "p2", Data: event.TextDelta{Text: "loo"}},
	{Message: "m1", Part: "p2", Data: event.TextEnd{Text: "looking"}},
	{Message: "m1", Part: "p3", Call: "c1", Data: event.ToolInputStart{Tool: "Bash"}},
	{Message: "m1", Part: "p4", Call: "c2", Data: event.ToolInputStart{Tool: "edit"}},
	{Message: "m1", Data: event.ModelResponse{Model: message.ModelRef{Name: "m"}, Finish: message.FinishToolCalls, Tokens: message.Usage{Input: 3, Output: 2}}},
	{Message: "m1", Call: "c1", Data: event.ToolInputEnd{Tool: "bash", Raw: `{"command":"ls"}`, Input: []byte(`{"command":"ls"}`)}},
	{Message: "m1", Call: "c1", Data: event.PolicyDecision{Decision: message.Decision{Action: message.Ask, Rule: "p/r"}}},
	{Message: "m1", Call: "c2", Data: event.ToolInputEnd{Tool: "edit", Raw: `{"pa`}},
	{Message: "m1", Call: "c2", Data: event.ToolError{ToolResult: message.ToolResult{Code: message.CodeBadJSON, Text: "no"}}},
	{Message: "m1", Call: "c1", Data: event.ApprovalRequested{Tool: "bash"}},
	{Message: "m1", Call: "c1", Data: event.ApprovalDecided{Answer: message.Answer{State: message.Approved}}},
	{Message: "m1", Call: "c1", Data: event.ToolCall{Tool: "bash", Args: []byte(`{"command":"ls"}`)}},
	{Message: "m1", Call: "c1", Data: event.ToolProgress{Text: "x"}},
	{Message: "m1", Call: "c1", Data: event.ToolResult{ToolResult: message.ToolResult{Text: "x", ExitCode: exit(0), DurationMicros: 1500}}},
	{Data: event.StepFinish{Step: 1}},
	{Message: "u2", Part: "p5", Data: event.UserMessage{Text: "again", Synthetic: true}},
	{Data: event.Warning{Message: "careful"}},
	{Data: event.WorkspaceSnapshot{Files: 1}},
	{Data: event.WorkspacePatch{Files: []event.FileChange{{Path: "x", Change: "added"}}}},
	{Data: event.Unknown{Of: "hologram", Raw: []byte(`{}`)}},
	{Data: event.RunFinished{Phase: Succeeded, Reason: "Completed", Output: "done", DurationMs: 9}},
}

func TestFold(t *testing.T) {
	r := fold(t, conversation...)
	if r.ID != "r" || r.Phase != Succeeded || r.Steps != 1 || r.LastSeq != int64(len(conversation)) {
		t.Errorf("run %q, phase %s, steps %d, last %d", r.ID, r.Phase, r.Steps, r.LastSeq)
	}
	if len(r.Messages) != 3 || r.Messages[1].ParentID != "u" || !r.Messages[2].Parts[0].Synthetic {
		t.Fatalf("messages %+v", r.Messages)
	}
	m := r.Messages[1]
	var parts []string
	for _, p := range m.Parts {
		parts = append(parts, string(p.Type)+":"+p.Text)
		if p.Start == 0 || p.Type != message.PartTool && p.End <= p.Start {
			t.Errorf("part %s has no times: %d to %d", p.ID, p.Start, p.End)
		}
	}
	if diff := cmp.Diff([]string{"reasoning:hm", "text:looking", "tool:", "tool:"}, parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if c := r.Call("c1"); c.State != message.StateCompleted || c.Start == 0 || c.End <= c.Start || c.Approval != message.Approved || r.Step("c1") != 1 {
		t.Errorf("call %+v", c)
	}
	if len(r.PendingApprovals) != 0 || m.Time.Completed == 0 || r.Tokens.Total() != 5 {
		t.Errorf("pending %v, completed %d, tokens %+v", r.PendingApprovals, m.Time.Completed, r.Tokens)
	}
}

func TestResultHasEveryKey(t *testing.T) {
	b, err := json.MarshalIndent(fold(t, conversation...).Result("/j"), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want := `{
 "run": "r", "agent": "a", "phase": "Succeeded", "reason": "Completed", "exitCode": 0, "message": "", "output": "done", "steps": 1,
 "toolCalls": [
  {"id": "c1", "tool": "bash", "args": {"command": "ls"}, "decision": "ask", "rule": "p/r", "approval": "approved", "state": "completed", "exitCode": 0, "error": null, "durationMs": 2},
  {"id": "c2", "tool": "edit", "args": "{\"pa", "decision": null, "rule": null, "approval": null, "state": "error", "exitCode": null, "error": "bad_json", "durationMs": 0}
 ],
 "tokens": {"input": 3, "output": 2, "reasoning": 0, "cacheRead": 0, "cacheWrite": 0}, "cost": null, "durationMs": 9,
 "changedFiles": [{"path": "x", "change": "added"}], "warnings": ["careful"], "journal": "/j"
}`
	var got, expected any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &expected); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestEmptyRunHasAResult(t *testing.T) {
	b, err := json.Marshal((&Run{}).Result(""))
	if err != nil || strings.Contains(string(b), `"toolCalls":null`) || strings.Contains(string(b), `"changedFiles":null`) {
		t.Errorf("got %s, %v: lists are never null", b, err)
	}
}

func TestFoldRefusesWhatTheTableForbids(t *testing.T) {
	open := conversation[:10] // c1 is pending
	for name, c := range map[string]struct {
		reason string
		event  event.Event
	}{
		"result without intent": {"a result needs a call that runs", event.Event{Call: "c1", Data: event.ToolResult{}}},
		"unknown call":          {"a result needs a call", event.Event{Call: "cx", Data: event.ToolError{}}},
		"call twice":            {"ids are unique in a run", event.Event{Message: "m1", Call: "c1", Data: event.ToolInputStart{}}},
		"unknown message":       {"a part needs a message", event.Event{Message: "mx", Data: event.TextStart{}}},
		"call, no message":      {"a call needs a message", event.Event{Message: "mx", Call: "c9", Data: event.ToolInputStart{}}},
		"unknown part":          {"an end needs a start", event.Event{Message: "m1", Part: "px", Data: event.TextEnd{}}},
		"response, no request":  {"a response needs a request", event.Event{Message: "mx", Data: event.ModelResponse{}}},
		"retry, no request":     {"so does a retry", event.Event{Message: "mx", Data: event.ModelRetry{}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := fold(t, open...)
			before := r.LastSeq
			c.event.Seq = 99
			if err := r.Apply(c.event); err == nil {
				t.Errorf("%s, but the event was taken", c.reason)
			}
			if r.LastSeq != before {
				t.Error("a refused event counts")
			}
		})
	}
	late := fold(t, conversation...)
	if err := late.Apply(event.Event{Call: "c2", Data: event.ToolResult{}}); err == nil {
		t.Error("a late result after an error was taken")
	}
}

func TestRetryVoidsWhatWasStreamed(t *testing.T) {
	r := fold(t, append(append([]event.Event{}, conversation[:11]...), event.Event{Message: "m1", Data: event.ModelRetry{}})...)
	if len(r.Message().Parts) != 0 || r.Call("c1") != nil {
		t.Errorf("the void attempt left %+v", r.Message().Parts)
	}
}

func BenchmarkApplyDelta(b *testing.B) {
	r := &Run{}
	for _, e := range conversation[:7] {
		if err := r.Apply(e); err != nil {
			b.Fatal(err)
		}
	}
	e := event.Event{Message: "m1", Part: "p2", Data: event.TextDelta{Text: "word"}}
	for b.Loop() {
		if err := r.Apply(e); err != nil {
			b.Fatal(err)
		}
	}
}
