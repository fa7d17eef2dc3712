package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/model/modeltest"
	"agentctl.dev/agentctl/runner/runs"
	"agentctl.dev/agentctl/runner/sandbox"
)

// place is a folder with manifests, a workspace and a state folder.
type place struct{ manifests, workspace, state string }

// agent declares an agent whose spec continues with the given lines, a scripted
// model with the given steps, and whatever else there is.
func agent(spec, steps string, more ...string) string {
	return strings.Join(append([]string{
		"apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: worker}\nspec:\n  modelRef: {name: script}\n" + indent(spec),
		"apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: script}\nspec:\n  provider: scripted\n  scripted:\n    steps:\n" + indent(indent(steps)),
	}, more...), "---\n")
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimLeft(text, "\n")) {
		b.WriteString("  " + line)
	}
	if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
		b.WriteByte('\n')
	}
	return b.String()
}

func newPlace(t *testing.T, manifests string, files map[string]string) place {
	t.Helper()
	dir := t.TempDir()
	p := place{filepath.Join(dir, "manifests"), filepath.Join(dir, "project"), filepath.Join(dir, "state")}
	write(t, filepath.Join(p.manifests, "all.yaml"), manifests)
	if err := os.Mkdir(p.workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		write(t, filepath.Join(p.workspace, name), text)
	}
	return p
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p place) options(change ...func(*RunOptions)) RunOptions {
	o := RunOptions{
		Paths: []string{p.manifests}, Workspace: p.workspace, State: p.state,
		AllowUnsandboxed: true, Version: "test", Approve: "never",
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func (p place) run(t *testing.T, change ...func(*RunOptions)) *Outcome {
	t.Helper()
	return p.runWith(t.Context(), t, change...)
}

// runWith runs and, whatever the end, holds the journal against its chain and
// the outcome against the journal: what was told is what is written.
func (p place) runWith(ctx context.Context, t *testing.T, change ...func(*RunOptions)) *Outcome {
	t.Helper()
	o := p.options(change...)
	if o.Record == "" {
		o.Record = filepath.Join(t.TempDir(), "run.cassette.jsonl")
	}
	out, err := Run(ctx, o)
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		_ = invalid.Write(t.Output(), 20)
	}
	if err != nil {
		t.Fatalf("no run came about: %v", err)
	}
	report, err := journal.Verify(context.Background(), out.Journal)
	if err != nil {
		t.Fatalf("the journal is damaged: %v (%+v)", err, report)
	}
	audited(t, out.Journal, false)
	again, err := runs.View(context.Background(), p.state, "run/"+out.Run.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(out.Result(), again.Result(out.Journal)); diff != "" {
		t.Errorf("the journal tells another run (-outcome +journal):\n%s", diff)
	}
	replaysAsItWas(t, out, o.Record)
	return out
}

func want(t *testing.T, out *Outcome, r reason.Reason) {
	t.Helper()
	if f := out.Run.Finished; f.Reason != string(r) || f.ExitCode != r.ExitCode() {
		t.Errorf("ended %s with exit code %d (%s; hint: %s), want %s", f.Reason, f.ExitCode, f.Message, f.Hint, r)
	}
}

func call(t *testing.T, out *Outcome, n int) view.CallResult {
	t.Helper()
	calls := out.Result().ToolCalls
	if n >= len(calls) {
		t.Fatalf("there are %d calls, want call %d", len(calls), n)
	}
	return calls[n]
}

func text(t *testing.T, out *Outcome, n int) string {
	t.Helper()
	p := out.Run.Call(call(t, out, n).ID)
	if p.Result == nil {
		t.Fatalf("call %d has no result", n)
	}
	return p.Result.Text
}

func TestRunWorksOnACopyAndAppliesExactlyItsChange(t *testing.T) {
	p := newPlace(t, agent("tools: [{name: read}, {name: edit}, {name: bash}]", `
- calls: [{tool: read, args: {path: a.txt}}]
- calls:
  - {tool: edit, args: {path: a.txt, oldString: one, newString: ONE}}
  - {tool: bash, args: {command: "rm b.txt; mkdir d; echo new > d/c.txt"}}
- say: changed
`), map[string]string{"a.txt": "one\ntwo\n", "b.txt": "b\n", ".git/HEAD": "ref: x\n"})
	out := p.run(t, func(o *RunOptions) { o.Approve = "all" })
	want(t, out, reason.Completed)
	files := []event.FileChange{{Path: "a.txt", Change: "modified"}, {Path: "b.txt", Change: "deleted"}, {Path: "d/c.txt", Change: "added"}}
	if diff := cmp.Diff(files, out.Result().ChangedFiles); diff != "" {
		t.Errorf("changed files (-want +got):\n%s", diff)
	}
	if b, _ := os.ReadFile(filepath.Join(p.workspace, "a.txt")); string(b) != "one\ntwo\n" {
		t.Fatalf("the source was touched: %q", b)
	}
	change, err := runs.Diff(t.Context(), p.state, journal.Latest)
	if err != nil || !strings.Contains(string(change.Diff), "-one\n+ONE\n") || len(change.Files) != 3 {
		t.Errorf("diff %s, %v", change.Diff, err)
	}

	write(t, filepath.Join(p.workspace, "b.txt"), "somebody else was here\n")
	if _, err := runs.Apply(t.Context(), runs.ApplyOptions{State: p.state, Ref: out.Run.ID, By: "jane@test"}); err == nil || !strings.Contains(err.Error(), "b.txt") {
		t.Errorf("applied over a file that has changed since: %v", err)
	}
	if b, _ := os.ReadFile(filepath.Join(p.workspace, "a.txt")); string(b) != "one\ntwo\n" {
		t.Errorf("a refused change left %q", b)
	}
	write(t, filepath.Join(p.workspace, "b.txt"), "b\n")
	applied, err := runs.Apply(t.Context(), runs.ApplyOptions{State: p.state, Ref: "run/" + out.Run.ID, By: "jane@test"})
	if err != nil || applied.Source != p.workspace {
		t.Fatalf("apply: %+v, %v", applied, err)
	}
	if b, _ := os.ReadFile(filepath.Join(p.workspace, "d/c.txt")); string(b) != "new\n" {
		t.Errorf("d/c.txt is %q", b)
	}
	if _, err := os.Stat(filepath.Join(p.workspace, "b.txt")); !os.IsNotExist(err) {
		t.Errorf("b.txt is still there: %v", err)
	}
	// Once more nothing is done, and that is no error.
	if again, err := runs.Apply(t.Context(), runs.ApplyOptions{State: p.state, Ref: "@latest", By: "jane@test"}); err != nil || !again.Already {
		t.Errorf("applied twice: %+v, %v", again, err)
	}
}

func TestDenyNamesItsRuleAndTheRunGoesOn(t *testing.T) {
	p := newPlace(t, agent("tools: [{name: read}]\npolicyRefs: [{name: house}]", `
- calls: [{tool: read, args: {path: secret.env}}]
- when: last.error == 'denied'
  say: "told: ${last.output}"
`, `apiVersion: agentctl.dev/v1alpha1
kind: Policy
metadata: {name: house}
spec:
  rules:
  - name: no-env
    match: {tools: [read]}
    when: call.args.path.endsWith('.env')
    action: deny
    messageExpression: "'not ' + call.args.path"
`), map[string]string{"secret.env": "KEY=hunter2"})
	out := p.run(t)
	want(t, out, reason.Denied) // no other call ran
	if !strings.HasPrefix(out.Run.Finished.Output, "told: ") {
		t.Errorf("the run did not go on: %q", out.Run.Finished.Output)
	}
	c := call(t, out, 0)
	if *c.Decision != "deny" || *c.Rule != "house/no-env" || *c.Error != "denied" || c.State != "error" {
		t.Errorf("got %+v", c)
	}
	if got := text(t, out, 0); got != "denied by rule house/no-env: not secret.env" {
		t.Errorf("the model reads %q", got)
	}
	want(t, p.run(t, func(o *RunOptions) { o.FailOnDenied = true }), reason.Denied)
}

const push = "\n- calls: [{tool: bash, args: {command: echo hi}}]\n- say: done\n"

func TestQuestionsAreAnsweredAsDeclared(t *testing.T) {
	for name, c := range map[string]struct {
		reason, spec, approve string
		terminal              string
		end                   reason.Reason
		phase, approval       string
	}{
		"never":         {"nobody answers and the run goes on", "", "never", "", reason.Denied, view.Failed, "unanswered"},
		"all":           {"every question is answered with yes", "", "all", "", reason.Completed, view.Succeeded, "approved"},
		"suspend":       {"the run stops and waits", "approvals: {onAsk: Suspend}", "never", "", reason.ApprovalRequired, view.Suspended, ""},
		"wait":          {"a wait has an end", "approvals: {onAsk: Wait, timeout: 20ms}", "never", "", reason.Denied, view.Failed, "expired"},
		"yes":           {"a person says yes", "", "prompt", "y\n", reason.Completed, view.Succeeded, "approved"},
		"no":            {"a person says no, and the run continues", "", "prompt", "n\n", reason.Denied, view.Failed, "rejected"},
		"no, and end":   {"a person ends the run", "", "prompt", "q\n", reason.Denied, view.Failed, "rejected"},
		"no, because":   {"a person says why not", "", "prompt", "r\nuse make\n", reason.Denied, view.Failed, "rejected"},
		"no terminal":   {"a prompt needs a terminal", "", "prompt", "", reason.Denied, view.Failed, "unanswered"},
		"nobody, empty": {"auto without a terminal is nobody", "", "", "", reason.Denied, view.Failed, "unanswered"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, agent("tools: [{name: bash}]\n"+c.spec, push), nil)
			var shown bytes.Buffer
			out := p.run(t, func(o *RunOptions) {
				o.Approve = c.approve
				if c.terminal != "" {
					o.Terminal = &Terminal{In: strings.NewReader(c.terminal), Out: &shown}
				}
			})
			want(t, out, c.end)
			got := call(t, out, 0).Approval
			if c.approval == "" && got != nil || c.approval != "" && (got == nil || *got != c.approval) || out.Run.Phase != c.phase {
				t.Errorf("%s: approval %v in phase %s", c.reason, got, out.Run.Phase)
			}
			if c.terminal != "" && !strings.Contains(shown.String(), "echo hi") {
				t.Errorf("the person was not shown the call:\n%s", shown.String())
			}
		})
	}
}

