package runner

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/api/audit"
	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	auditdoor "agentctl.dev/agentctl/runner/audit"
	"agentctl.dev/agentctl/runner/audit/trail"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/model/modeltest"
	"agentctl.dev/agentctl/runner/runs"
)

// audited compares the journal of a run with what a Writer writes, its audit log with the
// projection of the journal, and the projection with the fold, which is another reader of the
// same events. Of a run that was killed the log may lack its end.
func audited(t *testing.T, dir string, killed bool) {
	t.Helper()
	log, err := trail.OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	calls, v := map[string]audit.Call{}, &view.Run{}
	var line []byte
	p := trail.NewProjection(func(r audit.Record) error {
		if c, ok := r.Details.(audit.Call); ok {
			if _, twice := calls[c.CallID]; twice {
				t.Errorf("call %s has two records", c.CallID)
			}
			calls[c.CallID] = c
		}
		if line, err = audit.Append(line[:0], r); err != nil {
			return err
		}
		return log.Match(line)
	})
	report, err := journal.Check(context.Background(), dir, func(l journal.Line) error {
		var e event.Event
		if err := e.UnmarshalJSON(l.Text); err != nil {
			return err
		}
		_ = v.Apply(e) // an event that the rules forbid changes nothing
		return p.Line(l.Text)
	})
	if err == nil {
		err = log.End()
	}
	if err != nil {
		t.Fatalf("the journal or its audit log is not as it is written: %v (%+v)", err, report)
	}
	if log.Extra > 0 || !killed && (log.Missing > 0 || log.Torn > 0 || !report.Anchored) {
		t.Errorf("the audit log has %d records, lacks %d, and has %d bytes more; the journal is %+v", log.Records, log.Missing, log.Extra, report)
	}
	if v.Finished == nil {
		return
	}
	for _, m := range v.Messages {
		for _, c := range m.Calls() {
			got, ok := calls[c.CallID]
			if !ok && (c.State == message.StatePending || c.State == message.StateRunning || c.Decision == nil && c.Start == 0 && c.Result.Code == message.CodeCancelled) {
				continue // it is in progress, or the run ended before the policy saw it
			}
			if !ok {
				t.Errorf("call %s has no record", c.CallID)
				continue
			}
			delete(calls, c.CallID)
			agrees(t, v, c, got)
		}
	}
	for id := range calls {
		t.Errorf("there is a record of call %s, which the run does not have", id)
	}
}

// agrees compares the record of a call with the fold.
func agrees(t *testing.T, v *view.Run, c *message.ToolPart, got audit.Call) {
	t.Helper()
	type said struct {
		Tool, Step, State, Error, Decision, Rule, Source, Risk, Approval, Child string
		ExitCode                                                                *int
		Duration                                                                int64
		Attempt, Output                                                         int
	}
	want := said{
		Tool: c.Tool, Step: stepOf(v, c), State: string(c.State), Error: string(c.Result.Code), Approval: string(c.Approval),
		ExitCode: c.Result.ExitCode, Duration: (c.Result.DurationMicros + 500) / 1000, Attempt: c.Attempt, Output: len(c.Result.Output),
	}
	if c.Result.Child != nil {
		want.Child = c.Result.Child.Run
	}
	if d := c.Decision; d != nil {
		want.Decision, want.Rule, want.Source, want.Risk = string(d.Action), d.Rule, d.Source, d.Risk
	}
	have := said{
		Tool: got.Tool, Step: got.StepID, State: got.State, Error: got.Error, Rule: got.Rule, Source: got.RuleSource, Risk: got.RiskLevel, Child: got.ChildRun,
		ExitCode: got.ExitCode, Duration: got.DurationMs, Attempt: got.Attempt, Output: int(got.OutputLen),
	}
	if got.Decision != nil {
		have.Decision = *got.Decision
	}
	if got.Approval != nil {
		have.Approval = got.Approval.State
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("the record of call %s says another thing than the fold (-fold +record):\n%s", c.CallID, diff)
	}
}

