package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func (w *world) types() []string {
	var types []string
	for _, e := range w.events {
		name := string(e.Type())
		if e.Call != "" {
			name += " " + e.Call
		}
		types = append(types, name)
	}
	return types
}

func (w *world) result(call string) message.ToolResult {
	for _, e := range w.events {
		if e.Call != call {
			continue
		}
		switch d := e.Data.(type) {
		case event.ToolResult:
			return d.ToolResult
		case event.ToolError:
			return d.ToolResult
		}
	}
	w.t.Fatalf("call %s has no result", call)
	return message.ToolResult{}
}

func (w *world) ran() (ids []string) {
	for _, l := range w.log {
		if id, ok := strings.CutPrefix(l, "run "); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

func TestTurnIsToldInOrder(t *testing.T) {
	w := newWorld(t, calls(`Read {"path":"x"}`), say("done"))
	w.answers[0].out.Text = "let me look"
	w.answers[0].emit = []message.Delta{
		{Kind: message.DeltaText, Text: "let me "},
		{Kind: message.DeltaText, Text: "look"},
		{Kind: message.DeltaTool, Index: 0, Tool: "Read", Call: "c0-Read", Text: `{"path":`},
		{Kind: message.DeltaTool, Index: 0, Text: `"x"}`},
	}
	end := w.start(t.Context())
	if end.Reason != reason.Completed || end.Output != "done" {
		t.Fatalf("got %+v, want Completed with the answer", end)
	}
	want := []string{
		"run.started", "step.start", "model.request", "text.start", "text.delta",
		"tool.input-start c0-Read", "tool.input-delta c0-Read", "text.delta", "text.end", "tool.input-delta c0-Read", "model.response",
		"tool.input-end c0-Read", "warning c0-Read", "policy.decision c0-Read", "tool.call c0-Read", "tool.result c0-Read", "step.finish",
		"step.start", "model.request", "text.start", "text.end", "model.response", "step.finish",
	}
	if diff := cmp.Diff(want, w.types()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestPiecesMakeUpTheWhole(t *testing.T) {
	a := calls(`a {"path":"x"}`)
	for i := range 700 {
		a.out.Text += "word " + strconv.Itoa(i*i) + " "
		a.out.Reasoning += "hm " + strconv.Itoa(i*i) + " "
	}
	cut := func(kind message.DeltaKind, text string) {
		for i := 0; i < len(text); i += 7 {
			a.emit = append(a.emit, message.Delta{Kind: kind, Text: text[i:min(i+7, len(text))], Tool: "a", Call: "c0-a"})
		}
	}
	cut(message.DeltaReasoning, a.out.Reasoning)
	cut(message.DeltaText, a.out.Text)
	cut(message.DeltaTool, a.out.Calls[0].Args)
	w := newWorld(t, a, say("done"))
	w.start(t.Context())
	pieces := map[string]string{}
	for _, e := range w.events {
		switch d := e.Data.(type) {
		case event.TextDelta:
			pieces["text"] += d.Text
		case event.ReasoningDelta:
			pieces["reasoning"] += d.Text
		case event.ToolInputDelta:
			pieces["call"] += d.Text
		}
	}
	want := map[string]string{"text": a.out.Text, "reasoning": a.out.Reasoning, "call": a.out.Calls[0].Args}
	if diff := cmp.Diff(want, pieces); diff != "" {
		t.Errorf("pieces (-want +got):\n%s", diff)
	}
	if n := len(w.events); n > 400 {
		t.Errorf("%d events for one answer: pieces are gathered", n)
	}
}

// What a provider wants back goes with the part it came with, also where the
// reasoning has no words.
func TestMetadataStaysWithItsPart(t *testing.T) {
	a := calls(`a {}`, `b {}`)
	a.out.Text, a.out.TextMetadata = "I look.", json.RawMessage(`{"id":"msg_1"}`)
	a.out.ReasoningMetadata = json.RawMessage(`{"encrypted":"x"}`)
	a.out.Calls[1].Metadata = json.RawMessage(`{"signature":"s"}`)
	w := newWorld(t, a, say("done"))
	w.start(t.Context())
	got := map[message.PartType][]string{}
	for _, p := range w.appended[1].Parts {
		if p.Type == message.PartText || p.Type == message.PartReasoning || p.Type == message.PartTool {
			got[p.Type] = append(got[p.Type], string(p.Metadata))
		}
	}
	want := map[message.PartType][]string{
		message.PartText: {`{"id":"msg_1"}`}, message.PartReasoning: {`{"encrypted":"x"}`}, message.PartTool: {"", `{"signature":"s"}`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metadata of the parts (-want +got):\n%s", diff)
	}
}

func TestResultsReturnInCallOrder(t *testing.T) {
	w := newWorld(t, calls(`a {}`, `b {}`, `c {}`), say("done"))
	var first, second sync.WaitGroup
	first.Add(1)
	second.Add(1)
	w.run = func(_ context.Context, c message.ToolCall) (*message.ToolResult, error) {
		switch c.Tool { // c ends before b, b before a
		case "a":
			second.Wait()
		case "b":
			first.Wait()
			defer second.Done()
		case "c":
			defer first.Done()
		}
		return &message.ToolResult{Text: c.Tool}, nil
	}
	w.start(t.Context())
	var got []string
	for _, c := range w.appended[1].Calls() {
		got = append(got, c.Result.Text)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

func TestExclusiveCallRunsAlone(t *testing.T) {
	w := newWorld(t, calls(`a {}`, `b {}`, `alone {}`, `c {}`), say("done"))
	var mu sync.Mutex
	running := map[string]bool{}
	w.run = func(_ context.Context, c message.ToolCall) (*message.ToolResult, error) {
		mu.Lock()
		if c.Tool == "alone" && len(running) > 0 || running["alone"] {
			t.Errorf("%s runs beside %v", c.Tool, running)
		}
		running[c.Tool] = true
		mu.Unlock()
		mu.Lock()
		delete(running, c.Tool)
		mu.Unlock()
		return &message.ToolResult{Text: "ok"}, nil
	}
	w.start(t.Context())
	if got := w.ran(); len(got) != 4 {
		t.Errorf("ran %v, want all four", got)
	}
}

func TestParallelCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, calls(`a {}`, `b {}`, `c {}`, `d {}`, `e {}`), say("done"))
		var mu sync.Mutex
		running, most := 0, 0
		w.run = func(context.Context, message.ToolCall) (*message.ToolResult, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Second) // fake time: all that may overlap does
			mu.Lock()
			running--
			mu.Unlock()
			return &message.ToolResult{Text: "ok"}, nil
		}
		w.start(t.Context(), func(c *Config) { c.Limits.MaxParallel = 2 })
		if most != 2 {
			t.Errorf("at most %d calls ran at once, want 2", most)
		}
	})
}

// A run of which no call was allowed has not succeeded, whatever its answer says.
func TestARunWithoutAnAllowedCallIsDenied(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		steps  []answer
		end    reason.Reason
		counts message.CallCounts
	}{
		"denied":           {"every judged call was refused", []answer{calls("deny {}", `deny {"n":1}`)}, reason.Denied, message.CallCounts{Refused: 2}},
		"unanswered":       {"or asked about, and no one answered", []answer{calls("ask {}"), calls("deny {}")}, reason.Denied, message.CallCounts{Refused: 2, Asked: 1}},
		"one ran":          {"one call that ran is work", []answer{calls("deny {}", "a {}")}, reason.Completed, message.CallCounts{Refused: 1, Done: 1}},
		"one failed":       {"a call that started and failed was not refused", []answer{calls("deny {}", "fail {}")}, reason.Completed, message.CallCounts{Refused: 1, Done: 1}},
		"fails as refused": {"whatever code its tool gave", []answer{calls("deny {}", "faildenied {}")}, reason.Completed, message.CallCounts{Refused: 1, Done: 1}},
		"no calls":         {"an answer without calls is an answer", nil, reason.Completed, message.CallCounts{}},
		"invalid":          {"a call that was never judged was not refused", []answer{calls("none {}")}, reason.Completed, message.CallCounts{}},
		"repaired":         {"a repaired name is counted", []answer{calls("READ {}")}, reason.Completed, message.CallCounts{Done: 1, Repaired: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(c.steps, say("done"))...)
			w.decide = func(c message.ToolCall) (message.Decision, error) {
				switch c.Tool {
				case "deny":
					return message.Decision{Action: message.Deny, Rule: "p/r"}, nil
				case "ask":
					return message.Decision{Action: message.Ask, Rule: "p/r"}, nil
				}
				return message.Decision{Action: message.Allow}, nil
			}
			w.run = func(_ context.Context, c message.ToolCall) (*message.ToolResult, error) {
				switch c.Tool {
				case "fail":
					return &message.ToolResult{Code: message.CodeTool, Text: "broken"}, nil
				case "faildenied":
					return &message.ToolResult{Code: message.CodeDenied, Text: "permission denied"}, nil
				}
				return &message.ToolResult{Text: "ok"}, nil
			}
			var v *view.Run
			end := w.start(t.Context(), func(c *Config) { v = c.View })
			if end.Reason != c.end || end.Output != "done" {
				t.Errorf("%s: ended %s (%s) with %q, want %s", c.reason, end.Reason, end.Message, end.Output, c.end)
			}
			if got := v.Result("").Calls; got != c.counts {
				t.Errorf("%s: counted %+v, want %+v", c.reason, got, c.counts)
			}
			var steps message.CallCounts
			for _, e := range w.events {
				if d, ok := e.Data.(event.StepFinish); ok && d.Calls != nil {
					steps = steps.Add(*d.Calls)
				}
			}
			if steps != c.counts {
				t.Errorf("%s: the steps count %+v, want %+v", c.reason, steps, c.counts)
			}
		})
	}
}

