package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/runner/approval"
	"agentctl.dev/agentctl/runner/journal"
	"agentctl.dev/agentctl/runner/runs"
)

const askAll = "apiVersion: agentctl.dev/v1alpha1\nkind: Policy\nmetadata: {name: p}\nspec:\n  rules: [{name: ask, action: ask}]\n"

func asking(t *testing.T, onAsk, steps string, files map[string]string) place {
	t.Helper()
	return newPlace(t, agent("approvals: {onAsk: "+onAsk+", timeout: 10m}\ntools: [{name: write}, {name: bash}]\npolicyRefs: [{name: p}]", steps, askAll), files)
}

// untilAsked begins a run that goes on by itself, and returns when it asks.
func (p place) untilAsked(t *testing.T) (run string, outcome <-chan *Outcome) {
	t.Helper()
	asked := make(chan string, 1)
	ended := make(chan *Outcome, 1)
	go func() {
		out, err := Run(context.WithoutCancel(t.Context()), p.options(func(o *RunOptions) {
			o.Events = func(e event.Event) {
				if _, is := e.Data.(event.ApprovalRequested); is {
					asked <- e.Run
				}
			}
		}))
		if err != nil {
			t.Error(err)
		}
		close(asked) // else nobody would see that it never asked
		ended <- out
	}()
	return <-asked, ended
}

func (p place) goOn(t *testing.T) *Outcome {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.cassette.jsonl")
	out, err := Resume(t.Context(), ResumeOptions{Ref: "@latest", State: p.state, Approve: "never", Version: "test", Record: file})
	if err != nil {
		t.Fatal(err)
	}
	replaysAsItWas(t, out, file)
	return out
}