func TestAResumeCompletesTheAuditLog(t *testing.T) {
	for name, harm := range map[string]func(path string, whole []byte) error{
		"removed":          func(path string, _ []byte) error { return os.Remove(path) },
		"cut in a line":    func(path string, whole []byte) error { return os.Truncate(path, int64(len(whole)-20)) },
		"emptied":          func(path string, _ []byte) error { return os.Truncate(path, 0) },
		"with bytes more":  func(path string, whole []byte) error { return os.WriteFile(path, append(whole, "{}\n"...), 0o600) },
		"changed":          func(path string, whole []byte) error { whole[300] ^= 1; return os.WriteFile(path, whole, 0o600) },
		"as it is":         func(string, []byte) error { return nil },
		"another run's":    func(path string, _ []byte) error { return os.WriteFile(path, []byte("{\"timestamp\":\"\"}\n"), 0o600) },
		"without line end": func(path string, whole []byte) error { return os.Truncate(path, int64(len(whole)-1)) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, agent("tools: [{name: bash}]\napprovals: {onAsk: Suspend}\npolicyRefs: [{name: asks}]",
				"- calls: [{tool: bash, args: {command: echo one}}]\n- say: done\n",
				"apiVersion: agentctl.dev/v1alpha1\nkind: Policy\nmetadata: {name: asks}\nspec: {rules: [{name: all, match: {tools: [bash]}, action: ask}]}\n"), nil)
			out := p.run(t)
			if out.Run.Phase != view.Suspended {
				t.Fatalf("it ended %s", out.Run.Phase)
			}
			path := filepath.Join(out.Journal, audit.FileName)
			whole, err := os.ReadFile(path)
			if err == nil {
				err = harm(path, whole)
			}
			if err != nil {
				t.Fatal(err)
			}
			again, err := Resume(t.Context(), ResumeOptions{Ref: out.Run.ID, State: p.state, Approve: "all", Version: "test"})
			if err != nil || again.Run.Phase != view.Succeeded {
				t.Fatalf("resume: %+v, %v", again, err)
			}
			audited(t, out.Journal, false)
			kept, _ := filepath.Glob(filepath.Join(out.Journal, "audit.changed-*.jsonl"))
			told := false
			for _, w := range again.Run.Warnings {
				told = told || strings.Contains(w, "audit log")
			}
			switch name {
			case "changed", "another run's":
				if len(kept) != 1 || !told {
					t.Errorf("the changed log is kept as %v, warnings %q", kept, again.Run.Warnings)
				}
			case "with bytes more":
				if len(kept) != 0 || !told {
					t.Errorf("kept %v, warnings %q", kept, again.Run.Warnings)
				}
			default:
				if len(kept) != 0 || told {
					t.Errorf("kept %v, warnings %q", kept, again.Run.Warnings)
				}
			}
		})
	}
}