// Calls beyond the limit of one answer are results the model reads, not the end.
func TestTooManyCallsInOneAnswerGetAnErrorResult(t *testing.T) {
	var list []string
	for i := range mostCalls + 12 {
		list = append(list, fmt.Sprintf(`a {"n":%d}`, i))
	}
	w := newWorld(t, calls(list...), say("done"))
	var v *view.Run
	end := w.start(t.Context(), func(c *Config) { v = c.View })
	if end.Reason != reason.Completed || len(w.ran()) != mostCalls {
		t.Fatalf("ended %s (%s) after %d calls, want %d and Completed", end.Reason, end.Message, len(w.ran()), mostCalls)
	}
	refused := 0
	for _, m := range v.Messages {
		for _, c := range m.Calls() {
			if c.Result == nil {
				t.Fatalf("call %s has no result", c.CallID)
			}
			if c.Result.Code == message.CodeOutputLimit {
				refused++
			}
		}
	}
	if refused != 12 {
		t.Errorf("%d calls got the error result, want 12", refused)
	}
}

func TestUnknownToolIsAWarning(t *testing.T) {
	w := newWorld(t, calls("none {}"), say("done"))
	var v *view.Run
	w.start(t.Context(), func(c *Config) { v = c.View })
	if len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0], `"none"`) {
		t.Errorf("warnings %q, want one that names the tool", v.Warnings)
	}
}

