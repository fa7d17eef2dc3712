package view

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

var begin = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// fold applies events one second apart and fails at the first error.
func fold(t testing.TB, events ...event.Event) *Run {
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
	{Message: "m1", Part: "ps", Data: event.ModelRequest{Step: 1}},
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
	{Message: "m1", Part: "pf", Data: event.StepFinish{Step: 1, Finish: message.FinishToolCalls, Tokens: message.Usage{Input: 3, Output: 2}}},
	{Message: "u2", Part: "p5", Data: event.UserMessage{Text: "again", Synthetic: true}},
	{Data: event.Warning{Message: "careful"}},
	{Part: "p6", Data: event.WorkspaceSnapshot{Snapshot: "s", Files: 1}},
	{Part: "p7", Data: event.WorkspacePatch{Change: "h", Files: []event.FileChange{{Path: "x", Change: "added"}}}},
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
	for _, p := range append(m.Parts, r.Messages[2].Parts...) {
		parts = append(parts, p.ID+" "+string(p.Type)+":"+p.Text)
		if p.Start == 0 || p.End < p.Start {
			t.Errorf("part %s has no times: %d to %d", p.ID, p.Start, p.End)
		}
	}
	want := []string{
		"ps step-start:", "p1 reasoning:hm", "p2 text:looking", "p3 tool:", "p4 tool:", "pf step-finish:",
		"p5 text:again", "p6 snapshot:", "p7 patch:",
	}
	if diff := cmp.Diff(want, parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if p := r.Messages[2].Parts[2].Patch; p.Hash != "h" || len(p.Files) != 1 || p.Files[0] != "x" || r.Snapshot != "s" {
		t.Errorf("patch %+v, snapshot %q", p, r.Snapshot)
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
 "run": "r", "object": null, "agent": "a", "phase": "Succeeded", "reason": "Completed", "exitCode": 0, "message": "", "output": "done", "structured": null, "steps": 1, "calls": {"done": 1, "refused": 0, "asked": 1, "repaired": 1},
 "toolCalls": [
  {"id": "c1", "tool": "bash", "args": {"command": "ls"}, "decision": "ask", "rule": "p/r", "source": null, "approval": "approved", "state": "completed", "exitCode": 0, "error": null, "durationMs": 2, "exceeded": []},
  {"id": "c2", "tool": "edit", "args": "{\"pa", "decision": null, "rule": null, "source": null, "approval": null, "state": "error", "exitCode": null, "error": "bad_json", "durationMs": 0, "exceeded": []}
 ],
 "tokens": {"input": 3, "output": 2, "reasoning": 0, "cacheRead": 0, "cacheWrite": 0}, "cost": null, "durationMs": 9,
 "changedFiles": [{"path": "x", "change": "added"}], "diffSummary": {"files": 0, "added": 0, "modified": 0, "deleted": 0, "linesAdded": 0, "linesRemoved": 0}, "evidence": [], "publish": [], "warnings": ["careful"], "journal": "/j"
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

func TestAnOutputThatFitsItsSchemaIsThereParsed(t *testing.T) {
	for name, c := range map[string]struct {
		reason   string
		finished event.RunFinished
		want     string
	}{
		"object":  {"as it was written: numbers are not rounded", event.RunFinished{Output: `{"n":12345678901234567890}`, Structured: true}, `{"n":12345678901234567890}`},
		"text":    {"an agent without a schema", event.RunFinished{Output: `{"n":1}`}, "null"},
		"partial": {"an answer that did not fit", event.RunFinished{Output: `{"n":`}, "null"},
		"hidden":  {"what is hidden in it has broken it", event.RunFinished{Output: `{"n":[redacted:KEY]}`, Structured: true}, "null"},
	} {
		b, err := json.Marshal((&Run{Finished: &c.finished}).Result(""))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !strings.Contains(string(b), `"structured":`+c.want+",") {
			t.Errorf("%s: %s: got %s, want structured %s", name, c.reason, b, c.want)
		}
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
		"answer of a user":      {"only the model answers", event.Event{Message: "u", Data: event.ModelResponse{}}},
		"text of a user":        {"and streams", event.Event{Message: "u", Data: event.TextStart{}}},
		"call of a user":        {"and calls tools", event.Event{Message: "u", Call: "c9", Data: event.ToolInputStart{}}},
		"end of another kind":   {"a text does not end a call", event.Event{Message: "m1", Part: "p3", Data: event.TextEnd{}}},
		"end twice":             {"a part ends once", event.Event{Message: "m1", Part: "p2", Data: event.TextEnd{}}},
		"piece of no call":      {"arguments need a call", event.Event{Message: "m1", Call: "cx", Data: event.ToolInputDelta{}}},
		"summary":               {"an answer is no summary", event.Event{Message: "m1", Data: event.ContextCompaction{}}},
		"prune without result":  {"only a result can be pruned", event.Event{Data: event.ContextPrune{Calls: []event.PrunedCall{{Call: "c1"}}}}},
		"message twice":         {"ids are unique in a run", event.Event{Message: "m1", Data: event.ModelRequest{}}},
		"user's message twice":  {"of users as well", event.Event{Message: "u", Data: event.UserMessage{}}},
		"step of no message":    {"a step needs a message", event.Event{Message: "mx", Data: event.StepFinish{}}},
		"begin twice":           {"a run begins once", event.Event{Message: "u9", Data: event.RunStarted{}}},
		"resume, same process":  {"each process has a number of its own", event.Event{Data: event.RunResumed{Attempt: 1}}},
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
}

func TestNothingComesBeforeTheBeginOrAfterTheEnd(t *testing.T) {
	for _, p := range event.Payloads() {
		switch p.(type) {
		case event.Warning, event.RunFinished, event.WorkspaceSnapshot, event.WorkspacePatch:
			continue // what went wrong, and the end itself, can always be told
		}
		e := event.Event{Message: "m", Part: "p", Call: "c2", Data: p}
		if err := (&Run{}).Apply(e); p.Type() != event.TypeRunStarted && err == nil {
			t.Errorf("%s came before the begin", p.Type())
		}
		if err := fold(t, conversation...).Apply(e); err == nil {
			t.Errorf("%s came after the end", p.Type())
		}
	}
	suspended := fold(t, append(conversation[:17:17], event.Event{Data: event.RunFinished{Phase: Suspended}})...)
	if err := suspended.Apply(event.Event{Message: "m2", Data: event.ModelRequest{}}); err == nil {
		t.Error("a suspended run went on without a resume")
	}
}

func TestAChangeThatAPersonAppliesAfterTheEndIsNotOneOfTheRun(t *testing.T) {
	r := fold(t, conversation...)
	if err := r.Apply(event.Event{Data: event.WorkspaceApplied{Source: "/src", Files: 1, By: "jane@pts/3"}}); err != nil || r.Applied != nil || r.AppliedLater != 1 || r.Phase != Succeeded {
		t.Errorf("got %v, applied %v, phase %s", err, r.Applied, r.Phase)
	}
}

func TestAnAnswerIsCountedOnce(t *testing.T) {
	r := fold(t, conversation[:12]...)
	if err := r.Apply(event.Event{Message: "m1", Data: event.ModelResponse{Tokens: message.Usage{Input: 9}}}); err == nil || r.Tokens.Total() != 5 {
		t.Errorf("error %v, tokens %d", err, r.Tokens.Total())
	}
	if err := r.Apply(event.Event{Message: "m1", Data: event.ModelRetry{}}); err == nil || r.Call("c1") == nil {
		t.Error("an answer that is complete was made void")
	}
}

func TestCallsMoveByTheTable(t *testing.T) {
	result, failed := event.ToolResult{}, event.ToolError{ToolResult: message.ToolResult{Code: message.CodeTool}}
	for name, c := range map[string]struct {
		reason string
		moves  []event.Payload
		want   message.ToolState
		legal  bool // whether the last move is
	}{
		"intent":         {"a call that is allowed runs", []event.Payload{event.ToolCall{}}, message.StateRunning, true},
		"refused":        {"one that is refused never runs", []event.Payload{failed}, message.StateError, true},
		"result":         {"a result ends it", []event.Payload{event.ToolCall{}, result}, message.StateCompleted, true},
		"error":          {"so does an error", []event.Payload{event.ToolCall{}, failed}, message.StateError, true},
		"late result":    {"a result after an error is too late", []event.Payload{event.ToolCall{}, failed, result}, message.StateError, false},
		"late error":     {"an error after a result is, too", []event.Payload{event.ToolCall{}, result, failed}, message.StateCompleted, false},
		"run again":      {"what has ended does not run", []event.Payload{event.ToolCall{}, result, event.ToolCall{Attempt: 2}}, message.StateCompleted, false},
		"twice":          {"a call runs once in a process", []event.Payload{event.ToolCall{}, event.ToolCall{}}, message.StateRunning, false},
		"second attempt": {"a second attempt needs a second process", []event.Payload{event.ToolCall{}, event.ToolCall{Attempt: 2}}, message.StateRunning, false},
		"resumed":        {"after a crash it may run again", []event.Payload{event.ToolCall{}, event.RunResumed{Attempt: 2}, event.ToolCall{Attempt: 2}}, message.StateRunning, true},
		"resumed twice":  {"once", []event.Payload{event.ToolCall{}, event.RunResumed{Attempt: 2}, event.ToolCall{Attempt: 2}, event.ToolCall{Attempt: 3}}, message.StateRunning, false},
		"third process":  {"in every process", []event.Payload{event.ToolCall{}, event.RunResumed{Attempt: 2}, event.RunResumed{Attempt: 3}, event.ToolCall{Attempt: 2}, event.RunResumed{Attempt: 4}, event.ToolCall{Attempt: 3}}, message.StateRunning, true},
		"same attempt":   {"under a new number", []event.Payload{event.ToolCall{}, event.RunResumed{Attempt: 2}, event.ToolCall{Attempt: 1}}, message.StateRunning, false},
		"skipped":        {"the next one", []event.Payload{event.ToolCall{}, event.RunResumed{Attempt: 3}, event.ToolCall{Attempt: 3}}, message.StateRunning, false},
		"input of ended": {"a call that has ended stays as it is", []event.Payload{failed, event.ToolInputEnd{Raw: "x"}}, message.StateError, false},
		"asked of ended": {"nobody is asked about it", []event.Payload{failed, event.ApprovalRequested{}}, message.StateError, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := fold(t, conversation[:13]...)
			var err error
			for i, p := range c.moves {
				if err = r.Apply(event.Event{Message: "m1", Call: "c1", Time: begin.Add(time.Minute), Data: p}); err != nil && i < len(c.moves)-1 {
					t.Fatal(err)
				}
			}
			if (err == nil) != c.legal || r.Call("c1").State != c.want {
				t.Errorf("%s: state %s, error %v", c.reason, r.Call("c1").State, err)
			}
			if err := r.legal(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRetryVoidsWhatWasStreamed(t *testing.T) {
	again := []event.Event{
		{Message: "m1", Part: "p5", Data: event.ModelRetry{Retry: message.Retry{Attempt: 1, Attempts: 5, Class: "stream"}}},
		{Message: "m1", Part: "p6", Call: "c1", Data: event.ToolInputStart{Tool: "bash"}},
	}
	r := fold(t, append(conversation[:11:11], again...)...)
	var parts []string
	for _, p := range r.Message().Parts {
		parts = append(parts, p.ID+" "+string(p.Type))
	}
	if diff := cmp.Diff([]string{"ps step-start", "p5 retry", "p6 tool"}, parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if p := r.Message().Parts[1]; p.Retry.Class != "stream" || p.Start == 0 || p.End == 0 {
		t.Errorf("retry %+v", p)
	}
	if r.Call("c2") != nil || r.Step("c2") != 0 || r.Call("c1") != r.Message().Parts[2].Tool {
		t.Error("calls of a void attempt are there")
	}
}

func TestArgumentsAreKeptFromTheAnswerOn(t *testing.T) {
	writing := []event.Event{
		{Message: "m1", Call: "c1", Data: event.ToolInputDelta{Text: `{"comm`}},
		{Message: "m1", Call: "c2", Data: event.ToolInputDelta{Text: `x`}},
		{Message: "m1", Call: "c1", Data: event.ToolInputDelta{Text: `and":`}},
	}
	r := fold(t, append(conversation[:11:11], writing...)...)
	if r.Call("c1").Raw != "" {
		t.Error("arguments count before the answer is complete")
	}
	r = fold(t, append(append(conversation[:11:11], writing...), conversation[11])...)
	if a, b := r.Call("c1").Raw, r.Call("c2").Raw; a != `{"command":` || b != "x" {
		t.Errorf("arguments %q and %q", a, b)
	}
	if err := r.Apply(event.Event{Message: "m1", Call: "c1", Data: event.ToolInputDelta{Text: "}"}}); err == nil {
		t.Error("arguments came after the answer")
	}
}

func TestCostIsKnownOrNot(t *testing.T) {
	cost := message.Cost(5)
	ask := func(id string, cost *message.Cost) []event.Event {
		return []event.Event{
			{Message: id, Part: "p", Data: event.ModelRequest{Step: 1}},
			{Message: id, Data: event.ModelResponse{Cost: cost, Tokens: message.Usage{Input: 1}}},
		}
	}
	known := append(conversation[:2:2], append(ask("m1", &cost), ask("m2", &cost)...)...)
	if r := fold(t, known...); r.Cost != 10 || r.Unpriced || *r.Messages[1].Cost != 5 {
		t.Errorf("cost %s, unpriced %v", r.Cost, r.Unpriced)
	}
	if r := fold(t, append(known, ask("m3", nil)...)...); r.Cost != 10 || !r.Unpriced || r.Tokens.Input != 3 {
		t.Errorf("cost %s, unpriced %v", r.Cost, r.Unpriced)
	}
}

func TestProgressIsThereWhileACallRuns(t *testing.T) {
	if c := fold(t, conversation[:20]...).Call("c1"); c.Progress != "x" {
		t.Errorf("progress %q", c.Progress)
	}
	late := append(conversation[:21:21], conversation[19]) // a last piece behind the result
	if c := fold(t, late...).Call("c1"); c.Progress != "" || c.Result.Text != "x" {
		t.Errorf("progress %q, result %+v", c.Progress, c.Result)
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

// What one step costs the fold must not depend on how many there were.
func BenchmarkApplyStep(b *testing.B) {
	for _, before := range []int{10, 10_000} {
		b.Run(fmt.Sprint("after=", before), func(b *testing.B) {
			r := fold(b, conversation[0])
			n := 0
			step := func() {
				n++
				id := fmt.Sprint(n)
				for _, e := range conversation[1:22] {
					if e.Message != "" {
						e.Message += id
					}
					if e.Call != "" {
						e.Call += id
					}
					if err := r.Apply(e); err != nil {
						b.Fatal(err)
					}
				}
			}
			for range before {
				step()
			}
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}