// TestTheAuditLogAndTheReceiptHoldNoSecret puts keys wherever one may come to stand.
func TestTheAuditLogAndTheReceiptHoldNoSecret(t *testing.T) {
	const key, token = "sk-canary/+0123456789==", "tok canary&9876543210?"
	forms := func(v string) []string {
		return []string{
			v, base64.StdEncoding.EncodeToString([]byte(v)), base64.URLEncoding.EncodeToString([]byte(v)), base64.StdEncoding.EncodeToString([]byte("x" + v)), hex.EncodeToString([]byte(v)),
			strings.ToUpper(hex.EncodeToString([]byte(v))), url.QueryEscape(v), url.PathEscape(v), strings.ReplaceAll(v, "&", "&amp;"), strings.ReplaceAll(v, "&", `\u0026`),
		}
	}
	said := strings.Join(append(forms(key), forms(token)...), " or ")
	quoted := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	call := func(id, tool string, args any) modeltest.Call {
		return modeltest.Call{ID: id, Tool: tool, Args: quoted(args)}
	}
	server := modelServer(t,
		modeltest.Answer{Text: said, Calls: []modeltest.Call{
			call("c1", "bash", map[string]any{"command": "cat > said.txt <<'E'\n" + said + "\nE\ncat said.txt; printf '%s\\n' \"$TOKEN\"; printf %s \"$TOKEN\" | base64; printf %s \"$TOKEN\" | od -An -tx1; touch \"f $TOKEN\"", "description": said}),
			call("c2", "asker", map[string]any{"task_prompt": said, "output_mode": said, "prompt": said}),
			call("c3", "no-such-"+key, map[string]any{"a": said}),
			call("c4", "refused", map[string]any{"a": said}),
			call("c5", "asked", map[string]any{"a": said}),
		}}.Step(),
		modeltest.Answer{Text: "done " + said}.Step())
	keyFile := filepath.Join(t.TempDir(), "key-file")
	write(t, keyFile, key+"\n")
	t.Setenv("CANARY_TOKEN", token)
	tool := func(name, command string) string {
		return "---\napiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: " + name + "}\nspec:\n  description: A tool.\n  parameters: {type: object}\n  env: [{name: TOKEN, valueFrom: {env: CANARY_TOKEN}}]\n  source: {exec: {command: [sh, -c, " + command + "]}}\n"
	}
	p := newPlace(t, "apiVersion: agentctl.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec:\n  modelRef: {name: first}\n  instructions: \"Never say "+key+".\"\n  tools: [{name: bash}, {name: asker}, {name: refused}, {name: asked}]\n  policyRefs: [{name: p}]\n"+
		openaiModel("first", server.URL, "apiKey: {valueFrom: {file: "+keyFile+"}}")+
		"---\napiVersion: agentctl.dev/v1alpha1\nkind: Policy\nmetadata: {name: p}\nspec:\n  rules:\n  - {name: never, match: {tools: [refused]}, action: deny, messageExpression: \"'no: ' + call.args.a\"}\n  - {name: who, match: {tools: [asked]}, action: ask, messageExpression: \"'why: ' + call.args.a\"}\n  - {name: fine, match: {tools: [bash, asker]}, action: allow}\n"+
		"---\napiVersion: agentctl.dev/v1alpha1\nkind: Tool\nmetadata: {name: bash}\nspec:\n  env: [{name: TOKEN, valueFrom: {env: CANARY_TOKEN}}]\n  source: {builtin: {name: bash}}\n"+
		tool("asker", "'cat; printenv TOKEN'")+strings.ReplaceAll(tool("refused", "cat")+tool("asked", "cat"), "parameters: {type: object}", "parameters: {type: object, properties: {a: {type: string}}}"), nil)
	out, err := Run(t.Context(), p.options(func(o *RunOptions) {
		o.Prompt, o.User = "What is "+said+"?", "jane"
	}))
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		_ = invalid.Write(t.Output(), 20)
	}
	if err != nil {
		t.Fatal(err)
	}
	want(t, out, reason.Completed)
	if len(out.Result().ToolCalls) != 5 || out.Result().ToolCalls[0].State != "completed" {
		t.Fatalf("the calls did not run: %+v", out.Result().ToolCalls)
	}
	applied, err := runs.Apply(t.Context(), runs.ApplyOptions{State: p.state, Ref: out.Run.ID, By: "jane@pts/3"})
	if err != nil || len(applied.Files) != 2 {
		t.Fatalf("%+v, %v", applied, err)
	}
	audited(t, out.Journal, false)
	log, err := os.ReadFile(filepath.Join(out.Journal, audit.FileName))
	if err != nil {
		t.Fatal(err)
	}
	st, err := auditdoor.Statement(t.Context(), out.Journal)
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(log, []byte(`"task_prompt":"***`)) || !bytes.Contains(log, []byte("workspace.applied")) || !bytes.Contains(log, []byte(`"secret":"env:CANARY_TOKEN"`)) || len(st.Subject) != 2 {
		t.Errorf("the log or the receipt lacks what could hold a secret:\n%s\n%s", log, receipt)
	}
	for where, text := range map[string][]byte{"the audit log": log, "the receipt": receipt} {
		found := 0
		for _, form := range append(forms(key), forms(token)...) {
			for _, as := range []string{form, quoted(form)[1 : len(quoted(form))-1]} {
				if found++; bytes.Contains(text, []byte(as)) {
					t.Errorf("%s holds %s", where, as)
				}
			}
		}
		for _, part := range []string{"canary/", "0123456789==", "canary&", "9876543210"} {
			if bytes.Contains(text, []byte(part)) {
				t.Errorf("%s holds the part %s", where, part)
			}
		}
	}
}

// stepOf is the step of a call as the audit log has it.
func stepOf(v *view.Run, c *message.ToolPart) string {
	if c.Expands != "" {
		return "prompt_1"
	}
	return fmt.Sprint("step_", v.Step(c.CallID))
}