func TestDecisions(t *testing.T) {
	unanswered := message.Answer{State: message.Unanswered}
	for name, c := range map[string]struct {
		reason   string
		decision message.Decision
		err      error
		answer   message.Answer
		askErr   error
		then     answer
		ran      bool
		code     message.ErrorCode
		end      reason.Reason
	}{
		"allow":           {reason: "an allowed call runs", decision: message.Decision{Action: message.Allow}, then: say("done"), ran: true, end: reason.Completed},
		"deny":            {reason: "a denied call is a result the model reads", decision: message.Decision{Action: message.Deny, Rule: "p/r"}, then: say("done"), code: message.CodeDenied, end: reason.Denied},
		"deny, no answer": {reason: "without a final answer the refusal is the reason", decision: message.Decision{Action: message.Deny}, then: say(""), code: message.CodeDenied, end: reason.Denied},
		"zero":            {reason: "an unknown decision is a refusal", then: say("done"), code: message.CodeDenied, end: reason.Denied},
		"error":           {reason: "an error is a refusal, whatever the action", decision: message.Decision{Action: message.Allow}, err: errors.New("x"), then: say("done"), code: message.CodeDenied, end: reason.Denied},
		"approved":        {reason: "an approved call runs", decision: message.Decision{Action: message.Ask}, answer: message.Answer{State: message.Approved}, then: say("done"), ran: true, end: reason.Completed},
		"unanswered":      {reason: "the model reads that nobody answered", decision: message.Decision{Action: message.Ask}, answer: unanswered, then: say("done"), code: message.CodeDenied, end: reason.Denied},
		"unanswered, none": {
			reason: "without a final answer the open question is the reason", decision: message.Decision{Action: message.Ask},
			answer: unanswered, then: say(""), code: message.CodeDenied, end: reason.ApprovalRequired,
		},
		"ask fails":      {reason: "a broken approver answers nothing", decision: message.Decision{Action: message.Ask}, askErr: errors.New("no tty"), then: say("done"), code: message.CodeDenied, end: reason.Denied},
		"rejected":       {reason: "a rejection is a result the model reads, and the run continues", decision: message.Decision{Action: message.Ask}, answer: message.Answer{State: message.Rejected}, then: say("done"), code: message.CodeRejected, end: reason.Denied},
		"rejected, end":  {reason: "a person may end the run with the call", decision: message.Decision{Action: message.Ask}, answer: message.Answer{State: message.Rejected, EndRun: true}, then: say("done"), code: message.CodeRejected, end: reason.Denied},
		"rejected, none": {reason: "without a final answer the rejection is the reason", decision: message.Decision{Action: message.Ask}, answer: message.Answer{State: message.Rejected}, then: say(""), code: message.CodeRejected, end: reason.Denied},
		"rejected, why":  {reason: "a rejection with a reason is for the model", decision: message.Decision{Action: message.Ask}, answer: message.Answer{State: message.Rejected, Reason: "use the API"}, then: say("done"), code: message.CodeRejected, end: reason.Denied},
		"redact":         {reason: "a redacted call runs with other arguments", decision: message.Decision{Action: message.Redact, Args: []byte(`{"x":"***"}`)}, then: say("done"), ran: true, end: reason.Completed},
		"suspend":        {reason: "a suspended run waits with its call open", decision: message.Decision{Action: message.Ask}, answer: message.Answer{Suspend: true}, end: reason.ApprovalRequired},
		"fail on denied": {reason: "a stricter run is not completed after a refusal", decision: message.Decision{Action: message.Deny, Rule: "strict"}, then: say("done"), code: message.CodeDenied, end: reason.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, calls(`a {"x":"secret"}`), c.then, say(""))
			w.decide = func(message.ToolCall) (message.Decision, error) { return c.decision, c.err }
			w.ask = func(context.Context, message.Question) (message.Answer, error) { return c.answer, c.askErr }
			w.run = func(_ context.Context, call message.ToolCall) (*message.ToolResult, error) {
				if len(c.decision.Args) > 0 && string(call.Args) != string(c.decision.Args) {
					t.Errorf("ran with %s, want the redacted arguments", call.Args)
				}
				return &message.ToolResult{Text: "ok"}, nil
			}
			end := w.start(t.Context(), func(cfg *Config) { cfg.Answer.FailOnDenied = c.decision.Rule == "strict" })
			if end.Reason != c.end {
				t.Errorf("%s: ended %s (%s), want %s", c.reason, end.Reason, end.Message, c.end)
			}
			if got := len(w.ran()) > 0; got != c.ran {
				t.Errorf("%s: ran = %v, want %v", c.reason, got, c.ran)
			}
			if c.answer.Suspend {
				if !end.Suspended || slices.Contains(w.types(), "tool.error c0-a") {
					t.Errorf("%s: %+v, events %v", c.reason, end, w.types())
				}
			} else if got := w.result("c0-a"); got.Code != c.code {
				t.Errorf("%s: code %q, want %q (%s)", c.reason, got.Code, c.code, got.Text)
			}
		})
	}
}

