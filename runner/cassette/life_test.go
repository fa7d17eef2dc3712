package cassette

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
)

// anything makes an event of a byte.
func anything(b byte) event.Event {
	all := event.Payloads()
	p := all[int(b)%len(all)]
	switch d := p.(type) {
	case event.ToolCall:
		d.Attempt = int(b) / 64
		p = d
	case event.ApprovalRequested:
		d.Unknown = b > 127
		p = d
	}
	return event.Event{Message: fmt.Sprint("m", b%3), Part: "p", Call: []string{"", "c1", "c2"}[b%3], Data: p}
}

// at is an event of a message and a call, each of which may be "".
func at(msg, call string, p event.Payload) event.Event {
	return event.Event{Message: msg, Call: call, Data: p}
}

// course writes a life in one word per event.
func course(life []Entry) string {
	words := make([]string, len(life))
	for i, e := range life {
		words[i] = strings.TrimPrefix(string(e.Type()), "run.") + e.Message + e.Call
		if e.Past {
			words[i] = "(" + words[i] + ")"
		}
	}
	return strings.Join(words, " ")
}

func TestAnInterruptedRunIsLivedAsIfItHadNotBeen(t *testing.T) {
	started, resumed := at("m1", "", event.RunStarted{}), at("", "", event.RunResumed{Attempt: 2})
	step, done := at("", "", event.StepStart{Step: 1}), at("", "", event.RunFinished{Phase: "Succeeded"})
	request, response := func(m string) event.Event { return at(m, "", event.ModelRequest{Messages: 3}) }, at("m2", "", event.ModelResponse{})
	checked, decided := at("m2", "c", event.ToolInputEnd{}), at("m2", "c", event.PolicyDecision{})
	asked, approved := at("m2", "c", event.ApprovalRequested{}), at("m2", "c", event.ApprovalDecided{Answer: message.Answer{State: message.Approved}})
	unsure := at("m2", "c", event.ApprovalRequested{Unknown: true})
	call, result := func(n int) event.Event { return at("m2", "c", event.ToolCall{Attempt: n}) }, at("m2", "c", event.ToolResult{})
	progress, refused := at("m2", "c", event.ToolProgress{}), at("m2", "c", event.ApprovalDecided{Answer: message.Answer{State: message.Unanswered}})
	answered := []event.Event{started, step, request("m2"), response, checked, decided}
	for name, c := range map[string]struct {
		reason string
		events []event.Event
		want   string
	}{
		"one process": {
			"nothing is left out", append(answered[:6:6], call(0), progress, result, done),
			"startedm1 step.start model.requestm2 model.responsem2 tool.input-endm2c policy.decisionm2c tool.callm2c tool.progressm2c tool.resultm2c finished",
		},
		"in an answer": {
			"a request that was not answered is sent again, in its step",
			[]event.Event{started, step, request("m2"), at("m2", "", event.TextStart{}), resumed, step, request("m3"), at("m3", "", event.ModelResponse{}), done},
			"startedm1 step.start model.requestm3 model.responsem3 finished",
		},
		"before the request": {
			"a step that was only begun begins again",
			[]event.Event{started, step, resumed, step, request("m2"), response, done},
			"startedm1 step.start model.requestm2 model.responsem2 finished",
		},
		"after a refusal": {
			"a step in which something was tried goes on",
			[]event.Event{started, step, request("m2"), request("m3"), at("m3", "", event.ContextCompaction{}), request("m4"), resumed, step, request("m5"), done},
			"startedm1 step.start model.requestm2 model.requestm3 context.compactionm3 model.requestm5 finished",
		},
		"in a call": {
			"a call that ran again ran once", append(answered[:6:6], call(0), progress, resumed, call(2), result, done),
			"startedm1 step.start model.requestm2 model.responsem2 tool.input-endm2c policy.decisionm2c tool.callm2c tool.resultm2c finished",
		},
		"in a call that may not run again": {
			"the question is shown and was not the run's own", append(answered[:6:6], call(0), resumed, unsure, refused, at("m2", "c", event.ToolError{}), done),
			"startedm1 step.start model.requestm2 model.responsem2 tool.input-endm2c policy.decisionm2c tool.callm2c (approval.requestedm2c) (approval.decidedm2c) tool.errorm2c finished",
		},
		"while it waits": {
			"whoever was asked is asked once",
			append(answered[:6:6], asked, at("", "", event.RunFinished{Phase: "Suspended"}), resumed, checked, decided, asked, approved, call(0), result, done),
			"startedm1 step.start model.requestm2 model.responsem2 tool.input-endm2c policy.decisionm2c approval.requestedm2c approval.decidedm2c tool.callm2c tool.resultm2c finished",
		},
		"after a yes": {
			"a yes that counts still stands before the call",
			append(answered[:6:6], asked, approved, resumed, checked, decided, call(0), result, done),
			"startedm1 step.start model.requestm2 model.responsem2 tool.input-endm2c policy.decisionm2c approval.requestedm2c approval.decidedm2c tool.callm2c tool.resultm2c finished",
		},
		"twice after a yes": {
			"a second interruption before the decision changes nothing",
			append(answered[:6:6], asked, approved, resumed, checked, resumed, checked, decided, call(0), result, done),
			"startedm1 step.start model.requestm2 model.responsem2 tool.input-endm2c policy.decisionm2c approval.requestedm2c approval.decidedm2c tool.callm2c tool.resultm2c finished",
		},
		"after a yes that has expired": {
			"whoever is asked anew has not been asked before",
			append(answered[:6:6], asked, approved, resumed, checked, decided, asked, refused, at("m2", "c", event.ToolError{}), done),
			"startedm1 step.start model.requestm2 model.responsem2 tool.input-endm2c policy.decisionm2c approval.requestedm2c approval.decidedm2c tool.errorm2c finished",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := small()
			r.Events = story(c.events...)
			life := r.Life()
			if diff := cmp.Diff(c.want, course(life)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if !r.Ended() {
				t.Error("the run has ended")
			}
			for _, e := range life {
				if d, ok := e.Data.(event.ToolCall); ok && d.Attempt != 0 {
					t.Errorf("the call is said to have run %d times", d.Attempt)
				}
				if int64(e.Line-r.Line(0)) != e.Seq-1 {
					t.Errorf("event %d is said to stand on line %d", e.Seq, e.Line)
				}
			}
		})
	}
}