func TestApprovalFileHoldsForExactlyThatCall(t *testing.T) {
	p := newPlace(t, agent("tools: [{name: bash}]", push), nil)
	out := p.run(t)
	hash := out.Run.Call(call(t, out, 0).ID).Decision.Hash
	list := filepath.Join(t.TempDir(), "approved")
	write(t, list, "# the greeting\n"+hash+"\n")
	out = p.run(t, func(o *RunOptions) { o.Approve = list })
	if got := call(t, out, 0); got.Approval == nil || *got.Approval != "approved" {
		t.Errorf("the approved call: %+v", got)
	}
	other := newPlace(t, agent("tools: [{name: bash}]", strings.ReplaceAll(push, "echo hi", "echo ho")), nil)
	out = other.run(t, func(o *RunOptions) { o.Approve = list })
	if got := call(t, out, 0); *got.Approval != "unanswered" {
		t.Errorf("another call: %+v", got)
	}
}

func TestIsolationFailsClosed(t *testing.T) {
	p := newPlace(t, agent("tools: [{name: bash}]", push), nil)
	strict := func(o *RunOptions) { o.AllowUnsandboxed = false; o.Approve = "all" }
	out := p.run(t, strict)
	want(t, out, reason.IsolationUnavailable)
	if len(out.Result().ToolCalls) > 0 || out.Run.Steps > 0 {
		t.Error("something ran")
	}
	t.Setenv(sandbox.OuterIsolationEnv, "container")
	out = p.run(t, strict)
	want(t, out, reason.Completed)
	if out.Run.Started.OuterIsolation != "container" {
		t.Error("the declaration is not in the journal")
	}
	t.Setenv(sandbox.OuterIsolationEnv, "contaner")
	want(t, p.run(t, strict), reason.IsolationUnavailable)
}