func TestCallsThatWaitedAreJudgedAgain(t *testing.T) {
	allow := message.Decision{Action: message.Allow}
	ask := message.Decision{Action: message.Ask, Hash: "h"}
	deny := message.Decision{Action: message.Deny, Rule: "p/moved"}
	for name, c := range map[string]struct {
		reason       string
		calls        []string
		first, again message.Decision
		judged       int
		ran          bool
	}{
		"alone":          {"a call that runs at once is judged once", []string{"a {}"}, allow, deny, 1, true},
		"asked":          {"a person took time", []string{"a {}"}, ask, deny, 2, false},
		"asked, same":    {"nothing has changed", []string{"a {}"}, ask, ask, 2, true},
		"asked, milder":  {"a milder answer is no obstacle", []string{"a {}"}, ask, allow, 2, true},
		"asked, other":   {"the approval was for another question, so the other is asked", []string{"a {}"}, ask, message.Decision{Action: message.Ask, Hash: "g"}, 3, true},
		"sibling":        {"another call ran beside", []string{"a {}", "b {}"}, allow, deny, 4, false},
		"sibling, asked": {"an allowed call that is now asked about is asked about", []string{"a {}", "b {}"}, allow, ask, 6, true},
		"behind":         {"an exclusive call ran before", []string{"alone {}", "a {}"}, allow, deny, 3, true},
		"no answer":      {"no decision is a refusal", []string{"a {}"}, ask, message.Decision{}, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, calls(c.calls...), say("done"))
			var mu sync.Mutex
			judged := 0
			w.decide = func(call message.ToolCall) (message.Decision, error) {
				mu.Lock()
				defer mu.Unlock()
				judged++
				if call.Again {
					return c.again, nil
				}
				return c.first, nil
			}
			w.ask = func(context.Context, message.Question) (message.Answer, error) {
				return message.Answer{State: message.Approved}, nil
			}
			w.start(t.Context())
			if judged != c.judged || (len(w.ran()) > 0) != c.ran {
				t.Errorf("%s: judged %d times, ran %v; want %d times, ran %v", c.reason, judged, w.ran(), c.judged, c.ran)
			}
		})
	}
}