func TestVoidRequestsAreNoMessages(t *testing.T) {
	r := small()
	r.Events = story(
		at("m1", "", event.RunStarted{}), at("", "", event.StepStart{Step: 1}), at("m2", "", event.ModelRequest{Messages: 1}),
		at("", "", event.RunResumed{Attempt: 2}),
		at("", "", event.StepStart{Step: 1}), at("m3", "", event.ModelRequest{Messages: 2}),
	)
	for _, e := range r.Life() {
		if d, ok := e.Data.(event.ModelRequest); ok && d.Messages != 1 {
			t.Errorf("the request has %d messages, want 1", d.Messages)
		}
	}
	if r.Ended() {
		t.Error("the run has not ended")
	}
}

func TestAnswersAreReadFromWhatWasTold(t *testing.T) {
	ref := message.ModelRef{Name: "fast", Provider: "openai", Model: "x"}
	usage := message.Usage{Input: 1}
	r := small()
	r.Events = story(
		at("m1", "", event.RunStarted{}),
		at("", "", event.StepStart{Step: 1}),
		at("m2", "", event.ModelRequest{Step: 1}),
		at("m2", "old", event.ToolInputStart{Tool: "void"}),
		at("m2", "", event.ModelRetry{}),
		at("m2", "", event.ReasoningEnd{Text: "hm", Metadata: json.RawMessage(`{"s":1}`)}),
		at("m2", "", event.Warning{Message: "the model gave two calls the id c"}),
		at("m2", "c1", event.ToolInputStart{Tool: "Bash"}),
		at("m2", "c1", event.ToolInputDelta{Text: `{"a":`}),
		at("m2", "", event.TextEnd{Text: "text", Metadata: json.RawMessage(`{"t":1}`)}),
		at("m2", "c1", event.ToolInputDelta{Text: `1}`}),
		at("m2", "c1", event.ToolInputDelta{Metadata: json.RawMessage(`{"c":1}`)}),
		at("m2", "c2", event.ToolInputStart{Tool: "read"}),
		at("m2", "c2", event.ToolInputDelta{Text: "as streamed"}),
		at("m2", "", event.Warning{Message: "odd usage"}),
		at("m2", "", event.ModelResponse{Model: ref, Finish: message.FinishToolCalls, Tokens: usage}),
		at("m2", "c2", event.ToolInputEnd{Raw: "as judged"}),
		at("m3", "", event.ModelRequest{Step: 1, Summary: true}),
		at("m3", "", event.ContextCompaction{Summary: "notes", Model: ref, Tokens: usage}),
		at("m4", "", event.ModelRequest{Step: 2}),
		at("m4", "", event.ModelResponse{Finish: message.FinishStop}),
		at("", "", event.Warning{Message: Uncounted + " an answer took"}),
		at("m5", "", event.ModelRequest{Step: 3}),
		at("m5", "", event.ModelResponse{Finish: message.FinishStop}),
		at("m6", "", event.ModelRequest{Step: 4}),
		at("", "", event.RunFinished{Phase: "Failed"}),
	)
	got := Requests(r.Life())
	want := []Request{
		{Message: "m2", Step: 1, Output: &message.Output{
			Text: "text", TextMetadata: json.RawMessage(`{"t":1}`), Reasoning: "hm", ReasoningMetadata: json.RawMessage(`{"s":1}`),
			Calls: []message.CallRequest{
				{ID: "c1", Tool: "Bash", Args: `{"a":1}`, Metadata: json.RawMessage(`{"c":1}`)},
				{ID: "c2", Tool: "read", Args: "as judged"},
			},
			Finish: message.FinishToolCalls, Usage: usage, Model: ref, Warnings: []string{"odd usage"},
		}},
		{Message: "m3", Step: 1, Summary: true, Output: &message.Output{Text: "notes", Finish: message.FinishStop, Usage: usage, Model: ref}},
		{Message: "m4", Step: 2, Output: &message.Output{Finish: message.FinishStop, Uncounted: true}},
		{Message: "m5", Step: 3, Output: &message.Output{Finish: message.FinishStop, Uncounted: true}},
		{Message: "m6", Step: 4},
	}
	for i := range got {
		if len(got[i].Events) > 0 && i != 0 {
			t.Errorf("request %d has %d events", i, len(got[i].Events))
		}
		got[i].Events, got[i].Line = nil, 0
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// What was before the newest turn is kept as it was: a replay begins behind it.
func TestTheLifeOfATurnKeepsTheTurnsBefore(t *testing.T) {
	c := &Cassette{Events: []event.Event{
		at("m1", "", event.RunStarted{Agent: "a", Plan: "one"}),
		at("", "", event.StepStart{Step: 1}), at("m2", "", event.ModelRequest{}),
		at("", "", event.RunResumed{Attempt: 2}),
		at("", "", event.StepStart{Step: 1}), at("m3", "", event.ModelRequest{}), at("m3", "", event.ModelResponse{}),
		at("", "", event.RunFinished{Phase: "Succeeded"}),
		at("m4", "", event.RunResumed{Attempt: 3, Turn: &event.Turn{Number: 2, Agent: "b", Plan: "two"}}),
		at("", "", event.StepStart{Step: 2}), at("m5", "", event.ModelRequest{}),
		at("", "", event.RunResumed{Attempt: 4}),
		at("", "", event.StepStart{Step: 2}), at("m6", "", event.ModelRequest{}), at("m6", "", event.ModelResponse{}),
		at("", "", event.RunFinished{Phase: "Failed"}),
	}}
	if got, want := course(c.Life()), "startedm1 step.start model.requestm2 resumed step.start model.requestm3 model.responsem3 finished resumedm4 step.start model.requestm6 model.responsem6 finished"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for i, e := range c.Life() {
		if e.Earlier != (i < 8) {
			t.Errorf("entry %d (%s): earlier is %v", i, e.Type(), e.Earlier)
		}
	}
	if b := c.Begun(); b.Agent != "b" || b.Plan != "two" || c.Turns() != 2 || !c.Interrupted() {
		t.Errorf("begun %+v, %d turns", b, c.Turns())
	}
}
