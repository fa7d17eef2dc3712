package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/secret"
)

var (
	begun = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	model = message.ModelRef{Name: "main", Provider: "gemini", Model: "gemini-3-pro"}
)

// script is a run as its events.
type script struct {
	run string
	seq int64
	at  time.Duration
	all []event.Event
}

// then adds an event some time after the one before.
func (s *script) then(after time.Duration, call string, data event.Payload) *script {
	s.seq++
	s.at += after
	s.all = append(s.all, event.Event{Seq: s.seq, Time: begun.Add(s.at), Run: s.run, Call: call, Data: data})
	return s
}

func started(run string) *script {
	s := &script{run: run}
	return s.then(0, "", event.RunStarted{Agent: "fixer", Model: model, Prompt: "Fix the bug.", Tools: []string{"read", "bash", "task"}})
}

func (s *script) request() *script {
	return s.then(10*time.Millisecond, "", event.ModelRequest{Step: 1})
}

func (s *script) response(finish message.Finish) *script {
	return s.then(2*time.Second, "", event.ModelResponse{
		Model: model, Finish: finish, Tokens: message.Usage{Input: 70, CacheRead: 30, Output: 20, Reasoning: 5}, DurationMs: 2000, FirstByteMs: 250,
		Cost: cost("0.5"),
	})
}

func cost(s string) *message.Cost {
	var c message.Cost
	if err := json.Unmarshal([]byte(`"`+s+`"`), &c); err != nil {
		panic(err)
	}
	return &c
}

func (s *script) decide(call, tool string, action message.Action, rule string) *script {
	return s.then(0, call, event.ToolInputEnd{Tool: tool, Raw: `{"path":"a.go"}`, Input: json.RawMessage(`{"path":"a.go"}`)}).
		then(time.Millisecond, call, event.PolicyDecision{Decision: message.Decision{Action: action, Rule: rule, Risk: "R1"}})
}

func (s *script) finish(phase, reason string) *script {
	return s.then(time.Millisecond, "", event.RunFinished{Phase: phase, Reason: reason, Steps: 1, Tokens: message.Usage{Input: 70, CacheRead: 30, Output: 20}, Cost: cost("0.5")})
}

func (s *script) into(r *Run) {
	for _, e := range s.all {
		r.Event(e)
	}
}

// open opens a Client of a collector.
func open(t *testing.T, url string, pairs ...string) *Client {
	t.Helper()
	c := Open(Options{Getenv: environment(append(pairs, "OTEL_EXPORTER_OTLP_ENDPOINT", url)...), Version: "v1.2.3", Instance: "one"})
	if c == nil {
		t.Fatal("telemetry is off")
	}
	return c
}