func TestAskDoesNotHoldUpAllowedSiblings(t *testing.T) {
	w := newWorld(t, calls(`asked {}`, `b {}`), say("done"))
	ranB := make(chan struct{})
	w.decide = func(c message.ToolCall) (message.Decision, error) {
		if c.Tool == "asked" {
			return message.Decision{Action: message.Ask}, nil
		}
		return message.Decision{Action: message.Allow}, nil
	}
	w.ask = func(context.Context, message.Question) (message.Answer, error) {
		<-ranB
		return message.Answer{State: message.Approved}, nil
	}
	w.run = func(_ context.Context, c message.ToolCall) (*message.ToolResult, error) {
		if c.Tool == "b" {
			close(ranB)
		}
		return &message.ToolResult{Text: "ok"}, nil
	}
	w.start(t.Context(), func(c *Config) { c.Limits.MaxParallel = 1 })
	if diff := cmp.Diff([]string{"c1-b", "c0-asked"}, w.ran()); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// A call that depends on the files is judged, the last time, on those that the calls before
// it in the answer leave.
func TestACallWaitsForThoseBeforeItThatAlterTheFiles(t *testing.T) {
	for name, c := range map[string]struct {
		reason           string
		alters, depends  bool
		together, inTime bool
	}{
		"alters, depends": {"a link that the first makes could lead the second elsewhere", true, true, false, true},
		"reads only":      {"neither changes what the other is judged by", false, true, true, false},
		"no files":        {"the second names no file", true, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, calls(`first {}`, `second {}`), say("done"))
				var mu sync.Mutex
				running, together, ended, inTime := 0, false, false, false
				w.decide = func(call message.ToolCall) (message.Decision, error) {
					mu.Lock()
					defer mu.Unlock()
					if call.Again && call.Tool == "second" {
						inTime = ended
					}
					return message.Decision{Action: message.Allow, Alters: c.alters, Depends: c.depends}, nil
				}
				w.run = func(_ context.Context, call message.ToolCall) (*message.ToolResult, error) {
					mu.Lock()
					running++
					together = together || running > 1
					mu.Unlock()
					time.Sleep(time.Second) // fake time: all that may overlap does
					mu.Lock()
					running--
					ended = ended || call.Tool == "first"
					mu.Unlock()
					return &message.ToolResult{Text: "ok"}, nil
				}
				w.start(t.Context(), func(c *Config) { c.Limits.MaxParallel = 8 })
				if together != c.together || inTime != c.inTime || len(w.ran()) != 2 {
					t.Errorf("%s: together %v, judged in time %v, ran %v", c.reason, together, inTime, w.ran())
				}
			})
		})
	}
}

func TestResultIsReviewedBeforeTheModelSeesIt(t *testing.T) {
	w := newWorld(t, calls(`a {}`, `b {}`), say("done"))
	w.review = func(c message.ToolCall, r *message.ToolResult) (*message.ToolResult, error) {
		if c.Tool == "a" {
			return nil, errors.New("rule p/secret")
		}
		return &message.ToolResult{Text: "***"}, nil
	}
	w.start(t.Context())
	if a := w.result("c0-a"); a.Code != message.CodeDenied || strings.Contains(a.Text, "ran") {
		t.Errorf("a withheld result reads %+v", a)
	}
	if b := w.result("c1-b"); b.Text != "***" {
		t.Errorf("a redacted result reads %q", b.Text)
	}
}

func TestWrongCallsAreToldAndNeverRun(t *testing.T) {
	w := newWorld(t, calls(`none {}`, `a {"x":`, `READ {}`), say("done"))
	end := w.start(t.Context())
	if end.Reason != reason.Completed {
		t.Fatalf("ended %s", end.Reason)
	}
	if got := w.result("c0-none").Code; got != message.CodeUnknownTool {
		t.Errorf("unknown tool: %q", got)
	}
	if got := w.result("c1-a").Code; got != message.CodeBadJSON {
		t.Errorf("bad JSON: %q", got)
	}
	if diff := cmp.Diff([]string{"c2-READ"}, w.ran()); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
}

func TestFiveInvalidCallsInARowEndTheRun(t *testing.T) {
	w := newWorld(t, calls(`none {}`), calls(`none {}`), calls(`none {}`), calls(`none {}`), calls(`none {}`), say("done"))
	if end := w.start(t.Context()); end.Reason != reason.LoopDetected {
		t.Errorf("ended %s, want LoopDetected", end.Reason)
	}
}