func (p place) answer(t *testing.T, ref string, change func(*runs.AnswerOptions)) *runs.Answered {
	t.Helper()
	o := runs.AnswerOptions{Ref: ref, State: p.state, Approve: true, By: "jane@pts/1"}
	if change != nil {
		change(&o)
	}
	a, err := runs.Answer(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAnotherProcessAnswersARunThatWaits(t *testing.T) {
	p := asking(t, "Wait", `
- calls: [{tool: write, args: {path: a/f, content: x}}]
- calls: [{tool: write, args: {path: a/g, content: x}}, {tool: write, args: {path: b/h, content: x}}]
- say: done
`, nil)
	questions := make(chan string, 8)
	outcome := make(chan *Outcome, 1)
	go func() {
		out, err := Run(context.WithoutCancel(t.Context()), p.options(func(o *RunOptions) {
			o.Events = func(e event.Event) {
				if _, asked := e.Data.(event.ApprovalRequested); asked {
					questions <- e.Run + "/" + e.Call
				}
			}
		}))
		if err != nil {
			t.Error(err)
		}
		outcome <- out
	}()
	first := <-questions
	calls, err := runs.Waiting(t.Context(), p.state)
	if err != nil || len(calls) != 1 || calls[0].Ref != first || calls[0].State != runs.Waits || calls[0].ExpiresAt == nil {
		t.Fatalf("got %+v, %v", calls, err)
	}
	var text bytes.Buffer
	if err := calls[0].Write(&text); err != nil || !strings.Contains(text.String(), "path: a/f") || !strings.Contains(text.String(), `always: edit "a/*"`) {
		t.Errorf("got %v\n%s", err, text.String())
	}
	if a := p.answer(t, first, func(o *runs.AnswerOptions) { o.Always = true }); !a.Taken || a.Scope != message.Always || !strings.Contains(a.Policy, `pattern: "a/*"`) {
		t.Errorf("got %+v", a)
	}
	// a/g is of that kind; about b/h the run asks.
	var second string
	for second = <-questions; !strings.HasSuffix(second, "call_2_2"); second = <-questions {
	}
	if _, err := runs.Answer(t.Context(), runs.AnswerOptions{Ref: first, State: p.state, Approve: true, By: "joe"}); err == nil || !strings.Contains(err.Error(), "answered already: approved by jane@pts/1") {
		t.Errorf("got %v", err)
	}
	if a := p.answer(t, second, func(o *runs.AnswerOptions) { o.Approve, o.Reason = false, "not there" }); !a.Taken {
		t.Errorf("got %+v", a)
	}
	out := <-outcome
	if got := out.Run.Finished.Output; got != "done" || len(out.Run.Remembered) != 1 {
		t.Errorf("got %+v", out.Run.Finished)
	}
	if c := out.Run.Call("call_2_1"); c.State != message.StateCompleted || !strings.HasPrefix(out.Run.Answer("call_2_1").By, "remembered: ") {
		t.Errorf("got %+v", c)
	}
	if c := out.Run.Call("call_2_2"); c.Result.Code != message.CodeRejected || !strings.Contains(c.Result.Text, "not there") {
		t.Errorf("got %+v", c.Result)
	}
	left, err := os.ReadDir(filepath.Join(out.Journal, "inbox"))
	if err != nil || len(left) > 0 {
		t.Errorf("left in the inbox: %v, %v", left, err)
	}
}

func TestSuspendedRunTakesTheAnswerThatWasLeft(t *testing.T) {
	p := asking(t, "Suspend", `
- calls: [{tool: bash, args: {command: ls}}]
- calls: [{tool: write, args: {path: f, content: x}}]
- calls: [{tool: bash, args: {command: ls -a}}]
- say: done
`, nil)
	if out := p.run(t); out.Run.Phase != view.Suspended {
		t.Fatalf("got %s", out.Run.Phase)
	}
	if a := p.answer(t, "@latest", func(o *runs.AnswerOptions) { o.Always = true }); a.Taken {
		t.Errorf("nobody can have taken it: %+v", a)
	}
	if out := p.goOn(t); out.Run.Phase != view.Suspended || out.Run.Call("call_1_1").State != message.StateCompleted {
		t.Fatalf("got %s", out.Run.Phase)
	}
	p.answer(t, "@latest/call_2", nil)
	// What was approved for always is known to the process that goes on.
	if out := p.goOn(t); out.Run.Phase != view.Succeeded || !strings.HasPrefix(out.Run.Answer("call_3_1").By, `remembered: bash "ls *"`) {
		t.Errorf("got %s, %+v", out.Run.Phase, out.Run.Answer("call_3_1"))
	}
}

func TestAnswerIsForTheQuestionThatWasShown(t *testing.T) {
	p := asking(t, "Suspend", "- calls: [{tool: bash, args: {command: ls}}]\n- calls: [{tool: write, args: {path: dir/f, content: x}}]\n- say: done\n", map[string]string{"dir/g": "g", "other/g": "g"})
	p.run(t)
	p.answer(t, "@latest", nil)
	out := p.goOn(t) // a program has run: the files stay as they are
	p.answer(t, "@latest", nil)
	// The folder becomes a link: the same call would write elsewhere.
	root := out.Run.Started.Workspace.Dir
	if err := errors.Join(os.RemoveAll(filepath.Join(root, "dir")), os.Symlink("other", filepath.Join(root, "dir"))); err != nil {
		t.Fatal(err)
	}
	out = p.goOn(t)
	if out.Run.Phase != view.Suspended || len(out.Run.PendingApprovals) != 1 || !strings.Contains(strings.Join(out.Run.Warnings, "\n"), "is not what was approved") {
		t.Errorf("got %s, warnings %q", out.Run.Phase, out.Run.Warnings)
	}
	if _, err := os.Stat(filepath.Join(root, "other", "f")); err == nil {
		t.Error("the call ran with an approval for another one")
	}
	p.answer(t, "@latest", nil)
	if out = p.goOn(t); out.Run.Phase != view.Succeeded {
		t.Errorf("got %s: %s", out.Run.Phase, out.Run.Finished.Message)
	}
}

func TestDenialWithoutAReasonEndsTheRun(t *testing.T) {
	p := asking(t, "Suspend", "- calls: [{tool: bash, args: {command: ls}}]\n- say: done\n", nil)
	p.run(t)
	p.answer(t, "@latest", func(o *runs.AnswerOptions) { o.Approve = false })
	if out := p.goOn(t); out.Run.Finished.Reason != string(reason.Denied) || out.ExitCode() != reason.ExitRefused {
		t.Errorf("got %+v", out.Run.Finished)
	}
}

func TestWhatCannotBeAnswered(t *testing.T) {
	p := asking(t, "Suspend", "- calls: [{tool: bash, args: {command: ls}}, {tool: bash, args: {command: python3 -V}}]\n- say: done\n", nil)
	if _, err := runs.Answer(t.Context(), runs.AnswerOptions{Ref: "@latest", State: p.state, By: "jane"}); err == nil {
		t.Error("there is no run")
	}
	out := p.run(t)
	for name, c := range map[string]struct {
		o     runs.AnswerOptions
		usage bool
		want  string
	}{
		"two wait":   {runs.AnswerOptions{Ref: "@latest"}, true, "2 calls of run"},
		"begin":      {runs.AnswerOptions{Ref: "@latest/call"}, true, "2 calls of run"},
		"no call":    {runs.AnswerOptions{Ref: "@latest/x"}, true, "has no call x"},
		"no run":     {runs.AnswerOptions{Ref: "nobody/x"}, true, "there is no such run"},
		"outside":    {runs.AnswerOptions{Ref: "../x/y"}, true, "no run can have this name"},
		"not always": {runs.AnswerOptions{Ref: "@latest/call_1_2", Approve: true, Always: true}, true, "python3 runs whatever it is given"},
		"reason":     {runs.AnswerOptions{Ref: "@latest/call_1_1", Reason: strings.Repeat("x", 5000)}, true, "reason is longer"},
		"bytes":      {runs.AnswerOptions{Ref: "@latest/call_1_1", Reason: "\xff"}, true, "no UTF-8"},
	} {
		c.o.State, c.o.By = p.state, "jane"
		_, err := runs.Answer(t.Context(), c.o)
		if _, usage := errors.AsType[*reason.UsageError](err); usage != c.usage || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(out.Journal, "inbox")); err == nil {
		t.Error("something was left in the inbox")
	}
}

func TestRunThatDoesNotListenIsToldOf(t *testing.T) {
	p := asking(t, "Wait", "- calls: [{tool: bash, args: {command: ls}}]\n- say: done\n", nil)
	asked := make(chan struct{})
	ended := make(chan *Outcome, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		out, err := Run(ctx, p.options(func(o *RunOptions) {
			o.Events = func(e event.Event) {
				if _, is := e.Data.(event.ApprovalRequested); is {
					close(asked)
				}
			}
		}))
		if err != nil {
			t.Error(err)
		}
		ended <- out
	}()
	<-asked
	// It listens every 150 ms; whoever has less patience takes the answer back.
	_, err := runs.Answer(t.Context(), runs.AnswerOptions{Ref: "@latest", State: p.state, Approve: true, By: "jane", Patience: time.Nanosecond})
	if err != nil && !strings.Contains(err.Error(), "does not take the answer") {
		t.Errorf("got %v", err)
	}
	cancel()
	out := <-ended
	if left, err := os.ReadDir(filepath.Join(out.Journal, "inbox")); err != nil || len(left) > 0 {
		t.Errorf("left in the inbox: %v, %v", left, err)
	}
}

func TestFloodOfForgedAnswersIsTwoHandsfulOfWarnings(t *testing.T) {
	p := asking(t, "Wait", "- calls: [{tool: bash, args: {command: ls}}]\n- say: done\n", nil)
	run, outcome := p.untilAsked(t)
	waiting, err := runs.Waiting(t.Context(), p.state)
	if err != nil || len(waiting) != 1 {
		t.Fatalf("got %+v, %v", waiting, err)
	}
	found, err := journal.FindRun(p.state, run)
	if err != nil {
		t.Fatal(err)
	}
	inbox := approval.NewInbox(found.Dir, time.Now)
	for i := range 400 {
		err := inbox.Put(approval.Request{
			ID: fmt.Sprintf("a%03d", i), Run: waiting[0].Run, Call: waiting[0].Call, Binding: "forged", State: message.Approved, By: "nobody", Time: time.Now().UnixMilli(),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p.answer(t, "@latest", nil)
	out := <-outcome
	if out.Run.Phase != view.Succeeded || out.Run.Answer("call_1_1").By != "jane@pts/1" {
		t.Errorf("got %s, %+v", out.Run.Phase, out.Run.Answer("call_1_1"))
	}
	warned := 0
	for _, w := range out.Run.Warnings {
		if strings.Contains(w, "inbox") {
			warned++
		}
	}
	const limit = 16
	if warned != limit+1 {
		t.Errorf("%d warnings, want %d and one that says there were more:\n%s", warned, limit, strings.Join(out.Run.Warnings, "\n"))
	}
}