func closed(t *testing.T, c *Client, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, c.Close(t.Context())); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestARunBecomesSpans(t *testing.T) {
	got, url := collector(t, nil)
	c := open(t, url)
	started("fixer-1").request().response(message.FinishToolCalls).
		decide("call-1", "read", message.Allow, "files/read").
		then(time.Millisecond, "call-1", event.ToolCall{Tool: "read", Args: json.RawMessage(`{}`)}).
		then(3*time.Second, "call-1", event.ToolResult{ToolResult: message.ToolResult{Text: "package a"}}).
		finish(view.Succeeded, "Completed").into(c.Begin(RunOptions{ID: "fixer-1"}))
	closed(t, c)

	agent, chat, tool := got.span(t, "invoke_agent fixer"), got.span(t, "chat gemini-3-pro"), got.span(t, "execute_tool read")
	for name, want := range map[string]struct {
		span       *tracepb.Span
		parent     []byte
		kind       tracepb.Span_SpanKind
		from, to   time.Duration
		attributes map[string]any
	}{
		"agent": {agent, nil, tracepb.Span_SPAN_KIND_INTERNAL, 0, 5013 * time.Millisecond, map[string]any{
			"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "fixer-1", "gen_ai.agent.name": "fixer", "gen_ai.agent.id": "agent/fixer",
			"gen_ai.provider.name": "gcp.gemini", "gen_ai.request.model": "gemini-3-pro", "gen_ai.usage.input_tokens": int64(100), "gen_ai.usage.output_tokens": int64(20),
			"gen_ai.usage.cache_read.input_tokens": int64(30), "agentctl.run.phase": "Succeeded", "agentctl.run.reason": "Completed", "agentctl.run.steps": int64(1), "agentctl.cost.usd": 0.5,
		}},
		"chat": {chat, agent.GetSpanId(), tracepb.Span_SPAN_KIND_CLIENT, 10 * time.Millisecond, 2010 * time.Millisecond, map[string]any{
			"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "fixer-1", "gen_ai.agent.name": "fixer", "gen_ai.provider.name": "gcp.gemini",
			"gen_ai.request.model": "gemini-3-pro", "gen_ai.response.model": "gemini-3-pro", "gen_ai.response.finish_reasons": "tool-calls",
			"gen_ai.response.time_to_first_chunk": 0.25, "gen_ai.usage.input_tokens": int64(100), "gen_ai.usage.output_tokens": int64(20),
			"gen_ai.usage.cache_read.input_tokens": int64(30), "gen_ai.usage.reasoning.output_tokens": int64(5), "agentctl.cost.usd": 0.5,
		}},
		"tool": {tool, agent.GetSpanId(), tracepb.Span_SPAN_KIND_INTERNAL, 2012 * time.Millisecond, 5012 * time.Millisecond, map[string]any{
			"gen_ai.operation.name": "execute_tool", "gen_ai.conversation.id": "fixer-1", "gen_ai.agent.name": "fixer", "gen_ai.tool.name": "read", "gen_ai.tool.type": "function",
			"gen_ai.tool.call.id": "call-1", "agentctl.decision": "allow", "agentctl.rule": "files/read", "agentctl.risk": "R1",
		}},
	} {
		if diff := cmp.Diff(want.attributes, values(want.span.GetAttributes())); diff != "" {
			t.Errorf("%s: attributes (-want +got):\n%s", name, diff)
		}
		if !bytes.Equal(want.parent, want.span.GetParentSpanId()) || want.span.GetKind() != want.kind || !bytes.Equal(want.span.GetTraceId(), agent.GetTraceId()) {
			t.Errorf("%s: parent %x, kind %s, trace %x", name, want.span.GetParentSpanId(), want.span.GetKind(), want.span.GetTraceId())
		}
		from, to := want.span.GetStartTimeUnixNano(), want.span.GetEndTimeUnixNano()
		if from != nanos(begun.Add(want.from)) || to != nanos(begun.Add(want.to)) {
			t.Errorf("%s: from %d to %d, want %s to %s", name, from-nanos(begun), to-nanos(begun), want.from, want.to)
		}
		if want.span.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
			t.Errorf("%s failed", name)
		}
	}
	resource := values(got.traces[0].GetResourceSpans()[0].GetResource().GetAttributes())
	if diff := cmp.Diff(map[string]any{"service.name": "agentctl", "service.version": "v1.2.3", "service.instance.id": "one"}, resource); diff != "" {
		t.Errorf("resource (-want +got):\n%s", diff)
	}
	if tokens := got.metrics["gen_ai.client.token.usage"]; len(tokens) != 2 || tokens[0].GetSum() != 100 || tokens[1].GetSum() != 20 || tokens[0].GetBucketCounts()[4] != 1 {
		t.Errorf("token usage: %v", tokens)
	}
	var operations []any
	for _, p := range got.metrics["gen_ai.client.operation.duration"] {
		operations = append(operations, values(p.GetAttributes())["gen_ai.operation.name"], p.GetSum())
	}
	if diff := cmp.Diff([]any{"chat", 2.0, "execute_tool", 3.0, "invoke_agent", 5.013}, operations); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
}