// TestAnIDThatIsNoneIsReplaced is about servers that give a call an id of
// megabytes: every event of the call would repeat it, and no tool could receive
// it.
func TestAnIDThatIsNoneIsReplaced(t *testing.T) {
	long := strings.Repeat("x", maxCallID+1)
	w := newWorld(t, answer{out: message.Output{Finish: message.FinishToolCalls, Calls: []message.CallRequest{{ID: long, Tool: "a", Args: "{}"}, {ID: long[1:], Tool: "a", Args: "{}"}}}}, say("done"))
	if end := w.start(t.Context()); end.Reason != reason.Completed {
		t.Fatalf("ended %+v", end)
	}
	var ids, warnings []string
	for _, e := range w.events {
		switch d := e.Data.(type) {
		case event.ToolResult:
			ids = append(ids, e.Call)
		case event.Warning:
			warnings = append(warnings, d.Message)
		}
	}
	if len(ids) != 2 || slices.Contains(ids, long) || !slices.Contains(ids, long[1:]) {
		t.Errorf("%d calls ran, want one under a new id and one under its own", len(ids))
	}
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "the model gave a call an id of 513 bytes; it is call") {
		t.Errorf("warnings %q", warnings)
	}
}

func TestDuplicateCallIDsAreMadeUnique(t *testing.T) {
	a := calls(`a {}`, `b {}`)
	a.out.Calls[0].ID, a.out.Calls[1].ID = "same", "same"
	b := calls(`c {}`)
	b.out.Calls[0].ID = "same"
	w := newWorld(t, a, b, say("done"))
	w.start(t.Context())
	ran := w.ran()
	slices.Sort(ran)
	if len(slices.Compact(ran)) != 3 {
		t.Errorf("ran %v, want three different ids", ran)
	}
}

func TestVoidAttemptLeavesNothing(t *testing.T) {
	a := say("whole")
	a.emit = []message.Delta{
		{Kind: message.DeltaText, Text: "ha"},
		{Kind: message.DeltaTool, Index: 0, Tool: "a", Call: "void", Text: "{"},
		{Kind: message.DeltaRetry, Retry: &message.Retry{Attempt: 1, Attempts: 5, Class: "stream"}},
		{Kind: message.DeltaText, Text: "whole"},
	}
	w := newWorld(t, a)
	var cfg Config
	end := w.start(t.Context(), func(c *Config) { cfg = *c })
	if end.Output != "whole" || len(w.ran()) > 0 {
		t.Errorf("output %q, ran %v", end.Output, w.ran())
	}
	m := cfg.View.Message()
	var parts []message.PartType
	for _, p := range m.Parts {
		parts = append(parts, p.Type)
	}
	want := []message.PartType{message.PartStepStart, message.PartRetry, message.PartText, message.PartStepFinish}
	if diff := cmp.Diff(want, parts); diff != "" || m.Text() != "whole" || cfg.View.Call("void") != nil {
		t.Errorf("text %q, parts (-want +got):\n%s", m.Text(), diff)
	}
}

func TestStepLimitIsExact(t *testing.T) {
	w := newWorld(t, calls(`a {"n":1}`), calls(`a {"n":2}`), calls(`a {"n":3}`))
	w.answers[2].out.Text = "so far"
	end := w.start(t.Context(), func(c *Config) { c.Limits.MaxSteps = 2 })
	if end.Reason != reason.MaxSteps || end.Output != "so far" {
		t.Errorf("ended %+v, want MaxSteps with the partial text", end)
	}
	var noTools []bool
	for _, r := range w.requests {
		noTools = append(noTools, r.NoTools)
	}
	if diff := cmp.Diff([]bool{false, false, true}, noTools); diff != "" {
		t.Errorf("requests without tools (-want +got):\n%s", diff)
	}
	if len(w.ran()) != 2 {
		t.Errorf("ran %v, want the calls of two steps", w.ran())
	}
}

func TestBudgetIsCheckedBeforeTheRequest(t *testing.T) {
	used := calls(`a {}`)
	used.out.Usage = message.Usage{Input: 60, CacheRead: 40, Output: 20}
	price := func(_ message.ModelRef, u message.Usage) (message.Cost, bool) {
		return message.Cost(u.Total()) * 1000, true
	}
	for name, c := range map[string]struct {
		reason string
		limits Limits
		want   reason.Reason
		asked  int
	}{
		"room":         {"both requests fit", Limits{MaxTokens: 1000}, reason.Completed, 2},
		"tokens":       {"used 120, the next needs at least 120 more", Limits{MaxTokens: 200}, reason.BudgetExceeded, 1},
		"reserve":      {"the worst case of the answer is reserved", Limits{MaxTokens: 1000, ReserveOutput: 2000}, reason.BudgetExceeded, 0},
		"any number":   {"an answer that may hold more than can be counted has no room", Limits{MaxTokens: 1000, ReserveOutput: math.MaxInt64}, reason.BudgetExceeded, 0},
		"cost":         {"spent 120,000, the next costs as much", Limits{MaxCost: 200_000, Price: price}, reason.BudgetExceeded, 1},
		"cost fits":    {"the money is enough", Limits{MaxCost: 900_000, Price: price}, reason.Completed, 2},
		"unknown cost": {"a limit on money needs a price", Limits{MaxCost: 1}, reason.BudgetExceeded, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, used, say("done"))
			end := w.start(t.Context(), func(cfg *Config) { cfg.Limits = c.limits })
			if end.Reason != c.want || len(w.requests) != c.asked {
				t.Errorf("%s: ended %s (%s) after %d requests, want %s after %d", c.reason, end.Reason, end.Message, len(w.requests), c.want, c.asked)
			}
		})
	}
}

