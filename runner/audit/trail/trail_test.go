package trail

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/audit"
	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
)

// script is a run with events of every type that the log has.
func script() []event.Event {
	in := func(m, call string, p event.Payload) event.Event {
		return event.Event{Message: m, Part: "p", Call: call, Data: p}
	}
	args := json.RawMessage(`{"workspace_path":"w","task_prompt":"` + strings.Repeat("é", 300) + `","output_mode":"diff","timeout_seconds":300}`)
	code := 124
	return []event.Event{
		in("m0", "", event.RunStarted{
			Agent: "worker", Model: message.ModelRef{Name: "fast", Provider: "openai", Model: "gpt"}, Prompt: "a secret wish", Inputs: json.RawMessage(`{"pin":"no-8417"}`),
			Isolation: "Sandbox", ToolIsolation: map[string]string{"opencode_run": "Container"}, Version: "v1", User: "jane",
			Workspace: event.Workspace{Source: "/src", Dir: "/copy", Strategy: "Copy", Git: &event.GitClone{URL: "https://jane:pw@example.com/x.git", Commit: "abc"}},
			Parent:    &event.Parent{Run: "top-1", Call: "call_7", Root: "top-1"}, Audit: Begin(),
		}),
		in("", "", event.SecretResolved{From: "env", Name: "TOKEN", Tool: "opencode_run", Field: "spec.env[0]"}),
		in("", "", event.SecretResolved{From: "env", Name: "TOKEN", Tool: "opencode_run", Field: "spec.env[0]"}), // a resume reads it again
		in("m1", "", event.StepStart{Step: 1}),
		in("m1", "", event.ModelRequest{Step: 1}),
		in("m1", "void", event.ToolInputStart{Tool: "bash"}),
		in("m1", "", event.ModelRetry{}),
		in("m1", "c1", event.ToolInputStart{Tool: "opencode_run"}),
		in("m1", "c2", event.ToolInputStart{Tool: "no such\ntool"}),
		in("m1", "", event.ModelResponse{}),
		in("m1", "c1", event.ToolInputEnd{Tool: "opencode_run", Raw: string(args), Input: args}),
		in("m1", "c1", event.PolicyDecision{Decision: message.Decision{Action: message.Ask, Rule: "p/r3", Source: "p.yaml:4", Risk: "R3", Warnings: []string{"a", "b"}}}),
		in("m1", "c2", event.ToolInputEnd{Tool: "no such\ntool", Raw: "{"}),
		in("m1", "c2", event.ToolError{ToolResult: message.ToolResult{Code: message.CodeUnknownTool, Text: "no"}}),
		in("m1", "c1", event.ApprovalRequested{Tool: "opencode_run", Args: args, Rule: "p/r3", Risk: "R3"}),
		in("m1", "c1", event.ApprovalDecided{Answer: message.Answer{State: message.Approved, By: "jane@pts/3", Scope: message.Once, Reason: "go on"}}),
		in("m1", "c1", event.ToolCall{Tool: "opencode_run", Args: args}),
		in("", "c1", event.EgressConnection{Tools: []string{"opencode_run"}, Host: "api.github.com", Port: 443, Decision: message.Deny, Rule: "not in spec.network.allow"}),
		in("m1", "c1", event.QuestionAsked{Inquiry: message.Inquiry{ID: "q1", Text: "which?"}}),
		in("m1", "c1", event.QuestionAnswered{Reply: message.Reply{ID: "q1", State: message.ReplyAnswered, Answer: "this", By: "jane"}}),
		in("m1", "c1", event.ToolResult{ToolResult: message.ToolResult{
			Text: "t\u2028x", Output: "a \"quote\", ü and \U0001f600\n", ExitCode: &code, Blob: "sha256:" + strings.Repeat("a", 64), DurationMicros: 1_234_567, Writes: true,
			Metadata: json.RawMessage(`{"stdout_len":1024,"stderr_len":0,"changed_files":["src/main.py","tests/test_main.py"],"diff_summary":"2 files","opencode_version":"1.2.3","evidence_refs":["out.log"]}`),
			Child:    &message.ChildRun{Run: "child-1", Agent: "x"},
		}}),
		in("m1", "", event.MessageReceived{Incoming: message.Incoming{ID: "in-1", Text: "hurry", By: "bob"}}),
		in("", "", event.WorkspacePatch{Files: []event.FileChange{{Path: "a", Change: "added"}}, Change: "sha256:x"}),
		in("", "", event.RunFinished{Phase: view.Failed, Reason: "BudgetExceeded", ExitCode: 5, Message: "limits.maxCost is 2.00 USD", Output: "partly", Tokens: message.Usage{Input: 3}}),
		in("", "", event.WorkspaceApplied{Source: "/src", Files: 1, By: "jane"}),
		in("", "", event.RunReverted{To: "m1", Changed: 2, By: "jane@pts/3"}),
		in("", "", event.RunReverted{To: "m1", Undo: true, Changed: 2, By: "bob"}),
		in("", "c1", event.PublishItem{Name: "review", Kind: "Comment", Target: "GitHub acme/shop#5", Key: "k", Item: "sha256:y", State: event.PublishSent, By: "jane"}),
	}
}