func TestFailuresHaveAWord(t *testing.T) {
	got, url := collector(t, nil)
	c := open(t, url)
	started("fixer-1").request().
		then(time.Second, "", event.ModelRetry{Retry: message.Retry{Attempt: 1, Class: "429", Error: "slow down, says the text"}}).
		response(message.FinishToolCalls).
		decide("call-1", "bash", message.Deny, "shell/none").
		then(time.Millisecond, "call-1", event.ToolError{ToolResult: message.ToolResult{Text: "refused", Code: message.CodeDenied}}).
		decide("call-2", "the model made this up", message.Deny, "").
		then(time.Millisecond, "call-2", event.ToolError{ToolResult: message.ToolResult{Text: "there is no such tool", Code: message.CodeUnknownTool}}).
		decide("call-3", "task", message.Ask, "people/ask").
		then(0, "call-3", event.ApprovalRequested{Tool: "task", Rule: "people/ask"}).
		then(time.Minute, "call-3", event.ApprovalDecided{Answer: message.Answer{State: message.Approved, By: "a person"}}).
		then(0, "call-3", event.ToolCall{Tool: "task"}).
		request().finish(view.Failed, "ModelError").into(c.Begin(RunOptions{ID: "fixer-1"}))
	closed(t, c)
	for name, want := range map[string]string{
		"invoke_agent fixer": "ModelError", "execute_tool bash": string(message.CodeDenied), "execute_tool": string(message.CodeUnknownTool),
		"execute_tool task": "ModelError", "agentctl.approval task": "",
	} {
		s := got.span(t, name)
		failure, _ := values(s.GetAttributes())["error.type"].(string)
		if failure != want || (s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR) != (want != "") {
			t.Errorf("%s: error.type %q and status %s, want %q", name, failure, s.GetStatus(), want)
		}
	}
	task := values(got.span(t, "execute_tool task").GetAttributes())
	if task["agentctl.approval"] != string(message.Approved) || task["agentctl.approval.wait_ms"] != int64(60000) {
		t.Errorf("the wait for a person: %v", task)
	}
	chats, retries := 0, 0
	for _, s := range got.spans {
		if strings.HasPrefix(s.GetName(), "chat ") {
			chats++
			retries += len(s.GetEvents())
		}
	}
	if chats != 2 || retries != 1 {
		t.Errorf("%d requests and %d retries, want 2 and 1", chats, retries)
	}
	if all := fmt.Sprint(got.traces, got.metrics); strings.Contains(all, "made this up") || strings.Contains(all, "slow down") || strings.Contains(all, "a person") || strings.Contains(all, "Fix the bug") || strings.Contains(all, "a.go") {
		t.Errorf("content was sent: %s", all)
	}
}

func TestARunBelowIsBelowItsCall(t *testing.T) {
	got, url := collector(t, nil)
	c := open(t, url, "TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "TRACESTATE", "a=b")
	top := c.Begin(RunOptions{ID: "fixer-1"})
	started("fixer-1").request().response(message.FinishToolCalls).decide("call-1", "task", message.Allow, "").
		then(0, "call-1", event.ToolCall{Tool: "task"}).into(top)
	below := started("helper-1")
	below.all[0].Data = event.RunStarted{Agent: "helper", Model: model}
	below.finish(view.Succeeded, "Completed").into(c.Begin(RunOptions{ID: "helper-1", Above: top, Call: "call-1"}))
	top.End()
	closed(t, c)
	agent, task, helper := got.span(t, "invoke_agent fixer"), got.span(t, "execute_tool task"), got.span(t, "invoke_agent helper")
	if fmt.Sprintf("%x", agent.GetTraceId()) != "0af7651916cd43dd8448eb211c80319c" || fmt.Sprintf("%x", agent.GetParentSpanId()) != "b7ad6b7169203331" || agent.GetTraceState() != "a=b" {
		t.Errorf("the run is not below its caller: %v", agent)
	}
	if !bytes.Equal(task.GetParentSpanId(), agent.GetSpanId()) || !bytes.Equal(helper.GetParentSpanId(), task.GetSpanId()) || !bytes.Equal(helper.GetTraceId(), agent.GetTraceId()) {
		t.Errorf("the run below is not below its call: %v %v", task, helper)
	}
	if failure := values(agent.GetAttributes())["error.type"]; failure != "interrupted" {
		t.Errorf("a run that was left: error.type %v", failure)
	}
}

func TestAResumeIsInTheSameTrace(t *testing.T) {
	got, url := collector(t, nil)
	c := open(t, url)
	first := started("fixer-1").request().response(message.FinishToolCalls).decide("call-1", "bash", message.Ask, "people/ask").
		then(0, "call-1", event.ApprovalRequested{Tool: "bash", Rule: "people/ask"})
	first.finish(view.Suspended, "ApprovalRequired").into(c.Begin(RunOptions{ID: "fixer-1"}))
	closed(t, c)
	if len(got.spans) != 3 {
		t.Errorf("a call that is still to be judged has a span: %v", got.spans)
	}
	before := got.span(t, "invoke_agent fixer")
	if before.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
		t.Error("a suspended run has not failed")
	}
	got.spans = nil
	c = open(t, url)
	r := c.Begin(RunOptions{ID: "fixer-1", Before: &view.Run{Started: first.all[0].Data.(event.RunStarted)}})
	(&script{run: "fixer-1", seq: first.seq}).then(time.Hour, "", event.RunResumed{Attempt: 2}).
		then(0, "call-1", event.ToolCall{Tool: "bash"}).
		then(time.Second, "call-1", event.ToolResult{}).finish(view.Succeeded, "Completed").into(r)
	closed(t, c)
	after := got.span(t, "invoke_agent fixer")
	if !bytes.Equal(before.GetTraceId(), after.GetTraceId()) || bytes.Equal(before.GetSpanId(), after.GetSpanId()) || values(after.GetAttributes())["agentctl.attempt"] != int64(2) {
		t.Errorf("a resume: %v, before it %v", after, before)
	}
	got.span(t, "execute_tool bash")
}