func TestEndsOfAnAnswer(t *testing.T) {
	finish := func(text string, f message.Finish) answer {
		return answer{out: message.Output{Text: text, Finish: f}}
	}
	for name, c := range map[string]struct {
		reason  string
		answers []answer
		want    reason.Reason
		asked   int
	}{
		"empty once":  {"an empty answer may be a hiccup", []answer{say(" \n"), say("done")}, reason.Completed, 2},
		"empty twice": {"a second one is no hiccup", []answer{say(""), say("")}, reason.NoFinalAnswer, 2},
		"cut":         {"half an answer is none", []answer{finish("half", message.FinishLength)}, reason.OutputTruncated, 1},
		"filtered":    {"a filter is not the model's answer", []answer{finish("", message.FinishContentFilter)}, reason.ContentFiltered, 1},
		"stop, calls": {"the calls decide, not the finish reason", []answer{{out: message.Output{Finish: message.FinishStop, Calls: []message.CallRequest{{ID: "1", Tool: "a"}}}}, say("done")}, reason.Completed, 2},
		"error":       {"an error's reason is the run's", []answer{{err: reason.New(reason.CredentialRejected, "401")}}, reason.CredentialRejected, 1},
		"bare error":  {"an error without a reason is our own fault", []answer{{err: errors.New("x")}}, reason.Internal, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.answers...)
			end := w.start(t.Context())
			if end.Reason != c.want || len(w.requests) != c.asked {
				t.Errorf("%s: ended %s after %d requests, want %s after %d", c.reason, end.Reason, len(w.requests), c.want, c.asked)
			}
		})
	}
}

func TestOutputContract(t *testing.T) {
	check := func(text string) string {
		if text == "42" {
			return ""
		}
		return "want a number"
	}
	w := newWorld(t, say("forty-two"), say("42"))
	end := w.start(t.Context(), func(c *Config) { c.Answer = Answer{Check: check, Retries: 2} })
	if end.Reason != reason.Completed || end.Output != "42" || !end.Structured {
		t.Errorf("ended %+v, want the corrected answer", end)
	}
	if last := w.appended[len(w.appended)-1]; last.Role != message.RoleUser || !strings.Contains(last.Text(), "want a number") {
		t.Errorf("the model was told %+v", last)
	}
	w = newWorld(t, say("42"))
	if end := w.start(t.Context(), func(c *Config) {
		c.Answer = Answer{Check: check, Value: func(text string) string { return "(" + text + ")" }}
	}); end.Output != "(42)" {
		t.Errorf("ended with %q, want the value of the answer", end.Output)
	}
	w = newWorld(t, say("a"), say("b"), say("c"), say("d"))
	end = w.start(t.Context(), func(c *Config) { c.Answer = Answer{Check: check, Retries: 2} })
	if end.Reason != reason.OutputInvalid || len(w.requests) != 3 || end.Structured {
		t.Errorf("ended %+v after %d requests, want OutputInvalid after 3", end, len(w.requests))
	}
}

func TestBrokenJournalStopsEverything(t *testing.T) {
	w := newWorld(t, calls(`a {}`), say("done"))
	cfg := w.config()
	w.decide = func(message.ToolCall) (message.Decision, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.failing = errDisk
		return message.Decision{Action: message.Allow}, nil
	}
	if _, err := Run(t.Context(), cfg); !errors.Is(err, errDisk) {
		t.Errorf("got error %v, want the journal's", err)
	}
	if len(w.ran()) > 0 {
		t.Errorf("ran %v although the intent could not be told", w.ran())
	}
}

func TestCancelWhileTheModelAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answer{block: true})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, reason.New(reason.DeadlineExceeded, "limits.timeout of 1m passed"))
		defer cancel()
		end := w.start(ctx)
		if end.Reason != reason.DeadlineExceeded {
			t.Errorf("ended %s (%s), want DeadlineExceeded", end.Reason, end.Message)
		}
	})
}