func TestWhatThisVersionCannotDoEndsWithExitCode8(t *testing.T) {
	digest := "registry.example.com/x@sha256:" + strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		manifests string
		reason    reason.Reason
	}{
		"container": {agent("tools: [{name: x}]", push, "apiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: x}\nspec:\n  source: {container: {image: \""+digest+"\"}}\n"), reason.IsolationUnavailable},
		"proxy":     {agent("tools: [{name: bash}]", push, "apiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: bash}\nspec:\n  network: {mode: Proxy, allow: [\"x:443\"]}\n  source: {builtin: {name: bash}}\n"), reason.IsolationUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			out := newPlace(t, c.manifests, nil).run(t)
			want(t, out, c.reason)
			if f := out.Run.Finished; f.ExitCode != 8 || f.Hint == "" {
				t.Errorf("exit code %d, hint %q", f.ExitCode, f.Hint)
			}
		})
	}
}

func TestSecretsNeverLeaveTheRunner(t *testing.T) {
	const canary = "s3cr3t-canary-value"
	t.Setenv("CANARY", canary)
	t.Setenv("UNDECLARED", "undeclared-canary")
	p := newPlace(t, agent("tools: [{name: bash}]", `
- calls: [{tool: bash, args: {command: "printenv TOKEN; printenv UNDECLARED; printf %s $TOKEN | base64; printf %s $TOKEN | od -An -tx1 | tr -d ' \\n'"}}]
- say: "it is ${last.output}"
`, `apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: bash}
spec:
  env: [{name: TOKEN, valueFrom: {env: CANARY}}]
  source: {builtin: {name: bash}}
`), nil)
	var told bytes.Buffer
	out := p.run(t, func(o *RunOptions) {
		o.Approve = "all"
		o.Events = func(e event.Event) {
			b, _ := e.AppendJSON(nil)
			told.Write(b)
		}
	})
	want(t, out, reason.Completed)
	if !strings.Contains(out.Run.Finished.Output, "***") {
		t.Errorf("the command did not print the secret: %q", out.Run.Finished.Output)
	}
	forms := []string{canary, "czNjcjN0LWNhbmFyeS12YWx1ZQ", "7333637233742d63616e6172792d76616c7565", "undeclared-canary"}
	check := func(where string, b []byte) {
		for _, form := range forms {
			if bytes.Contains(b, []byte(form)) {
				t.Errorf("%s holds %s", where, form)
			}
		}
	}
	check("what watchers were told", told.Bytes())
	err := filepath.WalkDir(p.state, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		check(path, b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestMissingCredentialEndsTheRunBeforeAnything(t *testing.T) {
	p := newPlace(t, agent("", push)+"---\napiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: real}\nspec: {provider: openai, model: x, apiKey: {valueFrom: {env: NO_SUCH_VARIABLE}}}\n", nil)
	out := p.run(t, func(o *RunOptions) { o.Model = "real" })
	want(t, out, reason.CredentialMissing)
	if !strings.Contains(out.Run.Finished.Message, "NO_SUCH_VARIABLE") {
		t.Errorf("the message does not name the place: %s", out.Run.Finished.Message)
	}
}

func TestSecretFromACommand(t *testing.T) {
	server, err := modeltest.NewServer(modeltest.Answer{Text: "hello"}.Step())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p := newPlace(t, openaiAgent(server.URL, "apiKey: {valueFrom: {exec: [/bin/echo, key-from-command]}}"), nil)
	want(t, p.run(t), reason.Completed)
	if got := server.Requests()[0].Header.Get("Authorization"); got != "Bearer key-from-command" {
		t.Errorf("the server was sent %q", got)
	}
	failing := newPlace(t, openaiAgent(server.URL, "apiKey: {valueFrom: {exec: [/bin/sh, -c, \"echo key-from-command locked >&2; exit 3\"]}}"), nil)
	out := failing.run(t)
	want(t, out, reason.CredentialMissing)
	if m := out.Run.Finished.Message; !strings.Contains(m, "exit code 3") || strings.Contains(m, "key-from-command") {
		t.Errorf("the message is %q", m)
	}
}

func openaiAgent(url, more string) string {
	return "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec:\n  modelRef: {name: m}\n  instructions: Be brief.\n  tools: [{name: read}, {name: bash}]\n---\n" +
		"apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec:\n  provider: openai\n  model: test\n  baseURL: " + url +
		"\n  retry: {attempts: 1}\n  pricing: {input: \"1\", cacheRead: \"0.1\", output: \"2\"}\n  " + more + "\n"
}

func TestOpenAIConversation(t *testing.T) {
	server, err := modeltest.NewServer(
		modeltest.Answer{Text: "looking", Calls: []modeltest.Call{{ID: "call_a", Tool: "read", Args: `{"path":"a.txt"}`}, {ID: "call_b", Tool: "READ", Args: `{"path":"nope"`}}, Usage: &modeltest.Usage{Prompt: 100, Completion: 20, Cached: 40, Reasoning: 5}}.Step().Pieces(7),
		modeltest.Answer{Text: "it says one", Usage: &modeltest.Usage{Prompt: 0, Completion: 0}}.Step(),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p := newPlace(t, openaiAgent(server.URL, ""), map[string]string{"a.txt": "one\n"})
	out := p.run(t, func(o *RunOptions) { o.Prompt = "What does a.txt say?" })
	want(t, out, reason.Completed)
	res := out.Result()
	if res.Output != "it says one" || res.Cost == nil || res.Cost.String() != "0.000104" || res.Tokens != (view.Tokens{Input: 60, Output: 20, Reasoning: 5, CacheRead: 40}) {
		t.Errorf("got %+v, cost %v", res, res.Cost)
	}
	if a, b := call(t, out, 0), call(t, out, 1); a.ID != "call_a" || a.Error != nil || *b.Error != "bad_json" || b.Decision != nil {
		t.Errorf("calls %+v, %+v", a, b)
	}
	second := string(server.Requests()[1].Body)
	for _, part := range []string{"Be brief.", "What does a.txt say?", `"tool_call_id":"call_a"`, "1: one", "no valid JSON"} {
		if !strings.Contains(second, part) {
			t.Errorf("the second request lacks %q:\n%s", part, second)
		}
	}
	if a, b := server.Requests()[0], server.Requests()[1]; a.Remote != b.Remote {
		t.Errorf("two connections: %s and %s", a.Remote, b.Remote)
	}
}

func TestServersThatGoWrongEndInANamedReason(t *testing.T) {
	for name, c := range map[string]struct {
		step modeltest.Step
		want reason.Reason
	}{
		"html":        {modeltest.Page(), reason.ModelError},
		"401":         {modeltest.Refuse(401, nil, `{"error":{"message":"no"}}`), reason.CredentialRejected},
		"429":         {modeltest.Refuse(429, nil, `{"error":{"message":"slow down"}}`), reason.ProviderUnavailable},
		"500":         {modeltest.Refuse(500, nil, "oops"), reason.ProviderUnavailable},
		"400":         {modeltest.Refuse(400, nil, `{"error":{"message":"what?"}}`), reason.ModelError},
		"cut":         {modeltest.Answer{Text: "half an answer"}.Step().CutAt(60), reason.ProviderUnavailable},
		"garbage":     {modeltest.Events("data: {]\n\n"), reason.ModelError},
		"10 MB line":  {modeltest.LongLine(10 << 20), reason.ModelError},
		"too long":    {modeltest.Refuse(400, nil, `{"error":{"code":"context_length_exceeded","message":"too long"}}`), reason.ContextExhausted},
		"no response": {modeltest.Answer{}.Step().EndAt(0), reason.ProviderUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := modeltest.NewServer(c.step, c.step)
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			out := newPlace(t, openaiAgent(server.URL, ""), nil).run(t)
			want(t, out, c.want)
			if out.Run.Finished.Message == "" {
				t.Error("no message")
			}
			if hint := out.Run.Finished.Hint; c.want == reason.CredentialRejected && !strings.Contains(hint, "the Model sends no key") {
				t.Errorf("hint %q", hint)
			}
		})
	}
}

func TestWordsFromTheCommandLine(t *testing.T) {
	spec := `instructions: "Greet ${inputs.name} ${inputs.times} times"
inputs:
  schema:
    type: object
    properties: {name: {type: string}, times: {type: integer}}
    required: [name, times]
    additionalProperties: false`
	p := newPlace(t, agent(spec, "- say: \"${prompt} / ${inputs.name} / ${string(inputs.times + 1)}\"\n"), nil)
	out := p.run(t, func(o *RunOptions) {
		o.Prompt = "Hi ${inputs.name}"
		o.Inputs = map[string]string{"name": "$${x} ${inputs.times}", "times": "3"}
	})
	want(t, out, reason.Completed)
	if got := out.Run.Finished.Output; got != "Hi $${x} ${inputs.times} / $${x} ${inputs.times} / 4" {
		t.Errorf("got %q: inputs are data and are read once", got)
	}
	for name, inputs := range map[string]map[string]string{
		"missing": {"name": "x"}, "wrong type": {"name": "x", "times": "many"}, "unknown": {"name": "x", "times": "1", "colour": "red"},
	} {
		_, err := Run(t.Context(), p.options(func(o *RunOptions) { o.Inputs = inputs }))
		if _, ok := errors.AsType[*reason.UsageError](err); !ok {
			t.Errorf("%s: got %v, want a usage error", name, err)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	p := newPlace(t, agent("", push)+"---\n"+strings.ReplaceAll(strings.Split(agent("", push), "---\n")[0], "worker", "other"), nil)
	for name, c := range map[string]struct {
		change func(*RunOptions)
		text   string
	}{
		"no paths":      {func(o *RunOptions) { o.Paths = nil }, "no manifests"},
		"two agents":    {func(o *RunOptions) {}, "other, worker"},
		"unknown agent": {func(o *RunOptions) { o.Agent = "wroker" }, "worker"},
		"unknown model": {func(o *RunOptions) { o.Agent, o.Model = "worker", "scritp" }, "script"},
		"approve":       {func(o *RunOptions) { o.Agent, o.Approve = "worker", "sometimes" }, "sometimes"},
		"no workspace":  {func(o *RunOptions) { o.Agent, o.Workspace = "worker", "/no/such/folder" }, "/no/such/folder"},
		"file":          {func(o *RunOptions) { o.Agent, o.Workspace = "worker", filepath.Join(p.manifests, "all.yaml") }, "not a folder"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Run(t.Context(), p.options(c.change))
			wrong, ok := errors.AsType[*reason.UsageError](err)
			if !ok || !strings.Contains(wrong.Error(), c.text) {
				t.Errorf("got %v, want a usage error with %q", err, c.text)
			}
		})
	}
	if left, _ := os.ReadDir(filepath.Join(p.state, "runs")); len(left) > 0 {
		t.Errorf("a run that never began left something behind: %v", left)
	}
}

func TestInvalidManifestsAreAllTold(t *testing.T) {
	p := newPlace(t, strings.Replace(agent("tols: []\ntools: [{name: raed}]", push), "provider: scripted", "provider: scriptd", 1), nil)
	_, err := Run(t.Context(), p.options())
	invalid, ok := errors.AsType[*InvalidError](err)
	if !ok || len(invalid.Findings) < 3 {
		t.Fatalf("got %v", err)
	}
	var b bytes.Buffer
	if err := invalid.Write(&b, 20); err != nil || !strings.Contains(b.String(), `did you mean "read"?`) {
		t.Errorf("got %s, %v", b.String(), err)
	}
	report, err := Validate(t.Context(), ValidateOptions{Paths: []string{p.manifests}})
	if err != nil || !report.HasErrors() || report.Documents != 2 {
		t.Errorf("validate: %+v, %v", report, err)
	}
	if _, err := Validate(t.Context(), ValidateOptions{}); err == nil {
		t.Error("validating nothing is no error")
	}
}

func TestTimeoutStopsTheWholeTree(t *testing.T) {
	marker := fmt.Sprintf("3%d", time.Now().UnixNano()%1e8+1e8)
	p := newPlace(t, agent("tools: [{name: bash}]", "- calls: [{tool: bash, args: {command: \"setsid sleep "+marker+" & sleep "+marker+"\"}}]\n- say: done\n"), nil)
	out := p.run(t, func(o *RunOptions) { o.Approve, o.Timeout = "all", 8*time.Second })
	want(t, out, reason.DeadlineExceeded)
	if got := call(t, out, 0); got.Error == nil || *got.Error != "cancelled" {
		t.Errorf("the call ended as %+v", got)
	}
	if left := running(t, marker); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// running lists the processes whose command line holds the text.
func running(t *testing.T, text string) (found []string) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range dirs {
		b, err := os.ReadFile(f)
		if err == nil && bytes.Contains(b, []byte(text)) {
			found = append(found, string(bytes.ReplaceAll(b, []byte{0}, []byte{' '})))
		}
	}
	return found
}

func TestSignals(t *testing.T) {
	for _, c := range []struct {
		signal syscall.Signal
		code   int
		kill   bool
	}{{syscall.SIGINT, 130, false}, {syscall.SIGTERM, 143, false}, {syscall.SIGINT, 130, true}} {
		t.Run(fmt.Sprint(c.signal, c.kill), func(t *testing.T) {
			marker := fmt.Sprintf("4%d", time.Now().UnixNano()%1e8+1e8)
			trap := "trap '' TERM INT; sleep " + marker + "; sleep " + marker
			p := newPlace(t, agent("tools: [{name: bash}]", "- calls: [{tool: bash, args: {command: \""+trap+"\"}}]\n- say: done\n"), nil)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			kill := make(chan struct{})
			var once sync.Once
			out := p.runWith(ctx, t, func(o *RunOptions) {
				o.Approve, o.Kill = "all", kill
				o.Events = func(e event.Event) {
					if e.Type() == event.TypeToolCall {
						once.Do(func() {
							cancel(SignalError{Signal: c.signal})
							if c.kill {
								close(kill)
							}
						})
					}
				}
			})
			if f := out.Run.Finished; f.ExitCode != c.code || f.Reason != string(reason.Cancelled) || out.Run.Phase != view.Cancelled {
				t.Errorf("ended %+v", f)
			}
			if left := running(t, marker); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestTheSecondSignalCountsWhileProgramsAreWaitedFor closes Kill when the loop
// has ended and only a command that is deaf to TERM is left.
func TestTheSecondSignalCountsWhileProgramsAreWaitedFor(t *testing.T) {
	var took time.Duration
	for range 5 { // on a busy machine the end may take as long without the second signal
		// A command has 2 s after the TERM that it is deaf to, of which the call has
		// waited three quarters of one. On a machine that is not busy it takes 0.1 s.
		if took = secondSignal(t); took < time.Second {
			return
		}
	}
	t.Errorf("ending took %s after the second signal", took)
}

// secondSignal returns how long a run takes to end after the second signal.
func secondSignal(t *testing.T) time.Duration {
	t.Helper()
	p := newPlace(t, agent("tools: [{name: bash}]", "- calls: [{tool: bash, args: {command: \"trap '' TERM; touch ready; while :; do sleep 0.1; done\"}}]\n- say: done\n"), nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	kill := make(chan struct{})
	var began time.Time
	deaf := make(chan struct{})
	out := p.runWith(ctx, t, func(o *RunOptions) {
		o.Approve, o.Kill = "all", kill
		o.Events = func(e event.Event) {
			if e.Type() == event.TypeToolCall {
				go func() {
					defer close(deaf)
					tick := time.NewTicker(5 * time.Millisecond)
					defer tick.Stop()
					for ; ctx.Err() == nil; <-tick.C { // the trap is set before the file is there
						if ready, _ := filepath.Glob(filepath.Join(p.state, "runs/*/workspace/*/ready")); len(ready) > 0 {
							break
						}
					}
					cancel(SignalError{Signal: syscall.SIGINT})
				}()
			}
			if e.Type() == event.TypeToolError {
				began = time.Now()
				close(kill)
			}
		}
	})
	<-deaf
	if out.Run.Phase != view.Cancelled {
		t.Errorf("ended %+v", out.Run.Finished)
	}
	return time.Since(began)
}

func TestOutputContract(t *testing.T) {
	spec := "output:\n  retries: 1\n  schema: {type: object, properties: {num: {type: integer}}, required: [num], additionalProperties: false}"
	good := newPlace(t, agent(spec, "- say: three\n- say: |\n    ```json\n    {\"num\": 3}\n    ```\n"), nil)
	want(t, good.run(t), reason.Completed)
	bad := newPlace(t, agent(spec, "- say: three\n- say: '{\"num\": \"3\", \"more\": 1}'\n- say: '{\"num\": 3}'\n"), nil)
	out := bad.run(t)
	want(t, out, reason.OutputInvalid)
	if m := out.Run.Finished.Message; !strings.Contains(m, "/num") || !strings.Contains(m, "/more") {
		t.Errorf("the message does not tell all mistakes: %s", m)
	}
}

func TestLimitsOfAgentAndRun(t *testing.T) {
	steps := ""
	for i := range 5 {
		steps += fmt.Sprintf("- calls: [{tool: list, args: {depth: %d}}]\n", i+1)
	}
	run := "apiVersion: agentctl.dev/v1alpha1\nkind: Run\nmetadata: {name: r}\nspec:\n  agentRef: {name: worker}\n  limits: {maxSteps: 2}\n"
	p := newPlace(t, agent("tools: [{name: list}]\nlimits: {maxSteps: 4}", steps, run), nil)
	out := p.run(t)
	want(t, out, reason.MaxSteps)
	if n := len(out.Result().ToolCalls); n != 2 {
		t.Errorf("%d calls, want 2: the run narrows the agent", n)
	}
	free := newPlace(t, agent("limits: {maxCost: \"1.00\"}", push), nil)
	out = free.run(t)
	want(t, out, reason.Completed)
	if cost := out.Result().Cost; cost == nil || cost.String() != "0.00" {
		t.Errorf("a script costs %v", cost)
	}
	unpriced := newPlace(t, strings.ReplaceAll(openaiAgent("http://127.0.0.1:9/v1", ""), "  pricing: {", "  parameters: {maxOutputTokens: 10} # {"), nil)
	write(t, filepath.Join(unpriced.manifests, "run.yaml"), "apiVersion: agentctl.dev/v1alpha1\nkind: Run\nmetadata: {name: r}\nspec: {agentRef: {name: a}, limits: {maxCost: \"1.00\"}}\n")
	want(t, unpriced.run(t), reason.BudgetExceeded)
	same := newPlace(t, agent("tools: [{name: list}]", strings.Repeat("- calls: [{tool: list, args: {}}]\n", 5)), nil)
	want(t, same.run(t), reason.LoopDetected)
	silent := newPlace(t, agent("", "- when: 1 > 2\n"), nil)
	want(t, silent.run(t), reason.NoFinalAnswer)
}

func TestWorkspaces(t *testing.T) {
	steps := "- calls: [{tool: write, args: {path: new.txt, content: x}}]\n- say: done\n"
	p := newPlace(t, agent("tools: [{name: write}]", steps), map[string]string{"old.txt": "o"})
	out := p.run(t, func(o *RunOptions) { o.InPlace = true })
	want(t, out, reason.Completed)
	if _, err := os.Stat(filepath.Join(p.workspace, "new.txt")); err != nil {
		t.Errorf("in place, but: %v", err)
	}
	if _, err := runs.Apply(t.Context(), runs.ApplyOptions{State: p.state, Ref: out.Run.ID, By: "jane@test"}); err == nil {
		t.Error("a run in place was applied")
	}
	empty := newPlace(t, agent("tools: [{name: write}]", steps, "apiVersion: agentctl.dev/v1alpha1\nkind: Run\nmetadata: {name: r}\nspec: {agentRef: {name: worker}, workspace: {strategy: Empty}}\n"), nil)
	out = empty.run(t, func(o *RunOptions) { o.Workspace = "" })
	want(t, out, reason.Completed)
	if got := out.Result().ChangedFiles; len(got) != 1 || got[0].Path != "new.txt" {
		t.Errorf("changed %v", got)
	}
	for _, ref := range []string{"nope", "../x", ""} {
		if _, err := runs.Diff(t.Context(), p.state, ref); err == nil {
			t.Errorf("a diff of run %q was shown", ref)
		}
	}
}

func TestExecTool(t *testing.T) {
	manifests := agent("tools: [{name: double}]", `
- calls: [{tool: double, args: {num: 21}}]
- calls: [{tool: double, args: {num: 0}}]
- say: "${last.output}"
`, `apiVersion: agentctl.dev/v1alpha1
kind: Tool
metadata: {name: double}
spec:
  description: Double a number.
  parameters: {type: object, properties: {num: {type: integer}}, required: [num]}
  risk: R0
  source: {exec: {command: [./double.sh]}}
`)
	p := newPlace(t, manifests, nil)
	script := filepath.Join(p.manifests, "double.sh")
	write(t, script, "#!/bin/sh\nread args\ncase $args in *21*) echo 42; pwd >&2;; *) echo 'no zero' >&2; exit 7;; esac\n")
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	out := p.run(t)
	want(t, out, reason.Completed)
	if got := text(t, out, 0); !strings.HasPrefix(got, "42\n[exit code 0") {
		t.Errorf("the model reads %q", got)
	}
	if c := call(t, out, 1); *c.ExitCode != 7 || *c.Error != "tool" || !strings.Contains(text(t, out, 1), "no zero") {
		t.Errorf("a failing program: %+v", c)
	}
}

func TestPluginToldByItself(t *testing.T) {
	exe := filepath.Join(os.Getenv("AGENTCTL_LIBEXEC"), "agentctl-tools")
	plugin := func(command, tool string) string {
		return "apiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: look}\nspec:\n  risk: R0\n  source: {plugin: {command: [\"" + command + "\"], tool: " + tool + "}}\n"
	}
	steps := "- calls: [{tool: look, args: {path: a.txt}}]\n- say: done\n"
	p := newPlace(t, agent("tools: [{name: look}]", steps, plugin(exe, "read")), map[string]string{"a.txt": "one\n"})
	out := p.run(t)
	want(t, out, reason.Completed)
	if got := text(t, out, 0); !strings.Contains(got, "1: one") {
		t.Errorf("the model reads %q", got)
	}
	missing := newPlace(t, agent("tools: [{name: look}]", steps, plugin(exe, "raed")), nil)
	out = missing.run(t)
	want(t, out, reason.ToolError)
	if !strings.Contains(out.Run.Finished.Message, "read") {
		t.Errorf("the message does not name the functions: %s", out.Run.Finished.Message)
	}
	broken := newPlace(t, agent("tools: [{name: look}]", steps, plugin("/bin/true", "x")), nil)
	want(t, broken.run(t), reason.ToolError)
	// What to do is said of a program that is not there, and of one that is none.
	dir := t.TempDir()
	write(t, filepath.Join(dir, "text"), "no program")
	for name, hint := range map[string]string{"nothing": "there is no such file", "text": "make it executable"} {
		out := newPlace(t, agent("tools: [{name: look}]", steps, plugin(filepath.Join(dir, name), "x")), nil).run(t)
		want(t, out, reason.ToolError)
		if !strings.Contains(out.Run.Finished.Hint, hint) {
			t.Errorf("%s: hint %q", name, out.Run.Finished.Hint)
		}
	}
}

func TestPluginThatDiesIsStartedAgain(t *testing.T) {
	p := newPlace(t, agent("tools: [{name: bash}]", `
- calls: [{tool: bash, args: {command: "kill -9 $PPID"}}]
- calls: [{tool: bash, args: {command: "echo alive"}}]
- say: "${last.output}"
`), nil)
	out := p.run(t, func(o *RunOptions) { o.Approve = "all" })
	want(t, out, reason.Completed)
	if got := text(t, out, 0); !strings.Contains(got, "died") || !strings.Contains(got, "may or may not") {
		t.Errorf("the call that killed its program reads %q", got)
	}
	if out.Run.Finished.Output != "alive\n" {
		t.Errorf("the next call: %q", out.Run.Finished.Output)
	}
	steps := ""
	for i := range 3 {
		steps += fmt.Sprintf("- calls: [{tool: bash, args: {command: \"kill -9 $PPID; : %d\"}}]\n", i)
	}
	worse := newPlace(t, agent("tools: [{name: bash}]", steps+"- say: done\n"), nil)
	want(t, worse.run(t, func(o *RunOptions) { o.Approve = "all" }), reason.ToolError)
}

func TestLongOutputIsKeptAndCanBeReadBack(t *testing.T) {
	p := newPlace(t, agent("tools: [{name: bash}, {name: read}]", `
- calls: [{tool: bash, args: {command: "seq 1 9000"}}]
- calls: [{tool: read, args: {path: "blob:${last.output.size() > 0 ? 'x' : ''}"}}]
- say: done
`), nil)
	out := p.run(t, func(o *RunOptions) { o.Approve = "all" })
	want(t, out, reason.Completed)
	r := out.Run.Call(call(t, out, 0).ID).Result
	if r.Blob == "" || !strings.Contains(r.Text, "left out") || !strings.Contains(r.Text, "9000") {
		t.Fatalf("got %d bytes, blob %q", len(r.Text), r.Blob)
	}
	b, err := journal.ReadBlob(out.Journal, r.Blob)
	if err != nil || bytes.Count(b, []byte{'\n'}) != 9000 {
		t.Errorf("the blob has %d lines, %v", bytes.Count(b, []byte{'\n'}), err)
	}
	if c := call(t, out, 1); *c.Error != "tool" {
		t.Errorf("a blob that is none: %+v", c)
	}
}

func TestEventsComeInOrder(t *testing.T) {
	p := newPlace(t, agent("tools: [{name: list}]", "- calls: [{tool: list, args: {}}, {tool: list, args: {depth: 2}}]\n- say: done\n"), map[string]string{"x": ""})
	var seqs []int64
	out := p.run(t, func(o *RunOptions) { o.Events = func(e event.Event) { seqs = append(seqs, e.Seq) } })
	if !slices.IsSorted(seqs) || int64(len(seqs)) != out.Run.LastSeq || seqs[0] != 1 {
		t.Errorf("seqs %v, last %d", seqs, out.Run.LastSeq)
	}
	ids, err := runs.IDs(p.state)
	if err != nil || !slices.Equal(ids, []string{out.Run.ID}) {
		t.Errorf("runs %v, %v", ids, err)
	}
	if out.Run.Messages[0].Role != message.RoleUser || out.Run.Messages[0].Text() != "Carry out your instructions." {
		t.Errorf("the first message is %+v", out.Run.Messages[0])
	}
}