func TestContentIsSentOnDemandOnlyAndRedacted(t *testing.T) {
	const canary = "canary-7f3a9b2c4d5e6f70"
	run := func(r *Run) {
		s := started("fixer-1")
		d := s.all[0].Data.(event.RunStarted)
		d.Prompt = "Use " + canary
		s.all[0].Data = d
		s.request().
			then(0, "", event.ReasoningEnd{Text: "I think of " + canary}).
			then(0, "", event.TextEnd{Text: "It is " + canary + strings.Repeat("é", maxText)}).
			then(0, "call-1", event.ToolInputEnd{Tool: "bash", Raw: `{"command":"echo ` + canary + `"}`, Input: json.RawMessage(`{"command":"echo ` + canary + `"}`)}).
			response(message.FinishToolCalls).
			then(0, "call-1", event.PolicyDecision{Decision: message.Decision{Action: message.Allow}}).
			then(0, "call-1", event.ToolCall{Tool: "bash", Args: json.RawMessage(`{"command":"echo ` + canary + `"}`)}).
			then(0, "call-1", event.ToolResult{ToolResult: message.ToolResult{Text: strings.Repeat("x", maxText-8) + canary}}).
			request().then(0, "", event.TextEnd{Text: "done"}).response(message.FinishStop).
			finish(view.Succeeded, "Completed").into(r)
	}
	for name, test := range map[string]struct {
		set    string
		reason string
	}{
		"off": {"", "nobody has asked for content"},
		"on":  {"true", "secrets are no content"},
	} {
		t.Run(name, func(t *testing.T) {
			got, url := collector(t, nil)
			c := open(t, url, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", test.set)
			redactor := secret.NewRedactor(secret.NewValue(canary))
			run(c.Begin(RunOptions{ID: "fixer-1", Redactor: func() *secret.Redactor { return redactor }}))
			closed(t, c)
			all := fmt.Sprint(got.traces)
			if strings.Contains(all, canary) || strings.Contains(all, canary[:8]) {
				t.Errorf("a secret was sent: %s", test.reason)
			}
			if on := strings.Contains(all, "gen_ai.input.messages") && strings.Contains(all, "gen_ai.tool.call.result"); on != (test.set != "") {
				t.Errorf("content was sent: %t, %s", on, test.reason)
			}
			if test.set == "" {
				return
			}
			tool := values(got.span(t, "execute_tool bash").GetAttributes())
			if args, _ := tool["gen_ai.tool.call.arguments"].(string); !strings.HasPrefix(args, `{"command":"echo `) {
				t.Errorf("arguments: %v", args)
			}
			var said []string
			for _, s := range got.spans {
				v := values(s.GetAttributes())
				for _, key := range []string{attrInput, attrOutput} {
					text, ok := v[key].(string)
					if !ok {
						continue
					}
					var all []spoken
					if err := json.Unmarshal([]byte(text), &all); err != nil {
						t.Fatalf("%s is no JSON: %v", key, err)
					}
					for _, m := range all {
						for _, p := range m.Parts {
							said = append(said, m.Role+" "+p.Type)
							if len(p.Content) > maxText+len(cutMark) || len(p.Response) > maxText+len(cutMark) {
								t.Errorf("a text of %d bytes was sent", len(p.Content)+len(p.Response))
							}
						}
					}
				}
			}
			want := []string{"user text", "assistant reasoning", "assistant text", "assistant tool_call", "tool tool_call_response", "assistant text"}
			if diff := cmp.Diff(want, said); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAsksForNothingIsNil(t *testing.T) {
	for reason, getenv := range map[string]func(string) string{
		"nothing is set":            environment(),
		"it is disabled":            environment("OTEL_SDK_DISABLED", "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"),
		"there are no exporters":    environment("OTEL_TRACES_EXPORTER", "none", "OTEL_METRICS_EXPORTER", "none", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"),
		"only content is asked for": environment("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
	} {
		c := Open(Options{Getenv: getenv})
		if c != nil {
			t.Errorf("%s, and telemetry is on", reason)
		}
		r := c.Begin(RunOptions{ID: "fixer-1"})
		r.Event(event.Event{})
		r.End()
		if w := c.Close(t.Context()); r != nil || w != nil {
			t.Errorf("%s: %v %v", reason, r, w)
		}
	}
}