// keep writes a journal with its log.
func keep(t testing.TB, events []event.Event) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "runs", "worker-1")
	w, err := Create(t.Context(), journal.Options{Dir: dir, Run: "worker-1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if _, err := w.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func lines(t testing.TB, dir string) (all [][]byte) {
	t.Helper()
	if _, err := journal.Check(t.Context(), dir, func(l journal.Line) error { all = append(all, bytes.Clone(l.Text)); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func records(t testing.TB, dir string) (all []audit.Record) {
	t.Helper()
	p := NewProjection(func(r audit.Record) error { all = append(all, r); return nil })
	for _, l := range lines(t, dir) {
		if err := p.Line(l); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestTheLogHasARecordOfEachKind(t *testing.T) {
	dir := keep(t, script())
	var kinds []string
	var call audit.Call
	var end audit.Finished
	var reverts []audit.Reverted
	for _, r := range records(t, dir) {
		kinds = append(kinds, r.EventType)
		if r.Run != "worker-1" || r.Agent != "worker" || r.Parent == nil || r.Parent.Root != "top-1" {
			t.Errorf("%+v", r)
		}
		switch d := r.Details.(type) {
		case audit.Call:
			if d.CallID == "c1" {
				call = d
			}
		case audit.Finished:
			end = d
		case audit.Reverted:
			reverts = append(reverts, d)
		case audit.Started:
			if d.GitURL != "https://example.com/x.git" || d.PromptDigest == "" {
				t.Errorf("started: %+v", d)
			}
		}
	}
	want := []string{
		"run.started", "secret.resolved", "secret.resolved", "tool.unknown", "approval.decided", "egress.connection", "question.answered", "tool.opencode_run", "message.received", "run.finished", "workspace.applied", "run.reverted", "run.reverted", "publish.item",
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	n, out, errs := 2, int64(1024), int64(0)
	seconds, code, ask := 300.0, 124, "ask"
	wanted := audit.Call{
		Task: audit.Task{TaskID: "worker-1"}, StepID: "step_1", CallID: "c1", Tool: "opencode_run", Workspace: "/copy",
		TaskPrompt: strings.Repeat("é", 199) + "…", OutputMode: "diff", TimeoutSeconds: &seconds, ExitCode: &code, DurationMs: 1235, OutputLen: int64(len("a \"quote\", ü and \U0001f600\n")),
		StdoutLen: &out, StderrLen: &errs, ChangedFiles: []string{"src/main.py", "tests/test_main.py"}, ChangedFilesCount: &n, DiffSummary: "2 files", OpencodeVersion: "1.2.3",
		EvidenceRefs: []string{"run/worker-1#21", "out.log"}, ApprovalID: "approval_15", RiskLevel: "R3", State: "completed", Limits: []string{"output"},
		Decision: &ask, Rule: "p/r3", RuleSource: "p.yaml:4", PolicyWarnings: 2, Approval: &audit.Outcome{State: "approved", By: "jane@pts/3", Scope: "Once"},
		ArgsDigest: call.ArgsDigest, ArgsBytes: call.ArgsBytes, ResultDigest: call.ResultDigest, ResultBytes: int64(len("t\u2028x")), Attempt: 1, Isolation: "Container",
		Secrets: []string{"env:TOKEN"}, ChildRun: "child-1",
	}
	if diff := cmp.Diff(wanted, call); diff != "" || !strings.HasPrefix(call.ArgsDigest, "hmac-sha256:") {
		t.Errorf("(-want +got):\n%s", diff)
	}
	task := audit.Task{TaskID: "worker-1"}
	if diff := cmp.Diff([]audit.Reverted{{Task: task, By: "jane@pts/3", To: "m1", ChangedFilesCount: 2}, {Task: task, By: "bob", To: "m1", Undo: true, ChangedFilesCount: 2}}, reverts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Equal(end.Limits, []string{"max_cost"}) || end.Calls.Ask != 1 || end.ChangedFilesCount != 1 || !slices.Equal(end.EvidenceRefs, []string{"run/worker-1#23"}) {
		t.Errorf("finished: %+v", end)
	}
}

// The same arguments have the same digest in a run, and another one in every other run.
func TestDigestsAreThoseOfOneRun(t *testing.T) {
	one, two := keep(t, script()), keep(t, script())
	digests := func(dir string) (args []string) {
		for _, r := range records(t, dir) {
			if c, ok := r.Details.(audit.Call); ok {
				args = append(args, c.ArgsDigest)
			}
			if s, ok := r.Details.(audit.Started); ok {
				args = append(args, s.InputsDigest)
			}
		}
		return args
	}
	a, b := digests(one), digests(two)
	if !slices.Equal(a, digests(one)) {
		t.Error("the digests of one run differ")
	}
	for i := range a {
		if a[i] == b[i] {
			t.Errorf("two runs have the same digest %s", a[i])
		}
	}
	// A guess of a short value cannot be confirmed without the key: no plain hash is there.
	text, err := os.ReadFile(filepath.Join(one, audit.FileName))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"no-8417", "a secret wish", "hurry", "jane:pw", strings.Repeat("a", 64), "which?", "this"} {
		if bytes.Contains(text, []byte(`"`+part)) || part != "this" && bytes.Contains(text, []byte(part)) {
			t.Errorf("the log shows %q", part)
		}
	}
	var started event.Event
	if err := started.UnmarshalJSON(lines(t, one)[0]); err != nil {
		t.Fatal(err)
	}
	if d, ok := started.Data.(event.RunStarted); !ok || d.Audit == nil || bytes.Contains(text, []byte(d.Audit.Key)) {
		t.Error("the log shows the key of its digests")
	}
}

func TestCallsThatAreOpenHaveARecordWhenTheRunEnds(t *testing.T) {
	in := func(call string, p event.Payload) event.Event {
		return event.Event{Message: "m1", Part: "p", Call: call, Data: p}
	}
	open := []event.Event{
		script()[0], in("", event.ModelRequest{}), in("c1", event.ToolInputStart{Tool: "bash"}), in("c2", event.ToolInputStart{Tool: "bash"}), in("", event.ModelResponse{}),
		in("c1", event.ToolInputEnd{Tool: "bash", Raw: "{}", Input: json.RawMessage("{}")}), in("c1", event.PolicyDecision{Decision: message.Decision{Action: message.Allow, Rule: "r"}}),
		in("c1", event.ToolCall{Tool: "bash", Args: json.RawMessage("{}")}),
	}
	for phase, want := range map[string][]string{view.Cancelled: {"run.started", "tool.bash", "run.finished"}, view.Suspended: {"run.started", "run.finished"}} {
		var kinds []string
		for _, r := range records(t, keep(t, append(open[:len(open):len(open)], event.Event{Data: event.RunFinished{Phase: phase}}))) {
			kinds = append(kinds, r.EventType)
			if c, ok := r.Details.(audit.Call); ok && (c.State != "error" || c.Error != "cancelled" || c.Attempt != 1) {
				t.Errorf("%+v", c)
			}
		}
		if !slices.Equal(kinds, want) {
			t.Errorf("%s: got %v, want %v", phase, kinds, want)
		}
	}
	p := NewProjection(func(audit.Record) error { return nil })
	for _, l := range lines(t, keep(t, open)) {
		if err := p.Line(l); err != nil {
			t.Fatal(err)
		}
	}
	if all := p.Open(); len(all) != 1 || all[0].Details.(audit.Call).State != "running" {
		t.Errorf("open: %+v", all)
	}
}

func TestALogThatCannotBeWrittenEndsTheRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "worker-1")
	full := errors.New("no space left on device")
	w, err := Create(t.Context(), journal.Options{Dir: dir, Run: "worker-1", Write: func(f *os.File, b []byte) (int, error) {
		if filepath.Base(f.Name()) == audit.FileName {
			return 0, full
		}
		return f.Write(b)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(script()[0]); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if _, err := w.Append(event.Event{Data: event.StepStart{}}); !errors.Is(err, full) {
		t.Errorf("the run goes on: %v", err)
	}
	if err := w.Close(); !errors.Is(err, full) {
		t.Errorf("closed: %v", err)
	}
	again, repaired, err := Open(t.Context(), journal.Options{Dir: dir, Run: "worker-1"})
	if err != nil || repaired.Added != 1 {
		t.Fatalf("%+v, %v", repaired, err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestMembersAreFoundAsADecoderFindsThem(t *testing.T) {
	for _, text := range []string{
		`{}`, ` { } `, `{"a":1}`, `{"a":"b\"c\\","d":{"e":[1,"}",{"f":"]"}]},"g":null}`, "{\n\t\"a\" : true ,\"b\":[ ] }", `{"\\\"":"\\\\\""}`, `{"a":-1.5e10,"b":"\u2028"}`,
	} {
		sameMembers(t, text)
	}
	for _, text := range []string{``, `[]`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":"b}`, `{a:1}`, `{"a" 1}`, `{"a":1 "b":2}`, `nonsense`} {
		if err := members([]byte(text), func(string, []byte) bool { return true }); err == nil {
			t.Errorf("%s is read as an object", text)
		}
	}
}

func sameMembers(t *testing.T, text string) {
	t.Helper()
	var want map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &want) != nil || want == nil {
		return
	}
	got := map[string]string{}
	err := members([]byte(text), func(name string, value []byte) bool {
		var plain string
		if json.Unmarshal([]byte(`"`+name+`"`), &plain) != nil {
			t.Errorf("%s: name %q", text, name)
		}
		got[plain] = string(value)
		return true
	})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if len(got) != len(want) {
		t.Errorf("%s: got %v", text, got)
	}
	for name, value := range want {
		if got[name] != string(value) {
			t.Errorf("%s: %q is %q, want %q", text, name, got[name], value)
		}
	}
}

func TestLengthsAreThoseOfTheText(t *testing.T) {
	for _, s := range []string{"", "plain", "a\nb\t\"c\"\\", "ü\u2028\u2029", "\U0001f600\U0001f600", "\x00\x1f", strings.Repeat("\\", 9)} {
		sameLength(t, s)
	}
	for quoted, want := range map[string]int64{`"\ud83d\ude00"`: 4, `"\ud83d"`: 3, `"\ude00x"`: 4, `"\ud83dx"`: 4, `"\u0041"`: 1, `"\ud83d\u0041"`: 4, `null`: 0, `"`: 0} {
		if got := length([]byte(quoted)); got != want {
			t.Errorf("%s: got %d, want %d", quoted, got, want)
		}
	}
}

func sameLength(t *testing.T, s string) {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if got := length(b); got != int64(len(back)) {
		t.Errorf("%s: got %d, want %d", b, got, len(back))
	}
	if got := unquoted(b); got != back {
		t.Errorf("%s: got %q, want %q", b, got, back)
	}
	if e := excerpt(back); utf8.RuneCountInString(e) > excerptLimit || !utf8.ValidString(e) || len([]rune(back)) <= excerptLimit && e != back {
		t.Errorf("%q is shortened to %q", back, e)
	}
}

func FuzzMembers(f *testing.F) {
	for _, l := range []string{`{"a":"b\"c\\","d":{"e":[1,"}"]}}`, `{"seq":1,"type":"tool.result","data":{"text":"\\\""}}`} {
		f.Add([]byte(l), "text")
	}
	f.Fuzz(func(t *testing.T, b []byte, s string) {
		_ = members(b, func(string, []byte) bool { return true }) // it does not panic
		elements(b, func([]byte) {})
		_ = length(b)
		if json.Valid(b) {
			sameMembers(t, string(b))
		}
		sameLength(t, s)
	})
}

func FuzzProjection(f *testing.F) {
	for _, l := range lines(f, keep(f, script())) {
		f.Add(l)
	}
	begin := lines(f, keep(f, script()[:13]))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := NewProjection(func(r audit.Record) error {
			line, err := audit.Append(nil, r)
			if err == nil && (!json.Valid(line) || bytes.Count(line, []byte("\n")) != 1) {
				t.Errorf("a record is not one line of JSON: %q", line)
			}
			return err
		})
		for _, l := range begin {
			if err := p.Line(l); err != nil {
				t.Fatal(err)
			}
		}
		_ = p.Line(b) // it does not panic, and makes records that are JSON
		_ = p.Open()
	})
}

// BenchmarkLine is what an event costs that is not part of the log, and one that is.
func BenchmarkLine(b *testing.B) {
	all := lines(b, keep(b, script()))
	p := NewProjection(func(audit.Record) error { return nil })
	for b.Loop() {
		for _, l := range all {
			if err := p.Line(l); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(all)), "ns/event")
}