func TestCancelWhileToolsRun(t *testing.T) {
	w := newWorld(t, calls(`a {}`, `b {}`, `alone {}`))
	ctx, cancel := context.WithCancelCause(t.Context())
	var once sync.Once
	w.run = func(ctx context.Context, _ message.ToolCall) (*message.ToolResult, error) {
		once.Do(func() { cancel(reason.New(reason.Cancelled, "stopped by SIGINT")) })
		<-ctx.Done()
		return &message.ToolResult{Code: message.CodeCancelled, Text: "cancelled"}, nil
	}
	end := w.start(ctx)
	if end.Reason != reason.Cancelled || end.Message != "stopped by SIGINT" {
		t.Errorf("ended %+v", end)
	}
	for _, id := range []string{"c0-a", "c1-b", "c2-alone"} {
		if got := w.result(id); got.Code != message.CodeCancelled {
			t.Errorf("call %s ended %q, want cancelled", id, got.Code)
		}
	}
}

func TestToolThatCannotBeAskedEndsTheRun(t *testing.T) {
	w := newWorld(t, calls(`a {}`), say("done"))
	w.run = func(context.Context, message.ToolCall) (*message.ToolResult, error) {
		return nil, reason.New(reason.ToolError, "plugin x: not a plugin").WithHint("run it by hand")
	}
	end := w.start(t.Context())
	if end.Reason != reason.ToolError || end.Hint != "run it by hand" {
		t.Errorf("ended %+v, want ToolError with its hint", end)
	}
}

func TestStepsWithoutMoneyForAClosingRequestEndAsSteps(t *testing.T) {
	used := calls(`a {}`)
	used.out.Usage = message.Usage{Input: 60, Output: 20}
	w := newWorld(t, used)
	end := w.start(t.Context(), func(c *Config) { c.Limits.MaxSteps, c.Limits.MaxTokens = 1, 100 })
	if end.Reason != reason.MaxSteps || len(w.requests) != 1 {
		t.Errorf("end %+v after %d requests", end, len(w.requests))
	}
}

func TestBudgetCountsWhatTheProviderDoesNot(t *testing.T) {
	var answers []answer
	for i := range 20 {
		a := calls(`a {"n":` + strconv.Itoa(i) + `}`)
		a.out.Text, a.out.Uncounted = strings.Repeat("four", 100), true
		answers = append(answers, a)
	}
	price := func(_ message.ModelRef, u message.Usage) (message.Cost, bool) { return message.Cost(u.Total()), true }
	for name, limits := range map[string]Limits{"tokens": {MaxTokens: 2000}, "cost": {MaxCost: 2000, Price: price}} {
		w := newWorld(t, answers...)
		var cfg Config
		end := w.start(t.Context(), func(c *Config) {
			limits.MaxParallel = 1
			c.Limits = limits
			cfg = *c
		})
		if end.Reason != reason.BudgetExceeded || len(w.requests) > 8 {
			t.Errorf("%s: %+v after %d requests", name, end, len(w.requests))
		}
		said := slices.DeleteFunc(slices.Clone(cfg.View.Warnings), func(w string) bool { return !strings.Contains(w, "an estimate") })
		if len(said) != 1 {
			t.Errorf("%s: warnings %q, want one", name, cfg.View.Warnings)
		}
	}
}

func TestLoopThatNobodyAllowsEndsTheRun(t *testing.T) {
	var answers []answer
	for range 9 {
		answers = append(answers, calls(`a {}`))
	}
	w := newWorld(t, answers...)
	end := w.start(t.Context(), func(c *Config) { c.Guard.Act = GuardAsk })
	if end.Reason != reason.LoopDetected || len(w.ran()) != 2 || len(w.requests) != 4 {
		t.Errorf("end %+v after %d requests, ran %v", end, len(w.requests), w.ran())
	}
}

// What a call tried beyond its facts is recorded whatever a rule does with its result.
func TestAWithheldResultStillNamesWhatWasDenied(t *testing.T) {
	w := newWorld(t, calls(`a {}`), say("done"))
	denied := []message.Excess{{Op: "write", Path: "/w/x"}}
	w.run = func(context.Context, message.ToolCall) (*message.ToolResult, error) {
		return &message.ToolResult{Text: "secret", Record: &message.Record{Programs: []message.Execution{{Path: "/bin/echo", Argv: []string{"echo", "secret"}}}, Exceeded: denied, Omitted: 2}}, nil
	}
	w.review = func(message.ToolCall, *message.ToolResult) (*message.ToolResult, error) {
		return nil, errors.New("rule p/secret")
	}
	w.start(t.Context())
	want := &message.Record{Exceeded: denied, Omitted: 3}
	if diff := cmp.Diff(want, w.result("c0-a").Record); diff != "" {
		t.Errorf("record (want, got): %s", diff)
	}
}
